"""Sweeping the blob directory beside whoever works in it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from pdpp_kernel.errors import StorageUnavailable
from server.tests.storage.conftest import sqlite_store

LATER_NS = 2**62
ROUNDS = 300


def test_scratch_that_vanishes_meanwhile_is_no_error(tmp_path: Path) -> None:
    over = threading.Event()
    with sqlite_store(tmp_path) as store:
        blobs = tmp_path / "data" / "blobs"
        blobs.mkdir(exist_ok=True)

        def come_and_go() -> None:
            while not over.is_set():
                scratch = blobs / "incoming-beside"
                scratch.touch()
                scratch.unlink(missing_ok=True)

        beside = threading.Thread(target=come_and_go)
        beside.start()
        try:
            for _ in range(ROUNDS):
                assert store.sweep_blobs(LATER_NS) == 0
        finally:
            over.set()
            beside.join()


def test_what_cannot_be_removed_is_told_after_the_rest_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck, loose = (tmp_path / "data" / "blobs" / f"incoming-{name}" for name in ("a", "b"))
    unlink = Path.unlink

    def refuse_one(path: Path, missing_ok: bool = False) -> None:
        if path == stuck:
            raise PermissionError
        unlink(path, missing_ok)

    with sqlite_store(tmp_path) as store:
        stuck.parent.mkdir(exist_ok=True)
        stuck.touch()
        loose.touch()
        monkeypatch.setattr(Path, "unlink", refuse_one)
        with pytest.raises(StorageUnavailable):
            store.sweep_blobs(LATER_NS)
        assert [stuck.exists(), loose.exists()] == [True, False]
