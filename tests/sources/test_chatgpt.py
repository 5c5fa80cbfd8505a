from pathlib import Path

from tests.sources.reading import read_path, records_of, skips_of
from tests.sources.specimens import SPECIMENS
from tests.sources.specimens.files import as_zip


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
    kept, missing = records_of(items, "attachments")
    assert kept["blob_ref"]["size_bytes"] == 4
    assert "blob_ref" not in missing
    assert sorted(skips_of(items)) == ["bad_record", "missing_attachment"]


def test_numbered_parts_are_read(tmp_path: Path) -> None:
    parts = {"conversations-000.json": SPECIMENS["chatgpt"]["conversations.json"]}
    items = read_path(as_zip(parts, tmp_path / "export.zip"))
    assert len(records_of(items, "conversations")) == 2
