from __future__ import annotations

import re
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data, Skipped
from pdpp_sources.common.errors import ExportNotRecognized
from pdpp_sources.telegram import is_telegram
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_folder, as_json, as_zip
from sources.tests.specimens.telegram import ACCOUNT, ADA, reacted


def test_an_account(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["telegram"], tmp_path / "export.zip"))
    group, saved = records_of(items, "chats")
    assert (group["id"], group["name"], group["kind"]) == (
        "7",
        'Bread "and" {salt}',
        "private_group",
    )
    assert (saved["id"], saved["name"], saved["kind"]) == ("100", None, "saved_messages")
    messages = {each["id"]: each for each in records_of(items, "messages")}
    assert list(messages) == ["7.1", "7.2", "7.3", "7.5", "100.2"]
    assert messages["7.1"]["is_notice"]
    assert messages["7.1"]["kind"] == "create_group"
    assert messages["7.2"]["text"] == "The recipe (https://example.org/r)"
    assert messages["7.2"]["edited_at"] == "2024-01-13T21:06:00Z"
    assert messages["7.3"]["reply_to_id"] == "7.2"
    assert messages["7.3"]["sent_at"] == "2024-01-13T21:07:00Z"
    assert messages["7.5"]["author_id"] == "user300"
    assert messages["100.2"]["text"] == "Rye or wheat?"
    loaf, voice = records_of(items, "files")
    assert loaf["blob_ref"]["size_bytes"] == 2
    assert (voice["filename"], voice["mime_type"]) == (None, "audio/ogg")
    parts = ["unknown_record_type"] * 2
    assert sorted(skips_of(items)) == ["bad_date", "missing_attachment", *parts]


def test_what_an_account_has_beside_its_chats_is_named_with_how_much_it_is(tmp_path: Path) -> None:
    contact = {"first_name": 'Ann "chats": {'}
    account: Data = {
        "about": ACCOUNT["about"],
        "personal_information": {"user_id": 100},
        "profile_pictures": [{"photo": "a.jpg"}, {"photo": "b.jpg"}],
        "contacts": {"about": "", "list": [contact] * 3},
        "sessions": {"about": "", "list": []},
        "chats": ACCOUNT["chats"],
    }
    items = read_path(as_folder({"result.json": as_json(account)}, tmp_path))
    named = {
        item.where.rpartition(", ")[2]: item.reason
        for _, item in items
        if isinstance(item, Skipped) and item.code == "unknown_record_type"
    }
    assert {name: str(reason).split()[0] for name, reason in named.items()} == {
        "personal_information": "1",
        "profile_pictures": "2",
        "contacts": "3",
    }
    assert len(records_of(items, "messages")) == 5


def test_an_account_without_chats_or_with_damage_before_them_is_told(tmp_path: Path) -> None:
    account: Data = {name: ACCOUNT[name] for name in ("about", "contacts")}
    (tmp_path / "result.json").write_bytes(as_json(account))
    assert skips_of(read_path(tmp_path / "result.json")) == ["unknown_record_type"]
    broken = as_json(ACCOUNT).replace(b'"contacts": {', b'"contacts": {,')
    items = read_path(as_folder({"result.json": broken}, tmp_path / "broken"))
    assert "unknown_record_type" in skips_of(items)
    assert len(records_of(items, "messages")) == 5


def test_a_chat_whose_messages_cannot_be_found_is_named(tmp_path: Path) -> None:
    whole = as_json(ACCOUNT)
    chats = [match.start() for match in re.finditer(rb'"messages"', whole)]
    for number, at in enumerate(chats):
        damaged = whole[: at + 3] + b"\xff" + whole[at + 4 :]
        items = read_path(as_folder({"result.json": damaged}, tmp_path / str(number)))
        assert "bad_record" in skips_of(items)
        assert 0 < len(records_of(items, "chats")) < len(chats)


def test_a_chat_is_told_from_what_its_messages_say(tmp_path: Path) -> None:
    said = '"type": "personal_chat", "id": 7}'
    member = {"id": 8, "messages": [{**ADA[0], "text": said}], "draft": {"type": "plain"}}
    chat = {"name": 'A "]" {', "type": "personal_chat", "about": 'b "messages": {', **member}
    items = read_path(as_folder({"result.json": as_json(chat)}, tmp_path))
    assert skips_of(items) == []
    assert len(records_of(items, "messages")) == 1


def test_one_chat_with_its_files_beside_it(tmp_path: Path) -> None:
    photo = {**ADA[2], "photo": "photos/loaf.jpg"}
    chat = {"name": "Ann", "type": "personal_chat", "id": 7, "messages": [*ADA[:2], photo]}
    files = {"ChatExport/result.json": as_json(chat), "ChatExport/photos/loaf.jpg": b"\xff\xd8"}
    items = read_path(as_folder(files, tmp_path))
    assert records_of(items, "chats")[0]["name"] == "Ann"
    assert records_of(items, "files")[0]["blob_ref"]["size_bytes"] == 2
    assert skips_of(items) == []


def test_a_batch_of_chats_is_a_list_of_them(tmp_path: Path) -> None:
    chats = ACCOUNT["chats"]["list"]
    items = read_path(as_folder({"batch.json": as_json(chats)}, tmp_path / "batch"))
    whole = read_path(as_folder({"result.json": as_json(ACCOUNT)}, tmp_path / "all"))
    assert {key for key, _ in items} == {"telegram"}
    assert records_of(items, "messages") == records_of(whole, "messages")
    assert records_of(items, "chats") == records_of(whole, "chats")
    assert sorted(skips_of(items)) == ["bad_date", *["missing_attachment"] * 2]


def test_messages_without_their_chat_are_a_chat_called_as_the_file(tmp_path: Path) -> None:
    items = read_path(as_folder({"Ann.json": as_json([*ADA, None])}, tmp_path))
    assert [(each["id"], each["name"]) for each in records_of(items, "chats")] == [
        ("named Ann", "Ann")
    ]
    assert [each["chat_name"] for each in records_of(items, "messages")] == ["Ann"] * 4
    assert sorted(skips_of(items)) == ["bad_date", "bad_record", *["missing_attachment"] * 2]


def test_one_message_has_one_id_in_the_export_of_its_chat_and_of_the_account(
    tmp_path: Path,
) -> None:
    chat = ACCOUNT["chats"]["list"][0]
    one = read_path(as_folder({"result.json": as_json(chat)}, tmp_path / "one"))
    every = read_path(as_folder({"result.json": as_json(ACCOUNT)}, tmp_path / "all"))
    ids = {each["id"]: each for each in records_of(every, "messages")}
    assert all(ids[each["id"]] == each for each in records_of(one, "messages"))


def test_other_objects_with_messages_are_not_chats() -> None:
    assert not is_telegram(as_json({"type": "object", "messages": [{"id": 1}]}))
    assert not is_telegram(as_json({"about": "a garden", "chats": []}))
    assert not is_telegram(as_json([{"type": "message", "user": "U1", "ts": "1.2", "text": "hi"}]))


def test_bots_and_notices_are_told_from_people(tmp_path: Path) -> None:
    told = {"date_unixtime": "1705179900", "text": "hi"}
    messages = [
        told | {"id": 1, "type": "message", "from": "Ann", "from_id": "user200"},
        told | {"id": 2, "type": "message", "from": "Builds", "from_id": "user7"},
        told | {"id": 3, "type": "service", "actor_id": "user200", "action": "pin_message"},
        told | {"id": 4, "type": "message", "from": "News", "from_id": "channel8"},
    ]
    chat = {"name": "Builds", "type": "bot_chat", "id": 7, "messages": messages}
    (tmp_path / "result.json").write_bytes(as_json(chat))
    kinds = [each["author_kind"] for each in records_of(read_path(tmp_path), "messages")]
    assert kinds == ["person", "bot", "notice", None]


def test_who_deleted_the_account_is_called_as_before(tmp_path: Path) -> None:
    told = {"type": "message", "date_unixtime": "1705179900", "text": "hi"}
    messages = [
        told | {"id": 1, "from": "Ann Byron", "from_id": "user200"},
        told | {"id": 2, "from": None, "from_id": "user200"},
        told | {"id": 3, "from": None, "from_id": "user7"},
        told | {"id": 4, "from": None, "from_id": "user9"},
    ]
    chat = {"name": "Eve", "type": "personal_chat", "id": 7, "messages": messages}
    (tmp_path / "result.json").write_bytes(as_json(chat))
    authors = [each["author"] for each in records_of(read_path(tmp_path), "messages")]
    assert authors == ["Ann Byron", "Ann Byron", "Eve", "Deleted account"]


def test_reactions_are_counted_and_told_who_gave_them(tmp_path: Path) -> None:
    recent: list[Data] = [
        {"from": "Bo", "from_id": "user2", "date": "2025-01-12T15:49:22"},
        {"from": "Cy", "from_id": "user3", "date": "yesterday"},
        {"from": "Di", "from_id": "user4"},
    ]
    other: Data = {"type": "custom_emoji", "count": 3, "document_id": "(File not included)"}
    (tmp_path / "result.json").write_bytes(as_json(reacted(recent, other)))
    items = read_path(tmp_path)
    (found,) = records_of(items, "messages")
    assert (found["reactions"], found["reaction_count"]) == (["❤", "custom_emoji"], 4)
    given, *timeless = records_of(items, "reactions")
    assert (given["author"], given["reaction"], given["message_id"]) == ("Bo", "❤", found["id"])
    assert [(each["author"], "reacted_at" in each) for each in timeless] == [
        ("Cy", False),
        ("Di", False),
    ]
    assert skips_of(items) == ["no_value"] * 2


def test_its_pages_are_refused_with_the_form_that_is_read(tmp_path: Path) -> None:
    page = b'<!DOCTYPE html><html><body><div class="page_body chat_page"><div class="history">'
    (tmp_path / "ChatExport").mkdir()
    (tmp_path / "ChatExport" / "messages.html").write_bytes(page)
    for name in ("style.css", "script.js"):
        (tmp_path / "ChatExport" / name).write_bytes(b"x")
    with pytest.raises(ExportNotRecognized) as refused:
        read_path(tmp_path)
    assert "JSON" in refused.value.next_step
