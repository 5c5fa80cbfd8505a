r"""Text of Meta's exports (Facebook, Instagram, Messenger), which wrote each byte as a letter.

`façon` stands there as `fa\u00c3\u00a7on`: the bytes of UTF-8, each escaped as if it were a
letter.  Only a file that holds such escapes is mended, and only what becomes whole UTF-8; what
stands there rightly stays.
"""

from __future__ import annotations

import re
from typing import Any, cast

from pdpp_kernel.source_item import Data, Json
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.text import printable

_ESCAPED = re.compile(rb"\\u00[c-f][0-9a-f](?:\\u00[89ab][0-9a-f])", re.IGNORECASE)
_CHUNK_BYTES = 1024 * 1024
_LONGEST_ESCAPE_BYTES = 12
_ABOVE_ASCII = re.compile("[\x80-\xff]")
# Bytes of UTF-8 that stand as letters beside text that is right.
_LETTERS = re.compile(
    "(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+"
)


class MetaText:
    """The texts of one file; whether it is written so is found out when the first looks like it."""

    def __init__(self, member: ExportMember) -> None:
        self._member = member
        self._is_meta: bool | None = None

    def mended(self, values: Data) -> Data:
        """The values with names and texts, however deep, as they were meant."""
        return cast("Data", self._within(values))

    def name(self, text: str) -> str:
        """One text."""
        if not _LETTERS.search(text):
            return text
        if self._is_meta is None:
            self._is_meta = _holds_escapes(self._member)
        return _mended(text) if self._is_meta else text

    def _within(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.name(value)
        if isinstance(value, list):
            return [self._within(element) for element in cast("list[Any]", value)]
        if isinstance(value, dict):
            members = cast("dict[str, Any]", value)
            return {self.name(name): self._within(element) for name, element in members.items()}
        return value


def _mended(text: str) -> str:
    """A text whose letters up to U+00FF are bytes; beside others, only stretches that are UTF-8."""
    try:
        return printable(text.encode("latin-1").decode())
    except UnicodeEncodeError:
        return _LETTERS.sub(_stretch, text)
    except UnicodeDecodeError:
        return text


def _stretch(match: re.Match[str]) -> str:
    try:
        return printable(match[0].encode("latin-1").decode())
    except UnicodeDecodeError:
        return match[0]


def _holds_escapes(member: ExportMember) -> bool:
    """Whether a file escapes bytes of UTF-8 as letters anywhere."""
    with member.open() as stream:
        before = b""
        while chunk := stream.read(_CHUNK_BYTES):
            if _ESCAPED.search(before + chunk):
                return True
            before = chunk[-_LONGEST_ESCAPE_BYTES:]
    return False
