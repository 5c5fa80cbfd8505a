from email import message_from_bytes
from email.message import Message
from typing import Any

import pytest

from pdpp_sources.mail.message import Headers


def subject(*lines: bytes) -> str:
    return Headers(message_from_bytes(b"\n".join([*lines, b"", b"x"]))).text("subject")


@pytest.mark.parametrize(
    ("written", "charset", "text"),
    [
        ("你好世界".encode("gbk"), b"gb2312", "你好世界"),
        ("你好世界".encode("gbk"), b"us-ascii", "你好世界"),
        ("繁體中文".encode("big5"), b"big5", "繁體中文"),
        ("Привет".encode("koi8-r"), b"koi8-r", "Привет"),
        ("Привет".encode("cp1251"), b"windows-1251", "Привет"),
        ("こんにちは".encode("shift_jis"), b"shift_jis", "こんにちは"),
        ("Größe, café".encode("cp1252"), b"us-ascii", "Größe, café"),
        ("GRÖẞE ÄÖ".replace("ẞ", "SS").encode("cp1252"), b"us-ascii", "GRÖSSE ÄÖ"),
        ("Größe 你好".encode(), b"gb2312", "Größe 你好"),
        (b"\x1b$B-!F|K\\\x1b(B 1", b"iso-2022-jp", "①日本 1"),
        (b"\x1b$BF|K\\\x1b(B", b"us-ascii", "日本"),
    ],
)
def test_bytes_of_a_header_are_read_by_what_the_message_says(
    written: bytes, charset: bytes, text: str
) -> None:
    found = subject(b"Subject: " + written, b"Content-Type: text/plain; charset=" + charset)
    assert found == text


def test_the_charset_of_an_inner_part_counts() -> None:
    head = b'Content-Type: multipart/mixed; boundary="m"'
    body = b"--m\nContent-Type: text/plain; charset=koi8-r\n\nx\n--m--"
    written = b"Subject: " + "Привет".encode("koi8-r")
    found = Headers(message_from_bytes(b"\n".join([written, head, b"", body])))
    assert found.text("subject") == "Привет"


def test_the_charset_of_an_encoded_word_counts() -> None:
    sender = b"From: =?koi8-r?q?=F0?= <a@x.org>"
    assert subject(b"Subject: " + "Привет".encode("koi8-r"), sender) == "Привет"


def test_a_short_subject_is_read_as_the_words_below_it() -> None:
    words = "台北各等級商用辦公室案件，適合各種商業需求".encode("big5")
    lines = [b"Subject: [ILUG] " + "出租".encode("big5"), b"From: a@x.example", b"", words]
    assert Headers(message_from_bytes(b"\n".join(lines))).text("subject") == "[ILUG] 出租"


def test_other_names_of_a_charset_count() -> None:
    written = b"Subject: " + "還在用20%的信用卡".encode("big5")
    assert (
        subject(written, b'Content-Type: text/html; charset="CHINESEBIG5"') == "還在用20%的信用卡"
    )


class Asked(Message):
    """Counts how often its words are decoded."""

    decoded = 0

    def get_payload(self, *given: Any, **named: Any) -> Any:
        self.decoded += bool(named.get("decode"))
        return super().get_payload(*given, **named)


def test_the_words_of_a_mail_are_asked_once_for_all_its_headers() -> None:
    lines = [*(b"Received: caf\xe9; %d" % number for number in range(9)), b"", b"caf\xe9"]
    message = message_from_bytes(b"\n".join(lines), _class=Asked)
    Headers(message).sent_at(b"")
    assert message.decoded == 1


@pytest.mark.parametrize(
    ("charset", "text"),
    [("cp1251", "Привет, как дела? Новая попытка"), ("koi8_r", "Десятка Анекдотов Дня")],
)
def test_letters_that_are_told_leave_a_mail_the_one_it_was(charset: str, text: str) -> None:
    written = text.encode(charset)
    headers = Headers(message_from_bytes(b"Subject: " + written + b"\n\nx"))
    assert headers.text("subject") == text
    assert headers.identity("subject") == written.decode("cp1252")
