"""Cut an mbox into messages while it streams by.

A separator is a `From ` line after an empty line (or at the start) that has a clock time and a year
and is followed by a header, or that has an address, a digit or one word and is followed by a header
of mail: programs wrote every kind of date there, or none. One with the date of the format's own
kind, or with nothing at all, needs no empty line before it. One that Thunderbird quoted by mistake
(`>From - `) separates where no date stands in it or the mark of Thunderbird's own mail follows.
Memory holds one message; one beyond the limit is passed over, not loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

import msgspec

CHUNK_BYTES = 1024 * 1024
LARGEST_MESSAGE_BYTES = 64 * 1024 * 1024
_DATED = rb"[^\r\n]{0,400}?\d:\d\d[^\r\n]{0,400}?\b(?:19|20)\d\d\b[^\r\n]{0,100}"
_UNDATED = rb"(?:[^\s]{0,400}[ \t]*|[^\r\n]{0,400}?[@\d][^\r\n]{0,400})"
_ASCTIME = (
    rb"[^\r\n]{0,400}?\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct"
    rb"|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d [^\r\n]{0,20}?(?:19|20)\d\d[^\r\n]{0,20}"
)
_OF_MAIL = (
    rb"(?:>From [^\r\n]{0,400}\r?\n)?"
    rb"(?:received|return-path|delivered-to|message-id|date|from|to|cc|subject"
    rb"|mime-version|content-[a-z-]{1,40}|reply-to|sender|status|in-reply-to|references|envelope-to"
    rb"|list-[a-z]{1,40}|x-[a-z0-9-]{1,60}|dkim-signature|arc-[a-z-]{1,40}|newsgroups|path):"
)
_ANY_HEADER = rb"(?:[!-9;-~\x80-\xff]{1,80}:|>From |\r?\n)"
_LINE = (
    rb"(?:" + _DATED + rb"\r?\n(?=" + _ANY_HEADER + rb")"
    rb"|" + _UNDATED + rb"\r?\n(?=" + _OF_MAIL + rb"))"
)
_QUOTED_SEPARATOR = (
    rb">From - (?i:[ \t]*\r?\n(?=" + _OF_MAIL + rb")|" + _ASCTIME + rb"\r?\n(?=x-mozilla-status))"
)
SEPARATOR = re.compile(rb"From (?i:" + _LINE + rb")|" + _QUOTED_SEPARATOR)
_BOUNDARY = re.compile(
    rb"\n(?:\r?\n(?=From (?i:"
    + _LINE
    + rb")|"
    + _QUOTED_SEPARATOR
    + rb")|(?=From (?i:(?:"
    + _ASCTIME
    + rb"|[ \t]*)\r?\n"
    + _OF_MAIL
    + rb")))"
)
_LONGEST_SEPARATOR_BYTES = 2048
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


class RawMessage(msgspec.Struct, frozen=True):
    """One message as it stands in the mailbox.

    Units: `offset` in bytes from the start of the file, at the separator line. `raw` is None for a
    message too large to read; `complete` is False where the file ends in the middle of a line.
    """

    offset: int
    envelope: bytes
    raw: bytes | None
    complete: bool = True


def split_mbox(
    stream: BinaryIO, offset: int = 0, largest_bytes: int = LARGEST_MESSAGE_BYTES
) -> Iterator[RawMessage]:
    """The messages of an mbox from a separator on; `offset` is where the stream stands."""
    window = _Stretch(stream, offset, largest_bytes)
    while (message := window.next_message()) is not None:
        yield message


class _Stretch:
    """A stretch of the file that grows until it holds one whole message."""

    def __init__(self, stream: BinaryIO, offset: int, largest_bytes: int) -> None:
        self._stream = stream
        self._largest_bytes = largest_bytes
        self._offset = offset  # of the first byte in the buffer
        self._buffer = bytearray()
        self._start = 0
        self._ended = False

    def next_message(self) -> RawMessage | None:
        searched, dropped = self._start, 0
        while (boundary := _BOUNDARY.search(self._buffer, max(self._start, searched))) is None:
            if self._ended:
                return self._last(dropped)
            searched = max(self._start, len(self._buffer) - _LONGEST_SEPARATOR_BYTES)
            if len(self._buffer) - self._start > self._largest_bytes:
                dropped += self._drop(searched)
                searched = self._start
            searched -= self._refill()
        return self._cut(boundary.end(), dropped, complete=True)

    def _refill(self) -> int:
        """Read on, forgetting what was handed out. Returns: by how much the buffer moved."""
        moved = self._start
        del self._buffer[:moved]
        self._offset += moved
        self._start = 0
        chunk = self._stream.read(CHUNK_BYTES)
        self._ended = not chunk
        self._buffer += chunk
        return moved

    def _drop(self, upto: int) -> int:
        """Forget the beginning of a message that is too large."""
        dropped = upto - self._start
        self._start = upto
        return dropped

    def _last(self, dropped: int) -> RawMessage | None:
        if not dropped and not self._buffer[self._start :].strip():
            return None
        return self._cut(len(self._buffer), dropped, complete=self._buffer.endswith(b"\n"))

    def _cut(self, end: int, dropped: int, *, complete: bool) -> RawMessage:
        begin, self._start = self._start, end
        offset = self._offset + begin - dropped
        if dropped or end - begin > self._largest_bytes:
            return RawMessage(offset, b"", None, complete)
        separator = SEPARATOR.match(self._buffer, begin, end)
        envelope = bytes(separator.group()) if separator else b""
        with memoryview(self._buffer) as view, view[begin + len(envelope) : end] as part:
            body = bytes(part)
        if b">From " in body:
            body = _QUOTED_FROM.sub(rb"\1", body)
        return RawMessage(offset, envelope.strip(), body, complete)
