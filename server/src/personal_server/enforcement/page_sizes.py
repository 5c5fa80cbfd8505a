"""How much a page may hold: items are taken while they fit, and at least one.

Rule: the page ends here and nowhere else, before its cursor is made and before it is logged; so
what a caller has no room for is neither sent nor counted. What all records of a page say alike
counts once, because a caller who counts characters says it once.
Source: docs/contract/resource-server.md 7.2, 7.8.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import orjson

from pdpp_kernel.wire_objects import ENCODE, WireObject
from personal_server.enforcement.disclose import ChildList, Record
from personal_server.enforcement.queries import PageSize

# How the count works.  A caller (the MCP adapter) shows a page twice: as a table in its text, where
# a column's name stands once, and as JSON, where each record repeats its names.  It says how many
# characters it has (`limit_chars`); this module ends the page before either would be longer.
#
#   in:   limit_chars 12,000; records {"id": "m1", "from": "ada@example.org", "subject": "Tea"} …
#   out:  so many of them that
#           table:  Σ (id + 1) + Σ (value + 1)                    ≤ 12,000
#           JSON:   Σ (id + 1 + FRAME_CHARS) + Σ (name + 4 + value) ≤ 12,000 × 5/3
#         where the structured face may be 5/3 as long as the text (20,000 to 12,000 characters).
#
# A member that all records of the page have alike (`from` above, if every mail is Ada's) is shown
# once beside the table, so it counts once: `alike` holds such members while they stay alike; the
# first record that differs moves the member into both sums, once for each item counted before.
# Members of `most` characters or more are shown cut by the caller, so they count as `most`.

MAX_PAGE_BYTES = 4 * 1024 * 1024
REST_CHARS = 60
"""What counts for the members of a record that say which account it comes from."""
FRAME_CHARS = 24
"""What the names and braces around the id and the data of a record count as JSON."""
PLACE, TAKEN_AT = 0, 1
"""What a record says beside its data, as keys that no member of it has."""


class Said(msgspec.Struct, frozen=True):
    """One thing a record says.

    Shapes: value is its JSON, None where it is too long to be said once for all records.
    Units: characters, of the value in a table and with its name as JSON.
    """

    value: bytes | None
    in_table: int
    as_json: int


class PageCount(msgspec.Struct):
    """What the items of a page count as a table, which says each name once, and as JSON."""

    items: int = 0
    in_table: int = 0
    as_json: int = 0
    alike: dict[str | int, Said] = msgspec.field(default_factory=dict[str | int, Said])

    def add(self, own_chars: int, members: Mapping[str | int, Said]) -> None:
        """Count one more item: characters of its own, and what it may say as the others do."""
        self.in_table += own_chars + 1
        self.as_json += own_chars + 1 + (FRAME_CHARS if members else 0)
        if self.items == 0:
            self.alike = {key: each for key, each in members.items() if each.value is not None}
        lost = [key for key, each in self.alike.items() if not _is_same(each, members.get(key))]
        for each in map(self.alike.pop, lost):
            self._count(each, self.items)
        for key, each in members.items():
            if key not in self.alike:
                self._count(each, 1)
        self.items += 1

    def fits(self, chars: int) -> bool:
        """Whether a caller with room for so much has room for all of it."""
        # JSON has five thirds of the room that the table has; in integers, so that it is exact.
        once = sum(each.as_json for each in self.alike.values())
        return self.in_table + once <= chars and 3 * (self.as_json + once) <= 5 * chars

    def _count(self, each: Said, times: int) -> None:
        self.in_table += each.in_table * times
        self.as_json += each.as_json * times


def _is_same(one: Said, other: Said | None) -> bool:
    return other is not None and one.value == other.value


class PageFill:
    """The items of a page, each already JSON."""

    def __init__(self, size: PageSize) -> None:
        self._size = size
        self._bytes = 0
        self._count = PageCount()
        self.items: list[msgspec.Raw] = []

    def takes(self, item: WireObject) -> bool:
        """Take an item if there is room for it; there is for the first."""
        text, room = ENCODE(item), self._size.chars
        self._bytes += len(text) + 1
        is_over = self._bytes > MAX_PAGE_BYTES
        if room is not None:
            self._add(item, text)
            is_over = is_over or not self._count.fits(room)
        if self.items and is_over:
            return False
        self.items.append(msgspec.Raw(text))
        return True

    def _add(self, item: WireObject, text: bytes) -> None:
        if not isinstance(item, Record):
            self._count.add(_chars(text), {})
            return
        identity = f"{item.stream}{item.connection_id}"
        shared: dict[str | int, Said] = {
            PLACE: Said(identity.encode(), len(identity) + REST_CHARS, len(identity) + REST_CHARS),
            # 4: two quotation marks, a colon and a comma; 26: an instant in quotation marks.
            TAKEN_AT: Said(item.emitted_at.encode(), 0, len("emitted_at") + 4 + 26),
        }
        members: dict[str, object] = orjson.loads(bytes(item.data))
        shared |= {
            name: self._said(name, value) for name, value in members.items() if value != item.id
        }
        if item.expanded is not None:
            shared_chars = sum(each.as_json for each in shared.values())
            self._count.add(len(item.id) + FRAME_CHARS + shared_chars + self._of_related(item), {})
            return
        self._count.add(len(item.id), shared)

    def _said(self, name: str, value: object) -> Said:
        most = self._size.member_chars
        text = (
            None if most and isinstance(value, str) and len(value) >= most else orjson.dumps(value)
        )
        chars = _chars(text) if text is not None else most or 0
        if most is not None and chars >= most:
            text, chars = None, most
        return Said(text, chars + 1, len(name) + 4 + chars)

    def _of_related(self, record: Record) -> int:
        """A related record counts as if it stood alone, and says nothing as others do."""
        chars = 0
        for related in (record.expanded or {}).values():
            children = related.data if isinstance(related, ChildList) else [related]
            chars += sum(self._of_child(child) for child in children if child is not None)
        return chars

    def _of_child(self, child: Record) -> int:
        identity_chars = len(child.id) + len(child.stream) + len(child.connection_id) + REST_CHARS
        members: dict[str, object] = orjson.loads(bytes(child.data))
        values = (self._said(name, value) for name, value in members.items())
        return identity_chars + sum(each.as_json for each in values) + self._of_related(child)


def _chars(text: bytes) -> int:
    return len(text) if text.isascii() else len(text.decode())
