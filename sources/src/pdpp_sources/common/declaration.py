"""Write a source declaration by saying what each field is; what can be asked of it follows.

Source: docs/contract/resource-server.md 17. A field's kind decides its JSON Schema and its query
abilities, so that a time can always be filtered, sorted and grouped by, and a name be grouped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from pdpp_kernel.aggregations import DeclaredGrouping, Metric
from pdpp_kernel.operators import RANGE_OPERATORS
from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import TEXT, TEXT_STATE, Data

REGISTRY = "https://registry.pdpp.dev/connectors/"
AUTHOR_KIND = "author_kind"
RANGE = list(RANGE_OPERATORS)


class Field(msgspec.Struct, frozen=True):
    """One property of a stream, and what may be asked of it."""

    name: str
    schema: Data
    required: bool = False
    ranged: bool = False
    searched: bool = False
    grouped: bool = False
    summed: bool = False
    counted: bool = False
    timed: bool = False


def key(name: str = "id") -> Field:
    """The record's own key."""
    return Field(name, {"type": "string"}, required=True)


def reference(name: str, about: str, *, required: bool = False) -> Field:
    """The key of a record elsewhere."""
    return Field(name, _kind("string", about, required), required, grouped=True, counted=True)


def text(name: str, about: str, *, title: bool = False, media: str | None = None) -> Field:
    """Words a person wrote: searchable."""
    schema = _kind("string", about) | {"x_pdpp_type": "text"}
    if title:
        schema["x_pdpp_role"] = "primary-title"
    if media:
        schema["contentMediaType"] = media
    return Field(name, schema, searched=True)


def word(name: str, about: str, *, title: bool = False, searched: bool = False) -> Field:
    """A short value that many records share: filterable and groupable."""
    schema = _kind("string", about)
    if title:
        schema["x_pdpp_role"] = "primary-title"
    return Field(name, schema, searched=searched, grouped=True, counted=True)


def shared(field: Field) -> Field:
    """A text that several records have alike, such as the name of a song: groups are made by it."""
    return replace(field, grouped=True, counted=True)


def name_word(name: str, about: str) -> Field:
    """A name that many records share: also searchable, and equal whatever its case."""
    return caseless(word(name, about, searched=True))


def plain(name: str, about: str) -> Field:
    """A string to read and to filter by exactly, no more."""
    return Field(name, _kind("string", about))


def names(name: str, about: str) -> Field:
    """A list of strings."""
    return Field(name, {"type": "array", "items": {"type": "string"}, "description": about})


def integer(name: str, about: str, *, summed: bool = False) -> Field:
    """A field of whole numbers."""
    return Field(name, _kind("integer", about), ranged=True, summed=summed)


def number(name: str, about: str, *, summed: bool = False) -> Field:
    """A field of numbers."""
    return Field(name, _kind("number", about), ranged=True, summed=summed)


def flag(name: str, about: str) -> Field:
    """A field that is true or false."""
    return Field(name, _kind("boolean", about), grouped=True)


def moment(name: str, about: str, *, event: bool = False) -> Field:
    """An instant. The event's own instant may be missing from a record but is never null."""
    return _time(name, about, "date-time", event)


def day(name: str, about: str, *, event: bool = False) -> Field:
    """A field of calendar days, `YYYY-MM-DD`."""
    return _time(name, about, "date", event)


def blob(name: str = "blob_ref", about: str = "The file itself") -> Field:
    """Bytes kept beside the records."""
    return Field(name, {"type": "object", "x_pdpp_type": "blob", "description": about})


def file_text() -> list[Field]:
    """What a file says, beside its `blob`: an import fills it in once the records are stored."""
    return [
        text(TEXT, "What the file says, as far as it can be read"),
        word(TEXT_STATE, "Whether that was read, or why there is no text"),
    ]


def free(name: str, about: str) -> Field:
    """Whatever the platform says, unchanged."""
    return Field(name, {"description": about})


def sensitive(field: Field) -> Field:
    """The field, marked as one that tells more of a person than most: consent pages may say so."""
    return replace(field, schema=field.schema | {"x_pdpp_sensitive": True})


def person(
    field: Field,
    form: PersonForm,
    *,
    network: str | None = None,
    named_by: str | None = None,
    card: bool = False,
) -> Field:
    """The field, said to name persons; `card`: the whole record is about the one it names.

    Source: docs/contract/resource-server.md 22.1.
    """
    members = {"form": form.value, "network": network, "named_by": named_by, "card": card or None}
    schema_member = {name: value for name, value in members.items() if value is not None}
    return replace(field, schema=field.schema | {"x_pdpp_person": schema_member})


def caseless(field: Field) -> Field:
    """A name or an address, which is equal whatever the case of its letters."""
    return replace(field, schema=field.schema | {"x_pdpp_caseless": True})


def conversation(field: Field) -> Field:
    """An id that all messages of one conversation share, in the order of the stream's time."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "conversation"})


def written_by(field: Field) -> Field:
    """The field that says who wrote a record: `from:` asks for it, and hits show it."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "author"})


def sent_to(field: Field) -> Field:
    """The field that says whom a record went to: `to:` asks for it."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "recipient"})


def ending(field: Field) -> Field:
    """The time until which a record lasts; without one it is over when it begins."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "event-end"})


def place(*, of: str = "") -> list[Field]:
    """Where a record is, in degrees; pages show it on a map."""
    ending = f" {of}" if of else ""
    return [
        latitude(sensitive(number("latitude", f"Degrees north{ending}"))),
        longitude(sensitive(number("longitude", f"Degrees east{ending}"))),
    ]


def latitude(field: Field) -> Field:
    """The number that says where a record is, in degrees north."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "latitude"})


def longitude(field: Field) -> Field:
    """The number that says where a record is, in degrees east."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "longitude"})


def picture(field: Field) -> Field:
    """A blob that is a picture; pages show them in a grid."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "picture"})


def category(field: Field) -> Field:
    """What a payment was for; pages sum payments by it."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "category"})


def occurrence_of(field: Field) -> Field:
    """The key of what a record is one time of: a time line shows the two of one time once."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "occurrence-of"})


def by_days(field: Field) -> Field:
    """The flag of records that last whole days: their times are midnights (UTC) of these."""
    return replace(field, schema=field.schema | {"x_pdpp_role": "whole-days"})


def labelled(field: Field, by: str) -> Field:
    """An id, and the field of the same record that says how people see it."""
    return replace(field, schema=field.schema | {"x_pdpp_label_field": by})


def author_kind() -> Field:
    """What wrote a message; `marked` fields name who did."""
    return word(AUTHOR_KIND, "person, bot, or notice where the platform tells what happened")


def marked(field: Field) -> Field:
    """An author, whom groups mark where all that they wrote says that they are no person."""
    return replace(field, schema=field.schema | {"x_pdpp_mark_field": AUTHOR_KIND})


def _time(name: str, about: str, form: str, event: bool) -> Field:
    schema = _kind("string", about, event) | {"format": form, "x_pdpp_type": "timestamp"}
    if event:
        schema["x_pdpp_role"] = "event-time"
    return Field(name, schema, required=False, ranged=True, timed=True)


def _kind(json_type: str, about: str, never_null: bool = False) -> Data:
    return {"type": json_type if never_null else [json_type, "null"], "description": about}


class StreamForm(msgspec.Struct, frozen=True):
    """One kind of record: its words for the consent page, its fields, and how it hangs together.

    Shapes: `children` maps a relation's name to (stream, foreign key there); `parents` to (stream,
    foreign key here); `threads` to the field whose value the records of one thread share.
    """

    name: str
    label: str
    detail: str
    fields: Sequence[Field]
    time_field: str | None = None
    views: dict[str, tuple[str, Sequence[str]]] = msgspec.field(default_factory=dict[str, Any])
    children: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict[str, Any])
    parents: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict[str, Any])
    threads: dict[str, str] = msgspec.field(default_factory=dict[str, Any])
    semantic: Sequence[str] = ()

    def render(self) -> Data:
        """The stream as the declaration spells it."""
        time = {"cursor_field": self.time_field, "consent_time_field": self.time_field}
        return {
            "name": self.name,
            "semantics": "mutable_state",
            "display": {"label": self.label, "detail": self.detail},
            "schema": self._schema(),
            "primary_key": [self.fields[0].name],
            **(time if self.time_field else {}),
            "selection": {"fields": True, "resources": True},
            "views": [
                {"id": name, "label": label, "fields": list(fields)}
                for name, (label, fields) in self.views.items()
            ],
            "relationships": self._relationships(),
            "query": self._query(),
        }

    def _schema(self) -> Data:
        return {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {field.name: field.schema for field in self.fields},
            "required": [field.name for field in self.fields if field.required],
            "additionalProperties": False,
        }

    def _relationships(self) -> list[Data]:
        children = [
            {
                "name": name,
                "stream": stream,
                "foreign_key": foreign_field,
                "cardinality": "has_many",
            }
            for name, (stream, foreign_field) in self.children.items()
        ]
        parents = [
            {
                "name": name,
                "stream": stream,
                "foreign_key": own_field,
                "foreign_key_on": "self",
                "cardinality": "has_one",
            }
            for name, (stream, own_field) in self.parents.items()
        ]
        threads = [
            {
                "name": name,
                "stream": self.name,
                "foreign_key": shared,
                "foreign_key_on": "both",
                "cardinality": "has_many",
            }
            for name, shared in self.threads.items()
        ]
        return children + parents + threads

    def _query(self) -> Data:
        expand: list[Data] = [
            {"name": name, "default_limit": 10, "max_limit": 50}
            for name in (*self.children, *self.threads)
        ]
        expand += [{"name": name} for name in self.parents]
        search: Data = {"lexical_fields": self._with("searched")}
        if self.semantic:
            search["semantic_fields"] = list(self.semantic)
        ordered = [field.name for field in self.fields if field.ranged]
        query: Data = {
            "range_filters": dict.fromkeys(ordered, RANGE),
            "expand": expand,
            "search": search,
            "aggregations": {
                Metric.COUNT.value: True,
                Metric.SUM.value: self._with("summed"),
                Metric.MIN.value: ordered,
                Metric.MAX.value: ordered,
                Metric.COUNT_DISTINCT.value: self._with("counted"),
                DeclaredGrouping.BY_VALUE.value: self._with("grouped"),
                DeclaredGrouping.BY_TIME.value: self._with("timed"),
            },
        }
        return query

    def _with(self, ability: str) -> list[str]:
        return [field.name for field in self.fields if getattr(field, ability)]


def declaration(
    connector_key: str,
    name: str,
    detail: str,
    streams: Sequence[StreamForm],
    presets: Callable[[], list[Data]] | None = None,
) -> Data:
    """The whole declaration; its version is the digest of what it says."""
    body: Data = {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": REGISTRY + connector_key},
        "connector_key": connector_key,
        "publisher": {"id": "https://registry.pdpp.dev"},
        "display": {"name": name, "detail": detail},
        "selection_presets": presets() if presets else [],
        "streams": [stream.render() for stream in streams],
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return body | {"declaration_version": digest[:16]}
