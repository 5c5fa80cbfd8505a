"""Notes of Evernote, as trackers of readers report them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.evernote import FILES
from sources.tests.specimens.files import as_folder


def test_notes_have_their_words_tags_dates_and_links(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    assert {key for key, _ in items} == {"evernote"}
    bread, once, twice = records_of(items, "notes")
    assert (bread["title"], bread["notebook"], bread["author"]) == ("Bread", "Kitchen", "Ada")
    assert bread["tags"] == ["baking", "to do"]
    body = str(bread["body"])
    assert "Knead & wait" in body
    assert "[x] flour" in body
    assert "[ ] salt" in body
    assert "c2Vj" not in body
    assert bread["links"] == ["https://example.org/oven"]
    assert (bread["created_at"], bread["modified_at"]) == (
        "2024-01-05T10:11:12Z",
        "2024-01-06T08:00:00Z",
    )
    assert once["modified_at"] == "2024-01-07T00:00:00Z"  # obsidianmd/obsidian-importer#222
    assert once["id"] != twice["id"]  # of one title and one second
    assert skips_of(items) == ["missing_attachment", "bad_record", "bad_record"]


@pytest.mark.parametrize(
    "content",
    [
        "<![CDATA[<en-note><div>Knead</div>\n<![CDATA[>]]>\n<div>text<br></div>]]\n<![CDATA[>]]>"
        "<br></en-note>  ]]>",  # a test file of wormi4ok/evernote2md
        "<?xml version='1.0'?><!DOCTYPE en-note><en-note><div>Knead</div><div>text</div>"
        "</en-note>",  # janik6n/enex2md#3
    ],
)
def test_content_is_read_however_it_is_wrapped(content: str, tmp_path: Path) -> None:
    note = f"<note><title>a</title><content>{content}</content></note>"
    (tmp_path / "a.enex").write_text(f"<en-export>{note}</en-export>")
    (read,) = records_of(read_path(tmp_path / "a.enex"), "notes")
    assert str(read["body"]).split()[:2] == ["Knead", "text"]


def test_a_link_is_an_address_without_escapes(tmp_path: Path) -> None:
    content = '<![CDATA[<en-note><a href="https://example.org/?a=1&amp;b=2">x</a></en-note>]]>'
    note = f"<note><title>a</title><content>{content}</content></note>"
    (tmp_path / "a.enex").write_text(f"<en-export>{note}</en-export>")
    (read,) = records_of(read_path(tmp_path / "a.enex"), "notes")
    assert read["links"] == ["https://example.org/?a=1&b=2"]


def test_files_are_those_of_their_note(tmp_path: Path) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    bread = records_of(items, "notes")[0]
    loaf, other = records_of(items, "files")
    assert loaf["note_id"] == other["note_id"] == bread["id"]
    assert (loaf["filename"], loaf["size_bytes"]) == ("loaf.png", 4)
    assert (other["mime_type"], other["size_bytes"]) == ("application/pdf", None)
