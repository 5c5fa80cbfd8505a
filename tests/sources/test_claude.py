import json
from pathlib import Path

from tests.sources.reading import read_path, records_of
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
