"""Clients that are known by a document at a URL connect from nothing, in a real browser.

The server runs in a process of its own and fetches the documents over https, guard and all.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from pathlib import Path
from urllib.parse import parse_qsl
from uuid import uuid4

import httpx2
import pytest
from joserfc import jwt
from mcp.client.auth import OAuthClientProvider
from selenium import webdriver

from pdpp_mcp_server.rs_client.authorization_flows import listening
from personal_server.authorization_server.client_assertions import ASSERTION_TYPE
from personal_server.console.consent_view import CLAIMED
from tests.browser.agent import Agent, live_through, read_messages
from tests.browser.process import server_process
from tests.browser.publishing import CHATGPT, CHATGPT_KEYS, CLAUDE, KEY, Publisher, publishing
from tests.browser.site import Owner
from tests.ports import free_port

pytestmark = [pytest.mark.browser, pytest.mark.anyio]


class Signing(OAuthClientProvider):
    """The SDK's client, with an assertion in every request to the token endpoint.

    The SDK signs for the client credentials grant only; hosts with keys add it to this one.
    """

    async def _exchange_token_authorization_code(
        self, auth_code: str, code_verifier: str
    ) -> httpx2.Request:
        return signed(await super()._exchange_token_authorization_code(auth_code, code_verifier))

    async def _refresh_token(self) -> httpx2.Request:
        return signed(await super()._refresh_token())


def signed(request: httpx2.Request) -> httpx2.Request:
    """A token request with a fresh assertion of the client that makes it."""
    form = dict(parse_qsl(request.content.decode()))
    now = int(time.time())  # noqa: TID251 - a client's own clock
    claims = {
        "iss": CHATGPT,
        "sub": CHATGPT,
        "aud": str(request.url),
        "iat": now,
        "exp": now + 300,
        "jti": str(uuid4()),
    }
    header = {"alg": "ES256", "kid": "k1"}
    form["client_assertion_type"] = ASSERTION_TYPE
    form["client_assertion"] = jwt.encode(header, claims, KEY, algorithms=["ES256"])
    return httpx2.Request(request.method, request.url, data=form)


class Claude(Agent):
    name = "Claude"
    named = ("claude.example",)
    level = CLAIMED


class ChatGpt(Agent):
    name = "ChatGPT"
    named = ("chatgpt.example",)
    level = CLAIMED
    provider = Signing


@pytest.fixture
def publisher(tmp_path: Path) -> Generator[Publisher]:
    with publishing(tmp_path, free_port()) as host:
        yield host


@pytest.fixture
def owner(browser: webdriver.Chrome, tmp_path: Path, publisher: Publisher) -> Generator[Owner]:
    with server_process(tmp_path, publisher) as running:
        made = Owner(browser, running)
        made.sign_in()
        yield made


async def refresh_without_proof(agent: Agent) -> httpx2.Response:
    """The last refresh token, sent by somebody who has no key."""
    assert agent.keeper.tokens is not None
    form = {
        "grant_type": "refresh_token",
        "refresh_token": str(agent.keeper.tokens.refresh_token),
        "client_id": CHATGPT,
    }
    async with httpx2.AsyncClient() as http:
        return await http.post(f"{agent.owner.site.origin}/oauth/token", data=form)


async def test_a_stolen_refresh_token_of_a_client_with_keys_opens_nothing(owner: Owner) -> None:
    with listening() as listener:
        agent = ChatGpt(owner, listener, CHATGPT)
        async with agent.session() as session:
            assert len(await read_messages(session)) == 2
        refused = await refresh_without_proof(agent)
        agent.let_the_token_expire()
        async with agent.session() as session:
            assert len(await read_messages(session)) == 2
    assert refused.json()["error"] == "invalid_client"
    assert agent.consents == 1


@pytest.mark.parametrize(
    ("kind", "url", "fetched"),
    [
        # the other does all of it, and proves itself by its keys
        pytest.param(Claude, CLAUDE, [CLAUDE], marks=pytest.mark.long),
        (ChatGpt, CHATGPT, [CHATGPT, CHATGPT_KEYS]),
    ],
    ids=["none", "private_key_jwt"],
)
async def test_a_client_with_a_document_connects_refreshes_and_asks_again_after_the_end(
    owner: Owner, publisher: Publisher, kind: type[Agent], url: str, fetched: list[str]
) -> None:
    with listening() as listener:
        agent = kind(owner, listener, url)
        await live_through(agent)
    assert agent.keeper.client is not None
    assert agent.keeper.client.client_id == url
    assert publisher.asked == fetched
    owner.open(f"{owner.site.origin}/owner/access")
    assert owner.sees(kind.name)
