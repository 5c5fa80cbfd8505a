import json
from pathlib import Path

from personal_server.domain.source_item import Data
from tests.sources.reading import read_path, records_of, skips_of
from tests.sources.specimens import SPECIMENS
from tests.sources.specimens.claude import CLAUDE
from tests.sources.specimens.files import as_zip


def test_blocks_become_text_thoughts_and_tools(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["claude"], tmp_path / "export.zip"))
    question, answer = records_of(items, "messages")
    assert (question["role"], question["attachment_count"]) == ("user", 2)
    assert answer["text"] == "After the last frost."
    assert answer["thinking"] == "Frost ends in May."
    assert answer["tools"] == ["web_search"]
    assert answer["parent_id"] == question["id"]
    assert records_of(items, "attachments")[0]["extracted_text"] == "South bed"
    assert [note["text"] for note in records_of(items, "memories")] == [
        "Grows beans.",
        "South bed.",
    ]


def test_one_conversation_on_each_line_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CLAUDE))
    (tmp_path / "array.json").write_text(json.dumps(CLAUDE))
    assert records_of(read_path(tmp_path / "lines.jsonl")) == records_of(
        read_path(tmp_path / "array.json")
    )


def test_messages_follow_each_other_by_their_times(tmp_path: Path) -> None:
    said = [
        {"uuid": "2", "sender": "assistant", "text": "b", "created_at": "2024-05-01T10:00:02Z"},
        {"uuid": "1", "sender": "human", "text": "a", "created_at": "2024-05-01T10:00:01Z"},
    ]
    (tmp_path / "a.json").write_text(json.dumps([{"uuid": "c", "chat_messages": said}]))
    first, second = records_of(read_path(tmp_path), "messages")
    assert (first["text"], first["parent_id"]) == ("a", None)
    assert second["parent_id"] == first["id"]


def test_what_is_no_conversation_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([*CLAUDE, {"uuid": "m", "text": "alone"}]))
    assert skips_of(read_path(tmp_path)) == ["unknown_record_type"]


def test_a_message_that_is_no_object_is_reported(tmp_path: Path) -> None:
    said = [None, {"uuid": "1", "sender": "human", "text": "a"}]
    (tmp_path / "a.json").write_text(json.dumps([{"uuid": "c", "chat_messages": said}]))
    items = read_path(tmp_path)
    assert [each["text"] for each in records_of(items, "messages")] == ["a"]
    assert skips_of(items) == ["bad_record"]


def test_conversations_are_known_behind_a_long_summary(tmp_path: Path) -> None:
    long: list[Data] = [{"uuid": "c", "name": "x", "summary": "word " * 5000, "chat_messages": []}]
    (tmp_path / "conversations.json").write_text(json.dumps(long))
    assert [c["id"] for c in records_of(read_path(tmp_path), "conversations")] == ["c"]
