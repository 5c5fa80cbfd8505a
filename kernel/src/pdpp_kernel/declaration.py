"""What a stream declares: its fields, relations and what may be asked of it, as values.

Rule: a declaration that exists is valid (docs/contract/resource-server.md 17);
`declaration_document` is the only maker.  Declarations are not personal data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Literal

import msgspec

from pdpp_kernel.operators import FURTHER_BY_KIND
from pdpp_kernel.person_fields import PERSON_MEMBER, PersonField, person_field
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import COMPARED_CODE_POINTS, NUMBERS, ValueKind

UNIT_MEMBERS = frozenset({"x_pdpp_unit", "x_pdpp_unit_field"})
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
# What names things (senders, chats, categories); numbers and times measure them.
LIMITING_KINDS = (ValueKind.STRING, ValueKind.INTEGER, ValueKind.BOOLEAN)


class Semantics(StrEnum):
    """Whether records may change."""

    MUTABLE = "mutable_state"
    APPEND_ONLY = "append_only"


class Cardinality(StrEnum):
    """How many related records one record may have."""

    HAS_ONE = "has_one"
    HAS_MANY = "has_many"


class Property(msgspec.Struct, frozen=True):
    """One top-level property of a stream schema.

    Shapes: `schema` is the property's JSON Schema; `kind` is `None` unless the property is a
        scalar (nullable or not) and therefore comparable; `type` is `x_pdpp_type`, `role`
        `x_pdpp_role`; `nullable`: `null` is among its types.
    """

    name: str
    schema: Mapping[str, object]
    kind: ValueKind | None
    type: str | None = None
    role: str | None = None
    nullable: bool = False

    @property
    def is_blob(self) -> bool:
        """A blob field holds a reference to bytes.  Source: docs/contract/resource-server.md 12."""
        return self.type == "blob" or self.name == "blob_ref"

    @property
    def is_caseless(self) -> bool:
        """Its strings are equal whatever the case of their letters: names and addresses."""
        return self.kind is ValueKind.STRING and self.schema.get("x_pdpp_caseless") is True

    @property
    def operators(self) -> tuple[str, ...]:
        """What it takes in filters beside equality and declared ranges (resource server 7.3)."""
        return () if self.kind is None else FURTHER_BY_KIND[self.kind]

    def limit_value(self, given: object) -> str | int | bool | None:
        """The value that a limit of a grant names, as JSON or as a text; `None` if it is none."""
        if isinstance(given, str) and self.kind is ValueKind.INTEGER:
            given = int(given) if _WHOLE_NUMBER.fullmatch(given) else None
        elif isinstance(given, str) and self.kind is ValueKind.BOOLEAN:
            given = {"true": True, "false": False}.get(given)
        match self.kind:
            case ValueKind.STRING:
                return given if isinstance(given, str) else None
            case ValueKind.BOOLEAN:
                return given if isinstance(given, bool) else None
            case ValueKind.INTEGER:
                return given if isinstance(given, int) and not isinstance(given, bool) else None
            case _:
                return None

    @property
    def label_field(self) -> str | None:
        """The property of the same record that says how people see the value of this one."""
        named = self.schema.get("x_pdpp_label_field")
        if isinstance(named, str):
            return named
        person = person_field(self.name, self.schema)
        return None if person is None else person.named_by

    @property
    def mark_field(self) -> str | None:
        """The property of the same record that says what kind of author this one names."""
        named = self.schema.get("x_pdpp_mark_field")
        return named if isinstance(named, str) else None

    @property
    def is_short(self) -> bool:
        """Whether records may be grouped by it though nobody declared that, as far as it says."""
        if self.kind is ValueKind.STRING:
            longest = self.schema.get("maxLength", 0)
            is_text = self.type == "text" or "contentMediaType" in self.schema
            return not is_text and isinstance(longest, int) and longest <= COMPARED_CODE_POINTS
        return self.is_list or self.kind in (ValueKind.BOOLEAN, *NUMBERS)

    @property
    def is_list(self) -> bool:
        """It lists strings: a record is in the groups of all that it lists."""
        return self.kind is None and self.schema.get("items") == {"type": "string"}

    @property
    def is_sensitive(self) -> bool:
        """Its declaration says that it tells more of a person than most fields do."""
        return self.schema.get("x_pdpp_sensitive") is True


class View(msgspec.Struct, frozen=True):
    """A named projection: a name for a list of fields."""

    id: str
    label: str
    fields: tuple[str, ...]


KeySide = Literal["target", "self", "both"]


class Relationship(msgspec.Struct, frozen=True):
    """A relation to another stream of the same source.

    `foreign_key_on` is "target" (the related record holds this record's key), "self" (this record
    holds the related one's) or "both" (both hold the same value, as mails of one thread do).
    """

    name: str
    stream: str
    foreign_key: str
    cardinality: Cardinality
    foreign_key_on: str = "target"


class Expansion(msgspec.Struct, frozen=True):
    """A relation that reads may expand, with its limits (has_many only)."""

    relationship: Relationship
    default_limit: int = 10
    max_limit: int = 50


class Aggregations(msgspec.Struct, frozen=True):
    """What may be aggregated, by metric or grouping: tuples of property names."""

    count: bool = False
    sum: tuple[str, ...] = ()
    min: tuple[str, ...] = ()
    max: tuple[str, ...] = ()
    count_distinct: tuple[str, ...] = ()
    group_by: tuple[str, ...] = ()
    group_by_time: tuple[str, ...] = ()


class Stream(Unprinted, frozen=True, dict=True):
    """One stream of a source.

    Shapes: `properties` in schema order; `raw` is the stream object as it was declared, in the
        declaration's own spelling (what full schema bodies show).
    """

    name: str
    semantics: Semantics
    label: str
    properties: Mapping[str, Property]
    primary_key: tuple[str, ...]
    raw: Mapping[str, object]
    detail: str | None = None
    cursor_field: str | None = None
    consent_time_field: str | None = None
    required: tuple[str, ...] = ()
    selectable_fields: bool = False
    selectable_resources: bool = False
    views: tuple[View, ...] = ()
    relationships: tuple[Relationship, ...] = ()
    range_filters: Mapping[str, tuple[str, ...]] = msgspec.field(
        default_factory=dict[str, tuple[str, ...]]
    )
    expansions: tuple[Expansion, ...] = ()
    lexical_fields: tuple[str, ...] = ()
    semantic_fields: tuple[str, ...] = ()
    aggregations: Aggregations = msgspec.field(default_factory=Aggregations)

    @cached_property
    def floor(self) -> tuple[str, ...]:
        """Fields that are part of every well-formed grant, in schema order.

        Source: docs/contract/authorization-server.md 4.3, step 3 (what identifies, orders and dates
        a record).
        """
        named = {*self.required, *self.primary_key, self.cursor_field, self.consent_time_field}
        return tuple(name for name in self.properties if name in named)

    @cached_property
    def sortable(self) -> tuple[str, ...]:
        """Cursor field, consent-time field and every range-filterable field, in schema order."""
        named = {self.cursor_field, self.consent_time_field, *self.range_filters}
        return tuple(name for name in self.properties if name in named)

    @cached_property
    def indexed(self) -> tuple[str, ...]:
        """Fields with an index: of ranges, sorts, groups, times, conversations; in schema order."""
        grouped = {*self.aggregations.group_by, *self.aggregations.group_by_time}
        grouped |= {*self.aggregations.count_distinct, self.conversation_field or ""}
        named = {*self.sortable, *grouped}
        return tuple(name for name in self.properties if name in named)

    @cached_property
    def limiting(self) -> tuple[str, ...]:
        """Fields by whose values a grant may be limited, in schema order.

        Those that an index finds by equality; records are named by `resources`.
        Source: docs/contract/resource-server.md 4.8.
        """
        found = {*self.indexed, *self.caseless_fields} - set(self.primary_key)
        kept = (p for p in self.properties.values() if p.kind in LIMITING_KINDS)
        return tuple(p.name for p in kept if p.name in found)

    @cached_property
    def groupable(self) -> tuple[str, ...]:
        """What is declared for groups, and what is short enough for them, in schema order.

        Source: docs/contract/resource-server.md 10.
        """
        apart = {*self.primary_key, *self.lexical_fields, *self.semantic_fields}
        short = (p for p in self.properties.values() if p.is_short and p.name not in apart)
        open_ones = (p.name for p in short if p.schema.get("x_pdpp_groupable") is not False)
        named = {*self.aggregations.group_by, *open_ones}
        return tuple(name for name in self.properties if name in named)

    @cached_property
    def labelling(self) -> frozenset[str]:
        """Fields that say how people see a value that groups are made by."""
        grouped = [self.properties[name] for name in self.groupable]
        return frozenset(n for p in grouped for n in (p.label_field, p.mark_field) if n)

    @cached_property
    def measured(self) -> tuple[str, ...]:
        """Fields whose values are in a unit (`declared_units`), in schema order."""
        return tuple(n for n, p in self.properties.items() if UNIT_MEMBERS & p.schema.keys())

    @cached_property
    def averaged(self) -> tuple[str, ...]:
        """Numbers that have an average and percentiles, in schema order."""
        named = {*self.aggregations.sum, *self.aggregations.min, *self.aggregations.max}
        return tuple(n for n, p in self.properties.items() if n in named and p.kind in NUMBERS)

    @cached_property
    def title_field(self) -> str | None:
        """The property with role `primary-title`."""
        return self._with_role("primary-title")

    @cached_property
    def event_time_field(self) -> str | None:
        """The property with role `event-time`, else the consent-time field."""
        return self._with_role("event-time") or self.consent_time_field

    @cached_property
    def event_end_field(self) -> str | None:
        """The property with role `event-end`: until when a record lasts."""
        return self._with_role("event-end")

    @cached_property
    def whole_days_field(self) -> str | None:
        """The property with role `whole-days`: its records last days, not from time to time."""
        return self._with_role("whole-days")

    @cached_property
    def conversation_field(self) -> str | None:
        """The property with role `conversation`: records that share a value of it are one."""
        return self._with_role("conversation")

    @cached_property
    def weighty_fields(self) -> frozenset[str]:
        """Where a word counts double in a search: the title, and who wrote it."""
        return frozenset({self.title_field or "", *self.fields_with_role("author")} - {""})

    @cached_property
    def blob_fields(self) -> tuple[str, ...]:
        """Properties that hold blob references."""
        return tuple(p.name for p in self.properties.values() if p.is_blob)

    @cached_property
    def caseless_fields(self) -> tuple[str, ...]:
        """Properties whose strings are equal whatever the case of their letters."""
        return tuple(p.name for p in self.properties.values() if p.is_caseless)

    @cached_property
    def person_fields(self) -> tuple[PersonField, ...]:
        """The properties whose values name persons."""
        naming_people = (p for p in self.properties.values() if PERSON_MEMBER in p.schema)
        read = (person_field(each.name, each.schema) for each in naming_people)
        return tuple(each for each in read if each is not None)

    def expansion(self, name: str) -> Expansion | None:
        """The declared expansion of a relation, if there is one."""
        return next((e for e in self.expansions if e.relationship.name == name), None)

    def view(self, view_id: str) -> View | None:
        """The declared view of that id."""
        return next((v for v in self.views if v.id == view_id), None)

    def fields_with_role(self, role: str) -> tuple[str, ...]:
        """The properties of a role, in schema order."""
        return tuple(p.name for p in self.properties.values() if p.role == role)

    def _with_role(self, role: str) -> str | None:
        return next(iter(self.fields_with_role(role)), None)
