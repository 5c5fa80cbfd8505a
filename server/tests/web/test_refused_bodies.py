"""What is refused before its body is read lets a short one arrive first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from personal_server.web.refused_bodies import SHORT_BYTES, let_arrive
from tests.requirements.doors import Outer, World, hosted

pytestmark = pytest.mark.anyio


class Sent:
    """What a client sends, one part after the other."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self.parts = list(parts)

    async def __call__(self) -> dict[str, Any]:
        return {
            "type": "http.request",
            "body": self.parts.pop(0),
            "more_body": bool(self.parts),
        }


async def test_a_short_body_is_taken_and_a_long_one_or_none_is_not() -> None:
    for length, left in (("3", 0), (str(SHORT_BYTES + 1), 3), ("0", 3), ("", 3), ("three", 3)):
        sent = Sent((b"a", b"b", b"c"))
        await let_arrive({"content-length": length}, sent)
        assert len(sent.parts) == left


async def test_a_call_without_a_token_is_answered_when_it_has_arrived() -> None:
    sent, answered = Sent((b"{", b"}")), list[tuple[str, int]]()

    async def send(message: Any) -> None:
        answered.append((message["type"], len(sent.parts)))

    headers = [(b"host", b"127.0.0.1:7662"), (b"content-length", b"2")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": headers,
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "http_version": "1.1",
    }
    app = hosted(World())
    async with app.run():
        await Outer(app)(scope, sent, send)
    assert answered[0] == ("http.response.start", 0)
