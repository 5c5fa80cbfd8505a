from __future__ import annotations

import json
from pathlib import Path
from time import process_time

from pdpp_sources.meta_chats import is_meta_chat
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.files import as_folder
from sources.tests.specimens.meta import INBOX, JPEG, JSON_FILES


def test_both_layouts_are_chats_with_their_texts_as_they_were_meant(tmp_path: Path) -> None:
    items = read_path(as_folder(JSON_FILES, tmp_path))
    assert {key for key, _ in items} == {"meta"}
    assert records_of(items, "chats") == [
        {"id": "Cy_3", "name": "Cy_3", "box": None},
        {"id": "boadair_17", "name": "Bö Adair", "box": "inbox"},
    ]
    said = [
        (m["sent_at"], m["author"], m["text"], m["kind"]) for m in records_of(items, "messages")
    ]
    assert said == [
        ("2024-09-03T01:46:40Z", "Cy", "Stone “oven”", "text"),
        ("2024-01-15T14:21:40Z", "Bö Adair", "Crème brûlée 🍮", "message"),
        ("2024-01-15T14:20:50Z", "Ada", "An oven", "share"),
        ("2024-01-15T14:20:00Z", "Ada", None, "photos"),
        ("2024-01-15T14:13:20Z", "Ada", "Hello", "call"),
    ]
    assert [m["reactions"] for m in records_of(items, "messages")][1] == ["❤"]
    assert skips_of(items) == ["missing_attachment", "bad_date"]


def test_a_file_is_found_in_the_folder_of_its_chat(tmp_path: Path) -> None:
    first, second = records_of(read_path(as_folder(JSON_FILES, tmp_path)), "files")
    assert (first["filename"], first["size_bytes"]) == ("1.jpg", len(JPEG))
    assert (second["filename"], second.get("blob_ref")) == ("2.jpg", None)


def test_what_says_the_same_at_the_same_time_is_two_messages(tmp_path: Path) -> None:
    said = {"sender_name": "Ada", "timestamp_ms": 1705328000000, "content": "Hi"}
    chat = {"participants": [{"name": "Ada"}], "messages": [said, said], "title": "Ada"}
    path = as_folder({f"{INBOX}/message_1.json": json.dumps(chat).encode()}, tmp_path)
    assert len({m["id"] for m in records_of(read_path(path), "messages")}) == 2


def test_loose_files_of_two_chats_are_two(tmp_path: Path) -> None:
    for number, title in enumerate(("Bo", "Cy")):
        chat = {"participants": [], "messages": [{"sender_name": title, "timestamp_ms": 1}]}
        path = {} if number else {"thread_path": "inbox/bo_1"}
        files = {"message_1.json": json.dumps({**chat, "title": title, **path}).encode()}
        (found,) = records_of(read_path(as_folder(files, tmp_path / title)), "chats")
        assert found["id"] == ("Cy" if number else "bo_1")


def test_a_first_message_whose_author_is_damaged_hides_no_other(tmp_path: Path) -> None:
    path = f"{INBOX}/message_1.json"
    spoiled = JSON_FILES[path].replace(b'"sender_name"', b'"sende\xff_name"', 1)
    messages = records_of(read_path(as_folder({**JSON_FILES, path: spoiled}, tmp_path)), "messages")
    assert [m["author"] for m in messages] == ["Cy", None, "Ada", "Ada", "Ada"]


def test_what_begins_many_lists_of_messages_is_known_at_once() -> None:
    begun = process_time()
    assert not is_meta_chat(b'{"participants":' + b'"messages":[{' * 5000)
    assert process_time() - begun < 0.2


def test_a_message_is_the_same_in_an_export_whose_folders_are_called_otherwise(
    tmp_path: Path,
) -> None:
    old, new = b"your_instagram_activity/messages", b"your_activity/messages"
    found = [
        {m["id"] for m in records_of(read_path(as_folder(files, tmp_path / name)), "messages")}
        for name, files in (
            ("old", JSON_FILES),
            ("new", {n: body.replace(old, new) for n, body in JSON_FILES.items()}),
        )
    ]
    assert found[0] == found[1]


def test_an_export_of_2018_has_one_file_for_each_chat_and_seconds(tmp_path: Path) -> None:
    said = {"sender_name": "Ada", "timestamp": 1530000000, "content": "Hi"}
    body = json.dumps({"participants": [{"name": "Ada"}], "messages": [said]}).encode()
    items = read_path(as_folder({f"messages/{n}/message.json": body for n in ("a", "b")}, tmp_path))
    assert {chat["id"] for chat in records_of(items, "chats")} == {"a", "b"}
    assert [m["sent_at"] for m in records_of(items, "messages")] == ["2018-06-26T08:00:00Z"] * 2


def test_a_chat_at_the_root_takes_no_other_files_for_its_own(tmp_path: Path) -> None:
    card = b"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Cy Cook\r\nEND:VCARD\r\n"
    files = {
        "Cy_3.json": JSON_FILES["messages/Cy_3.json"],
        "cards.vcf": card,
        "old/cards.vcf": card.replace(b"Cy", b"Bo"),
        "media/1.jpg": JPEG,
    }
    read = {key for key, _ in read_path(as_folder(files, tmp_path))}
    assert read == {"meta", "contacts"}
    assert len(records_of(read_path(tmp_path), "contacts")) == 2
