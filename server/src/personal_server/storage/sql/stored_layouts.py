"""The layout that tables have: read back, and how it is read while another is wanted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import orjson

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
        tuple(_person_field(each) for each in raw.get("persons", ())),
        _columns(raw.get("folded", ())),
        raw.get("by_day", False),
        tuple(raw.get("facets", ())),
        tuple(Grouped(**each) for each in raw.get("grouped", ())),
    )


def _columns(raw: Iterable[Mapping[str, Any]]) -> tuple[Column, ...]:
    return tuple(
        Column(each["field"], ValueKind(each["kind"]), each["name"], each["indexed"])
        for each in raw
    )


def _person_field(raw: Mapping[str, Any]) -> PersonField:
    members: dict[str, Any] = {**raw, "form": PersonForm(raw["form"])}
    return PersonField(**members)


def between(stored: Layout, wanted: Layout) -> Layout:
    """How tables of one layout are read while another is wanted: no index is relied on.

    What places, words and references of records follow from is as the tables have it.
    """
    known = {(column.field, column.kind): column for column in stored.columns}
    columns = [
        replace(known.get((each.field, each.kind)) or each, indexed=False)
        if (each.field, each.kind) in known
        else replace(each, name=f"v{place}", indexed=False)
        for place, each in enumerate(wanted.columns)
    ]
    placed = stored.column(stored.placed)
    is_placed = placed is not None and replace(placed, indexed=False) in columns
    return replace(
        wanted,
        columns=tuple(columns),
        key=stored.key if stored.key == wanted.key else None,
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
