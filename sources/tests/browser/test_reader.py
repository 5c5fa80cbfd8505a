import json
import plistlib
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from pdpp_sources.browser import layouts
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import browser
from sources.tests.specimens.databases import database
from sources.tests.specimens.files import as_folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return as_folder(browser.FILES, tmp_path)


def test_a_visit_has_its_page_its_reason_its_length_and_what_led_to_it(home: Path) -> None:
    first, second, again, *_ = records_of(read_path(home / "Chrome"), "visits")
    assert first["url"] == browser.LOAF
    assert (first["visited_at"], first["reason"], first["seconds"]) == (
        "2024-03-04T08:00:00Z",
        "typed",
        4.5,
    )
    assert second["from_visit_id"] == first["id"]
    assert (second["title"], second["host"]) == ("Rye", "bread.example.org")
    assert (again["reason"], again["from_visit_id"]) == ("reload", None)


def test_searches_and_downloads_come_with_the_history(home: Path) -> None:
    items = read_path(home / "Chrome")
    [search], [download] = records_of(items, "searches"), records_of(items, "downloads")
    assert (search["term"], search["searched_at"]) == ("rye loaf", "2024-03-04T08:00:00Z")
    assert (download["filename"], download["state"], download["size_bytes"]) == (
        "rye.pdf",
        "complete",
        2048,
    )


def test_bookmarks_of_firefox_know_their_folder_and_tags(home: Path) -> None:
    [bookmark] = records_of(read_path(home / "Firefox"), "bookmarks")
    assert (bookmark["title"], bookmark["folder"], bookmark["tags"]) == (
        "Mill",
        "Bookmarks Menu / Baking",
        ["flour"],
    )


def test_safari_counts_seconds_since_2001(home: Path) -> None:
    items = read_path(home / "Safari")
    first, second = records_of(items, "visits")
    assert first["visited_at"] == "2024-03-01T15:33:20.250Z"
    assert second["from_visit_id"] == first["id"]
    [later] = records_of(items, "bookmarks")
    assert (later["title"], later["added_at"]) == ("Crusts", "2024-05-01T08:00:00Z")


def test_the_page_that_browsers_export_keeps_its_folders(home: Path) -> None:
    items = read_path(home / "bookmarks.html")
    first, second = records_of(items)
    assert (first["title"], first["url"], first["folder"]) == (
        "Tins & more",
        "https://tins.example.org/?a=1&b=2",
        "Tools & tins",
    )
    assert (second["folder"], skips_of(items)) == (None, ["bad_record"])


def test_the_backup_of_firefox_is_read(tmp_path: Path) -> None:
    leaf: Data = {
        "guid": "a",
        "typeCode": 1,
        "uri": "https://example.org/",
        "title": "Example",
        "dateAdded": browser.APRIL,
    }
    folder: Data = {"guid": "menu________", "title": "menu", "typeCode": 2, "children": [leaf]}
    root: Data = {"guid": "root________", "title": "", "typeCode": 2, "children": [folder]}
    (tmp_path / "backup.json").write_text(json.dumps(root))
    [found] = records_of(read_path(tmp_path))
    assert (found["title"], found["folder"]) == ("Example", "menu")
    assert found["added_at"] == "2024-04-01T19:33:20Z"


def deep(leaf: Data, children: str, levels: int = 300) -> Data:
    """A bookmark within so many folders without a name."""
    node = leaf
    for _ in range(levels):
        node = {"type": "folder", "typeCode": 2, children: [node, None]}
    return node


def test_no_folder_is_too_deep_and_what_is_no_bookmark_in_one_is_named(tmp_path: Path) -> None:
    url = "https://example.org/"
    chromium = {"checksum": "0", "roots": {"bookmark_bar": deep({"url": url}, "children")}}
    (tmp_path / "Bookmarks").write_text(json.dumps(chromium))
    firefox = {"guid": "root________", **deep({"typeCode": 1, "uri": url}, "children")}
    (tmp_path / "backup.json").write_text(json.dumps(firefox))
    for name, nothings in {"Bookmarks": 300, "backup.json": 300}.items():
        items = read_path(tmp_path / name)
        assert [data["url"] for data in records_of(items)] == [url]
        assert skips_of(items) == ["bad_record"] * nothings


def test_a_folder_of_safari_that_is_within_itself_is_named(tmp_path: Path) -> None:
    url = "https://example.org/"
    leaf = {"WebBookmarkType": "WebBookmarkTypeLeaf", "URLString": url}
    whole = {"Children": [{"Title": "a", "Children": ["-", leaf]}]}
    content = plistlib.dumps(whole, fmt=plistlib.FMT_BINARY)
    at = content.index(b"\xa2")  # its references: to `-`, and to the leaf
    content = content[: at + 1] + b"\x00" + content[at + 2 :]
    (tmp_path / "Bookmarks.plist").write_bytes(content)
    items = read_path(tmp_path)
    assert [data["url"] for data in records_of(items)] == [url]
    assert skips_of(items) == ["bad_record"]


def test_tags_of_a_backup_and_of_a_page_are_kept(tmp_path: Path) -> None:
    leaf = {"typeCode": 1, "uri": "https://example.org/", "tags": "flour,rye bread"}
    root: Data = {"guid": "root________", "typeCode": 2, "children": [leaf]}
    (tmp_path / "backup.json").write_text(json.dumps(root))
    page = (
        b'<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DT><A HREF="https://a.example" TAGS="a, b,a">A</A>'
    )
    (tmp_path / "page.html").write_bytes(page)
    tags = {data["url"]: data["tags"] for data in records_of(read_path(tmp_path))}
    assert tags == {"https://example.org/": ["flour", "rye bread"], "https://a.example": ["a", "b"]}


def test_folders_beyond_those_that_are_kept_in_memory_are_told(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts, "_MOST_FOLDERS", 3)
    items = read_path(home / "Firefox")
    assert "beyond_bounds" in skips_of(items)
    assert "beyond_bounds" not in skips_of(read_path(home / "Chrome"))
    assert len(records_of(items, "bookmarks")) == 2  # that of the tag, whose folder is not known


def test_the_first_layouts_are_read(tmp_path: Path) -> None:
    schema = """
        CREATE TABLE urls (id INTEGER PRIMARY KEY, url TEXT, title TEXT, last_visit_time INTEGER);
        CREATE TABLE visits (id INTEGER PRIMARY KEY, url INTEGER, visit_time INTEGER);
        CREATE TABLE downloads (id INTEGER PRIMARY KEY, full_path TEXT, url TEXT,
          start_time INTEGER, total_bytes INTEGER, state INTEGER);
    """
    content = database(
        schema,
        [
            ("urls", [(1, "https://example.org/", "Example", 0)]),
            ("visits", [(1, 1, browser.MARCH)]),
            ("downloads", [(1, "/tmp/a.zip", "https://example.org/a.zip", 1_286_000_000, 7, 1)]),
        ],
    )
    (tmp_path / "History").write_bytes(content)
    items = read_path(tmp_path / "History")
    [visit], [download] = records_of(items, "visits"), records_of(items, "downloads")
    assert (visit["title"], visit["seconds"], visit["from_visit_id"]) == ("Example", None, None)
    assert (download["started_at"], download["filename"]) == ("2010-10-02T06:13:20Z", "a.zip")


def test_a_row_that_is_not_utf_8_costs_no_other(tmp_path: Path) -> None:
    spoiled = browser.FILES["Chrome/History"].replace(b"rye loaf - Search", b"rye \xfc - Search XY")
    assert len(spoiled) == len(browser.FILES["Chrome/History"])
    (tmp_path / "History").write_bytes(spoiled)
    visits = records_of(read_path(tmp_path / "History"), "visits")
    assert [visit["title"] for visit in visits] == ["rye ü - Search XY", "Rye", "Rye"]


def test_what_is_written_to_a_bookmark_of_a_page_is_its_note(tmp_path: Path) -> None:
    page = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<DL><p>
<DT><A HREF="https://a.example">A</A>
<DD>On two
lines &amp; more
<HR>
<DT><A HREF="https://b.example">B</A>
<DT><A HREF="https://c.example">C</A><DD>last
</DL><p>
"""
    (tmp_path / "page.html").write_text(page)
    items = read_path(tmp_path)
    assert {data["url"]: data["note"] for data in records_of(items)} == {
        "https://a.example": "On two\nlines & more",
        "https://b.example": None,
        "https://c.example": "last",
    }
