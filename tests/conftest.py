"""Fixtures that every room shares, and the watch over secrets that the whole suite stands under."""

import pytest

pytest_plugins = ["tests.secrecy.plugin", "tests.reached.plugin"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
