from pathlib import Path

from sources.tests.reading import read_path, records_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_folder, as_zip


def test_notes_are_read_with_tags_links_and_files(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["notes"], tmp_path / "vault.zip"))
    notes = {note["title"]: note for note in records_of(items, "notes")}
    bread = notes["Sourdough"]
    assert bread["tags"] == ["bread", "baking", "kitchen/oven"]
    assert bread["links"] == ["Rye starter", "images/loaf.png"]
    assert bread["created_at"] == "2024-01-02T00:00:00Z"
    assert bread["folder"] == "Vault/Bread"
    assert notes["Rye starter"]["body"] == "No front matter\n---\nbut a rule"
    assert notes["Broken front matter"]["tags"] == []
    assert records_of(items, "files")[0]["mime_type"] == "image/png"


def test_front_matter_that_grows_without_end_is_read_in_a_moment(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    front = "\n".join([*lines, "title: Bread", "tags: *a11"])
    (tmp_path / "note.md").write_text(f"---\n{front}\n---\ntext")
    (note,) = records_of(read_path(tmp_path), "notes")
    assert (note["title"], note["tags"]) == ("Bread", [])


def test_pictures_that_no_note_speaks_of_stay_out_of_them(tmp_path: Path) -> None:
    files = {
        "read me.md": b"# Holidays\n\n![[best one.jpg]] and ![](Sea%20side/two.jpg)",
        "best one.jpg": b"1",
        "Sea side/two.jpg": b"2",
        "IMG_1.jpg": b"3",
        "Sea side/IMG_2.jpg": b"4",
        "Vault/bread.md": b"# Bread",
        "Vault/assets/loaf.png": b"5",
        "elsewhere/IMG_3.jpg": b"6",
        "elsewhere/two.jpg": b"7",
    }
    items = read_path(as_folder(files, tmp_path))
    assert len(records_of(items, "notes")) == 2
    assert [each["path"] for each in records_of(items, "files")] == [
        "Sea side/two.jpg",
        "Vault/assets/loaf.png",
        "best one.jpg",
    ]
