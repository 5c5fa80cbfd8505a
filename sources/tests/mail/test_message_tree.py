"""The tree of a message is the one that Python's `email` makes of it."""

from __future__ import annotations

import random
from email import message_from_bytes
from email.message import Message
from email.policy import compat32
from typing import cast

import pytest

from pdpp_sources.mail.message_tree import ReadMessage, message_of

PLAIN = b"""From: Ann <ann@a.example>
Subject: a subject
 that goes on
X-Empty:
X-Folded:
\tbehind it
X-Blank: \x20
Content-Type: text/plain; charset=koi8-r

Text \xf0\xd2 of it
From here on
"""
MIXED = b"""Content-Type: multipart/mixed; boundary="b"
Subject: Gr\xc3\xb6\xc3\x9fe

Before it
--b
Content-Type: multipart/alternative; boundary=inner

--inner

plain \xe4
--inner--
--inner
Content-Type: text/html

<p>page</p>

--inner--

behind the inner ones
--b  \t
Content-Type: text/plain; name="\xe4.txt"
Content-Transfer-Encoding: base64

VGV4dA==
--bb
--b--
behind all
"""
MAILS = [PLAIN, MIXED, PLAIN.replace(b"\n", b"\r\n"), MIXED.replace(b"\n", b"\r\n"), b"", b"\n\nx"]
PIECES = [
    b"\n",
    b"\r\n",
    b"\r",
    b"\n\n",
    b"--",
    b"--b\n",
    b"\n--b--",
    b"\n--inner--",
    b":",
    b" ",
    b"",
]
TYPES = [b"message/rfc822", b"multipart/digest", b"multipart/mixed; boundary=b", b"From x\n"]


def described(message: Message) -> object:
    """All that can be asked of a message and its parts."""
    payload = message.get_payload()
    content = (
        [described(part) for part in cast("list[Message]", payload)]
        if isinstance(payload, list)
        else (payload, message.get_payload(decode=True))
    )
    return (
        [(name, str(value)) for name, value in message.raw_items()],
        [str(message.get(name, "-")) for name in ("subject", "X-EMPTY", "content-type", "other")],
        (message.get_content_type(), message.get_content_charset(), message.get_filename()),
        (message.preamble, message.epilogue, content),
    )


@pytest.mark.parametrize("raw", MAILS, ids=range(len(MAILS)))
def test_what_is_written_as_it_should_be(raw: bytes) -> None:
    assert described(message_of(raw)) == described(message_from_bytes(raw, policy=compat32))
    assert isinstance(message_of(raw), ReadMessage) or b"--inner--\n--inner" in raw


def test_what_is_broken_anywhere() -> None:
    chance = random.Random(7)
    trees = 0
    for _ in range(1_500):
        raw = bytearray(chance.choice(MAILS))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(raw) + 1)
            raw[at : at + chance.choice((0, 0, 1, 5))] = chance.choice(PIECES + TYPES)
        found = message_of(bytes(raw))
        assert described(found) == described(message_from_bytes(bytes(raw), policy=compat32))
        trees += isinstance(found, ReadMessage) and found.is_multipart()
    assert trees > 100


def test_parts_in_parts() -> None:
    raw = b"\nx\n"
    for depth in range(12):
        head = b'Content-Type: multipart/mixed; boundary="b%d"\n\n' % depth
        raw = head + b"--b%d\n%s\n--b%d--\n" % (depth, raw, depth)
        assert described(message_of(raw)) == described(message_from_bytes(raw, policy=compat32))
    assert not isinstance(message_of(raw), ReadMessage)


def test_another_value_of_a_header_is_found() -> None:
    message = message_of(b"Content-Type: text/html\n\nx")
    assert message.get_content_type() == "text/html"
    message.replace_header("content-type", "text/plain")
    assert (message.get("Content-Type"), message.get_content_type()) == ("text/plain",) * 2
