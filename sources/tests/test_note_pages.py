"""Notes that are pages of HTML: of Apple's Notes, and of Notion."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_sources.common.errors import ExportNotRecognized
from pdpp_sources.note_pages import is_note_page
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder, as_zip
from sources.tests.specimens.notes import PAGES


def test_pages_of_notes_are_notes_with_their_titles_words_and_files(tmp_path: Path) -> None:
    items = read_path(as_zip(PAGES, tmp_path / "notes.zip"))
    assert {key for key, _ in items} == {"notes"}
    notes = {note["title"]: note for note in records_of(items, "notes")}
    assert notes.keys() == {"Rye", "Old", "Oven"}
    rye = notes["Rye"]
    assert "Salt last" in rye["body"]
    assert "flour" in rye["body"]
    assert (rye["folder"], rye["tags"]) == ("Notes/Bread", ["bread"])
    assert rye["links"] == ["attachments/loaf.pdf"]
    assert "250 degrees" in notes["Oven"]["body"]
    files = {file["filename"]: file for file in records_of(items, "files")}
    assert files.keys() == {"Rye 1", "loaf.pdf", "oven.png"}
    assert (files["Rye 1"]["mime_type"], files["Rye 1"]["size_bytes"]) == ("image/png", 8)
    assert skips_of(items) == []


def test_a_picture_within_a_page_that_cannot_be_decoded_is_told(tmp_path: Path) -> None:
    broken = PAGES["Notes/Bread/Rye.html"].replace(b"iVBORw0KGgo=", b"iVBOR")
    items = read_path(as_folder({"Rye.html": broken}, tmp_path))
    assert len(records_of(items, "notes")) == 1
    assert skips_of(items) == ["damaged_file"]


def test_files_that_a_page_names_behind_large_pictures_are_its_files(tmp_path: Path) -> None:
    large = b'<div><img src="data:image/png;base64,' + b"iVBO" * 2_200_000 + b'"></div>'
    links = b'<a href="a.pdf">a</a><a href="b.pdf">b</a>'
    page = b"<div><h1>Rye</h1></div>" + large + links
    files = {"Rye.html": page, "a.pdf": b"%PDF-1.4", "b.pdf": b"%PDF-1.4"}
    items = read_path(as_folder(files, tmp_path))
    names = {file["filename"] for file in records_of(items, "files")}
    assert names == {"Rye 1", "a.pdf", "b.pdf"}


def test_the_same_pages_again_are_the_same_notes(tmp_path: Path) -> None:
    first = read_path(as_folder(PAGES, tmp_path / "1"))
    second = read_path(as_folder(PAGES, tmp_path / "2"))
    assert [r["id"] for r in records_of(first)] == [r["id"] for r in records_of(second)]


@pytest.mark.parametrize(
    "page",
    [
        b'<!DOCTYPE html><html><head></head><body><div class="page"><h1>A shop</h1></div>',
        b"<html><body><p>words</p></body></html>",
        b"<div><p>words</p></div>",
        b"<html><body><div><h1>A shop</h1><p>Buy here</p></div></body></html>",
        b"<html><head><script src=a></script></head><body><div><span>x</span></div></body></html>",
        b"<div><b>Sign in</b></div><div><form action=x><input name=a></form></div>",
        pytest.param(b"<head></head>" * 40 + b"<p>words</p>", id="many heads"),
    ],
)
def test_another_page_is_no_note(page: bytes, tmp_path: Path) -> None:
    assert not is_note_page(page)
    with pytest.raises(ExportNotRecognized):
        read_path(as_folder({"page.html": page}, tmp_path))
