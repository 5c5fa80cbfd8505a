"""What a token can do with the fields and relations of a stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pdpp_kernel.criteria import Condition
from pdpp_kernel.operators import Operator
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.capabilities import (
    Capability,
    Constraints,
    FieldCapabilities,
    constraints_of,
    expand_capabilities,
    field_capabilities,
    search_capability,
    sort_capability,
    usable_metrics,
    usable_views,
)
from server.tests.enforcement.mailbox import ALL, TEXT, authority, mails, notes

UNDECLARED = Capability(False, False)
USABLE = Capability(True, True)
NOT_GRANTED = Capability(True, False, "field_not_granted")


def capability(name: str, *fields: str, embedded: int | None = None) -> FieldCapabilities:
    found = field_capabilities(mails(*fields), embedded)
    assert [each.declared.name for each in found] == list(ALL)
    return found[ALL.index(name)]


def test_what_is_declared_and_granted_is_usable() -> None:
    size = capability("size")
    assert size.granted
    assert (size.range, size.sort, size.operators) == (USABLE, USABLE, ("gte", "lt"))
    assert (size.lexical, size.aggregations["sum"]) == (UNDECLARED, USABLE)
    assert size.aggregations["min"] == UNDECLARED
    assert set(size.aggregations) == {
        "count_distinct",
        "group_by",
        "group_by_time",
        "max",
        "min",
        "sum",
    }


def test_what_is_not_granted_says_so_and_nothing_more() -> None:
    size = capability("size", "id")
    assert not size.granted
    assert (size.exact, size.range, size.sort) == (NOT_GRANTED, NOT_GRANTED, NOT_GRANTED)
    assert (size.aggregations["sum"], size.aggregations["min"]) == (NOT_GRANTED, UNDECLARED)


def test_equality_says_which_operators_stand_beside_it_and_whether_case_matters() -> None:
    assert capability("size").exact.operators == ("in", "ne", "exists")
    receiver = capability("receiver").exact
    assert (receiver.usable, receiver.caseless) == (True, True)
    assert capability("folder").exact.caseless is None
    assert capability("receiver", "id").exact == NOT_GRANTED
    assert capability("tags").exact == UNDECLARED


def test_meaning_is_usable_where_the_server_has_it() -> None:
    assert capability("body").semantic == Capability(True, False, "mode_not_available")
    assert capability("body", embedded=0).semantic == USABLE
    assert capability("body", "id", embedded=0).semantic == NOT_GRANTED
    assert capability("subject", embedded=0).semantic == UNDECLARED
    made = field_capabilities(mails(made_of=(notes(),)), 100)[ALL.index("body")]
    assert made.semantic.reason == "mode_not_available"


@pytest.mark.parametrize(
    ("fields", "embedded", "expected"),
    [
        (ALL, None, (["lexical"], ("subject", "body", "sender"), (), None)),
        (
            ALL,
            100,
            (["lexical", "semantic", "hybrid"], ("subject", "body", "sender"), ("body",), None),
        ),
        (
            ALL,
            99,
            (["lexical", "semantic", "hybrid"], ("subject", "body", "sender"), ("body",), 99),
        ),
        (("id", "subject"), 50, (["lexical"], ("subject",), (), None)),
        (("id",), 50, (list[str](), (), (), None)),
    ],
)
def test_a_search_has_the_modes_that_granted_fields_allow(
    fields: tuple[str, ...], embedded: int | None, expected: tuple[Any, ...]
) -> None:
    found = search_capability(mails(*fields), embedded)
    told = (found.modes, found.lexical_fields, found.semantic_fields, found.embedded_percent)
    assert told == expected


def test_metrics_are_usable_where_a_field_of_theirs_is_granted() -> None:
    assert usable_metrics(mails()) == ["count", "count_distinct", "min", "sum"]
    assert usable_metrics(mails("id", "size")) == ["count", "sum"]
    assert usable_metrics(notes()) == []


def test_a_list_is_sorted_by_granted_fields_and_newest_first() -> None:
    found, without = sort_capability(mails()), sort_capability(mails("id", "size"))
    assert (found.fields, found.default) == (["size", "sent_at"], "-sent_at")
    assert (without.fields, without.default) == (["size"], None)


def test_views_are_cut_to_the_grant() -> None:
    assert [(view.id, view.fields) for view in usable_views(mails("id", "size"))] == [
        ("short", ["id"])
    ]
    assert [(view.id, view.label, view.fields) for view in usable_views(mails())] == [
        ("short", "Short", ["id", "subject"]),
        ("bodies", "Bodies", ["body"]),
    ]


def test_a_stream_says_what_limits_its_records() -> None:
    limited = mails(
        "id",
        "folder",
        time_constraint=TimeConstraint("sent_at", 1, None, "since-text"),
        resources=frozenset({"m1", "m2"}),
        only=(
            Condition("folder", TEXT, Operator.IN, "a", ("b", "c")),
            Condition("sender", TEXT, Operator.EQ, "ada"),
        ),
    )
    assert msgspec.to_builtins(constraints_of(limited)) == {
        "time_constraint": {"field": "sent_at", "since": "since-text"},
        "resource_count": 2,
        "only": [{"field": "folder", "value_count": 3}],
        "further_limits": True,
    }


def test_what_nothing_limits_is_empty() -> None:
    assert constraints_of(mails()).is_empty
    named = mails(only=(Condition("folder", TEXT, Operator.EQ, "a"),))
    found = constraints_of(named)
    assert not found.is_empty
    assert found.further_limits is None
    assert not Constraints(time_constraint=None, resource_count=0).is_empty


def test_relations_say_whether_reads_may_follow_them() -> None:
    source = mails("id", "parent_id")
    told = {
        each.name: (each.granted, each.usable, each.reason, each.default_limit, each.max_limit)
        for each in expand_capabilities(authority(source), [source])
    }
    assert told == {
        "parent": (True, True, None, None, None),
        "notes": (False, False, "related_stream_not_granted", 3, 7),
        "thread": (True, False, "field_not_granted", 10, 50),
    }


def test_a_relation_is_usable_through_any_connection() -> None:
    one, other = mails(), mails(connection_id="cin_b")
    beside = notes(connection_id="cin_b")
    found = expand_capabilities(authority(one, other, beside), [one, other])
    assert [(each.name, each.usable) for each in found] == [
        ("parent", True),
        ("notes", True),
        ("thread", True),
    ]
    assert (found[1].stream, found[1].foreign_key, found[1].foreign_key_on) == (
        "notes",
        "mail_id",
        "target",
    )
