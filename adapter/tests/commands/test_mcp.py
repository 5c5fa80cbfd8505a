"""What the stdio adapter imports before it answers: nothing that a call does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
