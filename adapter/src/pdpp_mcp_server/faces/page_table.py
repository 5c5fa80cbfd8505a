"""What the records of a page say alike, said once, and a table of the rest.

Source: docs/contract/mcp-adapter.md 6.4, 10.2.3; docs/decisions.md C10. Every complete id can still
be copied together: the part that all ids begin with stands above the rows, the rest before each.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.faces.record_identity import (
    IDENTITY_MEMBERS,
    RecordPlace,
    holder_of,
    payload_of,
    ref_of,
)
from pdpp_mcp_server.faces.truncation import PayloadMember, members_of
from pdpp_mcp_server.kept_values import kept_property
from pdpp_mcp_server.rs_client.answers import record_key_of
from pdpp_mcp_server.rs_client.json_values import Json, as_text, compact, is_object
from pdpp_mcp_server.safe_text import BREAKS, clean, one_line, preview_json, unlinked

PLAIN_KEY = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._~@=+-]{0,199}")
"""A key that can begin a line: it can neither be taken for one of ours nor for several cells, and
an id ends in it as it is."""
BARE_CELL = re.compile(r'[^\s",\\](?:[^",\\\n\r]*[^\s",\\])?')
READ_AS_VALUE = re.compile(r"true|false|null|NaN|-?Infinity|[-+]?(?:\d|\.\d).*")
DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:T[0-9:.+Z-]+)?")
PLAIN_CELL = re.compile(
    rf"(?a:{DATE.pattern})|(?!(?:true|false|null|NaN|Infinity)$)"
    r"[A-Za-z](?:[ !#-+\--\[\]-~]*[!#-+\--\[\]-~])?"
)
"""Most texts by far: ASCII that stands in a cell as it is."""
SHARED_MEMBERS = IDENTITY_MEMBERS - {
    "id",
    "record_id",
    "record_key",
    "expanded",
    "deleted",
    "deleted_at",
}
"""Members of a row that say where it comes from rather than what it is."""
EMPTY_CELLS = 3
"""A table has at most so many cells for each that says something."""


class PageTable(msgspec.Struct, frozen=True, dict=True):
    """What the rows of one page have alike, and how the rest of them is laid out.

    Shapes: members are of the rows, data of their payloads; id_field is the member of the payload
            that holds the record's key; id_prefix what every id begins with, before that key;
            columns are the members that are left, none where there is no table; is_dated where
            rows say when they were, by the owner's clocks.
    """

    members: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    data: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    id_field: str | None = None
    id_prefix: str | None = None
    columns: tuple[str, ...] | None = None
    is_dated: bool = False

    @classmethod
    def of(cls, call: ToolCall, rows: Sequence[Json], scope: RecordPlace) -> "PageTable":
        """The table of these rows; of a single one, or beside related ones, all stays in place."""
        if len(rows) < 2 or any("expanded" in row for row in rows):
            return cls()
        prefix = _prefix_of(call, rows, scope)
        members = alike(rows, lambda name: name in SHARED_MEMBERS)
        live_rows = [row for row in rows if row.get("deleted") is not True]
        payloads = [payload_of(row) for row in live_rows]
        is_wrapped = all(is_object(row.get("data")) for row in live_rows)
        if prefix is None or not payloads or not is_wrapped:
            return cls(members=members, id_prefix=prefix)
        noted = {m.name for m in members_of(payloads[0], scope.binary_fields) if m.note is not None}
        id_field = _id_field(live_rows)
        own = {*noted, id_field}
        data = alike(payloads, lambda name: name not in own)
        left = {name: None for payload in payloads for name in payload if name not in data}
        left.pop(id_field or "", None)
        columns = tuple(left) if _is_tabular(payloads, left) else None
        is_dated = any(as_text(row.get("when")) for row in live_rows)
        return cls(members, data, id_field, prefix, columns, is_dated)

    @kept_property
    def page(self) -> Json:
        """What stands once in the structured face."""
        named: Json = {"id_prefix": self.id_prefix, "id_field": self.id_field}
        stated = {name: value for name, value in named.items() if value is not None}
        return {**stated, **self.members, **({"data": dict(self.data)} if self.data else {})}

    @kept_property
    def heading(self) -> tuple[str, ...]:
        """What stands once in the text, before the rows."""
        empty = [name for name, value in self.data.items() if value is None]
        same = {name: value for name, value in self.data.items() if value is not None}
        lines = [f"same: {preview_json(same)}"] if same else []
        if empty:
            lines.append(f"null: {_line(empty)}")
        if self.columns is None:
            return tuple(lines)
        ids = f"ids: {one_line(self.id_prefix or '')}<first column>"
        names = (self.id_field or "key", *(("when",) if self.is_dated else ()), *self.columns)
        return (ids, *lines, f"columns: {_line(names)}")

    def rest_of(self, row: Json) -> Json:
        """A row without what stands in `page`; its key once."""
        is_twice = self.id_prefix is not None
        return {
            name: value
            for name, value in row.items()
            if name not in self.members and not (is_twice and name in {"record_id", "record_key"})
        }

    def own(self, members: Iterable[PayloadMember]) -> list[PayloadMember]:
        """The members of a payload that stand with its record."""
        at_page = {*self.data, self.id_field}
        return [member for member in members if member.name not in at_page]

    def line(self, row: Json, shown: Json) -> str:
        """One row of the table."""
        key = record_key_of(row) or ""
        if row.get("deleted") is True:
            when = one_line(as_text(row.get("deleted_at")) or "", 80)
            return f"{departure(row)}: {key} {when}".rstrip()
        dated = (cell(row.get("when")),) if self.is_dated else ()
        return ",".join((key, *dated, *(cell(shown.get(name)) for name in self.columns or ())))


NO_TABLE = PageTable()
"""Nothing is alike, and every row is a block."""


def departure(row: Json) -> str:
    """What a tombstone says of its record: one that only left the filter is there still."""
    return "left the filter" if row.get("left") == "filter" else "deleted"


def cell(value: object) -> str:
    """One cell: strings that could be read as something else are quoted, null is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value if PLAIN_CELL.fullmatch(value) else _text_cell(value)
    return compact(value) if isinstance(value, int | float) else _quoted(preview_json(value))


def _text_cell(value: str) -> str:
    text = unlinked(clean(value).replace("\\", "\\\\"))
    if text.isascii():
        text = text.replace("\r", "\\r").replace("\n", "\\n")
    else:
        text = BREAKS.sub(lambda found: "\\r" if found[0] == "\r" else "\\n", text)
    if text.startswith(("[", "{")):
        text = f"\\{text}"  # or it would read like a list or an object
    bare = BARE_CELL.fullmatch(text) and (DATE.fullmatch(text) or not READ_AS_VALUE.fullmatch(text))
    return text if bare else _quoted(text)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _line(names: Iterable[str]) -> str:
    return ",".join(map(cell, names))


def _prefix_of(call: ToolCall, rows: Sequence[Json], scope: RecordPlace) -> str | None:
    # told by one of them, since an id that reads back with the longest plain key does with each
    keys = [record_key_of(row) or "" for row in rows]
    if not all(
        row.get("id") == key and PLAIN_KEY.fullmatch(key)
        for row, key in zip(rows, keys, strict=True)
    ):
        return None
    if len({ref_of(row, scope, "") for row in rows}) > 1:
        return None
    longest = max(keys, key=len)
    shown = holder_of(call, rows[keys.index(longest)], scope).id
    return shown.removesuffix(longest) if shown.endswith(f":{longest}") else None


def alike(objects: Sequence[Json], may_stand_once: Callable[[str], bool]) -> Json:
    """Members that all of them have with the same short value."""
    first, *others = objects
    found: Json = {}
    for name, value in first.items():
        if not may_stand_once(name) or not all(
            name in other and other[name] == value for other in others
        ):
            continue
        text = compact(value)
        # numbers that are equal may be written in two ways: 1 and true, 1 and 1.0
        is_plain = value is None or isinstance(value, str)
        if len(text) < contract.MEMBER_CHARS and (
            is_plain or all(compact(other[name]) == text for other in others)
        ):
            found[name] = value
    return found


def _id_field(rows: Sequence[Json]) -> str | None:
    """The member of the payload that holds the key of every record."""
    keyed = [(row["data"], record_key_of(row)) for row in rows]
    named = (n for n in rows[0]["data"] if all(data.get(n) == key for data, key in keyed))
    return next(named, None)


def _is_tabular(payloads: Sequence[Json], left: Mapping[str, None]) -> bool:
    filled = sum(name in left for payload in payloads for name in payload)
    return len(left) * len(payloads) <= EMPTY_CELLS * max(filled, 1)
