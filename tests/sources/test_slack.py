from pathlib import Path

from tests.sources.reading import read_path, records_of, skips_of
from tests.sources.specimens import SPECIMENS
from tests.sources.specimens.files import as_zip


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
