from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens.mail import MAIL


def read(tmp_path: Path, content: bytes, name: str = "Inbox") -> list[Data]:
    (tmp_path / name).write_bytes(content)
    return records_of(read_path(tmp_path / name))


def test_a_message_of_gmail(tmp_path: Path) -> None:
    first, attachment, _ = read(tmp_path, MAIL)
    assert first["subject"] == "Äpfel und Birnen"
    assert first["from_name"] == "Jürgen"
    assert first["from_address"] == "juergen@example.org"
    assert first["to"] == ["Ada <ada@example.org>", "Byron, Ann <ann@example.org>"]
    assert first["labels"] == ["Inbox", "Wichtig", "Reisen, Italien", "Geöffnet"]
    assert first["sent_at"] == "2022-03-14T06:30:00Z"
    assert first["body"] == "Hello Ada,\n\nsee below."
    assert attachment["filename"] == "bill.pdf"
    assert attachment["blob_ref"]["size_bytes"] == 9
    assert attachment["message_id"] == first["id"]


def test_broken_encodings_and_dates_survive(tmp_path: Path) -> None:
    *_, second = read(tmp_path, MAIL)
    assert second["subject"] == "café naïve"
    assert second["body"] == "Naïve text, 8 bit.\nFrom the beginning."
    assert second["sent_at"] == "2022-03-15T08:00:00Z"
    assert second["to"] == []


def test_an_answer_shares_the_thread_of_what_it_answers(tmp_path: Path) -> None:
    mail = MAIL.replace(b"X-GM-THRID: 1790512345678\n", b"")
    first, _, second = read(tmp_path, mail)
    assert first["thread_id"] == second["thread_id"]
    assert not first["is_reply"]
    assert second["is_reply"]


def test_the_last_message_needs_no_line_end(tmp_path: Path) -> None:
    *_, last = read(tmp_path, MAIL.rstrip(b"\n"))
    assert last["body"] == "Na\u00efve text, 8 bit.\nFrom the beginning."


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        ('Content-Type: multipart/mixed; boundary="Ab"\n', "\n--Ab\n\none\n--A"),
        ("Content-Length: 40\n", "\nhalf of"),
        ("X-Spam-Sta", ""),
    ],
)
def test_a_mailbox_cut_short_keeps_its_whole_messages(tmp_path: Path, head: str, rest: str) -> None:
    cut = "From - Tue Mar 15 08:00:00 2022\nFrom: a@b\nSubject: x\n" + head + rest
    (tmp_path / "Inbox").write_bytes(MAIL + cut.encode())
    items = read_path(tmp_path / "Inbox")
    assert len(records_of(items, "messages")) == 2
    assert skips_of(items) == ["truncated"]


def test_an_attachment_beyond_the_limit_is_recorded_without_its_bytes(tmp_path: Path) -> None:
    part = b"--m\nContent-Type: video/mp4\n\n" + bytes(51 * 1024 * 1024) + b"\n"
    head = b"From a Mon Jan  1 00:00:00 2024\nFrom: a@b\nSubject: big\nMessage-ID: <1>\n"
    kind = b'Content-Type: multipart/mixed; boundary="m"\n\n'
    (tmp_path / "Inbox").write_bytes(head + kind + part + b"--m--\n\n")
    items = read_path(tmp_path / "Inbox")
    assert "blob_ref" not in records_of(items, "attachments")[0]
    assert skips_of(items) == ["attachment_too_large"]


def test_parts_nested_without_end_are_reported(tmp_path: Path) -> None:
    nest = b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\n\n--%d\n' % (n, n) for n in range(5000)
    )
    head = b"From a Mon Jan  1 00:00:00 2024\nFrom: a@b\nSubject: deep\nMessage-ID: <1>\n"
    (tmp_path / "Inbox").write_bytes(head + nest + b"\n\n" + MAIL)
    items = read_path(tmp_path / "Inbox")
    assert skips_of(items) == ["bad_record"]
    assert len(records_of(items, "messages")) == 2


def test_the_same_message_in_two_mailboxes_is_read_once(tmp_path: Path) -> None:
    for name in ("Archive", "Inbox"):
        (tmp_path / name).write_bytes(MAIL)
    items = read_path(tmp_path)
    assert {message["mailbox"] for message in records_of(items, "messages")} == {"Archive"}
    assert skips_of(items) == ["duplicate", "duplicate"]


def test_a_maildir_is_read(tmp_path: Path) -> None:
    (tmp_path / "Work" / "cur").mkdir(parents=True)
    message = MAIL.partition(b"\n")[2].partition(b"\nFrom - ")[0]
    (tmp_path / "Work" / "cur" / "1:2,S").write_bytes(message)
    items = read_path(tmp_path)
    assert [message["mailbox"] for message in records_of(items, "messages")] == ["Work"]
