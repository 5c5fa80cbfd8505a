import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pdpp_kernel.system.confinement import Limits
from pdpp_sources.common.database import DatabaseUnreadable, opened
from pdpp_sources.common.export import open_export
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess, Wanted
from sources.tests.specimens.files import as_zip


def names(path: Path) -> list[str]:
    """The names in the table of a database, wherever it lies."""
    with open_export(path) as export, opened(export, export.members[0]) as database:
        rows = database.rows("t", {"name": "t.name"})
        return [str(row["name"]) for row in rows if isinstance(row, dict)]


@pytest.fixture
def in_use(tmp_path: Path) -> Iterator[Path]:
    """A database whose newest row stands in the log beside it only."""
    path = tmp_path / "in use" / "a.db"
    path.parent.mkdir()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE t (name TEXT)")
        database.execute("INSERT INTO t VALUES ('old')")
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.execute("INSERT INTO t VALUES ('new')")
        database.commit()
        yield path


def test_a_database_that_its_program_has_open_is_read_with_its_log(in_use: Path) -> None:
    before = {each.name: each.read_bytes() for each in in_use.parent.iterdir()}
    assert names(in_use) == names(in_use.parent) == ["old", "new"]
    assert {each.name: each.read_bytes() for each in in_use.parent.iterdir()} == before


def test_a_log_counts_up_to_its_last_whole_commit(in_use: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied.db"
    shutil.copy(in_use, copied)
    log = bytearray(Path(f"{in_use}-wal").read_bytes())
    Path(f"{copied}-wal").write_bytes(log)
    assert names(copied) == ["old", "new"]
    log[-1] ^= 1
    Path(f"{copied}-wal").write_bytes(log)
    assert names(copied) == ["old"]


def test_a_database_in_a_zip_is_read_with_its_log(in_use: Path, tmp_path: Path) -> None:
    files = {each.name: each.read_bytes() for each in in_use.parent.iterdir()}
    assert names(as_zip(files, tmp_path / "a.zip")) == ["old", "new"]


def test_a_database_left_in_the_middle_of_a_change_says_what_to_do(in_use: Path) -> None:
    Path(f"{in_use}-journal").write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600))
    with pytest.raises(DatabaseUnreadable) as caught:
        names(in_use)
    Path(f"{in_use}-journal").unlink()
    assert "program" in caught.value.next_step


def test_a_confined_process_reads_a_database_in_use(in_use: Path, tmp_path: Path) -> None:
    with ReaderProcess(CostlyPlaces(tmp_path / "costly.json"), Limits()) as reader:
        (reading,) = reader.look(in_use, Wanted()).readings
        assert len(list(reading.items())) == 2
        assert reader.faults == []


def test_nothing_but_tables_can_be_asked(in_use: Path) -> None:
    with open_export(in_use) as export, opened(export, export.members[0]) as database:
        assert database.column_names("t") == ("name",)
        assert database.column_names("none") == ()
        with pytest.raises(DatabaseUnreadable):
            list(database.rows("t", {"x": "load_extension('x')"}))
