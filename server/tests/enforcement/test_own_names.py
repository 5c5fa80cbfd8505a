"""A table of the owner's as if it had no other columns."""

from __future__ import annotations

import dataclasses

from msgspec.structs import replace

from personal_server.enforcement.own_names import granted_part
from server.tests.enforcement.mailbox import MAILS, mails

FIELDS = ("id", "subject", "size", "sent_at")
PART = granted_part(mails(*FIELDS)).declared


def test_nothing_names_a_field_that_is_not_granted() -> None:
    assert tuple(PART.properties) == FIELDS
    assert PART.range_filters == {"size": ("gte", "lt"), "sent_at": ("gte", "lt")}
    assert (PART.lexical_fields, PART.semantic_fields) == (("subject",), ())
    assert PART.required == ("id", "subject")
    figures = PART.aggregations
    assert (figures.count, figures.sum, figures.min, figures.max) == (
        True,
        ("size",),
        ("sent_at",),
        (),
    )
    assert (figures.count_distinct, figures.group_by, figures.group_by_time) == (
        (),
        (),
        ("sent_at",),
    )


def test_a_table_has_no_views_relations_or_streams_beside_it() -> None:
    assert (PART.views, PART.relationships, PART.expansions, PART.detail) == ((), (), (), None)
    assert granted_part(mails(*FIELDS)).sibling_streams == {"mails"}


def test_what_orders_it_is_told_where_it_is_granted() -> None:
    assert PART.cursor_field == "sent_at"
    assert granted_part(mails("id")).declared.cursor_field is None


def test_the_declaration_that_is_shown_is_cut_as_well() -> None:
    assert PART.raw == {
        "name": "mails",
        "primary_key": ["id"],
        "cursor_field": "sent_at",
        "schema": {
            "type": "object",
            "properties": {"id": {}, "subject": {}, "size": {}, "sent_at": {}},
            "required": ["id", "subject"],
        },
        "query": {
            "range_filters": {"size": ["gte"], "sent_at": ["gte", "lt"]},
            "search": {"lexical_fields": ["subject"]},
            "aggregations": {"count": True, "sum": ["size"]},
        },
    }
    narrow = granted_part(mails("id")).declared.raw
    assert narrow["query"] == {
        "range_filters": {},
        "search": {"lexical_fields": []},
        "aggregations": {"count": True, "sum": []},
    }


def test_a_table_without_anything_to_ask_has_nothing_to_ask() -> None:
    bare = replace(MAILS, raw={"name": "mails", "schema": {"properties": {"id": {}, "body": {}}}})
    source = dataclasses.replace(mails("id"), declared=bare)
    assert granted_part(source).declared.raw == {
        "name": "mails",
        "schema": {"type": "object", "properties": {"id": {}}, "required": []},
        "query": {},
    }
