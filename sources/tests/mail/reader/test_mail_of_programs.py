"""Mails as programs really write them; each was once read without a word and wrongly."""

from pathlib import Path

import pytest

from pdpp_kernel.source_item import Data
from sources.tests.reading import read_path, records_of, skips_of

HEAD = "From: Ann <ann@example.org>\nTo: bo@example.net\nDate: Mon, 4 Jul 2022 10:00:00 +0200\n"


def mails(folder: Path, content: str | bytes, name: str = "a.eml") -> list[Data]:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return records_of(read_path(folder), "messages")


def mail(name: str) -> str:
    return f"{HEAD}Message-ID: <{name}@example.org>\nSubject: {name}\n\n{name}.\n"


def test_an_address_as_its_own_name_is_a_sender(tmp_path: Path) -> None:
    head = (
        "From: bob@example.org <bob@example.org>\n"
        "To: 'ann@example.net' <ann@example.net>, cy@example.org <cy@example.org>\n"
    )
    (found,) = mails(tmp_path, head + "Message-ID: <1@x>\nSubject: s\n\nbody\n")
    assert (found["from_name"], found["from_address"]) == (None, "bob@example.org")
    assert found["to"] == ["ann@example.net", "cy@example.org"]


def test_brackets_and_a_comma_in_a_name_cost_no_address(tmp_path: Path) -> None:
    head = "From: Shop [Sales] <shop@example.org>\nTo: Doe, John <john@example.org>\n"
    (found,) = mails(tmp_path, head + "Message-ID: <1@x>\nSubject: s\n\nbody\n")
    assert (found["from_name"], found["from_address"]) == ("Shop [Sales]", "shop@example.org")
    assert found["to_address"] == "john@example.org"


def test_an_entry_that_is_no_address_is_kept_as_a_name_and_named(tmp_path: Path) -> None:
    head = "From: a@x.org\nTo: b@x.org, nobody in particular; c@x.org\nMessage-ID: <1@x>\n"
    (tmp_path / "a.eml").write_text(f"{head}Subject: s\n\nbody\n")
    items = read_path(tmp_path)
    (found,) = records_of(items, "messages")
    assert found["to"] == ["b@x.org", "nobody in particular", "c@x.org"]
    assert skips_of(items) == ["bad_address"]


@pytest.mark.parametrize(
    "form",
    [
        'Content-Type: text/plain; charset=utf-8; name="msg.txt"\n\nWords\n',
        "Content-Type: text/html\nContent-Disposition: inline; filename=t.html\n\n<p>Words</p>\n",
        'Content-Type: multipart/mixed; boundary="m"\n\n--m\n'
        'Content-Type: text/plain; name="a.txt"\n\nWords\n--m--\n',
        'Content-Type: multipart/alternative; boundary="m"\n\n--m\n'
        "Content-Type: text/plain\n\n\n--m\n"
        "Content-Type: text/html; name=b.html\nContent-Disposition: inline\n\nWords\n--m--\n",
    ],
)
def test_words_that_bear_the_name_of_a_file_are_the_body(tmp_path: Path, form: str) -> None:
    (found,) = mails(tmp_path, f"{HEAD}Subject: n\nMIME-Version: 1.0\n{form}")
    assert found["body"] == "Words"
    assert found["attachment_count"] == 1


@pytest.mark.parametrize(
    "form",
    [
        'Content-Type: text/plain\nContent-Disposition: attachment; filename="a.txt"\n\nA\n',
        'Content-Type: multipart/mixed; boundary="m"\n\n--m\nContent-Type: text/plain\n\n--m\n'
        'Content-Type: text/plain; name="a.txt"\n\nA\n--m--\n',
    ],
)
def test_a_text_that_is_a_file_is_no_body(tmp_path: Path, form: str) -> None:
    (found,) = mails(tmp_path, f"{HEAD}Subject: n\nMIME-Version: 1.0\n{form}")
    assert (found["body"], found["attachment_count"]) == ("", 1)


@pytest.mark.parametrize("preamble", ["", "This is a message of several parts.\n"])
@pytest.mark.parametrize("joint", ["", " "])
def test_a_boundary_may_be_folded_inside_its_quotes(
    tmp_path: Path, joint: str, preamble: str
) -> None:
    kind = 'Content-Type: multipart/alternative; boundary="--=_Part\n _12"\n\n'
    part = f"----=_Part{joint}_12\nContent-Type: text/plain\n\nWords\n----=_Part{joint}_12--\n"
    (found,) = mails(tmp_path, f"{HEAD}Subject: n\n{kind}{preamble}{part}")
    assert (found["body"], found["attachment_count"]) == ("Words", 0)


def test_parts_behind_words_are_found_under_another_boundary(tmp_path: Path) -> None:
    kind = 'Content-Type: multipart/mixed; boundary="one"\n\nFor old programs.\n\n'
    part = "--two\nContent-Type: text/plain\n\nWords\n--two--\n"
    (found,) = mails(tmp_path, f"{HEAD}Subject: n\n{kind}{part}")
    assert found["body"] == "Words"


@pytest.mark.parametrize(
    "separators",
    [
        ("From - ", "From ", "From - Mon Jul 04 10:00:00 2022"),
        ("From ann@example.org Mon Jul  4 10:00:00 2022", ">From - ", ">From - "),
        (">From - ", "From - ", ">From - "),
    ],
)
def test_separators_without_address_or_date_separate(
    tmp_path: Path, separators: tuple[str, ...]
) -> None:
    box = "\n".join(f"{line}\n{mail(str(n))}" for n, line in enumerate(separators))
    assert [each["body"] for each in mails(tmp_path, box, "a.mbox")] == ["0.", "1.", "2."]


def test_bare_separators_need_no_empty_line_before_them(tmp_path: Path) -> None:
    box = "".join(f"From \n{mail(name)}" for name in "ab")
    assert [each["body"] for each in mails(tmp_path, box, "a.mbox")] == ["a.", "b."]


def test_a_separator_that_thunderbird_quoted_separates_before_its_own_mark(tmp_path: Path) -> None:
    line = "From - Mon Jul 04 10:00:00 2022\nX-Mozilla-Status: 0001\n"
    box = f"{line}{mail('a')}\n>{line}{mail('b')}"
    assert [each["body"] for each in mails(tmp_path, box, "Inbox")] == ["a.", "b."]
    quoted = f"{line}{mail('a')}\n>From - Mon Jul 04 10:00:00 2022\nSubject: of a mail in it\n"
    assert len(mails(tmp_path, quoted, "Inbox")) == 1


def test_header_lines_that_an_exporter_quoted_are_headers(tmp_path: Path) -> None:
    one = "From ann@example.org Mon Jul  4 10:00:00 2022\n>" + mail("a") + ">From here on\n\n"
    two = one.replace("<a@", "<b@")
    found = mails(tmp_path, one + two, "INBOX.mbox")
    assert [each["from_address"] for each in found] == ["ann@example.org"] * 2
    assert found[0]["body"] == "a.\nFrom here on"


def test_a_message_of_apple_mail_ends_before_its_property_list(tmp_path: Path) -> None:
    message, plist = mail("emlx"), '<?xml version="1.0"?>\n<plist version="1.0"></plist>\n'
    path = "V10/A/INBOX.mbox/U/Data/Messages/1.emlx"
    (found,) = mails(tmp_path, f"{len(message)}      \n{message}{plist}", path)
    assert (found["body"], found["mailbox"]) == ("emlx.", "INBOX")
    (same,) = mails(tmp_path / "alone", message)
    assert found["id"] == same["id"]


def test_a_raw_chinese_subject_changes_no_key(tmp_path: Path) -> None:
    head = HEAD.encode() + b"Message-ID: <1@x>\nContent-Type: text/plain; charset=gbk\nSubject: "
    (found,) = mails(tmp_path, head + "你好世界".encode("gbk") + b"\n\nx\n")
    assert found["subject"] == "你好世界"
    # as it was before bytes without a charset were read by what the message says
    assert found["id"] == "msg_c4e7fe630c8280b2480e5b47"


def test_letters_that_nec_added_are_read(tmp_path: Path) -> None:
    kind = b"Subject: n\nContent-Type: text/plain; charset=iso-2022-jp\n\n"
    body = b"\x1b$B-!-j-7F|K\\\x1b(B end \x1b(ICD\x1b(B\n"
    (found,) = mails(tmp_path, HEAD.encode() + kind + body)
    assert found["body"] == "①㈱Ⅲ日本 end ﾃﾄ"


def test_a_forwarded_mail_with_a_header_no_library_writes_is_attached(tmp_path: Path) -> None:
    """Later patch releases refuse to write a header that holds a line end."""
    kind = "Subject: n\nContent-Type: message/rfc822\n\n"
    (found,) = mails(tmp_path, f"{HEAD}{kind}Subject: a\rb\n\nWords\n")
    assert found["attachment_count"] == 1


@pytest.mark.parametrize(
    ("answered", "is_reply"),
    [
        ('In-Reply-To: Your message of "Thu, 01 Aug 2002 17:15:27 BST."\n', True),
        ("In-Reply-To: <Pine.LNX.4.33.0209@hydrogen.leitl.or g>\n", True),
        ("In-Reply-To:\n", False),
        ("", False),
    ],
)
def test_what_names_the_mail_it_answers_by_words_is_an_answer(
    tmp_path: Path, answered: str, *, is_reply: bool
) -> None:
    content = f"From: ann@example.org\nTo: bob@example.org\nSubject: Re: Bread\n{answered}\nYes.\n"
    [found] = mails(tmp_path, content)
    assert found["is_reply"] is is_reply
