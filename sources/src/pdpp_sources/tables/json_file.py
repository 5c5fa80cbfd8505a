"""The rows of a file of JSON, in whichever form it holds its objects.

A list of objects is a table: the whole file, a member of its object, or at most two levels further
in. Objects that follow each other, on lines or not, are one table. Features of GeoJSON are places.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pdpp_kernel.source_item import Data, Skipped
from pdpp_sources.common import json_values
from pdpp_sources.common.export import HEAD_BYTES, ExportMember
from pdpp_sources.common.json_stream import json_lines, json_lists, json_objects
from pdpp_sources.common.text import decoded

JsonForm = Literal["lines", "lists", "objects"]
_LIST = re.compile(r"\[\s*\{")
_OBJECT = re.compile(r'\{\s*(?:"(?:[^"\\]|\\.)*"\s*:|\})')
_GEO_MEMBERS = ("type", "geometry", "properties", "bbox")
_LOOKED_AT = 20
_ALIKE = 0.6


def form_of_json(head: bytes) -> JsonForm | None:
    """How a file of JSON holds its objects, by how it begins; None for any other file."""
    text = decoded(head).lstrip()
    if _LIST.match(text):
        return "lists"
    if not _OBJECT.match(text):
        return None
    lines = [line for line in text.splitlines() if line.strip()]
    whole = lines[:-1] if len(head) >= HEAD_BYTES else lines
    objects = sum(map(_is_object, whole[:_LOOKED_AT]))
    are_lines = len(lines) > 1 and objects >= _ALIKE * len(whole[:_LOOKED_AT])
    return "lines" if objects and are_lines else "lists"


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def rows_of_json(
    member: ExportMember, form: JsonForm
) -> Iterator[tuple[str, str, int, Data] | Skipped]:
    """The objects in their order: the name of their table, their place for reports, themselves."""
    stem = Path(member.name).stem
    for element in _CUTS[form](member):
        if isinstance(element, Skipped):
            yield element
            continue
        name, values = element.key or stem, element.value
        if values.get("type") == "Feature" and "geometry" in values:
            name, values = _feature(values)
        for part, row in _rows_within(name, values) if form == "objects" else [(name, values)]:
            yield part, element.where, element.position, row


def _rows_within(name: str, values: Data) -> Iterator[tuple[str, Data]]:
    """The rows of an object that is no row itself: objects by their names, or one for each part.

    An object with other values is one row, whatever else it holds.
    """
    inner = [key for key, value in values.items() if isinstance(value, dict)]
    if len(inner) < 2 or len(inner) < len(values):
        yield name, values
        return
    rows = [json_values.inner(values, key) for key in inner]
    shared = set(rows[0]).intersection(*rows)
    if all(len(shared) >= _ALIKE * len(row) for row in rows):
        for key, row in zip(inner, rows, strict=True):
            yield name, {"name" if "name" not in row else "named": key, **row}
    else:
        yield from zip(inner, rows, strict=True)


_CUTS = {"lines": json_lines, "lists": json_lists, "objects": json_objects}


def tables_of_json(member: ExportMember, form: JsonForm) -> tuple[JsonForm, list[str]]:
    """The names of the tables of a file, and the form in which they are found."""
    if form == "lines":
        return form, [Path(member.name).stem]
    tried: tuple[JsonForm, ...] = (form, "objects")
    for candidate in tried:
        rows = rows_of_json(member, candidate)
        if names := list(dict.fromkeys(row[0] for row in rows if not isinstance(row, Skipped))):
            return candidate, names
    return form, []


def holds_more_than_lists(member: ExportMember, form: JsonForm) -> bool:
    """Whether a file has something beside its lists, which its rows as tables would lack."""
    rows = rows_of_json(member, form) if form == "lists" else iter(())
    return any(isinstance(row, Skipped) and row.code == "unknown_record_type" for row in rows)


def _feature(value: Data) -> tuple[str, Data]:
    """A place of GeoJSON, or a shape: a line or an area, whose coordinates stay as they are.

    Source: RFC 7946. Longitude comes first.
    """
    geometry = json_values.inner(value, "geometry")
    facts: Data = {name: member for name, member in value.items() if name not in _GEO_MEMBERS}
    facts |= json_values.inner(value, "properties")
    ends = json_values.things(geometry, "coordinates")
    numbers = [e for e in ends if isinstance(e, int | float) and not isinstance(e, bool)]
    if geometry.get("type") == "Point" and len(numbers) == len(ends) >= 2:
        height: Data = {"elevation": numbers[2]} if len(numbers) > 2 else {}
        return "places", facts | {"longitude": numbers[0], "latitude": numbers[1]} | height
    inside = geometry.get("geometries") if "geometries" in geometry else ends
    return "shapes", facts | {"shape": geometry.get("type"), "coordinates": inside}
