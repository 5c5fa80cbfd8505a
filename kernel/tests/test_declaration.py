"""What a stream says of its fields."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.declaration import (
    Aggregations,
    Cardinality,
    Expansion,
    Property,
    Relationship,
    Semantics,
    Stream,
    View,
)
from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import ValueKind

TEXT, WHOLE, NUMBER = ValueKind.STRING, ValueKind.INTEGER, ValueKind.NUMBER
DAY, INSTANT, SWITCH = ValueKind.DATE, ValueKind.INSTANT, ValueKind.BOOLEAN


def named(name: str, kind: ValueKind | None = TEXT, **members: Any) -> Property:
    schema = members.pop("schema", {})
    return Property(name, schema, kind, **members)


def stream(*properties: Property, **members: Any) -> Stream:
    return Stream(
        "mails",
        Semantics.MUTABLE,
        "Mails",
        {each.name: each for each in properties},
        ("id",),
        raw={},
        **members,
    )


def test_a_blob_field_is_told_by_type_or_name() -> None:
    blobs = stream(named("blob_ref", None), named("photo", None, type="blob"), named("id"))
    assert blobs.blob_fields == ("blob_ref", "photo")


@pytest.mark.parametrize(
    ("kind", "schema", "is_caseless"),
    [
        (TEXT, {"x_pdpp_caseless": True}, True),
        (TEXT, {"x_pdpp_caseless": False}, False),
        (TEXT, {}, False),
        (WHOLE, {"x_pdpp_caseless": True}, False),
    ],
)
def test_only_strings_are_caseless(
    kind: ValueKind, schema: dict[str, Any], is_caseless: bool
) -> None:
    found = stream(named("sender", kind, schema=schema))
    assert found.properties["sender"].is_caseless == is_caseless
    assert found.caseless_fields == (("sender",) if is_caseless else ())


@pytest.mark.parametrize(
    ("kind", "operators"),
    [
        (None, ()),
        (WHOLE, ("in", "ne", "exists")),
        (TEXT, ("in", "ne", "exists", "contains", "starts_with")),
    ],
)
def test_scalars_take_operators_and_strings_more(
    kind: ValueKind | None, operators: tuple[str, ...]
) -> None:
    assert named("a", kind).operators == operators


@pytest.mark.parametrize(
    ("kind", "given", "value"),
    [
        (TEXT, "a", "a"),
        (TEXT, 1, None),
        (WHOLE, "12", 12),
        (WHOLE, "-12", -12),
        (WHOLE, "012", None),
        (WHOLE, "1.5", None),
        (WHOLE, "9" * 19, int("9" * 19)),
        (WHOLE, "9" * 20, None),
        (WHOLE, 12, 12),
        (WHOLE, True, None),
        (WHOLE, 1.5, None),
        (SWITCH, "true", True),
        (SWITCH, "false", False),
        (SWITCH, "yes", None),
        (SWITCH, False, False),
        (SWITCH, 1, None),
        (NUMBER, 1.5, None),
        (INSTANT, "2026-01-01T00:00:00Z", None),
    ],
)
def test_a_limit_names_a_value_of_the_field(kind: ValueKind, given: object, value: object) -> None:
    found = named("a", kind).limit_value(given)
    assert found == value
    assert type(found) is type(value)


def test_a_field_says_which_other_names_and_marks_its_value() -> None:
    sender = named("sender", schema={"x_pdpp_label_field": "name", "x_pdpp_mark_field": "kind"})
    assert (sender.label_field, sender.mark_field) == ("name", "kind")
    assert (named("a").label_field, named("a").mark_field) == (None, None)
    person = {"x_pdpp_person": {"form": "address", "named_by": "name"}}
    assert named("sender", schema=person).label_field == "name"
    assert named("sender", schema={**person, "x_pdpp_label_field": "n"}).label_field == "n"
    assert named("sender", schema={"x_pdpp_person": {"form": "written"}}).label_field is None


@pytest.mark.parametrize(
    ("kind", "schema", "type_", "is_short"),
    [
        (TEXT, {}, None, True),
        (TEXT, {"maxLength": 256}, None, True),
        (TEXT, {"maxLength": 257}, None, False),
        (TEXT, {"maxLength": "long"}, None, False),
        (TEXT, {"contentMediaType": "text/html"}, None, False),
        (TEXT, {}, "text", False),
        (WHOLE, {}, None, True),
        (NUMBER, {}, None, True),
        (SWITCH, {}, None, True),
        (DAY, {}, None, False),
        (INSTANT, {}, None, False),
        (None, {}, None, False),
    ],
)
def test_short_values_can_be_grouped_by(
    kind: ValueKind | None, schema: dict[str, Any], type_: str | None, is_short: bool
) -> None:
    assert named("a", kind, schema=schema, type=type_).is_short == is_short


def test_a_sensitive_field_says_so() -> None:
    assert named("a", schema={"x_pdpp_sensitive": True}).is_sensitive
    assert not named("a", schema={"x_pdpp_sensitive": 1}).is_sensitive


FULL = stream(
    named("text", type="text", role="body"),
    named("id"),
    named("sender", schema={"x_pdpp_caseless": True, "x_pdpp_label_field": "name"}, role="author"),
    named("name", role="author"),
    named("folder"),
    named("secret", schema={"x_pdpp_groupable": False}),
    named("title", role="primary-title"),
    named("thread", role="conversation"),
    named("size", WHOLE),
    named("ratio", NUMBER),
    named("stars", WHOLE),
    named("unread", SWITCH),
    named("sent", INSTANT),
    named("got", INSTANT, role="event-time"),
    named("due", DAY),
    cursor_field="got",
    consent_time_field="sent",
    required=("folder",),
    range_filters={"size": ("gte",)},
    lexical_fields=("title", "text"),
    semantic_fields=("name",),
    aggregations=Aggregations(
        sum=("size",),
        min=("ratio", "sent"),
        max=("stars",),
        count_distinct=("secret",),
        group_by=("unread",),
        group_by_time=("due",),
    ),
)


def test_every_grant_has_what_identifies_orders_dates_and_is_required() -> None:
    assert FULL.floor == ("id", "folder", "sent", "got")


def test_records_are_sorted_by_times_and_by_fields_with_ranges() -> None:
    assert FULL.sortable == ("size", "sent", "got")


def test_what_is_sorted_grouped_or_counted_has_an_index_and_so_have_conversations() -> None:
    assert FULL.indexed == ("secret", "thread", "size", "unread", "sent", "got", "due")


def test_grants_are_limited_by_indexed_fields_that_name_things() -> None:
    assert FULL.limiting == ("sender", "secret", "thread", "size", "unread")


def test_groups_are_made_by_short_fields_that_are_neither_key_nor_searched() -> None:
    assert FULL.groupable == (
        "sender",
        "folder",
        "thread",
        "size",
        "ratio",
        "stars",
        "unread",
    )


def test_a_declared_grouping_outweighs_a_refused_one() -> None:
    refused = named("secret", schema={"x_pdpp_groupable": False})
    assert stream(refused).groupable == ()
    assert stream(refused, aggregations=Aggregations(group_by=("secret",))).groupable == ("secret",)


def test_labels_are_those_of_fields_that_groups_are_made_by() -> None:
    assert FULL.labelling == {"name"}


def test_numbers_that_are_summed_or_bounded_have_averages() -> None:
    assert FULL.averaged == ("size", "ratio", "stars")


def test_fields_are_found_by_their_roles() -> None:
    assert (FULL.title_field, FULL.event_time_field, FULL.conversation_field) == (
        "title",
        "got",
        "thread",
    )
    assert FULL.fields_with_role("author") == ("sender", "name")
    assert FULL.weighty_fields == {"title", "sender", "name"}


def test_each_role_is_of_one_field_and_without_it_of_none() -> None:
    roles = ("event-end", "whole-days", "conversation", "primary-title")
    whole = stream(*(named(f"a {role}", role=role) for role in roles), named("id"))
    found = (
        whole.event_end_field,
        whole.whole_days_field,
        whole.conversation_field,
        whole.title_field,
    )
    assert found == tuple(f"a {role}" for role in roles)
    bare = stream(named("id"))
    assert (bare.event_end_field, bare.whole_days_field) == (None, None)
    assert (bare.conversation_field, bare.title_field) == (None, None)


def test_fields_say_of_units_and_of_persons_what_their_schemas_say() -> None:
    found = stream(
        named("id"),
        named("size", NUMBER, schema={"x_pdpp_unit": "kg"}),
        named("amount", WHOLE, schema={"x_pdpp_unit_field": "currency"}),
        named("from", schema={"x_pdpp_person": {"form": "address"}}),
        named("face", schema={"x_pdpp_person": {"form": "face"}}),
    )
    assert found.measured == ("size", "amount")
    assert [each.field for each in found.person_fields] == ["from"]


def test_without_roles_the_consent_time_is_the_event_time() -> None:
    bare = stream(named("sent", INSTANT), consent_time_field="sent")
    assert (bare.title_field, bare.event_time_field, bare.conversation_field) == (
        None,
        "sent",
        None,
    )
    assert bare.weighty_fields == frozenset()


def test_views_and_relations_are_found_by_name() -> None:
    view = View("short", "Short", ("id",))
    related = Expansion(Relationship("files", "files", "mail_id", Cardinality.HAS_MANY))
    found = stream(named("id"), views=(view,), expansions=(related,))
    assert (found.view("short"), found.view("long")) == (view, None)
    assert (found.expansion("files"), found.expansion("mails")) == (related, None)
    assert (related.default_limit, related.max_limit) == (10, 50)


@pytest.mark.parametrize(
    ("key", "is_own"), [("table-bikes", True), ("tables", False), ("mail", False)]
)
def test_a_table_of_the_owner_is_told_by_its_key(key: str, is_own: bool) -> None:
    declared = SourceDeclaration("connector", "urn:x", key, "1", "X", {}, {})
    assert declared.is_of_own_file == is_own


@pytest.mark.parametrize("kept", [Stream, SourceDeclaration])
def test_a_declaration_is_not_written_into_a_log_whole(kept: Any) -> None:
    assert issubclass(kept, Unprinted)


def test_nothing_is_said_of_a_field_or_stream_that_its_declaration_does_not_say() -> None:
    bare = stream(named("id"))
    assert not bare.properties["id"].nullable
    said = (bare.selectable_fields, bare.selectable_resources, bare.aggregations.count)
    assert said == (False, False, False)
