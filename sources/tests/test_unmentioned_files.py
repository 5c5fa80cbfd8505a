"""What a reader takes for its own is in a record or in the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from pdpp_kernel.source_item import Skipped, SourceItem
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder, as_json, as_zip
from sources.tests.specimens.fit import fit_file, fit_kind, fit_session
from sources.tests.specimens.meta import INBOX, JPEG, JSON_FILES

CHAT = b"[1/2/24, 10:00:00] Ada: Hello\n[2/2/24, 10:00:00] Bo: Yes\n"
TELEGRAM = SPECIMENS["telegram"]


def named(items: list[tuple[str, SourceItem]], code: str) -> list[str]:
    return [item.where for _, item in items if isinstance(item, Skipped) and item.code == code]


@pytest.mark.parametrize(
    ("files", "stray"),
    [
        ({"_chat.txt": CHAT}, "IMG-20240102-WA0001.jpg"),
        (TELEGRAM, "DataExport/photos/photo_9@05-01-2024_10-11-12.jpg"),
        (JSON_FILES, f"{INBOX}/photos/9.jpg"),
    ],
    ids=["whatsapp", "telegram", "meta"],
)
def test_a_picture_that_no_message_mentions_is_named(
    files: Files, stray: str, tmp_path: Path
) -> None:
    path = as_zip({**files, stray: JPEG}, tmp_path / "export.zip")
    items = read_path(path)
    assert named(items, "unmentioned_file") == [stray]
    assert named(read_path(path, items[-1][1].position), "unmentioned_file") == [stray]


def test_the_smaller_copy_of_a_picture_is_no_loss(tmp_path: Path) -> None:
    message = {
        "id": 1,
        "type": "message",
        "date_unixtime": "1704449472",
        "from": "Ada",
        "photo": "photos/1.jpg",
        "thumbnail": "photos/1.jpg_thumb.jpg",
        "text": "",
    }
    chat = {"name": "Ada", "type": "personal_chat", "id": 5, "messages": [message]}
    files = {"result.json": as_json(chat), "photos/1.jpg": JPEG, "photos/1.jpg_thumb.jpg": JPEG}
    assert skips_of(read_path(as_folder(files, tmp_path))) == []


def test_a_file_of_a_source_without_an_entry_is_named(tmp_path: Path) -> None:
    empty = b'<?xml version="1.0"?><en-export export-date="20240105T101112Z"></en-export>'
    path = as_folder({**SPECIMENS["evernote"], "Empty.enex": empty}, tmp_path)
    assert named(read_path(path), "no_entries") == ["Empty.enex"]


def test_workouts_beyond_the_most_of_a_file_are_counted_in_the_report(tmp_path: Path) -> None:
    sessions = [fit_session(60 * number, 1, 30, 100) for number in range(1003)]
    (tmp_path / "a.fit").write_bytes(fit_file([fit_kind(4), *sessions]))
    items = read_path(tmp_path / "a.fit")
    assert len(records_of(items, "workouts")) == 1000
    assert named(items, "beyond_bounds") == ["a.fit at byte 0"]


def test_links_beyond_the_most_of_a_note_are_told(tmp_path: Path) -> None:
    links = "".join(f'<a href="https://example.org/{number}">x</a>' for number in range(201))
    note = f"<note><title>Links</title><content><![CDATA[<en-note>{links}</en-note>]]></content>"
    (tmp_path / "a.enex").write_text(f'<?xml version="1.0"?><en-export>{note}</note></en-export>')
    items = read_path(tmp_path / "a.enex")
    assert len(records_of(items, "notes")[0]["links"]) == 200
    assert skips_of(items) == ["beyond_bounds"]


def test_a_text_that_is_longer_than_a_mail_may_hold_is_told(tmp_path: Path) -> None:
    head = b"From: a@example.org\nTo: b@example.org\nDate: Fri, 5 Jan 2024 10:00 +0000"
    (tmp_path / "a.eml").write_bytes(head + b"\n\n" + b"word " * 800_001)
    items = read_path(tmp_path / "a.eml")
    assert len(records_of(items, "messages")[0]["body"]) == 4_000_000
    assert skips_of(items) == ["beyond_bounds"]


def test_people_beyond_the_most_of_a_chat_are_told(tmp_path: Path) -> None:
    lines = (f"[13/2/24, 10:00:00] Member {number}: Hello\n" for number in range(2001))
    (tmp_path / "Bakers.txt").write_text("".join(lines))
    items = read_path(tmp_path / "Bakers.txt")
    assert len(records_of(items, "chats")[0]["people"]) == 2000
    assert skips_of(items) == ["beyond_bounds"]
