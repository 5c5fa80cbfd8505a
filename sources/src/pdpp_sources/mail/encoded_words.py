"""Encoded words of headers (`=?charset?q?text?=`), read as programs write them.

Source: RFC 2047, RFC 2231 section 5.  One that cannot be decoded stays as it is, its neighbours
are decoded all the same; stretches of one charset that follow each other are one text, since
programs cut letters in two.
"""

from __future__ import annotations

import binascii
import re

from pdpp_sources.common.text import decoded, printable

LONGEST_HEADER_CHARS = 32_000
ENCODED_WORD = re.compile(r"=\?([^?\s]{1,100})\?([bBqQ])\?(.*?)\?=")
_QUOTED_BYTE = re.compile(rb"=([0-9A-Fa-f]{2})")


def decode_words(value: str) -> str:
    """Text with its encoded words decoded; a longer one than headers are stays as it is."""
    if "=?" not in value or len(value) > LONGEST_HEADER_CHARS:
        return printable(value)
    return printable("".join(_pieces(value)))


def _pieces(value: str) -> list[str]:
    """Plain stretches and decoded ones in turn; blanks between two encoded words are none."""
    pieces: list[str] = []
    content, charset, end = b"", "", 0
    for match in ENCODED_WORD.finditer(value):
        word = _bytes_of(match[2], match[3])
        if word is None:
            continue
        between, name = value[end : match.start()], match[1].partition("*")[0].lower()
        follows = bool(charset) and (not between or between.isspace())
        if not follows or name != charset:
            pieces.append(decoded(content, charset) if charset else "")
            pieces.append("" if follows else between)
            content, charset = b"", name
        content += word
        end = match.end()
    pieces.append(decoded(content, charset) if charset else "")
    return [*pieces, value[end:]]


def _bytes_of(encoding: str, text: str) -> bytes | None:
    """What a word stands for; None where it cannot be decoded."""
    raw = text.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return _QUOTED_BYTE.sub(
            lambda code: bytes.fromhex(code[1].decode()), raw.replace(b"_", b" ")
        )
    try:
        return binascii.a2b_base64(raw + b"=" * (-len(raw) % 4))
    except binascii.Error:
        return None
