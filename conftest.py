"""Fixtures that every room shares, and the watch over secrets that the whole suite stands under."""

import os
from pathlib import Path

import pytest

pytest_plugins = ["tests.secrecy.plugin", "tests.reached.plugin"]
if os.environ.get("PDPP_TEST_DATABASE") == "postgresql":  # noqa: TID251 (a setting of tests)
    pytest_plugins.append("tests.on_postgresql")

LONG_SECONDS = 900
# These drive a browser, foreign programs or thousands of cases for minutes, beside other tests.
LONG = (
    "tests/browser",
    "tests/conformance",
    "tests/crash",
    "tests/deploy",
    "tests/generated_clients",
    "tests/journeys",
    "tests/properties",
    "tests/requirements/test_mutations.py",
    "tests/soak",
    "tests/torture",
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let long tests have more than the time of every other; a mark of their own comes first."""
    long = [Path(config.rootpath, name) for name in LONG]
    for item in items:
        if not item.get_closest_marker("timeout") and any(map(item.path.is_relative_to, long)):
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on what the server runs on."""
    return "asyncio"
