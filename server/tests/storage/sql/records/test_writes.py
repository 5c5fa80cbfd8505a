from __future__ import annotations

from pathlib import Path

import pytest

from personal_server.storage.sql.records.blob_files import PREFIX
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.ports.asking import content_of, receive, search
from server.tests.storage.worlds import furnish, note, write

MARKER = "zyzzyvamarker"


def traces(directory: Path) -> list[str]:
    """Files that hold the marker."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [path.name for path in files if MARKER.encode() in path.read_bytes()]


def test_an_erased_record_leaves_no_trace_in_the_files_when_that_is_finished(
    tmp_path: Path,
) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        kept = [note(f"n{i}", body="rain " * 40 + str(i)) for i in range(300)]
        write(store, "cin_a", [*kept, note("m", title=MARKER, body=f"{MARKER} rain", mood=MARKER)])
        write(store, "cin_a", [note("after", body="rain")])
        assert traces(tmp_path) != []
        assert store.delete_record("cin_a", "notes", "m", 9)
        assert search(store, MARKER).candidates == ()
        store.finish_erasures()
        assert traces(tmp_path) == []
        assert len(search(store, "rain").candidates) == 301


def test_no_version_of_before_stays_of_an_erased_record(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        before = note("m", body=f"{MARKER} " * 30_000, mood=MARKER, title=MARKER)
        write(store, "cin_a", [before, note("n")])
        write(store, "cin_a", [note("m", body="rain")])
        assert store.delete_record("cin_a", "notes", "m", 9)
        store.finish_erasures()
        assert traces(tmp_path) == []


def test_what_was_erased_while_somebody_read_goes_when_he_is_done(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", [note("m", body=MARKER)])
        with store.snapshot() as seen:
            assert seen.horizon
            store.erase_connection("cin_a", 9)
            store.finish_erasures()
            assert traces(tmp_path) != []
        store.finish_erasures()
        assert traces(tmp_path) == []


def test_bytes_that_a_killed_process_left_go_at_the_next_start(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        kept, erased = receive(store, b"kept"), receive(store, MARKER.encode())
        write(store, "cin_a", [note("m", blob_ref={"blob_id": erased})])
        [path] = tmp_path.rglob(erased.removeprefix(PREFIX))
        assert store.delete_record("cin_a", "notes", "m", 9)
        path.write_text(MARKER)  # as if the process had ended before it removed it
    with sqlite_store(tmp_path) as store:
        store.finish_erasures()
        assert traces(tmp_path) == []
        assert content_of(store, kept) == b"kept"


@pytest.mark.parametrize("whole", [True, False])
def test_an_erased_stream_or_connection_leaves_no_trace_at_once(
    tmp_path: Path, whole: bool
) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", [note("m", body=f"{MARKER} " * 3_000, mood=MARKER), note("n")])
        assert traces(tmp_path) != []
        if whole:
            store.erase_connection("cin_a", 9)
        else:
            store.delete_stream("cin_a", "notes", 9)
        assert traces(tmp_path) == []
