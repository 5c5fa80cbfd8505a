from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of, skips_of

SEPARATOR = "From 1@xxx Mon Mar 14 06:30:00 +0000 2022\n"


def mail(headers: str, body: str = "Hello.") -> str:
    usual = "From: Ada <ada@example.org>\nTo: Ann <Ann@Example.ORG>, bob@example.org\nSubject: x\n"
    return f"{SEPARATOR}{usual}{headers}\n{body}\n\n"


def read(tmp_path: Path, *mails: str) -> list[Data]:
    (tmp_path / "Inbox").write_text("".join(mails))
    items = read_path(tmp_path / "Inbox")
    assert skips_of(items) == []
    return records_of(items, "messages")


def test_two_messages_that_share_an_id_are_two(tmp_path: Path) -> None:
    same = "Message-ID: <1@x>\nDate: Mon, 14 Mar 2022 07:30:00 +0100\n"
    found = read(tmp_path, mail(same, "one"), mail(same, "two"))
    assert [each["body"] for each in found] == ["one", "two"]
    assert len({each["id"] for each in found}) == 2


def test_a_message_without_an_id_has_the_same_key_every_time(tmp_path: Path) -> None:
    (first,) = read(tmp_path, mail("Date: Mon, 14 Mar 2022 07:30:00 +0100\n"))
    (again,) = read(tmp_path, mail("Date: Mon, 14 Mar 2022 07:30:00 +0100\n"))
    assert first["id"] == again["id"]
    assert first["internet_message_id"] is None
    assert first["thread_id"] == first["id"]


def test_an_old_chat_is_a_message_with_its_label(tmp_path: Path) -> None:
    (chat,) = read(tmp_path, mail("X-GM-THRID: 7\nX-Gmail-Labels: Chat\n"))
    assert (chat["labels"], chat["labelled"]) == (["Chat"], "Chat")


def test_who_got_it_can_be_searched_and_grouped(tmp_path: Path) -> None:
    (found,) = read(tmp_path, mail("Cc: Eve <eve@example.org>\n"))
    assert found["to_address"] == "ann@example.org"
    assert found["recipients"] == "Ann <Ann@Example.ORG>, bob@example.org, Eve <eve@example.org>"


@pytest.mark.parametrize(
    ("headers", "instant"),
    [
        ("Date: Mon, 14 Mar 2022 07:30:00 +0100\n", "2022-03-14T06:30:00Z"),
        ("Date: Mon, 14 Mar 2022 07:30:00 -0000\n", "2022-03-14T07:30:00Z"),
        ("Date: Mon, 14 Mar 22 07:30:00 EST\n", "2022-03-14T12:30:00Z"),
        ("Date: 14 Mar 2022 07:30 (UTC)\n", "2022-03-14T07:30:00Z"),
        (
            "Date: on a monday\nReceived: by x; Mon, 14 Mar 2022 07:31:00 +0100\n",
            "2022-03-14T06:31:00Z",
        ),
        ("Date: Mon, 99 Mar 2022 07:30:00 +0100\n", "2022-03-14T06:30:00Z"),
        ("", "2022-03-14T06:30:00Z"),
    ],
)
def test_dates_come_from_what_can_be_read(tmp_path: Path, headers: str, instant: str) -> None:
    assert [each["sent_at"] for each in read(tmp_path, mail(headers))] == [instant]


def test_links_beyond_what_is_kept_are_named(tmp_path: Path) -> None:
    page = "".join(f'<a href="https://x.example/{n % 501}">more</a>\n' for n in range(1_002))
    head = "From: a@x.example\nContent-Type: text/html"
    (tmp_path / "a.eml").write_text(mail(head, page))
    items = read_path(tmp_path)
    assert [len(record["links"]) for record in records_of(items, "messages")] == [500]
    assert skips_of(items) == ["beyond_bounds"]
    (tmp_path / "a.eml").write_text(mail(head, page.replace("/500", "/499")))
    assert skips_of(read_path(tmp_path)) == []
