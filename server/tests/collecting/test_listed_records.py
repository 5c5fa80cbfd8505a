"""What a feed that follows deletions is told of an import: names of records, each on a line."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel.source_item import SourceRecord
from personal_server.collecting.listed_records import ListedRecords
from personal_server.feeds.followed_folders import whole_names


def test_no_key_names_a_record_of_another_account(tmp_path: Path) -> None:
    """A name that is in the file, and in no later import, is deleted."""
    journal = tmp_path / "names"
    listed = ListedRecords(journal, "cin_a")
    for key in ("one", "two\ncin_b/notes/three"):
        listed.note(SourceRecord("notes", {"id": key}, 0))
    listed.keep()
    assert whole_names(journal.read_bytes()) == ["cin_a/notes/one"]
    assert listed.as_json() == {"notes": ["one"]}
