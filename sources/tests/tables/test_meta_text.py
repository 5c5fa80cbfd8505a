import json
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of


def written(text: str) -> str:
    """A text as Meta writes it: each byte of UTF-8 escaped as a letter."""
    return text.encode().decode("latin-1")


def messages(folder: Path, *contents: str, raw: bool = False) -> list[Data]:
    listed = [
        {"sender_name": "Bo", "timestamp_ms": n, "content": c} for n, c in enumerate(contents)
    ]
    content = json.dumps({"messages": listed}, ensure_ascii=not raw)
    (folder / "message_1.json").write_text(content)
    return records_of(read_path(folder), "messages")


@pytest.mark.parametrize(
    ("content", "meant"),
    [
        (written("façon 😠"), "façon 😠"),
        (written("没有啊"), "没有啊"),
        ("“quoted” é", "“quoted” é"),
        ("é", "é"),
        ("“" + written("façon") + "”", "“façon”"),
        ("plain", "plain"),
        ("é " + written("ü"), "é " + written("ü")),
    ],
)
def test_texts_are_read_as_they_were_meant(tmp_path: Path, content: str, meant: str) -> None:
    found = messages(tmp_path, content, written("ä"))
    assert [each["content"] for each in found] == [meant, "ä"]


def test_what_other_programs_write_is_left_as_it_is(tmp_path: Path) -> None:
    (found,) = messages(tmp_path, "MENÜ»", raw=True)
    assert found["content"] == "MENÜ»"


def test_names_reactions_and_columns_are_mended_too(tmp_path: Path) -> None:
    reaction = {"reaction": written("👍"), "actor": written("Zoë Müller")}
    rows: list[Data] = [
        {"sender_name": written("Zoë"), written("Größe"): 1, "reactions": [reaction]},
        {"sender_name": "Bo", written("Größe"): 2, "reactions": []},
    ]
    (tmp_path / "message_1.json").write_text(json.dumps({"messages": rows}))
    items = read_path(tmp_path)
    first, _ = records_of(items, "messages")
    assert first["sender_name"] == "Zoë"
    (given,) = records_of(items, "messages_reactions")
    assert (given["reaction"], given["actor"]) == ("👍", "Zoë Müller")


def test_the_key_of_a_row_is_what_it_was(tmp_path: Path) -> None:
    """So that an import of the same file again corrects the rows, and adds none."""
    listed = [{"name": "Zo\u00c3\u00ab M\u00c3\u00bcller"}, {"name": "Bo"}]
    (tmp_path / "m.json").write_text(json.dumps(listed))
    first, _ = records_of(read_path(tmp_path))
    assert (first["name"], first["id"]) == ("Zoë Müller", "row_dc59a8d2b804619d28e95e60")
