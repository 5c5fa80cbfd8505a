"""Fixtures that every room shares, and the watch over secrets that the whole suite stands under."""

import os

import pytest

pytest_plugins = ["tests.secrecy.plugin", "tests.reached.plugin"]
if os.environ.get("PDPP_TEST_DATABASE") == "postgresql":  # noqa: TID251 (a setting of tests)
    pytest_plugins.append("tests.on_postgresql")


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on what the server runs on."""
    return "asyncio"
