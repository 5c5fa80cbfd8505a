"""One record of a page in both faces: identity whole, payload at a measure, the way to the rest.

Source: docs/contract/mcp-adapter.md 7.1, 8.1, 10.2.3.
"""

import msgspec

from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.faces.content_ladder import ladder_entry, ladder_line
from pdpp_mcp_server.faces.page_layout import Block
from pdpp_mcp_server.faces.page_table import NO_TABLE, PageTable, departure
from pdpp_mcp_server.faces.record_identity import (
    IDENTITY_MEMBERS,
    Holder,
    RecordPlace,
    holder_of,
    payload_of,
    ref_of,
)
from pdpp_mcp_server.faces.truncation import (
    Measure,
    PayloadMember,
    Truncation,
    cut_members,
    members_of,
    reach_of,
)
from pdpp_mcp_server.kept_values import kept_property
from pdpp_mcp_server.rs_client.answers import record_key_of
from pdpp_mcp_server.rs_client.json_values import (
    Json,
    as_object,
    as_text,
    is_list,
    is_object,
    objects_in,
)
from pdpp_mcp_server.safe_text import label, one_line, preview_json


class RowItem(msgspec.Struct, frozen=True, dict=True):
    """One record of a page; what does not depend on a measure is worked out once.

    Shapes: number is its place on the page, of a related record below its parent's (`2.1`).
    """

    call: ToolCall
    row: Json
    scope: RecordPlace
    number: str
    table: PageTable = NO_TABLE

    @kept_property
    def holder(self) -> Holder:
        """The record, and its id as shown."""
        prefix, key = self.table.id_prefix, record_key_of(self.row)
        if prefix is None or key is None:
            return holder_of(self.call, self.row, self.scope)
        return Holder(prefix + key, ref_of(self.row, self.scope, key))

    @kept_property
    def payload(self) -> list[PayloadMember]:
        """The members of the record's own payload that do not stand above the page."""
        return self.table.own(members_of(payload_of(self.row), self.scope.binary_fields))

    @kept_property
    def relations(self) -> tuple["Relation", ...]:
        """The relations that were expanded, in order."""
        found: list[Relation] = []
        number = 0
        for name, value in as_object(self.row.get("expanded")).items():
            found.append(Relation.of(self, name, value, number))
            number += len(found[-1].items)
        return tuple(found)

    @property
    def members(self) -> int:
        """How many members the payload has."""
        return len(self.payload)

    def reach(self) -> int:
        """The preview length from which on nothing of it is cut."""
        return max((reach_of(self.payload), *(relation.reach() for relation in self.relations)))

    @property
    def texts(self) -> list[str]:
        """Its texts that may be cut; of a record that is gone none is shown."""
        shown = () if self.row.get("deleted") is True else self.payload
        return [value for _, value, size, _ in shown if size and isinstance(value, str)]

    def at(self, measure: Measure) -> Block:
        """The record with its sub-records."""
        shown, cuts = cut_members(self.payload, measure)
        # an entry of the time line is a preview by itself: its id leads to the record
        is_entry = self.row.get("object") == "timeline_entry"
        ladder = [] if is_entry else [ladder_entry(self.call, self.holder, cut) for cut in cuts]
        lines = [*self._lines(shown), *map(ladder_line, ladder)]
        edited = self.table.rest_of(_with_payload(self.row, shown))
        if is_object(self.row.get("expanded")):
            parts = [relation.at(measure) for relation in self.relations]
            edited = {**edited, "expanded": {part.name: part.shown for part in parts}}
            lines += [line for part in parts for line in part.lines]
            ladder += [entry for part in parts for entry in part.ladder]
        is_listed = self.table.id_prefix is None
        return Block(self.holder.id, edited, tuple(lines), tuple(ladder), is_listed=is_listed)

    def _lines(self, shown: Json) -> list[str]:
        if self.table.columns is not None:
            return [self.table.line(self.row, shown)]
        return [f"[{self.number}] {self.holder.id}", *_payload_lines(self.row, shown)]


def _with_payload(row: Json, shown: Json) -> Json:
    if is_object(row.get("data")):
        return {**row, "data": shown}
    kept = {name: value for name, value in row.items() if name in IDENTITY_MEMBERS}
    return {**kept, **shown}


def _payload_lines(row: Json, shown: Json) -> list[str]:
    if row.get("deleted") is True:
        when = as_text(row.get("deleted_at"))
        return [f"{departure(row)}: {one_line(when, 80) if when else 'true'}"]
    when = as_text(row.get("when"))
    return [*([f"when: {label(when)}"] if when else []), preview_json(shown)]


class Related(msgspec.Struct, frozen=True):
    """What one relation adds to both faces."""

    name: str
    shown: object
    lines: list[str]
    ladder: list[Json]


class Relation(msgspec.Struct, frozen=True):
    """One expanded relation: a list of records, one record, or nothing."""

    parent: RowItem
    name: str
    value: object
    items: tuple[RowItem, ...]

    @classmethod
    def of(cls, parent: RowItem, name: str, value: object, number: int) -> "Relation":
        """The relation as sent; its records are numbered on from number."""
        rows = _rows_of(value)
        record = parent.holder.record
        connection = record.connection_id if record else None
        items = tuple(
            RowItem(
                parent.call,
                row,
                RecordPlace(as_text(row.get("stream")) or name, connection),
                f"{parent.number}.{count}",
            )
            for count, row in enumerate(rows, number + 1)
        )
        return cls(parent, name, value, items)

    def reach(self) -> int:
        """The preview length from which on nothing of it is cut."""
        return max((item.reach() for item in self.items), default=0)

    def at(self, measure: Measure) -> Related:
        """Its records as they are shown; none when there is no room for compounds."""
        kept = self.items if measure.compound else ()
        blocks = [item.at(measure) for item in kept]
        lines = [self._head(len(blocks)), *(line for block in blocks for line in block.lines)]
        ladder = [entry for block in blocks for entry in block.ladder]
        if len(blocks) < len(self.items):
            path = f"expanded.{self.name}"
            cut = Truncation(path, "json", "truncated", len(blocks), len(self.items), 1 << 30)
            entry = ladder_entry(self.parent.call, self.parent.holder, cut)
            ladder.append(entry)
            lines.append(ladder_line(entry))
        return Related(self.name, self._shown(blocks), lines, ladder)

    def _head(self, records: int) -> str:
        more = is_object(self.value) and self.value.get("has_more") is True
        return f"expanded {label(self.name)}: records={records}" + ("; has_more=true" * more)

    def _shown(self, blocks: list[Block]) -> object:
        rows = [block.row for block in blocks]
        if not is_object(self.value):
            return self.value
        if not is_list(self.value.get("data")):
            return rows[0] if rows else None
        cut = {"has_more": True} if len(rows) < len(self.items) else {}
        return {**self.value, "data": rows, **cut}


def _rows_of(value: object) -> list[Json]:
    if not is_object(value):
        return []
    return objects_in(value["data"]) if is_list(value.get("data")) else [value]
