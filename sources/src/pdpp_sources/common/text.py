"""Bytes and strings from anywhere, made into printable Unicode without ever failing."""

from __future__ import annotations

import codecs
import re
from encodings import normalize_encoding
from functools import lru_cache
from html import unescape
from typing import Any, cast
from urllib.parse import urlsplit

from pdpp_kernel.source_item import Json
from pdpp_sources.common import japanese

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")
_STRAY = "personal-server-stray-byte"
_SUPERSETS = {
    "us-ascii": "utf-8",
    "ascii": "utf-8",
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "ks_c_5601": "cp949",
    "gb_2312-80": "gb18030",
    "chinesebig5": "big5",
    "x-big5": "big5",
    "unicode-1-1-utf-7": "utf-7",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "iso-8859-8-i": "iso-8859-8",
}
_NO_CHARSETS = frozenset(
    {"unicode_escape", "raw_unicode_escape", "punycode", "idna", "undefined", "charmap"}
)
_WESTERN = frozenset({"cp1252", "windows-1252", "iso-8859-15", "latin1", "iso8859-1"})


def printable(text: str) -> str:
    """The text without control characters and half surrogates."""
    text = _CONTROLS.sub("", text)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text


def printable_within(value: Json) -> Json:
    """The value with every text in it printable, however deep. Raises: RecursionError."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [printable_within(element) for element in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {printable(name): printable_within(element) for name, element in members.items()}
    return value


def decoded(content: bytes, charset: str | None = None) -> str:
    """Bytes as text: by the charset named, else UTF-8, a stray byte as one of Western Windows."""
    text = decoded_as_named(content, charset)
    return printable(content.decode("utf-8", _STRAY)) if text is None else text


def decoded_as_named(content: bytes, charset: str | None = None) -> str | None:
    """Bytes as text by the charset named, else UTF-8; `None` where neither has all of it.

    Where the charset named is known, a byte that is none of it costs one character. What is called
    Western but is whole UTF-8 is UTF-8: programs name the charset they expected.
    """
    codec = codec_named(charset)
    if codec in japanese.ESCAPED and b"\x1b" not in content and not content.isascii():
        codec, charset = "utf-8", None  # the charset that was meant for others
    if codec in japanese.ESCAPED or (b"\x1b$" in content and japanese.is_escaped_japanese(content)):
        return printable(japanese.from_escaped(content))
    if codec in japanese.UNIX:
        return printable(content.decode("euc_jp", japanese.NEC))
    if codec == "big5":
        codec = _wider_big5(content)
    for candidate in ("utf-8", codec) if codec in _WESTERN else (codec, "utf-8"):
        try:
            return printable(content.decode(candidate))
        except (LookupError, ValueError):
            continue
    if charset and codec != "utf-8":
        try:
            return printable(content.decode(codec, "replace"))
        except (LookupError, ValueError):
            pass
    return None


def unescaped(text: str) -> str:
    """The text with the entities of HTML and XML as characters.

    As it is, where it names a character by a number of thousands of digits.
    """
    try:
        return unescape(text) if "&" in text else text
    except ValueError:
        return text


def _wider_big5(content: bytes) -> str:
    """The least of the tables of Big5 that has every letter: programs name the least of all."""
    for candidate in ("big5", "cp950", "big5hkscs"):
        try:
            content.decode(candidate)
        except UnicodeDecodeError:
            continue
        return candidate
    return "big5"


def _western(error: UnicodeError) -> tuple[str, int]:
    """The first byte that is no UTF-8 as a character of Windows-1252."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101  # nothing is encoded with this
    stray = error.object[error.start : error.start + 1]
    return stray.decode("cp1252", "replace"), error.start + 1


codecs.register_error(_STRAY, _western)


@lru_cache(maxsize=1_000)
def codec_named(charset: str | None) -> str:
    """The codec that reads what is called by that name.

    UTF-8 where there is no name, or one of Python's own transformations: no mail program knows
    them, so what they would make of a text is not what its reader sees.
    """
    name = (charset or "utf-8").strip("\"' ").lower()
    if normalize_encoding(name) in _NO_CHARSETS:
        return "utf-8"
    return _SUPERSETS.get(name, name)


def one_line(text: str, longest: int = 1000) -> str:
    """White space folded to single blanks, cut at a length."""
    return " ".join(text.split())[:longest]


def or_none(text: str | None) -> str | None:
    """None instead of an empty string."""
    return text or None


def host_of(url: str) -> str | None:
    """The name of the site in an address on the web, if it can be read."""
    try:
        return or_none(urlsplit(url).hostname)
    except ValueError:
        return None
