"""The layout that tables have: read back, and how it is read while another is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from msgspec.structs import replace

from pdpp_kernel.person_fields import PersonField, PersonForm
from pdpp_kernel.values import ValueKind
from personal_server.storage.sql.layout import Column, Grouped, Layout


def parse_layout(text: str) -> Layout:
    """The layout that was rendered."""
    raw = orjson.loads(text)
    return Layout(
        _columns(raw["columns"]),
        raw["key"],
        raw["cursor"],
        tuple(raw["sortable"]),
        raw["consent"],
        raw["event"],
        tuple(raw["measured"]),
        tuple(raw["lexical"]),
        tuple(raw["blobs"]),
        raw.get("placed", raw["event"]),
        raw.get("form", 1),
        tuple(_person_field(person) for person in raw.get("persons", ())),
        _columns(raw.get("folded", ())),
        raw.get("by_day", False),
        tuple(raw.get("facets", ())),
        tuple(Grouped(**grouping) for grouping in raw.get("grouped", ())),
    )


def _columns(raw: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    return tuple(
        Column(column["field"], ValueKind(column["kind"]), column["name"], column["indexed"])
        for column in raw
    )


def _person_field(raw: Mapping[str, Any]) -> PersonField:
    members: dict[str, Any] = {**raw, "form": PersonForm(raw["form"])}
    return PersonField(**members)


def between(stored: Layout, layout_wanted: Layout) -> Layout:
    """How tables of one layout are read while another is wanted: no index is relied on.

    What places, words and references of records follow from is as the tables have it.
    """
    columns_before = {(column.field, column.kind): column for column in stored.columns}
    columns = [
        replace(columns_before.get((column.field, column.kind)) or column, indexed=False)
        if (column.field, column.kind) in columns_before
        else replace(column, name=f"v{number}", indexed=False)
        for number, column in enumerate(layout_wanted.columns)
    ]
    placed = stored.column(stored.placed)
    is_placed = placed is not None and replace(placed, indexed=False) in columns
    return replace(
        layout_wanted,
        columns=tuple(columns),
        key=stored.key if stored.key == layout_wanted.key else None,
        consent=stored.consent,
        lexical=stored.lexical,
        blobs=stored.blobs,
        persons=stored.persons,
        folded=(),
        by_day=False,
        facets=(),
        grouped=(),
        placed=stored.placed if is_placed else None,
        form=stored.form,
    )
