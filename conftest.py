"""Fixtures that every room shares, and the watch over secrets that the whole suite stands under."""

import gc
import os
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.long_first import begun_with_long
from tests.shared_collection import begun_at, is_of_everything, modules_of

pytest_plugins = [
    "tests.secrecy.plugin",
    "tests.reached.plugin",
    "tests.reruns",
    "tests.no_authorities",
]
if os.environ.get("PDPP_TEST_DATABASE") == "postgresql":  # noqa: TID251 (a setting of tests)
    pytest_plugins.append("tests.on_postgresql")

# The first text that is drawn reads a table of all characters, and a busy machine lets any example
# wait: what may not take long is measured where it is the subject, not by a bound on every example.
hypothesis.settings.register_profile(
    "suite", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("suite")

# Fourteen thousand tests are collected by each worker, and hardly an object of that is ever freed.
gc.disable()

COLLECTED = pytest.StashKey[dict[Path, int]]()
LONG_SECONDS = 900
# These drive a browser, foreign programs or thousands of cases for minutes, beside other tests.
LONG = (
    "server/tests/app/http_server/test_workers.py",
    "server/tests/app/server/test_years.py",
    "server/tests/app/test_feeding.py",
    "server/tests/cli/test_backup.py",
    "tests/browser/test_accessibility.py",
    "tests/browser/test_authorization_scenarios.py",
    "tests/browser/test_connecting.py",
    "tests/browser/test_consent.py",
    "tests/browser/test_metadata_documents.py",
    "tests/browser/test_pages.py",
    "tests/browser/test_uploads.py",
    "tests/browser/test_walk.py",
    "tests/conformance/test_own_answers.py",
    "tests/conformance/test_server_scenarios.py",
    "tests/conformance/test_typescript_clients.py",
    "tests/crash/test_kill.py",
    "tests/deploy/test_wheel.py",
    "tests/generated_clients/test_generated_clients.py",
    "tests/house/test_roads.py",
    "tests/journeys/test_grant_changes.py",
    "tests/journeys/test_main_job.py",
    "tests/journeys/test_natural_questions.py",
    "tests/journeys/test_questions.py",
    "tests/journeys/test_readme.py",
    "tests/journeys/test_real_files.py",
    "tests/journeys/test_sources.py",
    "tests/journeys/test_subscriptions.py",
    "tests/journeys/test_views.py",
    "tests/properties/test_any_query.py",
    "tests/properties/test_lifecycles.py",
    "tests/requirements/test_mutations.py",
    "tests/soak/test_soak.py",
    "tests/torture/test_erasing.py",
    "tests/torture/test_failover.py",
    "tests/torture/test_following.py",
    "tests/torture/test_restoring.py",
    "tests/torture/test_torture.py",
)


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Let each worker of a run of everything collect first what no other does."""
    worker: dict[str, Any] = getattr(config, "workerinput", {})
    if worker and is_of_everything(config):
        modules = modules_of(Path(config.rootpath, folder) for folder in config.args)
        number = int(worker["workerid"].removeprefix("gw"))
        config.args = [str(path) for path in begun_at(modules, number, worker["workercount"])]
        config.stash[COLLECTED] = {path: place for place, path in enumerate(modules)}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give all workers one order, and long tests more time; a mark of their own comes first.

    A worker collected from another module on than the next (`pytest_configure`): that is undone,
    since all have to name the same tests in the same order, and then each begins with long ones.
    """
    if places := config.stash.get(COLLECTED, None):
        items.sort(key=lambda item: places[item.path])
    long = {Path(config.rootpath, name) for name in LONG}
    for item in items:
        if not item.get_closest_marker("timeout") and item.path in long:
            item.add_marker(pytest.mark.timeout(LONG_SECONDS))
    workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
    if workers > 1:
        items[:] = begun_with_long(items, lambda item: item.path, long, workers)


def pytest_collection_finish() -> None:
    """Collect garbage from here on, and only of what tests make, in the rhythm of a server."""
    gc.freeze()
    # A server asks whether its start was frozen, and freezes more; to count the millions of objects
    # of a collection takes a tenth of a second, hundreds of times, and they are not its own.
    gc.get_freeze_count = lambda: 0
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture
def anyio_backend() -> str:
    """Asynchronous tests run on what the server runs on."""
    return "asyncio"
