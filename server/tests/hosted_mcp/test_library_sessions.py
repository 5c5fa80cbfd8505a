"""The SDK of the protocol: imported with the first request that needs it, and not before."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from typing import Any

import anyio
import pytest

from personal_server.hosted_mcp import library_sessions
from server.tests.hosted_mcp.test_call_answers import client
from tests.requirements.doors import HttpWire, World, hosted

SHOWN = """
import sys
import personal_server.cli.serving_process
late = {"mcp", "mcp_types", "pydantic", "webauthn", "joserfc", "numpy", "PIL"}
print(*sorted(late & sys.modules.keys()))
"""


def test_a_server_that_starts_imports_nothing_that_its_first_answers_do_not_need() -> None:
    shown = subprocess.run(
        [sys.executable, "-c", SHOWN], capture_output=True, check=True, text=True
    )
    assert not shown.stdout.strip()


@pytest.mark.anyio
async def test_an_import_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def failing_once(name: str) -> Any:
        asked.append(name)
        if len(asked) == 1:
            raise OSError(24, "Too many open files")
        return import_module(name)

    monkeypatch.setattr(library_sessions, "import_module", failing_once)
    app = hosted(World())
    async with app.run(), client(app) as http:
        wire = HttpWire(http, "2025-11-25")
        refused = await wire.post("resources/list")
        assert refused.status_code == 500
        assert "open files" not in refused.text
        assert (await wire.post("resources/list")).status_code == 200
    assert asked == [library_sessions.SDK_MODULE] * 2


@pytest.mark.anyio
async def test_requests_that_come_together_have_one_set_of_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def noted(name: str) -> Any:
        asked.append(name)
        return import_module(name)

    monkeypatch.setattr(library_sessions, "import_module", noted)
    app = hosted(World())
    async with app.run(), client(app) as http:
        wire = HttpWire(http, "2025-11-25")
        codes: list[int] = []

        async def ask() -> None:
            codes.append((await wire.post("prompts/list")).status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask)
    assert codes == [200] * 8
    assert len(asked) == 1
