"""What a record looks like to people: a mail, a message of a chat, a payment, an event.  Pure.

Rule: the roles of its declaration decide, never its source, so that an outsider's stream looks the
same.  Source: docs/contract/resource-server.md 17 ("What a stream looks like").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from pdpp_kernel.declaration import Stream
from pdpp_kernel.declared_units import CURRENCY
from pdpp_kernel.texts import Text
from pdpp_kernel.values import NUMBERS
from personal_server.console.record_values import AUTHOR, RecordField, author_of, brief
from personal_server.console.record_view import RecordsLayout
from personal_server.console.viewpoints import records_path
from personal_server.console.words import said
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.timeline import time_field

BUBBLE_CHARS = 1_500
RECIPIENT = "recipient"
LINE_MEMBERS = {"x_pdpp_measure_field", "x_pdpp_total"}
"""What says that the figures of a stream are what it is looked at for."""


class Appearance(StrEnum):
    """What a stream looks like; a stream without one is a table of fields."""

    MAIL = "mail"
    CHAT = "chat"
    PAYMENTS = "payments"
    AGENDA = "agenda"
    TITLES = "titles"
    """Called by a title, on a day: pages that were visited, notes, files."""


def look_of(source: ReadableSource) -> Appearance | None:
    """What the records of a stream are, as far as what may be read of them shows it."""
    declared = source.declared
    if time_field(source) is None:
        return None
    has_title = declared.title_field in source.fields
    if any(n in source.fields for n in declared.fields_with_role(AUTHOR)) and text_fields(source):
        if declared.conversation_field in source.fields:
            return Appearance.CHAT
        if has_title and any(n in source.fields for n in declared.fields_with_role(RECIPIENT)):
            return Appearance.MAIL
    if not has_title:
        return None
    if money_fields(source) is not None:
        return Appearance.PAYMENTS
    if is_measurement(declared):
        return None  # a figure, not what it is called, is what a measurement says
    lasting = (declared.event_end_field, declared.whole_days_field)
    if any(name in source.fields for name in lasting):
        return Appearance.AGENDA
    is_measured = any(name in source.fields for name in declared.measured)
    return None if is_measured else Appearance.TITLES


def is_measurement(declared: Stream) -> bool:
    """Whether the figures of a stream are what it is looked at for, as its declaration says."""
    return any(LINE_MEMBERS & field.schema.keys() for field in declared.properties.values())


def is_sampled(source: ReadableSource) -> bool:
    """Whether a record is one of many samples: a figure of what it measures, or a bare position.

    A workout has a name and figures, and is none.
    """
    declared = source.declared
    if any("x_pdpp_measure_field" in field.schema for field in declared.properties.values()):
        return True
    is_named = declared.title_field in source.fields
    return not is_named and (is_measurement(declared) or place_fields(source) is not None)


def layouts_of(source: ReadableSource) -> tuple[RecordsLayout, ...]:
    """How the records of a stream can look like what they are, the first of them unasked."""
    look = look_of(source)
    looks = () if look is None else (RecordsLayout.LIST,)
    if look is Appearance.AGENDA:
        looks = (RecordsLayout.MONTH, RecordsLayout.DAYS)
    if place_fields(source):
        looks = (RecordsLayout.MAP, *looks)
    if picture_field(source):
        looks = (RecordsLayout.PICTURES, *(e for e in looks if e is not RecordsLayout.MAP))
        looks += (RecordsLayout.MAP,) if place_fields(source) else ()
    if line_fields(source):
        lines = RecordsLayout.LINES
        is_first = is_measurement(source.declared)
        return (lines, *looks) if is_first else (*(looks or (RecordsLayout.TABLE,)), lines)
    return looks


def place_fields(source: ReadableSource) -> tuple[str, str] | None:
    """The numbers that say where a record is, north and east, where both may be read."""
    north, east = field_with_role(source, "latitude"), field_with_role(source, "longitude")
    if north is None or east is None:
        return None
    properties = source.declared.properties
    are_numbers = all(properties[name].kind in NUMBERS for name in (north, east))
    return (north, east) if are_numbers else None


def picture_field(source: ReadableSource) -> str | None:
    """The blob of a picture that was taken at a time, where both may be read."""
    field = field_with_role(source, "picture")
    is_blob = field in source.declared.blob_fields
    return field if is_blob and time_field(source) is not None else None


def field_with_role(source: ReadableSource, role: str) -> str | None:
    """The first field of a role that may be read."""
    named = source.declared.fields_with_role(role)
    return next((name for name in named if name in source.fields), None)


def line_fields(source: ReadableSource) -> tuple[str, ...]:
    """The numbers in a unit whose figures can be followed over time; money is none."""
    declared, dated = source.declared, time_field(source)
    if dated is None or dated.name not in declared.aggregations.group_by_time:
        return ()
    return tuple(
        name
        for name in declared.measured
        if name in source.fields and name in declared.averaged and not _is_money(declared, name)
    )


def _is_money(declared: Stream, name: str) -> bool:
    named = declared.properties[name].schema.get("x_pdpp_unit_field")
    unit = declared.properties.get(named) if isinstance(named, str) else None
    return unit is not None and unit.type == CURRENCY


def money_fields(source: ReadableSource) -> tuple[str, str] | None:
    """The field of what a payment comes to, and that of its currency, where both may be read."""
    declared = source.declared
    for name, field in declared.properties.items():
        unit = field.schema.get("x_pdpp_unit_field")
        if (
            field.kind in NUMBERS
            and name in source.fields
            and name in declared.aggregations.sum
            and "x_pdpp_unit" not in field.schema
            and isinstance(unit, str)
            and unit in source.fields
            and declared.properties[unit].type == CURRENCY
        ):
            return name, unit
    return None


def text_fields(source: ReadableSource) -> tuple[str, ...]:
    """The fields that may hold what was written, the title last."""
    declared = source.declared
    texts = [
        name
        for name in declared.lexical_fields
        if declared.properties[name].type == "text" and declared.properties[name].role is None
    ]
    title = declared.title_field
    if title is not None and title in declared.lexical_fields:
        texts.append(title)
    return tuple(name for name in texts if name in source.fields)


def written_field(source: ReadableSource, data: Mapping[str, object]) -> str | None:
    """The name of the field with what was written: the longest text, else the title."""
    texts = {n: text for n in text_fields(source) if isinstance(text := data.get(n), str) and text}
    title = source.declared.title_field or ""
    others = [name for name in texts if name != title]
    return max(others, key=lambda name: len(texts[name]), default=title if title in texts else None)


class Bubble(msgspec.Struct, frozen=True):
    """A message of a chat; `here` is the record whose page it stands on."""

    link: str
    author: str
    at: Text
    text: str
    here: bool
    begins: bool
    """Whether somebody else wrote the one before it."""


def bubble_fields(source: ReadableSource) -> tuple[str, ...]:
    """What of a message its bubble is made of."""
    dated = time_field(source)
    names = (*source.declared.fields_with_role(AUTHOR), *text_fields(source), dated and dated.name)
    return tuple(dict.fromkeys(name for name in names if name in source.fields))


def bubbles(
    root: str, source: ReadableSource, key: str, records: Sequence[tuple[str, Mapping[str, object]]]
) -> list[Bubble]:
    """Messages in the order of a conversation.  Shapes: `records` are keys with their fields."""
    dated = time_field(source)
    shown: list[Bubble] = []
    for found, data in records:
        name = written_field(source, data)
        text = str(data.get(name)) if name else ""
        author = author_of(source, data)
        kind = None if dated is None else dated.kind
        shown.append(
            Bubble(
                link=records_path(root, source.connection_id, source.stream, found),
                author=author,
                at=brief(data.get(dated.name), kind) if dated else "",
                text=said(text, BUBBLE_CHARS) + ("…" if len(text) > BUBBLE_CHARS else ""),
                here=found == key,
                begins=not shown or shown[-1].author != author,
            )
        )
    return shown


class LetterView(msgspec.Struct, frozen=True):
    """A mail as its reader knows it: who wrote it to whom and when, and its text."""

    authors: tuple[Text, ...]
    recipients: tuple[Text, ...]
    at: Text
    body: RecordField | None
    is_empty: bool
    """Whether it has no text, and not only none that may be read."""


def letter_of(
    source: ReadableSource, data: Mapping[str, object], fields: Sequence[RecordField]
) -> LetterView:
    """A mail out of its fields as the page of a record shows them."""
    by_name = {field.name: field for field in fields}
    declared, dated = source.declared, time_field(source)
    body, title = written_field(source, data), declared.title_field
    reads_text = any(name != title for name in text_fields(source))

    def texts(role: str) -> tuple[Text, ...]:
        return tuple(by_name[n].text for n in declared.fields_with_role(role) if n in by_name)

    return LetterView(
        authors=texts(AUTHOR),
        recipients=texts(RECIPIENT),
        at=by_name[dated.name].text if dated and dated.name in by_name else "",
        body=by_name.get(body) if body and body != title else None,
        is_empty=reads_text and body in (None, title),
    )
