"""What programs tell of notes beside their text: Bear's backups, Apple's copy of its Notes."""

from __future__ import annotations

from pathlib import Path

from pdpp_kernel.source_item import Skipped
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import Files, as_folder, as_json, as_zip
from sources.tests.specimens.notes import APPLE, BEAR


def test_a_backup_of_bear_is_notes_with_their_days_files_and_status(tmp_path: Path) -> None:
    items = read_path(as_zip(BEAR, tmp_path / "Bear Notes.bear2bk"))
    assert {key for key, _ in items} == {"notes"}
    assert skips_of(items) == []
    bread, old = records_of(items, "notes")
    assert (bread["title"], bread["folder"], bread["status"]) == ("Rye", "Backup", None)
    assert (bread["created_at"], bread["modified_at"]) == (
        "2024-01-02T08:00:00Z",
        "2024-02-03T09:10:11Z",
    )
    assert bread["tags"] == ["kitchen/oven"]
    assert (old["title"], old["status"]) == ("Old note", "deleted")
    assert [f["filename"] for f in records_of(items, "files")] == ["loaf.png"]


def test_a_note_of_bear_is_the_same_in_the_next_backup(tmp_path: Path) -> None:
    later = {name.replace("Backup", "Backup 2"): body for name, body in BEAR.items()}
    first = records_of(read_path(as_folder(BEAR, tmp_path / "1")), "notes")
    second = records_of(read_path(as_folder(later, tmp_path / "2")), "notes")
    assert [note["id"] for note in first] == [note["id"] for note in second]


def test_of_two_backups_of_bear_a_note_is_read_once_and_the_other_is_told(tmp_path: Path) -> None:
    later = {name.replace("Backup", "Backup 2"): body for name, body in BEAR.items()}
    items = read_path(as_folder(BEAR | later, tmp_path))
    ids = [note["id"] for note in records_of(items, "notes")]
    assert len(ids) == len(set(ids)) == 2
    assert skips_of(items) == ["duplicate_id"] * 2


def test_a_bundle_of_another_program_is_a_note_called_as_it(tmp_path: Path) -> None:
    files: Files = {
        "Rye.textbundle/text.txt": b"Knead it.",
        "Rye.textbundle/info.json": as_json({"version": 2}),
        "Rye.textbundle/assets/plan.zip": b"PK",
    }
    items = read_path(as_folder(files, tmp_path))
    (note,) = records_of(items, "notes")
    assert (note["title"], note["body"]) == ("Rye", "Knead it.")
    assert [f["filename"] for f in records_of(items, "files")] == ["plan.zip"]


def test_what_apple_gives_out_is_notes_with_their_days_folders_and_files(tmp_path: Path) -> None:
    items = read_path(as_zip(APPLE, tmp_path / "iCloud Notes.zip"))
    assert {key for key, _ in items} == {"notes"}
    notes = {(note["title"], note["path"][-6:]): note for note in records_of(items, "notes")}
    rye = notes["Rye", "ye.txt"]
    assert (rye["folder"], rye["status"]) == ("Bread", None)
    assert rye["body"] == "Rye\n\n- [ ] flour\n- [x] water"
    assert (rye["created_at"], rye["modified_at"]) == (
        "2024-04-12T09:00:00Z",
        "2024-04-13T10:11:12Z",
    )
    assert notes["Gone", "ne.txt"]["status"] == "deleted"
    assert [f["filename"] for f in records_of(items, "files")] == ["Attachment.jpeg"]


def test_days_of_notes_that_share_a_title_are_not_guessed(tmp_path: Path) -> None:
    items = read_path(as_folder(APPLE, tmp_path))
    twins = [note for note in records_of(items, "notes") if note["title"] == "List"]
    assert [note["created_at"] for note in twins] == [None, None]
    assert len({note["id"] for note in twins}) == 2
    assert [i.code for _, i in items if isinstance(i, Skipped)] == ["no_value"] * 2


def test_a_tag_of_bear_may_have_several_words(tmp_path: Path) -> None:
    bear = {n: b.replace(b"#kitchen/oven", b"#work/big plans# and #one") for n, b in BEAR.items()}
    note, _ = records_of(read_path(as_folder(bear, tmp_path)), "notes")
    assert note["tags"] == ["work/big plans", "one"]


def test_a_title_that_no_file_may_have_finds_its_line(tmp_path: Path) -> None:
    listed = b"Title, Created On, Modified On\nBread/Rye,04-12-2024 09:00:00,04-13-2024 10:11:12\n"
    files = {"Notes Details.csv": listed, "Notes/Bread_Rye/Bread_Rye.txt": b"Bread/Rye\nknead"}
    (note,) = records_of(read_path(as_folder(files, tmp_path)), "notes")
    assert (note["title"], note["created_at"]) == ("Bread/Rye", "2024-04-12T09:00:00Z")


def test_a_list_or_an_info_that_is_broken_costs_the_days_alone(tmp_path: Path) -> None:
    bear = {name: b"{" if name.endswith("info.json") else body for name, body in BEAR.items()}
    items = read_path(as_folder(bear, tmp_path / "bear"))
    assert len(records_of(items, "notes")) == 2
    assert skips_of(items) == ["no_value"] * 2
    broken = b"Title, Created On, Modified On\n" + b'"' + b"x" * 200_000
    listed = {n: broken if n.endswith(".csv") else body for n, body in APPLE.items()}
    items = read_path(as_folder(listed, tmp_path / "apple"))
    assert len(records_of(items, "notes")) == 4
    assert skips_of(items) == ["no_value"] * 4
