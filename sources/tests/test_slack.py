from pathlib import Path

from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_json, as_zip


def test_messages_carry_names_and_threads(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["slack"], tmp_path / "export.zip"))
    by_id = {message["id"]: message for message in records_of(items, "messages")}
    first = by_id["C1.1700000000.000100"]
    assert first["text"] == "Hi @Ann Byron, see the plan (https://example.org) & #general"
    assert (first["channel_name"], first["author_name"]) == ("general", "Ada")
    answer = by_id["C1.1700000060.000200"]
    assert answer["is_reply"]
    assert answer["thread_id"] == first["thread_id"]
    assert by_id["C1.1700000061.000000"]["author_name"] == "robot"
    assert "D1.1700000060.000200" in by_id


def test_what_is_no_message_is_reported(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["slack"], tmp_path / "export.zip"))
    assert skips_of(items) == ["bad_record"]


def test_access_tokens_of_files_are_left_out(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["slack"], tmp_path / "export.zip"))
    assert [each["url"] for each in records_of(items, "files")] == [
        "https://files.example.org/F1/plan.pdf"
    ]


def test_a_direct_conversation_has_the_names_of_its_people(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["slack"], tmp_path / "export.zip"))
    assert {m["channel_name"] for m in records_of(items, "messages")} == {"general", "Ada"}


def test_a_day_whose_first_message_is_long_is_read(tmp_path: Path) -> None:
    long = [{"text": "long " * 5000, "type": "message", "ts": "1700100000.000000", "user": "U1"}]
    files = SPECIMENS["slack"] | {"Workspace/general/2023-11-16.json": as_json(long)}
    items = read_path(as_zip(files, tmp_path / "export.zip"))
    assert "C1.1700100000.000000" in {message["id"] for message in records_of(items, "messages")}


def test_a_message_built_of_blocks_says_what_they_say(tmp_path: Path) -> None:
    elements = [
        {"type": "text", "text": "Build "},
        {"type": "user", "user_id": "U1"},
        {"type": "link", "url": "https://example.org"},
    ]
    blocks = [
        {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]},
        {"type": "section", "text": {"type": "mrkdwn", "text": "*failed* &amp; <#C1>"}},
    ]
    built = {"type": "message", "ts": "1700000000.000100", "text": "", "blocks": blocks}
    bot = {"bot_profile": {"name": "builder"}, "bot_id": "B1"}
    files = SPECIMENS["slack"] | {"Workspace/general/2023-11-14.json": as_json([built | bot])}
    items = read_path(as_zip(files, tmp_path / "export.zip"))
    message = next(m for m in records_of(items, "messages") if m["channel_name"] == "general")
    assert message["text"] == "Build @Adahttps://example.org\n\n*failed* & #general"
    assert message["author_name"] == "builder"


def test_messages_of_before_2018_have_their_file_and_their_author(tmp_path: Path) -> None:
    old = {"type": "message", "ts": "1400000000.000100", "subtype": "file_share", "user": "U1"}
    file = {"id": "F9", "name": "old.txt", "mimetype": "text/plain", "size": 3}
    day = [
        {**old, "text": "<@U1> shared a file", "file": file},
        {**old, "ts": "1400000001.000100", "user": "USLACKBOT", "text": "reminder"},
        {**old, "ts": "1400000002.000100", "user": None, "bot_id": "B7", "text": "built"},
        {**old, "ts": "1400000003.000100", "user": None, "comment": {"user": "U2"}, "text": "nice"},
    ]
    robot = {"id": "U7", "name": "ci", "is_bot": True, "profile": {"bot_id": "B7"}}
    files = SPECIMENS["slack"] | {
        "Workspace/general/2014-05-13.json": as_json(day),
        "Workspace/org_users.json": as_json([robot]),
    }
    items = read_path(as_zip(files, tmp_path / "export.zip"))
    found = [m for m in records_of(items, "messages") if m["sent_at"].startswith("2014")]
    assert [m["author_name"] for m in found] == ["Ada", "Slackbot", "ci", "Ann Byron"]
    assert [m["author_kind"] for m in found] == ["person", "bot", "bot", "person"]
    assert found[0]["file_count"] == 1
    assert "old.txt" in {each["filename"] for each in records_of(items, "files")}


def test_what_the_platform_or_a_program_says_is_told_from_people(tmp_path: Path) -> None:
    said = {"type": "message", "user": "U1", "text": "<@U1> has joined the channel"}
    day = [
        {**said, "ts": "1400000000.000100", "subtype": "channel_join"},
        {**said, "ts": "1400000001.000100", "subtype": "me_message"},
        {**said, "ts": "1400000002.000100", "subtype": "bot_message", "user": None},
    ]
    files = SPECIMENS["slack"] | {"Workspace/general/2014-05-13.json": as_json(day)}
    items = read_path(as_zip(files, tmp_path / "export.zip"))
    found = [m for m in records_of(items, "messages") if m["sent_at"].startswith("2014")]
    assert [m["author_kind"] for m in found] == ["notice", "person", "bot"]


def test_what_a_program_says_in_fields_is_said(tmp_path: Path) -> None:
    fields = [{"title": "", "value": ":one: Yes\n\n"}, {"title": "Ends", "value": "Monday"}]
    attachment = {"pretext": "A poll", "title": "Bread?", "fallback": "Vote", "fields": fields}
    poll = {"type": "message", "subtype": "bot_message", "ts": "1700000000.000100", "text": ""}
    files = SPECIMENS["slack"] | {
        "Workspace/general/2023-11-14.json": as_json([poll | {"attachments": [attachment]}])
    }
    items = read_path(as_zip(files, tmp_path / "export.zip"))
    message = next(m for m in records_of(items, "messages") if m["channel_name"] == "general")
    assert message["text"].split("\n\n") == [
        "A poll",
        "Bread?",
        "Vote",
        ":one: Yes",
        "Ends: Monday",
    ]
