"""Who listens for changes behind `/mcp`, by what they hold and not by its tokens."""

from __future__ import annotations

from collections.abc import Hashable

import pytest
from msgspec.structs import replace
from starlette.requests import Request

from pdpp_mcp_server.change_bell import Bell
from personal_server.hosted_mcp.admission import HostedCredential
from personal_server.hosted_mcp.library_sessions import STATE_KEY
from personal_server.hosted_mcp.sdk_sessions import listening_of
from tests.requirements.doors import World, hosted


class Silent:
    """A signal that tells of nothing."""

    count = 0

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        del last_seen, timeout_seconds
        return self.count


@pytest.mark.anyio
async def test_an_app_that_renews_its_token_takes_no_further_places_of_listeners() -> None:
    """Tokens of before a renewal last on: sixteen of them would take the places of all apps."""
    declared = hosted(World()).sessions.declared
    listening = listening_of(replace(declared, bell=Bell(Silent())))
    assert listening is not None

    def holder(token: str, grant_id: str) -> Hashable:
        credential = HostedCredential(token, "http://here", "req_1", "resource", grant_id=grant_id)
        request = Request({"type": "http", "state": {STATE_KEY: credential}})
        return listening.source_of(request)[0]

    assert holder("first", "grt_1") == holder("renewed", "grt_1") != holder("first", "grt_2")
