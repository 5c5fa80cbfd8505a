"""Doors for every test that asks for one; rows that have fewer are declared in `manifest`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.requirements.doors import (
    Door,
    StdioDoor,
    World,
    door_names,
    http_door,
    memory_door,
    settings_for,
)


@pytest.fixture(scope="session")
def stdio_process(tmp_path_factory: pytest.TempPathFactory) -> Generator[StdioDoor]:
    process = StdioDoor(Path(tmp_path_factory.mktemp("cache")) / ".pdpp")
    yield process
    process.close()


@pytest.fixture(params=door_names)
async def door(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncGenerator[Door]:
    if request.param == "stdio":
        process: StdioDoor = request.getfixturevalue("stdio_process")
        yield process.door()
        return
    settings = settings_for("auto")
    behind = World()
    opened = memory_door(behind, settings)
    if request.param != "memory":
        opened = http_door(request.param, behind, settings)
    async with opened as connected:
        connected.requests.clear()
        yield connected


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and item.get_closest_marker("req") is not None:
        report.outcome = "failed"
        report.longrepr = "a test of a requirement is never skipped"
    return report
