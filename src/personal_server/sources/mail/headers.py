"""The headers of real mail: folded, encoded twice, in unknown charsets, with impossible dates."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message
from email.utils import getaddresses, parsedate_tz
from functools import lru_cache

from personal_server.sources.text import decoded, one_line, printable

_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")
_ENVELOPE_DATE = re.compile(rb"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d.*$")


@dataclass(frozen=True, slots=True)
class Address:
    """A mailbox of somebody: what they are called, and where they are reached."""

    name: str
    email: str

    def __str__(self) -> str:
        return (
            f"{self.name} <{self.email}>" if self.name and self.email else self.name or self.email
        )


class Headers:
    """The header block of one message, read once, asked by lower-case name."""

    def __init__(self, message: Message) -> None:
        self._values: dict[str, list[str]] = {}
        for name, value in message.raw_items():
            self._values.setdefault(name.lower(), []).append(_unescaped(str(value)))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def raw(self, name: str) -> str:
        """The first value as it stands, unfolded."""
        return self._values.get(name, [""])[0]

    def text(self, name: str) -> str:
        """The first value for a person to read."""
        return one_line(decode_words(self.raw(name)), 2000)

    def addresses(self, name: str) -> list[Address]:
        """Everybody named in all headers of that name."""
        return [each for value in self._values.get(name, []) for each in _addresses(value)]

    def message_ids(self, name: str) -> list[str]:
        """The message ids in a header, without their brackets."""
        value = self.raw(name)
        found = _MESSAGE_ID.findall(value)
        if not found and name == "message-id" and value.strip():
            found = [value.strip()]
        return [printable(each)[:998] for each in found]

    def labels(self) -> list[str]:
        """Gmail's labels: a list with commas, in which a label with a comma stands in quotes."""
        value = one_line(decode_words(self.raw("x-gmail-labels")), 8000)
        rows = list(csv.reader([value], skipinitialspace=True)) if value else []
        return list(dict.fromkeys(label.strip() for row in rows for label in row if label.strip()))

    def sent_at(self, envelope: bytes) -> datetime | None:
        """When it was sent: by its date, else by the first server's clock, else by the mailbox."""
        received = (value.rpartition(";")[2] for value in self._values.get("received", []))
        from_line = _ENVELOPE_DATE.search(envelope)
        candidates = (
            self.raw("date"),
            *received,
            from_line.group().decode("ascii", "replace") if from_line else "",
        )
        return next(filter(None, map(_instant, candidates)), None)


@lru_cache(maxsize=8192)
def _addresses(value: str) -> tuple[Address, ...]:
    """The people of one header; the same few stand in most messages of a mailbox."""
    return tuple(
        Address(one_line(decode_words(who), 300), printable(email).strip()[:320])
        for who, email in getaddresses([value])
        if who or email
    )


def decode_words(value: str) -> str:
    """Text with its encoded words decoded; if one cannot be, all stay as they are."""
    if "=?" not in value:
        return printable(value)
    try:
        pieces = decode_header(value)
    except HeaderParseError:
        return printable(value)
    return printable("".join(_piece(content, charset) for content, charset in pieces))


def _piece(content: bytes | str, charset: str | None) -> str:
    """A stretch of a header; the library gives what is not encoded as escaped Latin-1."""
    if isinstance(content, str):
        return content
    if charset is None:
        try:
            return content.decode("raw-unicode-escape")
        except UnicodeDecodeError:
            return content.decode("latin-1")
    return decoded(content, charset.partition("*")[0])


def _unescaped(value: str) -> str:
    """Unfold a header and give its raw 8-bit bytes, if any, a meaning."""
    unfolded = re.sub(r"\r?\n(?=[ \t])", "", value)
    return decoded(unfolded.encode("utf-8", "surrogateescape")) if _is_raw(value) else unfolded


def _is_raw(value: str) -> bool:
    return not value.isascii()


def _instant(value: str) -> datetime | None:
    try:
        parts = parsedate_tz(value)
        if parts is None:
            return None
        local = datetime(*parts[:6], tzinfo=UTC)
        return local - timedelta(seconds=parts[9] or 0)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def shown(addresses: Iterable[Address]) -> list[str]:
    """Addresses as people write them."""
    return [str(address) for address in addresses]
