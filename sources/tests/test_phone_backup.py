from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest

from pdpp_sources.phone_backup import is_phone_backup
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.phone import FILES, HEAD


def test_texts_are_in_the_conversation_of_their_numbers_however_those_are_written(
    tmp_path: Path,
) -> None:
    items = read_path(as_folder(FILES, tmp_path))
    assert {key for key, _ in items} == {"phone"}
    first, several = records_of(items, "chats")
    assert (first["name"], first["members"]) == ("Bo Adair", ["+1 555-123-4567"])
    assert several["members"] == ["+15551234567", "+15557654321"]
    said = [(m["chat_id"], m["author"], m["text"], m["way"]) for m in records_of(items, "messages")]
    assert said == [
        (first["id"], "+1 555-123-4567", 'Which "oven"? 😀\nStone & warm', "received"),
        (first["id"], "me", "The stone one.", "sent"),
        (several["id"], "+15557654321", "Look at it", "received"),
    ]
    assert skips_of(items) == ["bad_date", "missing_attachment"]


def test_files_come_with_their_bytes_where_the_backup_has_them(tmp_path: Path) -> None:
    loaf, crumb = records_of(read_path(as_folder(FILES, tmp_path)), "files")
    assert (loaf["filename"], loaf["mime_type"], loaf["size_bytes"]) == (
        "loaf.jpg",
        "image/jpeg",
        9,
    )
    assert (crumb["filename"], crumb["size_bytes"]) == ("crumb.png", None)


def test_calls_say_with_whom_and_for_how_long(tmp_path: Path) -> None:
    made, missed = records_of(read_path(as_folder(FILES, tmp_path)), "calls")
    assert (made["name"], made["direction"], made["duration"]) == ("Bo Adair", "outgoing", 37)
    assert made["began_at"] == "2024-01-15T14:25:00Z"
    assert (missed["number"], missed["direction"]) == (None, "missed")


def test_a_backup_that_begins_again_adds_nothing_twice(tmp_path: Path) -> None:
    sms = '<sms address="1" date="1705328400000" type="1" body="Hi" contact_name="%s" />'
    for number, name in enumerate(("Bo", "Bo B.")):
        (tmp_path / f"sms-{number}.xml").write_text(f"{HEAD}<smses>{sms % name}</smses>")
    items = read_path(tmp_path)
    assert [m["text"] for m in records_of(items, "messages")] == ["Hi"]
    assert skips_of(items) == ["duplicate"]


@pytest.mark.parametrize("before", [b"<!---->" * 9000, b"<?a?>" * 9000, b" " * 65_000, b"<!-- "])
def test_what_is_no_backup_is_known_at_once(before: bytes) -> None:
    assert is_phone_backup(before[:70] + b"-->" * before.startswith(b"<!-- ") + b"<smses>")
    begun = process_time()
    assert not is_phone_backup(before + b"<x>")
    assert process_time() - begun < 1


def test_nobody_is_said_to_have_written_what_went_neither_way(tmp_path: Path) -> None:
    sms = '<sms address="1" date="1705328400000" type="%s" body="Hi" />'
    (tmp_path / "sms.xml").write_text(f"{HEAD}<smses>{sms % 0}{sms % 'null'}</smses>")
    (found,) = records_of(read_path(tmp_path), "messages")
    assert (found["way"], found["is_from_me"], found["author"]) == (None, None, None)


def test_what_waited_in_one_backup_is_the_same_message_when_it_was_sent(tmp_path: Path) -> None:
    sms = '<sms address="1" date="1705328400000" type="%s" body="Hi" />'
    keys = set[str]()
    for kind in (6, 2):
        (tmp_path / "sms.xml").write_text(f"{HEAD}<smses>{sms % kind}</smses>")
        keys |= {m["id"] for m in records_of(read_path(tmp_path), "messages")}
    assert len(keys) == 1
