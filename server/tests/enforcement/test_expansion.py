"""Which relations a read may follow, and under whose grant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pdpp_kernel.errors import PersonalServerError
from personal_server.domain.authority import ReadableSource
from personal_server.domain.skipped_sources import without_related
from personal_server.enforcement.expansion import Reach, allowed_expansions, reach
from personal_server.enforcement.queries import Expand
from server.tests.enforcement.mailbox import MAILS, authority, mails, notes


def reached(name: str, source: ReadableSource, *others: ReadableSource) -> Reach:
    declared = MAILS.expansion(name)
    assert declared is not None
    return reach(authority(source, *others), source, declared)


def test_children_are_read_through_the_same_grant_and_connection() -> None:
    children = [
        notes(connection_id="cin_b"),
        notes(grant_id="grt_2"),
        mails("id"),
        notes("id", "mail_id"),
    ]
    assert reached("notes", mails(), *children) == Reach(children[3])
    assert reached("notes", mails(), *children[:3]).reason == "related_stream_not_granted"


def test_a_stream_that_the_source_does_not_declare_is_unknown() -> None:
    bare = mails(sibling_streams=frozenset({"mails"}))
    assert reached("notes", bare) == Reach(None, "related_stream_unknown")


@pytest.mark.parametrize(
    ("name", "own", "child", "is_reached"),
    [
        ("notes", ("id",), ("id", "mail_id"), True),
        ("notes", ("id",), ("id",), False),
        ("parent", ("id", "parent_id"), None, True),
        ("parent", ("id",), None, False),
        ("thread", ("id", "thread"), None, True),
        ("thread", ("id",), None, False),
    ],
)
def test_the_key_that_joins_has_to_be_granted_where_it_stands(
    name: str, own: tuple[str, ...], child: tuple[str, ...] | None, is_reached: bool
) -> None:
    others = () if child is None else (notes(*child),)
    found = reached(name, mails(*own), *others)
    assert (found.child is not None, found.reason) == (
        is_reached,
        None if is_reached else "field_not_granted",
    )


def asked(*names: str, **limits: int) -> Expand:
    return Expand(names, tuple(limits.items()))


def refusal(expand: Expand, *sources: ReadableSource) -> PersonalServerError:
    with pytest.raises(PersonalServerError) as caught:
        allowed_expansions(authority(*sources), sources[:1], expand)
    return caught.value


def test_relations_come_with_their_limits() -> None:
    source, child = mails(), notes()
    found, warnings = allowed_expansions(
        authority(source, child), (source,), asked("notes", "parent", notes=7)
    )
    assert [(each.name, each.limit, each.is_list) for each in found] == [
        ("notes", 7, True),
        ("parent", 10, False),
    ]
    assert found[0].children == {"cin_a": child}
    assert warnings == ()


def test_a_limit_alone_names_its_relation() -> None:
    source, child = mails(), notes()
    found, _ = allowed_expansions(authority(source, child), (source,), asked(notes=1))
    assert [(each.name, each.limit) for each in found] == [("notes", 1)]
    default, _ = allowed_expansions(authority(source, child), (source,), asked("notes"))
    assert default[0].limit == 3


def test_a_connection_that_cannot_follow_is_left_out_and_named() -> None:
    one, other, child = mails(), mails(connection_id="cin_b"), notes()
    found, warnings = allowed_expansions(authority(one, other, child), (one, other), asked("notes"))
    assert set(found[0].children) == {"cin_a"}
    assert warnings == (without_related("cin_b", "notes", "related_stream_not_granted"),)


@pytest.mark.parametrize(
    ("expand", "param"),
    [
        (asked("notes", parent=1), "expand_limit[parent]"),
        (asked("note"), "expand"),
        (asked(note=3), "expand_limit[note]"),
        (asked("parent", parent=1), "expand_limit[parent]"),
        (asked("notes", notes=0), "expand_limit[notes]"),
        (asked("notes", notes=8), "expand_limit[notes]"),
    ],
)
def test_a_relation_or_limit_that_is_not_declared_is_refused(expand: Expand, param: str) -> None:
    error = refusal(expand, mails(), notes())
    assert (error.code, error.param) == ("invalid_expand", param)


def test_a_near_name_is_suggested() -> None:
    assert refusal(asked("note"), mails(), notes()).members["suggestions"] == ["notes"]


def test_where_no_connection_can_follow_the_read_is_refused() -> None:
    without = refusal(asked("notes"), mails())
    assert (without.code, without.param) == ("grant_stream_not_allowed", "expand")
    keyless = refusal(asked("notes"), mails(), notes("id"))
    assert (keyless.code, keyless.param) == ("field_not_granted", "expand")


def test_another_source_of_the_stream_is_no_child_of_this_one() -> None:
    source = mails("id", "parent_id")
    other = replace(source, grant_id="grt_2")
    assert reached("parent", source, other).child is source
