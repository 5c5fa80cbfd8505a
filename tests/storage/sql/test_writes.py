from __future__ import annotations

from pathlib import Path

import pytest

from tests.storage.conftest import sqlite_store
from tests.storage.ports.asking import search
from tests.storage.worlds import furnish, note, write

MARKER = "zyzzyvamarker"


def traces(directory: Path) -> list[str]:
    """Files that hold the marker."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [path.name for path in files if MARKER.encode() in path.read_bytes()]


def test_an_erased_record_leaves_no_trace_in_the_files_after_a_sweep(tmp_path: Path) -> None:
    with sqlite_store(tmp_path) as store:
        furnish(store, "cin_a")
        kept = [note(f"n{i}", body="rain " * 40 + str(i)) for i in range(300)]
        write(store, "cin_a", [*kept, note("m", title=MARKER, body=f"{MARKER} rain", mood=MARKER)])
        write(store, "cin_a", [note("after", body="rain")])
        assert traces(tmp_path) != []
        assert store.delete_record("cin_a", "notes", "m", 9)
        assert search(store, MARKER).candidates == ()
        store.prune_history(0)
        assert traces(tmp_path) == []
        assert len(search(store, "rain").candidates) == 301


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
