"""What a token stands for, and what cannot exist."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from pdpp_kernel.declaration import Semantics, Stream
from pdpp_kernel.errors import PersonalServerError
from personal_server.domain.authority import (
    ReadableSource,
    ReadAuthority,
    SourceId,
    TimeConstraint,
    TokenKind,
    Unavailable,
)

STREAM = Stream("entries", Semantics.MUTABLE, "Entries", {}, ("id",), {}, cursor_field="at")
SOURCE = SourceId("connector", "https://connectors.example/journal")


def source(fields: tuple[str, ...], **members: Any) -> ReadableSource:
    return ReadableSource("grt_1", SOURCE, "journal", "cin_a", None, STREAM, fields, **members)


@pytest.mark.parametrize(
    ("since", "until", "held"),
    [
        (10, 20, [False, True, True, False, False]),
        (10, None, [False, True, True, True, False]),
        (None, 20, [True, True, True, False, False]),
    ],
)
def test_a_window_begins_with_since_and_ends_before_until(
    since: int | None, until: int | None, held: list[bool]
) -> None:
    window = TimeConstraint("at", since, until)
    assert [window.holds(instant) for instant in (9, 10, 19, 20, None)] == held


@pytest.mark.parametrize(("since", "until"), [(None, None), (20, 20), (21, 20)])
def test_a_window_without_bounds_or_time_in_it_cannot_exist(
    since: int | None, until: int | None
) -> None:
    with pytest.raises(PersonalServerError) as caught:
        TimeConstraint("at", since, until)
    assert caught.value.code == "grant_invalid"


@pytest.mark.parametrize(
    ("fields", "resources"), [((), None), (("id",), frozenset[str]()), ((), frozenset({"e1"}))]
)
def test_an_empty_allow_list_cannot_exist(
    fields: tuple[str, ...], resources: frozenset[str] | None
) -> None:
    with pytest.raises(PersonalServerError) as caught:
        source(fields, resources=resources)
    assert caught.value.code == "grant_invalid"


def test_a_source_is_ordered_by_a_field_that_it_grants() -> None:
    granted, other = source(("id", "at"), resources=frozenset({"e1"})), source(("id",))
    assert (granted.stream, granted.order) == ("entries", ("cin_a", "entries"))
    assert (granted.cursor_field, other.cursor_field) == ("at", None)


@pytest.mark.parametrize(
    ("reason", "step"),
    [("grant_expired", "reapprove"), ("connection_revoked", "choose_another")],
)
def test_an_ended_grant_is_asked_for_again_and_else_another_source_chosen(
    reason: str, step: str
) -> None:
    assert Unavailable("cin_a", reason).next_step == step


@pytest.mark.parametrize(
    ("kind", "holder", "cursor_holder", "held_id"),
    [
        (TokenKind.CLIENT, "grant:grt_1", "grant:grt_0", "grt_1"),
        (TokenKind.PACKAGE, "package:gpkg_1", "package:grt_0", "gpkg_1"),
        (TokenKind.OWNER, "owner:own_1", "owner:grt_0", "grt_1"),
        (TokenKind.COLLECTOR, "collector:cin_a", "collector:grt_0", "grt_1"),
    ],
)
def test_reading_is_counted_by_grant_package_or_owner_and_cursors_outlive_them(
    kind: TokenKind, holder: str, cursor_holder: str, held_id: str
) -> None:
    package = "gpkg_1" if kind is TokenKind.PACKAGE else None
    authority = ReadAuthority(
        kind,
        "own_1",
        (),
        package_id=package,
        grant_ids=("grt_1", "grt_2"),
        collects_for="cin_a",
        lineage="grt_0",
    )
    assert (authority.holder, authority.cursor_holder, authority.held_id) == (
        holder,
        cursor_holder,
        held_id,
    )


def test_without_predecessor_a_cursor_is_bound_to_its_holder() -> None:
    first = ReadAuthority(TokenKind.CLIENT, "own_1", (), grant_ids=("grt_1",))
    none_yet = ReadAuthority(TokenKind.CLIENT, "own_1", ())
    assert (first.cursor_holder, first.held_id) == ("grant:grt_1", "grt_1")
    assert (none_yet.holder, none_yet.cursor_holder, none_yet.held_id) == ("grant:", "grant:", "")


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        (ReadableSource, {"stream", "order", "cursor_field"}),
        (ReadAuthority, {"holder", "cursor_holder", "held_id"}),
    ],
)
def test_what_follows_from_the_others_is_not_shown_with_them(kind: Any, made: set[str]) -> None:
    assert {each.name for each in fields(kind) if not each.repr} == made
