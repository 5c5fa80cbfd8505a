import os
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
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


def note_of(folder: Path, text: str, name: str = "note.md") -> Data:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    (note,) = records_of(read_path(folder), "notes")
    return note


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("---\ntags: [[misc]]\nauthor:\n  name: me\n---\nBody #inline", ["misc", "inline"]),
        ("---\ntags: [bread, [[rye starter]]]\n---\n", ["bread", "rye starter"]),
        ('---\ntags: "[[misc]]"\n---\n', ["misc"]),
        ("---\nTags: bread rye\n---\n", ["bread", "rye"]),
        ("---\ntag: bread\n---\n", ["bread"]),
        ("---\ntags: big oven, rye\n---\n", ["big oven", "rye"]),
        (
            "tags:: [[baking]], rye, #[[big oven]]\n- text #quick",
            ["baking", "rye", "big oven", "quick"],
        ),
        ("- a block\n  tags:: later\n- #[[two words]]", ["later", "two words"]),
        ("- `tags:: none`", []),
    ],
)
def test_tags_are_read_however_a_program_writes_them(
    tmp_path: Path, text: str, tags: list[str]
) -> None:
    assert note_of(tmp_path, text)["tags"] == tags


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("graph/pages/bread.md", "title:: Rye [Bread]\n- # a block's heading", "Rye [Bread]"),
        ("graph/pages/bread___rye.md", "- text", "bread/rye"),
        ("graph/pages/bread%2Frye.md", "- text", "bread/rye"),
        ("graph/pages/bread.md", "- # a block's heading", "bread"),
        ("note.md", "# Heading", "Heading"),
    ],
)
def test_pages_of_logseq_are_called_as_there(
    tmp_path: Path, name: str, text: str, title: str
) -> None:
    assert note_of(tmp_path, text, name)["title"] == title


@pytest.mark.parametrize(
    ("name", "text", "created", "modified"),
    [
        ("journals/2024_01_05.md", "- rye", "2024-01-05", "2024-01-05"),
        ("Daily Notes/2024-01-05.md", "rye", "2024-01-05", "2024-01-05"),
        ("Meeting 20240105.md", "rye", "2024-01-05", "2020-03-04"),
        (
            "a.md",
            "---\ncreated: 2019-01-02\nupdated: 2021-01-02\n---\n",
            "2019-01-02",
            "2021-01-02",
        ),
        ("a.md", "---\nDate Created: 2019-01-02\n---\n", "2019-01-02", "2020-03-04"),
        ("a.md", "rye", None, "2020-03-04"),
        ("2024-13-45.md", "rye", None, "2020-03-04"),
    ],
)
def test_a_note_is_dated_by_the_best_that_is_known(
    tmp_path: Path, name: str, text: str, created: str | None, modified: str
) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_583_280_000, 1_583_280_000))  # 2020-03-04
    (note,) = records_of(read_path(tmp_path), "notes")
    assert (note["created_at"] or "")[:10] == (created or "")
    assert note["modified_at"][:10] == modified


def test_a_vault_that_was_just_unpacked_is_not_all_of_today(tmp_path: Path) -> None:
    files = {
        "a.md": b"rye",
        "b.md": b"---\ncreated: 2019-01-02\n---\n",
        "journals/2024_01_05.md": b"- rye",
        "loaf.png": b"1",
    }
    items = read_path(as_folder(files, tmp_path))
    dates = {note["path"]: note.get("modified_at") for note in records_of(items, "notes")}
    assert dates == {
        "a.md": None,
        "b.md": "2019-01-02T00:00:00Z",
        "journals/2024_01_05.md": "2024-01-05T00:00:00Z",
    }
    assert "modified_at" not in records_of(items, "files")[0]


def test_files_that_were_changed_one_after_another_keep_their_times(tmp_path: Path) -> None:
    for day in (1, 2, 3):
        path = tmp_path / f"{day}.md"
        path.write_text("rye")
        os.utime(path, (day * 86_400, day * 86_400))
    days = [note["modified_at"][:10] for note in records_of(read_path(tmp_path), "notes")]
    assert days == ["1970-01-02", "1970-01-03", "1970-01-04"]


def test_a_read_me_beside_something_else_is_no_note(tmp_path: Path) -> None:
    table = b"Date,Amount\n2024-01-05,3\n2024-01-06,4\n"
    path = as_folder({"README.md": b"# About this export\n", "rows.csv": table}, tmp_path)
    assert {key.partition("-")[0] for key, _ in read_path(path)} == {"table"}


@pytest.mark.parametrize("beside", [{}, {"a.md": b"rye"}, {"loaf.png": b"1"}])
def test_a_read_me_among_notes_is_one(tmp_path: Path, beside: dict[str, bytes]) -> None:
    items = read_path(as_folder({"README.md": b"# Home\n"} | beside, tmp_path))
    assert "Home" in {each["title"] for each in records_of(items, "notes")}
