"""How much a page may hold: items are taken while they fit, and at least one.

Rule: the page ends here and nowhere else, before its cursor is made and before it is logged; so
what a caller has no room for is neither sent nor counted.
Source: docs/contract/resource-server.md 7.2, 7.8.
"""

from __future__ import annotations

import msgspec
import orjson

from personal_server.domain.wire_objects import ENCODE, WireObject
from personal_server.enforcement.disclose import ChildList, Expanded, Record
from personal_server.enforcement.queries import PageSize

MAX_PAGE_BYTES = 4 * 1024 * 1024
REST_CHARS = 60
"""What counts for the members of a record that say where it comes from and when."""


class PageFill:
    """The items of a page, each already JSON."""

    def __init__(self, size: PageSize) -> None:
        self._size = size
        self._bytes = self._chars = 0
        self.items: list[msgspec.Raw] = []

    def takes(self, item: WireObject) -> bool:
        """Take an item if there is room for it; there is for the first."""
        text, room = ENCODE(item), self._size.chars
        self._bytes += len(text) + 1
        if room is not None:
            self._chars += self._counted(item, text) + 1
        is_over = self._bytes > MAX_PAGE_BYTES or (room is not None and self._chars > room)
        if self.items and is_over:
            return False
        self.items.append(msgspec.Raw(text))
        return True

    def _counted(self, item: WireObject, text: bytes) -> int:
        return self._of_record(item) if isinstance(item, Record) else _chars(text)

    def _of_record(self, record: Record) -> int:
        identity = len(record.id) + len(record.stream) + len(record.connection_id) + REST_CHARS
        related = sum(self._of_related(each) for each in (record.expanded or {}).values())
        return identity + self._of_data(bytes(record.data)) + related

    def _of_related(self, related: Expanded) -> int:
        if isinstance(related, ChildList):
            return sum(self._of_record(child) for child in related.data)
        return 0 if related is None else self._of_record(related)

    def _of_data(self, text: bytes) -> int:
        most = self._size.member_chars
        if most is None or len(text) <= most:
            return _chars(text)
        members: dict[str, object] = orjson.loads(text)
        return 1 + sum(_chars_of(name, value, most) for name, value in members.items())


def _chars_of(name: str, value: object, most: int) -> int:
    if isinstance(value, str) and len(value) >= most:
        return len(name) + 4 + most  # quotes, colon and comma
    return len(name) + 4 + min(most, _chars(orjson.dumps(value)))


def _chars(text: bytes) -> int:
    return len(text) if text.isascii() else len(text.decode())
