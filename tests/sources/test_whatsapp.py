from pathlib import Path

import pytest

from tests.sources.reading import read_path, records_of, skips_of
from tests.sources.specimens import SPECIMENS
from tests.sources.specimens.files import as_zip


def test_a_chat_of_an_iphone(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["whatsapp"], tmp_path / "export.zip"))
    (chat,) = records_of(items, "chats")
    assert chat["name"] == "Ada & Ann"
    messages = records_of(items, "messages")
    assert messages[1]["text"] == "Good evening\non two lines: yes"
    assert messages[1]["sent_at"] == "2024-01-13T21:05:10Z"
    assert messages[2]["author"] == "Ann Byron"
    assert messages[5]["sent_at"] == "2024-02-02T00:00:00Z"
    assert messages[5]["kind"] == "left_out"
    assert records_of(items, "files")[0]["blob_ref"]["size_bytes"] == 2
    assert skips_of(items) == ["bad_date"]


def test_two_equal_messages_in_one_minute_are_two(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["whatsapp"], tmp_path / "export.zip"))
    same = [message["id"] for message in records_of(items, "messages") if message["text"] == "ok"]
    assert len(set(same)) == 2


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        ("1/14/24, 3:05 PM - A: x", "2/1/24, 3:05 PM - A: y", "2024-02-01T15:05:00Z"),
        ("14.01.24, 15:05 - A: x", "02.02.24, 15:05 - A: y", "2024-02-02T15:05:00Z"),
        ("2024-01-14, 15:05 - A: x", "2024-02-03, 15:05 - A: y", "2024-02-03T15:05:00Z"),
        ("[01/02/24, 15:05:09] A: x", "[01/03/24, 15:05:09] A: y", "2024-03-01T15:05:09Z"),
        ("2024/1/14 上午9:05 - A: x", "2024/2/3 下午3:05 - A: y", "2024-02-03T15:05:00Z"),
        ("2024. 1. 14. 오전 9:05 - A: x", "2024. 2. 3. 오후 3:05 - A: y", "2024-02-03T15:05:00Z"),
        (
            "١٤\u200f/١\u200f/٢٠٢٤، ٩:٠٥ ص - A: x",
            "٣\u200f/٢\u200f/٢٠٢٤، ٣:٠٥ م - A: y",
            "2024-02-03T15:05:00Z",
        ),
        ("14/1/24, 9:05 π.μ. - A: x", "3/2/24, 3:05 μ.μ. - A: y", "2024-02-03T15:05:00Z"),
        ("10/1/24, 9:05 a. m. - A: x", "11/1/24, 9:05 p. m. - A: y", "2024-01-11T21:05:00Z"),
    ],
)
def test_dates_in_many_orders(tmp_path: Path, first: str, second: str, wanted: str) -> None:
    (tmp_path / "WhatsApp Chat with A.txt").write_text(f"{first}\n{second}\n")
    messages = records_of(read_path(tmp_path), "messages")
    assert [message["sent_at"] for message in messages][-1] == wanted


def test_a_file_that_was_exported_without_media_is_reported(tmp_path: Path) -> None:
    (tmp_path / "chat.txt").write_text("1.2.24, 15:05 - A: IMG-1.jpg (Datei angehängt)\nFoto\n")
    items = read_path(tmp_path)
    assert records_of(items, "files")[0]["filename"] == "IMG-1.jpg"
    assert skips_of(items) == ["missing_attachment"]


def test_a_chat_is_known_wherever_the_first_look_at_it_ends(tmp_path: Path) -> None:
    line = "\u200e[13/01/24, 9:05:10\u202fPM] Ада: {}\n"
    for padding in range(4):
        text = line.format("x" * padding) + line.format("Добрый вечер, как дела? " * 400)
        (tmp_path / "_chat.txt").write_text(text, encoding="utf-8")
        assert len(records_of(read_path(tmp_path), "messages")) == 2


def kinds(tmp_path: Path, *texts: str) -> list[tuple[str, str | None]]:
    lines = [f"[13/01/24, 21:05:{n:02}] {text}\n" for n, text in enumerate(texts, 10)]
    (tmp_path / "chat.txt").write_text("".join(lines))
    messages = records_of(read_path(tmp_path), "messages")
    return [(message["kind"], message["author"]) for message in messages]


def test_what_the_program_writes_in_somebody_s_name_is_a_notice(tmp_path: Path) -> None:
    found = kinds(tmp_path, "Ada: \u200eMissed voice call", "Ada: Missed you", "Ada added Ann")
    assert found == [("notice", "Ada"), ("message", "Ada"), ("notice", None)]


def test_a_notice_that_quotes_a_colon_has_no_author(tmp_path: Path) -> None:
    found = kinds(tmp_path, "Ada: hi", "Ada created group “Bread: rye”", 'Ada changed to "a: b"')
    assert found == [("message", "Ada"), ("notice", None), ("notice", None)]


def test_a_site_with_a_remark_is_no_file(tmp_path: Path) -> None:
    found = kinds(tmp_path, "Ada: example.org (my own site)", "Ada: a.pdf (file attached) or so")
    assert [kind for kind, _ in found] == ["message", "message"]
