"""Documents of known hosts, where nobody gives them; and what is said where nothing stands in."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from personal_server.domain.hosts import CLAUDE_CODE, CODEX, DOCUMENT_DAYS, PublishedDocument
from personal_server.storage.authorization_rows import ClientDocumentRow, ClientRow, RequestRow

pytestmark = pytest.mark.anyio

CALLBACK = "http://localhost:50124/callback"
HOSTS = ("claude.ai", "chatgpt.com", "vscode.dev")
METADATA = "/.well-known/oauth-authorization-server"


def days_after(document: PublishedDocument, days: int) -> int:
    day = document.published_on + timedelta(days=days)
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * 10**9


@pytest.fixture
def offline(app: Any) -> Any:
    """Claude Code before a server that finds no name, ten days after its document was published."""
    app.client_id = CLAUDE_CODE.url
    app.server.now_ns = days_after(CLAUDE_CODE, 10)
    app.server.web.unknown |= {*HOSTS, "app.example"}
    return app


async def authorize(app: Any, **over: Any) -> Any:
    return await app.authorize(redirect_uri=CALLBACK, **over)


async def documents_offered(app: Any) -> bool:
    return (await app.http.get(METADATA)).json()["client_id_metadata_document_supported"]


async def refusal(app: Any, client_id: str) -> dict[str, Any]:
    query = urlencode(app.parameters(client_id=client_id, redirect_uri=CALLBACK))
    headers = {"Accept": "application/json"}
    return (await app.http.get(f"/oauth/authorize?{query}", headers=headers)).json()


def the_client(app: Any, url: str = CLAUDE_CODE.url) -> ClientRow:
    (row,) = app.server.rows(ClientRow, ClientRow.client_id.equals(url))
    return row


@pytest.mark.parametrize("known", [CLAUDE_CODE, CODEX])
async def test_a_known_host_is_let_in_by_what_it_published_last(
    offline: Any, known: PublishedDocument
) -> None:
    answer = await authorize(offline, client_id=known.url)
    assert answer.status_code == 303
    assert "/consent/" in answer.headers["location"]
    row = the_client(offline, known.url)
    assert (row.name, row.published_on) == (known.members["client_name"], "2026-09-08")


async def test_what_stands_in_ends_after_half_a_year(offline: Any) -> None:
    offline.server.now_ns = days_after(CLAUDE_CODE, DOCUMENT_DAYS)
    assert (await authorize(offline)).status_code == 303
    offline.server.now_ns = days_after(CLAUDE_CODE, DOCUMENT_DAYS + 1)
    refused = await refusal(offline, CLAUDE_CODE.url)
    assert (refused["error"], refused["reason"]) == ("invalid_client", "document_unreachable")
    assert offline.server.rows(ClientDocumentRow) == []


async def test_a_document_that_can_be_fetched_counts_alone(app: Any) -> None:
    app.server.now_ns = days_after(CLAUDE_CODE, 10)
    said = {**CLAUDE_CODE.members, "redirect_uris": ["https://claude.ai/elsewhere"]}
    app.server.web.publish(CLAUDE_CODE.url, said)
    assert (await authorize(app, client_id=CLAUDE_CODE.url)).status_code == 400
    assert the_client(app).published_on is None


async def test_what_was_fetched_later_stands_in_before_what_came_with_the_server(app: Any) -> None:
    app.server.now_ns = days_after(CLAUDE_CODE, 10)
    said = {**CLAUDE_CODE.members, "client_name": "Newer"}
    app.server.web.publish(CLAUDE_CODE.url, said)
    assert (await authorize(app, client_id=CLAUDE_CODE.url)).status_code == 303
    app.server.web.pages[CLAUDE_CODE.url] = httpx2.Response(503)
    app.server.now_ns = days_after(CLAUDE_CODE, 40)
    assert (await authorize(app, client_id=CLAUDE_CODE.url)).status_code == 303
    assert (the_client(app).name, the_client(app).published_on) == ("Newer", "2026-09-18")


@pytest.mark.parametrize("status", [404, 410, 302])
async def test_a_document_that_was_withdrawn_does_not_come_back(app: Any, status: int) -> None:
    app.server.now_ns = days_after(CLAUDE_CODE, 10)
    app.server.web.pages[CLAUDE_CODE.url] = httpx2.Response(status)
    assert (await authorize(app, client_id=CLAUDE_CODE.url)).status_code == 400


async def test_a_fetched_document_that_cannot_be_used_is_not_replaced(app: Any) -> None:
    app.server.now_ns = days_after(CLAUDE_CODE, 10)
    app.server.web.publish(CLAUDE_CODE.url, {**CLAUDE_CODE.members, "client_id": "https://x.y/z"})
    assert (await authorize(app, client_id=CLAUDE_CODE.url)).status_code == 400


async def test_without_internet_unknown_documents_give_way_to_registration(offline: Any) -> None:
    assert await documents_offered(offline)
    refused = await refusal(offline, "https://app.example/client.json")
    assert refused["reason"] == "document_unreachable"
    assert refused["next_step"]
    assert not await documents_offered(offline)
    offline.server.now_ns += 601 * 10**9
    assert await documents_offered(offline)


async def test_a_stranger_that_cannot_be_reached_changes_nothing_for_others(app: Any) -> None:
    app.server.web.pages["https://app.example/client.json"] = httpx2.Response(503)
    assert (await authorize(app, client_id="https://app.example/client.json")).status_code == 400
    assert await documents_offered(app)


async def test_asking_without_the_owner_leaves_nothing_of_a_document(offline: Any) -> None:
    answer = await authorize(offline, prompt="none")
    assert "error=interaction_required" in answer.headers["location"]
    assert offline.server.rows(RequestRow) == []
    assert offline.server.rows(ClientRow, ClientRow.client_id.equals(CLAUDE_CODE.url)) == []


async def test_a_check_is_gone_with_its_answer_and_asks_nobody(app: Any) -> None:
    made = (await app.register(software_id="pdpp-doctor", redirect_uris=[CALLBACK])).json()
    client_id = made["client_id"]
    assert the_client(app, client_id).registration == "check"
    answer = await authorize(app, client_id=client_id)
    assert "error=interaction_required" in answer.headers["location"]
    assert app.server.rows(RequestRow) == []
    assert app.server.rows(ClientRow, ClientRow.client_id.equals(client_id)) == []


async def test_a_check_may_neither_push_nor_poll(app: Any) -> None:
    made = (await app.register(software_id="pdpp-doctor", redirect_uris=[CALLBACK])).json()
    form = {"client_id": made["client_id"], "redirect_uri": CALLBACK}
    for path in ("/oauth/par", "/oauth/device_authorization"):
        assert (await app.post(path, **form)).json()["error"] == "invalid_client"


def test_each_written_document_names_its_own_address() -> None:
    for known in (CLAUDE_CODE, CODEX):
        assert json.loads(known.body)["client_id"] == known.url
