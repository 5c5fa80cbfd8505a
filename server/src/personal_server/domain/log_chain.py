"""The chain over a log: each line has a link that follows from the line and the link before it.

Rule: a line that is changed, removed or put elsewhere breaks the chain there.  Members without a
value do not count, so that a log may get another member and its older lines keep their links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import msgspec
import orjson

GENESIS = bytes(32)
"""What the first link follows from."""


class LogHead(msgspec.Struct, frozen=True):
    """Where a log stood, or was cut: up to which line, and that line's link.

    A signature stands for all of it.
    """

    log: str
    number: int
    link: bytes
    at_ns: int
    is_cut: bool = False
    signature: bytes | None = None

    @property
    def signed_text(self) -> bytes:
        """What the signature is over."""
        kind = "cut" if self.is_cut else "head"
        parts = (f"pdpp log {kind}", self.log, self.number, self.link.hex(), self.at_ns)
        return "\n".join(map(str, parts)).encode()


class LogLine(msgspec.Struct, frozen=True):
    """A line as it is stored: its number, its link (`None` before there was a chain), the rest."""

    number: int
    link: bytes | None
    members: Mapping[str, object]


def link_of(previous: bytes, line: Mapping[str, object]) -> bytes:
    """The link of a line after another, 32 bytes."""
    members = {name: value for name, value in line.items() if value is not None}
    return hashlib.sha256(previous + orjson.dumps(members, option=orjson.OPT_SORT_KEYS)).digest()
