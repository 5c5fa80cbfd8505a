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

from tests.app.http_server.served import (
    PAYMENTS,
    SECONDS,
    ServedProcess,
    command,
    until,
)
from tests.console.household import HOME

pytestmark = pytest.mark.of_files("the disk is the one that the file lies on")
SIZE = "size=12m"
LARGE = 200_000


@pytest.fixture
def disk(tmp_path: Path) -> Generator[Path]:
    """A small file system of its own."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", SIZE, "tmpfs", place], check=False)
    if made.returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def full(disk: Path) -> Generator[None]:
    """Not a byte is left."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for step in (65_536, 1):
            try:
                while True:
                    file.write(b"x" * step)
            except OSError:
                continue
    yield
    filler.unlink()


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
            health = served.get("/healthz")
            assert health.status_code == 503
            faults = {fault["part"]: fault["code"] for fault in health.json()["faults"]}
            assert faults["disk"] == "disk_full"
            assert served.get("/healthz/live").status_code == 200
            assert exported(served) > 0
        until(lambda: written(served).status_code < 300)
    assert "nothing can be written: disk_full" in served.log
    assert "writing works again" in served.log


@pytest.mark.parametrize("clean", [True, False])
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
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with running(served):
        assert is_refused(written(served), "read_only")
        assert exported(served) > 0
        assert served.get(PAYMENTS, served.owner_token).status_code == 200
        assert served.health()["status"] == "failing"
    variables = {**os.environ, "PDPP_DATA_DIR": str(disk / "data")}  # noqa: TID251 (a child's environment)
    done = subprocess.run(
        command("grant", "list"), env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "An agent" in done.stdout
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)


def test_a_journal_left_on_a_disk_that_can_only_be_read_is_read(
    served: ServedProcess, disk: Path
) -> None:
    with running(served):
        assert written(served).status_code < 300
        served.process.kill()
        served.process.wait()
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    with running(served):
        state = served.get(STATE, served.owner_token)
        assert len(state.content) > LARGE
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    shutil.rmtree(disk / "data")
