"""Fixtures that every room shares."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
