"""The headers of real mail: folded, encoded twice, in unknown charsets, with impossible dates."""

from __future__ import annotations

import binascii
import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import getaddresses, parsedate_tz
from functools import lru_cache

from personal_server.sources.text import decoded, one_line, printable

_ENCODED_WORD = re.compile(r"=\?([^?\s]+)\?([bBqQ])\?([^?]*)\?=")
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
    """Text with its encoded words decoded; what cannot be decoded stays as it is."""
    if "=?" not in value:
        return printable(value)
    pieces: list[str] = []
    pending, charset, end = b"", "", 0
    for word in _ENCODED_WORD.finditer(value):
        between = value[end : word.start()]
        content = _word_bytes(word.group(2), word.group(3))
        if pending and (between.strip() or word.group(1).lower() != charset):
            pieces.append(decoded(pending, charset))
            pending = b""
        if between.strip() or (between and not end):
            pieces.append(between)
        pending, charset, end = pending + content, word.group(1).lower(), word.end()
    pieces.append(decoded(pending, charset.partition("*")[0]))
    return printable("".join(pieces) + value[end:])


def _word_bytes(encoding: str, content: str) -> bytes:
    raw = content.encode("utf-8", "surrogateescape")
    if encoding in "qQ":
        return binascii.a2b_qp(raw, header=True)
    try:
        return binascii.a2b_base64(raw + b"=" * (-len(raw) % 4))
    except binascii.Error:
        return raw


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
