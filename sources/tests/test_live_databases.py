import sqlite3
from contextlib import closing
from pathlib import Path

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.live_databases import copies_of_live
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess, Wanted
from sources.tests.specimens import browser
from sources.tests.specimens.files import as_folder

VISIT = "INSERT INTO visits VALUES (?, 2, ?, 0, 1, 0, 0)"


def test_a_history_is_read_while_its_browser_has_it_open_and_locked(tmp_path: Path) -> None:
    home = as_folder({"History": browser.FILES["Chrome/History"]}, tmp_path / "Chrome")
    with closing(sqlite3.connect(home / "History", isolation_level=None)) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.execute("PRAGMA locking_mode = EXCLUSIVE")
        running.execute(VISIT, (5, browser.MARCH + 9))
        running.execute("BEGIN IMMEDIATE")
        running.execute(VISIT, (6, browser.MARCH + 99))
        before = {each.name: each.read_bytes() for each in home.iterdir()}
        for path in (home, home / "History"):
            with ReaderProcess(CostlyPlaces(tmp_path / "costly.json")) as reader:
                (reading,) = reader.look(path, Wanted()).readings
                items = list(reading.items())
            assert sum(i.stream == "visits" for i in items if isinstance(i, SourceRecord)) == 4
        assert {each.name: each.read_bytes() for each in home.iterdir()} == before
        running.execute("ROLLBACK")


def test_only_databases_in_use_are_copied(tmp_path: Path) -> None:
    home = as_folder(
        {
            "at rest.db": browser.FILES["Chrome/History"],
            "in use.db": browser.FILES["Chrome/History"],
            "in use.db-wal": b"",
            "note.txt": b"no database",
            "note.txt-wal": b"",
        },
        tmp_path / "home",
    )
    # links of a folder are read nowhere; within it, one that leads out refused all of the folder
    for name in ("in use.db", "in use.db-wal"):
        (home / name.replace("in use", "link")).symlink_to(home / name)
    (tmp_path / "copies").mkdir()
    copies = copies_of_live(home, tmp_path / "copies")
    assert sorted(Path(each).name for each in copies) == ["in use.db", "in use.db-wal"]
    assert {Path(c).read_bytes() for c in copies.values()} == {
        browser.FILES["Chrome/History"],
        b"",
    }
