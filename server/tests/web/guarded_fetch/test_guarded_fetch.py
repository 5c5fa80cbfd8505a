"""A stranger's document is fetched within its limits, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import anyio
import httpx2
import pytest

from pdpp_kernel.oauth_errors import InvalidClient
from personal_server.web.guarded_fetch import MAX_DOCUMENT, GuardedFetch

pytestmark = pytest.mark.anyio
URL = "https://app.example/client.json?v=1"
JSON = {"content-type": "application/json"}


async def resolve(host: str) -> Sequence[str]:
    return ["93.184.216.34"]


def answering(response: httpx2.Response) -> GuardedFetch:
    return GuardedFetch(resolve, httpx2.MockTransport(lambda _: response), timeout_seconds=0.05)


async def endless() -> AsyncIterator[bytes]:
    yield b"{"
    await anyio.sleep_forever()


async def large() -> AsyncIterator[bytes]:
    for _ in range(MAX_DOCUMENT):
        yield b"xx"


async def small() -> AsyncIterator[bytes]:
    yield b'{"a":'
    yield b"1}"


async def test_a_good_answer_with_its_age() -> None:
    headers = {"content-type": "application/ld+json; charset=utf-8", "cache-control": "max-age=60"}
    found = await answering(httpx2.Response(200, headers=headers, content=small()))(URL, 100)
    assert (found.body, found.max_age_seconds) == (b'{"a":1}', 60)


async def test_a_body_that_never_ends_is_left() -> None:
    with pytest.raises(InvalidClient):
        await answering(httpx2.Response(200, headers=JSON, content=endless()))(URL, 100)


async def test_a_body_over_the_limit_is_left_early() -> None:
    with pytest.raises(InvalidClient):
        await answering(httpx2.Response(200, headers=JSON, content=large()))(URL, MAX_DOCUMENT)


@pytest.mark.parametrize(
    ("status", "content_type"),
    [(201, "application/json"), (301, "application/json"), (500, "application/json")]
    + [(200, kind) for kind in ("text/html", "application/jsonp", "text/json", "")],
)
async def test_another_status_or_type_is_refused(status: int, content_type: str) -> None:
    headers = {"content-type": content_type, "location": "https://evil.example/"}
    with pytest.raises(InvalidClient):
        await answering(httpx2.Response(status, headers=headers, content=small()))(URL, 100)


async def test_a_network_that_fails_is_told_without_its_words() -> None:
    def fails(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("secret network detail")

    async def nowhere(host: str) -> Sequence[str]:
        raise OSError("no such name")

    broken = GuardedFetch(resolve, httpx2.MockTransport(fails))
    for fetch in (broken, GuardedFetch(nowhere)):
        with pytest.raises(InvalidClient) as caught:
            await fetch(URL, 100)
        assert "detail" not in caught.value.message
        assert "name" not in caught.value.message
