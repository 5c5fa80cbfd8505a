"""What the stdio adapter imports before it answers: nothing that a call does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

server = ("apsw", "personal_server.storage", "personal_server.resource_server")
pages = ("jinja2", "personal_server.console", "personal_server.authorization_server", "argon2")
protocol = ("mcp", "pydantic", "rich", "personal_server.mcp_adapter")


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


@pytest.fixture(scope="module")
def refusing() -> set[str]:
    return loaded("import personal_server.cli.mcp")


@pytest.fixture(scope="module")
def serving() -> set[str]:
    modules = "mcp_adapter.stdio, personal_server.rs_client.http"
    return loaded(f"import personal_server.cli.mcp, personal_server.{modules}")
