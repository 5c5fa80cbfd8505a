"""What the stdio adapter imports before it answers: nothing that a call does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

server = ("apsw", "personal_server.storage", "personal_server.resource_server")
pages = ("jinja2", "personal_server.console", "personal_server.authorization_server", "argon2")
protocol = ("mcp", "pydantic", "rich", "personal_server.mcp_adapter")

REFUSING = "import personal_server.cli.mcp"


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
    assert name not in loaded(f"{REFUSING}, personal_server.mcp_adapter.first_answers")


@pytest.fixture(scope="module")
def refusing() -> set[str]:
    return loaded(REFUSING)


@pytest.fixture(scope="module")
def serving() -> set[str]:
    modules = "mcp_adapter.stdio, personal_server.rs_client.http"
    return loaded(f"{REFUSING}, personal_server.{modules}")
