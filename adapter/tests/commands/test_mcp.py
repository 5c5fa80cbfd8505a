"""The stdio adapter: what it imports before it answers, and a credential that goes meanwhile."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from adapter.tests.rs_client.test_refresh import PROVIDER, FakeEndpoint, cached, stored
from pdpp_mcp_server.commands.mcp import WatchedBearer
from pdpp_mcp_server.rs_client.credentials import NoCredential
from pdpp_mcp_server.rs_client.refresh import CachedBearer

server = ("apsw", "personal_server")
pages = ("jinja2", "argon2")
protocol = ("mcp", "pydantic", "rich", "pdpp_mcp_server.server")

REFUSING = "import pdpp_mcp_server.commands.mcp"


def loaded(statement: str) -> set[str]:
    """The modules of a process after one statement."""
    code = f"{statement}\nimport sys; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


@pytest.mark.parametrize("name", [*protocol, *server, *pages])
def test_a_refusal_needs_no_protocol(name: str, refusing: set[str]) -> None:
    assert name not in refusing


@pytest.mark.parametrize("name", [*server, *pages])
def test_serving_needs_nothing_of_a_server(name: str, serving: set[str]) -> None:
    assert name not in serving


@pytest.mark.parametrize("name", [*protocol[:-1], *server, *pages, "starlette"])
def test_the_first_answers_need_no_protocol(name: str) -> None:
    assert name not in loaded(f"{REFUSING}, pdpp_mcp_server.first_answers")


@pytest.fixture(scope="module")
def refusing() -> set[str]:
    return loaded(REFUSING)


@pytest.fixture(scope="module")
def serving() -> set[str]:
    return loaded(f"{REFUSING}, pdpp_mcp_server.stdio, pdpp_mcp_server.rs_client.http")


def test_a_credential_that_was_taken_away_is_not_a_server_out_of_reach(tmp_path: Path) -> None:
    credential = cached(tmp_path, FakeEndpoint(), stored(PROVIDER, 60))
    bearer = WatchedBearer(CachedBearer(credential))
    assert anyio.run(bearer.bearer).value == "pdpp_at_old"
    credential.cache.path(PROVIDER).unlink()
    for asked in (bearer.bearer, partial(bearer.renew, "pdpp_at_old")):
        with pytest.raises(NoCredential) as missing:
            anyio.run(asked)
        assert missing.value.code == "not_connected"
        assert f"pdpp connect {PROVIDER}" in missing.value.message
