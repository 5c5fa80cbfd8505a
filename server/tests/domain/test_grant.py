"""Stored grants are read strictly, or not at all."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import GrantInvalid
from pdpp_kernel.values import NANOSECONDS, instant_ns
from personal_server.domain.authority import SourceId, TimeConstraint
from personal_server.domain.grant import (
    END_NS,
    FIRST_NS,
    ContentLimit,
    Grant,
    StreamGrant,
    bound_ns,
    parse_grant,
    render_grant,
    told_stream_grant,
    value_text,
)

GRANT = Grant(
    grant_id="grt_1",
    issued_at="2026-11-21T21:00:00Z",
    subject_id="own_1",
    client_id="cli_1",
    client_display={"name": "Notes app"},
    source=SourceId("connector", "https://registry.pdpp.dev/connectors/gmail"),
    declaration_version="2026-05-01",
    purpose_code="https://pdpp.dev/purpose/agent_context",
    purpose_description="Answer questions",
    access_mode="continuous",
    streams=(
        StreamGrant(
            name="messages",
            instance_ids=("cin_home",),
            fields=("id", "received_at"),
            time_constraint=TimeConstraint(
                field="received_at",
                since="2026-08-23",
                since_ns=bound_ns("2026-08-23"),
            ),
            resources=("m1",),
        ),
    ),
    expires_at=None,
    selection_preset="titles",
    retention={"max_duration": "P30D", "on_expiry": "delete"},
)


def raw() -> dict[str, Any]:
    return json.loads(render_grant(GRANT))


def test_a_rendered_grant_parses_to_itself() -> None:
    assert parse_grant(render_grant(GRANT)) == GRANT


def test_a_grant_is_stored_in_letters_as_they_are_without_blanks_between() -> None:
    stored = render_grant(replace(GRANT, purpose_description="Größe"))
    assert '"purpose_description":"Größe"'.encode() in stored


def test_a_day_means_midnight_utc() -> None:
    assert bound_ns("1970-01-02") == 86_400 * 10**9
    assert bound_ns("1970-01-02T00:00:00+01:00") == 82_800 * 10**9
    assert bound_ns("1970-01-02T00:00:00") is None


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("0001-01-01T00:00:00Z", FIRST_NS),
        ("0001-01-01", FIRST_NS),
        ("0001-01-01T00:00:00+00:01", None),
        ("9999-12-31T23:59:59.999999999Z", END_NS - 1),
        ("9999-12-31T22:59:59.999999999-01:00", END_NS - 1),
        ("9999-12-31T23:00:00-01:00", None),
        ("soon", None),
    ],
)
def test_a_bound_lies_in_the_years_1_to_9999(text: str, bound: int | None) -> None:
    assert bound_ns(text) == bound


@pytest.mark.parametrize(
    "change",
    [
        {"version": "0.2.0"},
        {"streams": []},
        {"streams": {}},
        {"extra": 1},
        {"expires_at": "tomorrow"},
        {"expires_at": 5},
        {"issued_at": None},
        {"access_mode": "twice"},
        {"access_mode": ""},
        {"source": {"kind": "connector"}},
        {"source": None},
        {"client": {"client_id": "c", "client_display": "x"}},
        {"retention": ["P30D"]},
        {"purpose_description": ""},
    ],
)
def test_any_other_shape_is_grant_invalid(change: dict[str, object]) -> None:
    with pytest.raises(GrantInvalid):
        parse_grant(json.dumps(raw() | change).encode())


@pytest.mark.parametrize(
    "change",
    [
        {"fields": []},
        {"instance_ids": []},
        {"resources": []},
        {"resources": None},
        {"fields": ["id", "id"]},
        {"fields": ["id", 1]},
        {"time_constraint": None},
        {"time_constraint": {"field": "received_at"}},
        {"time_constraint": {"field": "at", "since": "2026-01-02", "until": "2026-01-01"}},
        {"time_constraint": {"field": "at", "since": "noon"}},
        {"time_constraint": {"field": "at", "since": "noon", "until": "2026-01-01"}},
        {"time_constraint": {"field": "at", "since": "2026-01-01", "until": "noon"}},
        {"time_constraint": {"field": "", "since": "2026-01-01"}},
        {"instance_ids": ["cin_home", "cin_home"]},
        {"resources": ["m1", "m1"]},
        {"name": ""},
        {"view": "titles"},
    ],
)
def test_an_empty_list_or_strange_stream_denies(change: dict[str, object]) -> None:
    grant = raw()
    grant["streams"][0] |= change
    with pytest.raises(GrantInvalid):
        parse_grant(json.dumps(grant).encode())


def limited(**only: Any) -> bytes:
    """The grant with limits by content."""
    grant: dict[str, Any] = raw() | {"version": "0.2.0"}
    grant["streams"][0]["only"] = only
    return json.dumps(grant).encode()


def test_a_grant_with_content_limits_has_a_version_of_its_own() -> None:
    values = ("Ada@example.org", "<b>", "\u202e", 7, True)
    only = (ContentLimit("from", values), ContentLimit("chat", (1,)))
    grant = replace(GRANT, streams=(replace(GRANT.streams[0], only=only),))
    stored = render_grant(grant)
    assert json.loads(stored)["version"] == "0.2.0"
    assert json.loads(stored)["streams"][0]["only"] == {"from": list(values), "chat": [1]}
    assert parse_grant(stored) == grant
    with pytest.raises(GrantInvalid):
        parse_grant(stored.replace(b'"0.2.0"', b'"0.1.0"'))


@pytest.mark.parametrize(
    "only",
    [
        {},
        {"from": []},
        {"from": "a"},
        {"from": None},
        {"from": ["a", "a"]},
        {"from": [1.5]},
        {"from": [None]},
        {"from": [["a"]]},
        {"from": ["a" * 201]},
        {"from": [2**63]},
        {"from": [str(n) for n in range(1_001)]},
        {"": ["a"]},
        {str(n): ["a"] for n in range(9)},
    ],
)
def test_a_limit_that_is_empty_strange_or_too_large_denies(only: dict[str, Any]) -> None:
    assert parse_grant(limited(**{"from": [str(n) for n in range(1_000)]})).streams[0].only
    with pytest.raises(GrantInvalid):
        parse_grant(limited(**only))


@pytest.mark.parametrize(
    "values",
    [("a" * 200,), (2**63 - 1,), (-(2**63) + 1,), (1, True, "1"), (0, False), ("",)],
)
def test_a_limit_has_values_that_are_compared_whole(values: tuple[Any, ...]) -> None:
    assert ContentLimit("from", values).values == values
    assert parse_grant(limited(**{"from": list(values)})).streams[0].only[0].values == values


@pytest.mark.parametrize(
    "values", [(), ("a" * 201,), (2**63,), (-(2**63),), (1, 1), ("a", "a"), (True, True)]
)
def test_a_limit_has_no_other_values_and_each_once(values: tuple[Any, ...]) -> None:
    with pytest.raises(GrantInvalid):
        ContentLimit("from", values)


@pytest.mark.parametrize(("count", "is_one"), [(8, True), (9, False)])
def test_a_stream_is_limited_by_at_most_eight_fields(count: int, *, is_one: bool) -> None:
    only = tuple(ContentLimit(f"f{number}", ("a",)) for number in range(count))
    with nullcontext() if is_one else pytest.raises(GrantInvalid):
        assert replace(GRANT.streams[0], only=only).only == only
    with pytest.raises(GrantInvalid):
        replace(GRANT.streams[0], only=(only[0], only[0]))


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (False, "false"), (7, "7"), ("True", "True"), ("", "")]
)
def test_a_value_is_named_as_a_form_posts_it(value: str | int | bool, text: str) -> None:
    assert value_text(value) == text


@pytest.mark.parametrize(
    "change",
    [
        {"client_display": None},
        {"purpose_description": None},
        {"selection_preset": None},
        {"retention": None},
        {"expires_at": "2027-01-01T00:00:00Z"},
        {"access_mode": "single_use"},
        {"streams": (replace(GRANT.streams[0], time_constraint=None, resources=None),)},
    ],
)
def test_what_a_grant_does_not_say_is_not_written(change: dict[str, Any]) -> None:
    grant = replace(GRANT, **change)
    stored = render_grant(grant)
    assert parse_grant(stored) == grant
    missing = {name for name, value in change.items() if value is None}
    assert missing.isdisjoint(json.loads(stored))
    assert "null" not in stored.decode().replace('"expires_at":null', "")


@pytest.mark.parametrize("change", [{"streams": ()}, {"access_mode": "often"}])
def test_a_grant_has_streams_and_a_mode(change: dict[str, Any]) -> None:
    with pytest.raises(GrantInvalid):
        replace(GRANT, **change)


@pytest.mark.parametrize(
    "change", [{"name": ""}, {"instance_ids": ()}, {"fields": ()}, {"resources": ()}]
)
def test_a_stream_grant_names_something_of_each(change: dict[str, Any]) -> None:
    with pytest.raises(GrantInvalid):
        replace(GRANT.streams[0], **change)


def test_a_client_is_told_of_limits_by_what_it_was_granted() -> None:
    only = (ContentLimit("received_at", ("a",)), ContentLimit("from", ("secret@example.org",)))
    told = told_stream_grant(replace(GRANT.streams[0], only=only))
    assert (told["only"], told["further_limits"]) == ({"received_at": ["a"]}, True)
    assert "from" not in json.dumps(told)
    assert "further_limits" not in told_stream_grant(replace(GRANT.streams[0], only=only[:1]))
    assert "only" not in told_stream_grant(replace(GRANT.streams[0], only=only[1:]))


@pytest.mark.parametrize("missing", sorted(raw().keys() - {"purpose_description"}))
def test_a_missing_member_is_grant_invalid_unless_it_is_optional(missing: str) -> None:
    grant = raw()
    del grant[missing]
    stored = json.dumps(grant).encode()
    if missing in ("selection_preset", "retention"):
        assert parse_grant(stored).grant_id == "grt_1"
    else:
        with pytest.raises(GrantInvalid):
            parse_grant(stored)


@pytest.mark.parametrize("stored", [b"", b"null", b"[]", b"\xff", b'{"version":"0.1.0"', b"1e999"])
def test_bytes_that_are_no_json_object_are_grant_invalid(stored: bytes) -> None:
    with pytest.raises(GrantInvalid):
        parse_grant(stored)


def test_a_member_given_twice_is_grant_invalid() -> None:
    stored = render_grant(GRANT).replace(b'{"version"', b'{"version":"0.1.0","version"', 1)
    with pytest.raises(GrantInvalid):
        parse_grant(stored)


def test_a_stream_named_twice_is_grant_invalid() -> None:
    grant = raw()
    grant["streams"] *= 2
    with pytest.raises(GrantInvalid):
        parse_grant(json.dumps(grant).encode())


def test_times_of_grants_are_the_days_that_a_date_can_say() -> None:
    assert instant_ns("0001-01-01T00:00:00Z") == FIRST_NS
    assert (instant_ns("9999-12-31T23:59:59Z") or 0) + NANOSECONDS == END_NS
