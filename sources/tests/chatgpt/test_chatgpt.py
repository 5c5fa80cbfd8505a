from pathlib import Path

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_json, as_zip


def test_a_conversation_is_read_with_its_branches_and_files(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["chatgpt"], tmp_path / "export.zip"))
    messages = {message["text"]: message for message in records_of(items, "messages")}
    question, replaced = messages["Why is my loaf flat?"], messages["Replaced answer"]
    assert question["created_at"] == "2023-11-14T22:13:20.500Z"
    assert question["attachment_count"] == 2
    assert question["is_current"]
    assert not replaced["is_current"]
    assert replaced["parent_id"] == question["id"]
    assert replaced["created_at"] == question["created_at"]
    kept, missing, *_ = records_of(items, "attachments")
    assert kept["blob_ref"]["size_bytes"] == 4
    assert "blob_ref" not in missing
    assert sorted(skips_of(items)) == [
        "bad_record",
        "missing_attachment",
        *["unknown_content"] * 2,
    ]


def test_what_was_spoken_and_drawn_comes_with_its_files(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["chatgpt"], tmp_path / "export.zip"))
    spoken, drawn = records_of(items, "attachments")[2:]
    assert (spoken["mime_type"], spoken["size_bytes"]) == ("audio/x-wav", 4)
    assert (drawn["filename"], drawn["prompt"]) == ("oven.png", "a loaf in a hot oven")
    assert all("blob_ref" in each for each in (spoken, drawn))
    (question,) = [m for m in records_of(items, "messages") if m["text"] == "And how hot?"]
    assert spoken["message_id"] == question["id"]


def test_what_lies_beside_conversations_is_read(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["chatgpt"], tmp_path / "export.zip"))
    (said,) = records_of(items, "feedback")
    assert (said["rating"], said["text"]) == ("thumbsUp", "It rose")
    assert [d["text"] for d in records_of(items, "documents")] == ["# Bread"]
    assert [g["members"] for g in records_of(items, "group_chats")] == [["user-1", "user-2"]]
    (shared,) = records_of(items, "shared_links")
    assert shared["conversation_id"] == "c-1"


def test_conversations_inside_an_object_are_read(tmp_path: Path) -> None:
    files = {"all.json": as_json({"conversations": conversation({})})}
    (message,) = records_of(read_path(as_zip(files, tmp_path / "export.zip")), "messages")
    assert message["text"] == "hello"


def test_numbered_parts_are_read(tmp_path: Path) -> None:
    parts = {"conversations-000.json": SPECIMENS["chatgpt"]["conversations.json"]}
    items = read_path(as_zip(parts, tmp_path / "export.zip"))
    assert len(records_of(items, "conversations")) == 2


def conversation(message: Data) -> list[Data]:
    whole: Data = {
        "content": {"content_type": "text", "parts": ["hello"]},
        "author": {"role": "user"},
    }
    nodes: Data = {"a": {"id": "a", "parent": None, "children": [], "message": whole | message}}
    return [{"title": "x", "mapping": nodes, "current_node": "a", "conversation_id": "c1"}]


def test_conversations_without_an_id_are_told_apart_by_their_first_message(tmp_path: Path) -> None:
    (first,) = conversation({"id": "a"})
    del first["conversation_id"]
    second = first | {"mapping": {"b": first["mapping"]["a"] | {"id": "b"}}, "current_node": "b"}
    (tmp_path / "conversations.json").write_bytes(as_json([first, second]))
    items = read_path(tmp_path)
    assert len({each["id"] for each in records_of(items, "conversations")}) == 2
    assert [each["url"] for each in records_of(items, "conversations")] == [None, None]
    assert [each["text"] for each in records_of(items, "messages")] == ["hello", "hello"]


def test_what_the_platform_hides_is_not_shown(tmp_path: Path) -> None:
    hidden = conversation({"metadata": {"is_visually_hidden_from_conversation": True}})
    files = {"conversations.json": as_json(hidden)}
    (message,) = records_of(read_path(as_zip(files, tmp_path / "export.zip")), "messages")
    assert not message["is_current"]


def test_marks_of_sources_become_their_names(tmp_path: Path) -> None:
    one, two = "\ue200cite\ue202turn0search0\ue201", "\ue200cite\ue202turn0search1\ue201"
    told = conversation(
        {
            "content": {"content_type": "text", "parts": [f"Rain. {one} Sun.{two}"]},
            "metadata": {"content_references": [{"matched_text": one, "alt": "([a](https://a))"}]},
        }
    )
    files = {"conversations.json": as_json(told)}
    (message,) = records_of(read_path(as_zip(files, tmp_path / "export.zip")), "messages")
    assert message["text"] == "Rain. ([a](https://a)) Sun."


def test_one_conversation_alone_is_one(tmp_path: Path) -> None:
    def message(name: str, role: str, text: str, parent: str) -> Data:
        said = {"content_type": "text", "parts": [text]}
        inner = {"id": name, "author": {"role": role}, "create_time": 1.7e9, "content": said}
        return {"id": name, "message": inner, "parent": parent, "children": []}

    nodes = {
        "r": {"id": "r", "message": None, "parent": None, "children": ["a"]},
        "a": message("a", "user", "one", "r"),
        "b": message("b", "assistant", "answer", "a"),
    }
    whole: Data = {"title": "T", "create_time": 1.7e9, "mapping": nodes, "conversation_id": "c1"}
    (tmp_path / "conversation.json").write_bytes(as_json(whole | {"current_node": "b"}))
    items = read_path(tmp_path)
    assert [each["title"] for each in records_of(items, "conversations")] == ["T"]
    assert [each["text"] for each in records_of(items, "messages")] == ["one", "answer"]
    assert {key for key, _ in items} == {"chatgpt"}
