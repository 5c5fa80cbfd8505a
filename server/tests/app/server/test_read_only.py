"""A disk that is full, or can only be read: nothing is lost, and the owner can look and export."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import orjson
import pytest

from server.tests.app.http_server.served import (
    PAYMENTS,
    SECONDS,
    ServedProcess,
    command,
    until,
)
from server.tests.console.household import HOME
from tests.small_disk import full, only_read, small_disk

pytestmark = pytest.mark.of_files("the disk is the one that the file lies on")
LARGE = 200_000


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    with small_disk(tmp_path / "disk") as place:
        yield place


@contextmanager
def running(served: ServedProcess) -> Generator[None]:
    served.start()
    try:
        yield
    finally:
        if served.process.poll() is None:
            served.stop()


@pytest.fixture
def served(disk: Path) -> ServedProcess:
    made = ServedProcess(disk, {})
    made.furnish()
    return made


STATE = f"/v1/state/mail?connection_id={HOME}"


def written(served: ServedProcess) -> httpx2.Response:
    """A write of the owner's that needs room."""
    return httpx2.put(
        f"{served.origin}{STATE}",
        headers={"Authorization": f"Bearer {served.owner_token}"},
        json={"state": {"messages": {"seen": "x" * LARGE}}},
        timeout=SECONDS,
    )


def exported(served: ServedProcess) -> int:
    """How many records a complete export has."""
    lines = served.get("/v1/owner/export", served.owner_token).content.splitlines()
    return orjson.loads(lines[-1])["record_count"]


def disk_fault(served: ServedProcess) -> tuple[int, str]:
    """What health answers, and says of the disk."""
    health = served.get("/healthz")
    codes = {fault["part"]: fault["code"] for fault in health.json()["faults"]}
    return health.status_code, codes["disk"]


def is_refused(answer: httpx2.Response, reason: str) -> bool:
    error = answer.json()["error"]
    found = (answer.status_code, error["code"], error["reason"])
    return found == (503, "storage_read_only", reason)


def test_on_a_full_disk_writes_are_refused_by_name_and_the_owner_exports(
    served: ServedProcess, disk: Path
) -> None:
    with running(served):
        assert written(served).status_code < 300
        with full(disk):
            assert is_refused(written(served), "disk_full")
            assert disk_fault(served) == (503, "disk_full")
            assert served.get("/healthz/live").status_code == 200
            assert exported(served) > 0
        until(lambda: written(served).status_code < 300)
    assert "nothing can be written: disk_full" in served.log
    assert "writing works again" in served.log


# one that was killed has to find its journal too
@pytest.mark.parametrize("clean", [pytest.param(True, marks=pytest.mark.long), False])
def test_a_server_starts_on_a_full_disk_and_reads_what_was_acknowledged(
    served: ServedProcess, disk: Path, clean: bool
) -> None:
    with running(served):
        assert written(served).status_code < 300
        if not clean:
            served.process.kill()
            served.process.wait()
    with full(disk), running(served):
        assert is_refused(written(served), "disk_full")
        state = served.get(STATE, served.owner_token)
        assert len(state.content) > LARGE
        assert exported(served) > 0


def test_a_server_starts_on_a_disk_that_can_only_be_read(served: ServedProcess, disk: Path) -> None:
    with running(served):
        assert served.get(PAYMENTS, served.client_token).status_code == 200
    with only_read(disk):
        with running(served):
            assert is_refused(written(served), "read_only")
            assert exported(served) > 0
            assert served.get(PAYMENTS, served.owner_token).status_code == 200
            assert served.health()["status"] == "failing"
        variables = {**os.environ, "PDPP_DATA_DIR": str(disk / "data")}  # noqa: TID251 (a child's environment)
        done = subprocess.run(
            command("grant", "list"), env=variables, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "An agent" in done.stdout


def test_a_journal_left_on_a_disk_that_can_only_be_read_is_read(
    served: ServedProcess, disk: Path
) -> None:
    with running(served):
        assert written(served).status_code < 300
        served.process.kill()
        served.process.wait()
    with only_read(disk), running(served):
        state = served.get(STATE, served.owner_token)
        assert len(state.content) > LARGE
    shutil.rmtree(disk / "data")


def test_data_that_was_moved_under_a_server_is_named_until_it_is_back(
    served: ServedProcess, disk: Path
) -> None:
    with running(served):
        assert written(served).status_code < 300
        away = served.settings.data_dir.rename(disk / "away")
        refused = written(served)
        assert (refused.status_code, refused.json()["error"]["code"]) == (
            503,
            "storage_unavailable",
        )
        assert disk_fault(served) == (503, "data_moved")
        blob = httpx2.post(
            f"{served.origin}/v1/blobs?connection_id={HOME}&stream=messages&record_key=m000",
            headers={"Authorization": f"Bearer {served.owner_token}", "Content-Type": "image/png"},
            content=b"a picture",
            timeout=SECONDS,
        )
        assert (blob.status_code, blob.json()["error"]["code"]) == (503, "storage_unavailable")
        assert not served.settings.data_dir.exists()
        away.rename(served.settings.data_dir)
        assert written(served).status_code < 300
        assert disk_fault(served)[1] == "disk_low"
    assert "defect" not in served.log
