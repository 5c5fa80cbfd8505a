"""Doors for every test that asks for one; what cannot apply is declared here, with its reason."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

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

exceptions: dict[str, dict[str, str]] = {
    "4.18-openai": {
        "memory": "the client's name is fixed when the door is opened",
        "stdio": "the client's name is fixed when the process starts",
    },
}
"""Test keyword → doors that cannot apply, and why."""


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
