"""Whose data a directory holds: the files of it belong together, or nothing is opened."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.app.data_repairs import write_lost_configuration
from personal_server.app.stores import open_stores
from personal_server.collecting.declarations import declare
from personal_server.settings import Settings
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.upkeep.ownership import DataMismatch
from server.tests.upkeep.machine import Machine

JOURNAL = (Path(__file__).parents[2] / "samples" / "journal.json").read_bytes()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


@pytest.fixture
def filled(settings: Settings) -> Settings:
    with open_stores(settings, serving=False) as stores:
        declare(stores.records, JOURNAL, 1)
    return settings


def owner(settings: Settings) -> str:
    with open_stores(settings, serving=False) as stores:
        return stores.configuration.subject_id


def refused(settings: Settings) -> None:
    before = sorted(path.name for path in settings.data_dir.iterdir())
    with pytest.raises(DataMismatch), open_stores(settings, serving=False):
        pass
    assert [n for n in before if n not in {p.name for p in settings.data_dir.iterdir()}] == []


def test_the_first_start_names_the_owner_once_and_for_all(settings: Settings) -> None:
    assert owner(settings) == owner(settings)
    assert owner(settings).startswith("own_")


def test_a_lost_configuration_is_refused_and_can_be_written_for_its_database(
    filled: Settings,
) -> None:
    before = owner(filled)
    (filled.data_dir / "config.toml").unlink()
    refused(filled)
    assert not (filled.data_dir / "config.toml").exists()
    write_lost_configuration(filled)
    assert owner(filled) == before
    with pytest.raises(DataMismatch):
        write_lost_configuration(filled)


def test_a_configuration_of_another_owner_is_refused(filled: Settings) -> None:
    (filled.data_dir / "config.toml").write_text('subject_id = "own_another"\n')
    refused(filled)


def test_a_file_from_before_owners_were_written_says_it_by_its_keys(filled: Settings) -> None:
    database = SqliteDatabase(filled.database_path)
    with database.write() as session:
        session.run("DELETE FROM facts WHERE name = 'subject_id'")
    database.close()
    (filled.data_dir / "config.toml").write_text('subject_id = "own_another"\n')
    refused(filled)


@pytest.mark.parametrize("content", [None, b""])
def test_a_lost_or_empty_database_is_refused_beside_a_known_configuration(
    filled: Settings, content: bytes | None
) -> None:
    filled.database_path.unlink()
    if content is not None:
        filled.database_path.write_bytes(content)
    refused(filled)
    assert not filled.database_path.exists() or not filled.database_path.stat().st_size


def test_a_start_that_was_cut_short_is_no_mismatch(settings: Settings) -> None:
    settings.data_dir.mkdir()
    settings.database_path.write_bytes(b"")
    first = owner(settings)
    (settings.data_dir / "config.toml").unlink()
    assert owner(settings) == first


def test_a_journal_without_its_database_is_refused(settings: Settings) -> None:
    settings.data_dir.mkdir()
    settings.database_path.with_name(f"{settings.database_path.name}-wal").write_bytes(b"x")
    refused(settings)


def test_an_open_database_that_was_moved_takes_no_more_writes_and_makes_no_other_file(
    filled: Settings,
) -> None:
    with open_stores(filled, serving=True) as stores:
        moved = filled.database_path.rename(filled.data_dir / "moved.sqlite3")
        with pytest.raises(StorageUnavailable):
            stores.records.add_sealing_key(b"x" * 32, 1)
        assert not filled.database_path.exists()
        moved.rename(filled.database_path)
        stores.records.add_sealing_key(b"x" * 32, 1)


@pytest.fixture
def machine(tmp_path: Path) -> Generator[Machine]:
    with Machine(tmp_path).running() as running:
        yield running


def test_a_command_beside_a_server_whose_database_was_moved_is_refused(machine: Machine) -> None:
    machine.start()
    machine.pdpp("grant", "list", "--json")
    database = machine.data / "personal-server.sqlite3"
    moved = database.rename(machine.data / "moved.sqlite3")
    found: subprocess.CompletedProcess[str] = machine.pdpp("grant", "list", expected=69)
    assert "storage_unavailable" in found.stderr
    assert not database.exists()
    moved.rename(database)
    machine.pdpp("grant", "list")
