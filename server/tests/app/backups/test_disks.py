"""A disk or folder that is full, gone or closed is named, and nothing half written stays."""

from __future__ import annotations

import errno
import fcntl
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import StorageReadOnly
from personal_server.app import backups
from personal_server.app.backups import UNFINISHED, BackupOrder, make_backup, verify_backup
from personal_server.app.scheduled_backups import ScheduledBackups
from personal_server.app.stores import Stores, open_stores
from personal_server.settings import Settings
from personal_server.upkeep.backups import BackupRefused


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "kept").mkdir()
    return Settings(data_dir=tmp_path / "data", backup_dir=tmp_path / "kept")


@pytest.fixture
def stores(settings: Settings) -> Generator[Stores]:
    with open_stores(settings, serving=False) as opened:
        yield opened


def left(folder: Path) -> list[str]:
    return [each.name for each in folder.iterdir() if each.name.endswith(UNFINISHED)]


def test_what_a_killed_backup_left_goes_with_the_next(
    settings: Settings, stores: Stores, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    half, copy, living = (kept / f".{name}{UNFINISHED}" for name in ("half", "copy", "living"))
    half.write_text("records")
    copy.mkdir()
    (copy / "database.sqlite3").write_text("records")
    with living.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        ScheduledBackups(stores, settings).make_if_due()
        assert left(kept) == [living.name]


def test_a_full_disk_of_the_data_is_backed_up_to_another(
    settings: Settings, stores: Stores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, seen = tmp_path / "kept", set[Path]()

    def free_bytes(path: Path) -> int:
        return 0 if path == settings.data_dir else 10**12

    def copy_database(target: Path) -> None:
        seen.add(target.parent.parent)
        stores.copy_database(target)

    def full(*_: object) -> None:
        raise StorageReadOnly("The disk is full.")

    monkeypatch.setattr(backups, "note_backup", full)
    order = BackupOrder(kept / "a.pdpp", free_bytes=free_bytes)
    made = make_backup(replace(stores, copy_database=copy_database), settings, order)
    assert verify_backup(kept / "a.pdpp", None) == made
    assert seen == {kept}
    assert left(kept) == []
    # one of the schedule that nobody could know of would be made again every minute
    with pytest.raises(StorageReadOnly):
        make_backup(stores, settings, replace(order, target=kept / "b.pdpp", scheduled=True))
    assert not (kept / "b.pdpp").exists()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "disk is full"),
        (errno.EACCES, "write to the folder"),
        (errno.EROFS, "write to the folder"),
        (errno.EIO, "folder is gone, or its disk is failing"),
    ],
)
def test_what_is_wrong_with_the_target_is_told_until_a_backup_is_made(
    settings: Settings,
    stores: Stores,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    words: str,
) -> None:
    def broken(*_: object) -> None:
        raise OSError(number, "")

    scheduled = ScheduledBackups(stores, settings)
    with monkeypatch.context() as patched:
        patched.setattr(backups, "publish", broken)
        for _ in range(2):
            with pytest.raises(BackupRefused):
                scheduled.make_if_due()
    failure = stores.upkeep.backup_failure()
    assert failure is not None
    assert words in failure.why
    assert [fault.code for fault in scheduled.faults()] == ["backup_failed"]
    scheduled.make_if_due()
    assert stores.upkeep.backup_failure() is None
    assert not [fault for fault in scheduled.faults() if fault.code == "backup_failed"]


def test_a_folder_that_is_gone_is_told(settings: Settings, stores: Stores, tmp_path: Path) -> None:
    (tmp_path / "kept").rmdir()
    with suppress(BackupRefused):
        ScheduledBackups(stores, settings).make_if_due()
    failure = stores.upkeep.backup_failure()
    assert failure is not None
    assert "folder" in failure.why
    assert not (tmp_path / "kept").exists()
