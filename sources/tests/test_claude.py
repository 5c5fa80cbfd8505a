import json
from pathlib import Path

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.claude import CLAUDE, CLAUDE_PROJECT
from sources.tests.specimens.files import as_zip


def test_blocks_become_text_thoughts_and_tools(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["claude"], tmp_path / "export.zip"))
    question, answer = [m for m in records_of(items, "messages") if m["created_at"] < "2026"]
    assert (question["role"], question["attachment_count"]) == ("user", 2)
    assert answer["text"] == "After the last frost."
    assert answer["thinking"] == "Frost ends in May."
    assert answer["tools"] == ["web_search", "artifacts"]
    assert answer["tool_text"] == "web_search answered: Frost\nLast frost: 12 May"
    assert answer["links"] == ["Frost <https://example.org/f>", "https://example.org/g"]
    (made,) = records_of(items, "artifacts")
    assert (made["title"], made["text"]) == ("Sowing calendar", "May: beans")
    assert made["message_id"] == answer["id"]
    assert skips_of(items) == ["unknown_content"]
    assert answer["parent_id"] == question["id"]
    assert records_of(items, "attachments")[0]["extracted_text"] == "South bed"
    assert [note["text"] for note in records_of(items, "memories")] == [
        "Grows beans.",
        "South bed.",
        "Heavy clay.",
    ]


def test_a_chat_about_a_design_is_a_conversation(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["claude"], tmp_path / "export.zip"))
    (chat,) = [c for c in records_of(items, "conversations") if c["id"] == "x-1"]
    assert (chat["title"], chat["url"], chat["message_count"]) == ("Labels", None, 2)
    asked, answer = [m for m in records_of(items, "messages") if m["conversation_id"] == "x-1"]
    assert (asked["role"], asked["text"]) == ("user", "Labels for beds")
    assert (answer["text"], answer["thinking"]) == ("Here they are.", "Big letters.")
    assert answer["tool_text"] == 'draw: {"size": 3}'


def test_what_others_wrapped_into_one_object_says_the_same(tmp_path: Path) -> None:
    forms: dict[str, object] = {
        "plain": CLAUDE,
        "wrapped": {"schema_version": 1, "user": None, "conversations": CLAUDE},
        "lists": {"conversations": CLAUDE, "projects": [CLAUDE_PROJECT]},
    }
    for name, wrapped in forms.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(wrapped))
    plain = records_of(read_path(tmp_path / "plain.json"))
    assert records_of(read_path(tmp_path / "wrapped.json")) == plain
    both = read_path(tmp_path / "lists.json")
    assert records_of(both)[: len(plain)] == plain
    assert [p["name"] for p in records_of(both, "projects")] == ["Allotment"]


def test_only_the_branch_that_is_shown_is_current(tmp_path: Path) -> None:
    said = [
        {"uuid": "1", "sender": "human", "text": "a"},
        {"uuid": "2", "sender": "assistant", "text": "b", "parent_message_uuid": "1"},
        {"uuid": "3", "sender": "assistant", "text": "c", "parent_message_uuid": "1"},
    ]
    chat = {"uuid": "c", "chat_messages": said, "current_leaf_message_uuid": "3"}
    (tmp_path / "a.json").write_text(json.dumps([chat]))
    shown = {m["text"]: m["is_current"] for m in records_of(read_path(tmp_path), "messages")}
    assert shown == {"a": True, "b": False, "c": True}


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
    assert skips_of(read_path(tmp_path)) == ["unknown_content", "unknown_record_type"]


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
