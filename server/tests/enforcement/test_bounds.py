"""What an access is limited to stands in every answer that the limit touches."""

from typing import Any

import pytest

from pdpp_kernel.criteria import Condition
from pdpp_kernel.operators import Operator
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.bounds import bound_warnings
from server.tests.enforcement.mailbox import TEXT, mails, notes
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import BANK, client, furnished, package, stream_grant
from server.tests.resource_server.journal import grant as one_grant

LIST = "/v1/streams/entries/records"
FIGURE = "/v1/streams/entries/aggregate?metric"
SINCE = "2026-02-01T00:00:00Z"
TIME = {"time_constraint": {"field": "created_at", "since": SINCE}, "resource_count": None}
ANSWERS = [
    LIST,
    f"{LIST}?order=asc&limit=1",
    f"{LIST}?count=exact",
    f"{FIGURE}=count",
    f"{FIGURE}=max&field=created_at",
    "/v1/search?q=rain",
    "/v1/search?q=rain&sort=newest",
    "/v1/timeline",
    f"{LIST}?changes_since=beginning",
]


@pytest.fixture
def door() -> Door:
    return Door(furnished())


def limits(door: Door, target: str, authority: Any) -> list[Any]:
    told = door.get(target, authority).body["meta"]["warnings"]
    return [each["detail"] for each in told if each["code"] == "limited_access"]


@pytest.mark.parametrize("target", ANSWERS)
def test_a_bound_stands_in_every_answer_that_it_touches(door: Door, target: str) -> None:
    assert limits(door, target, client(stream_grant(since=SINCE))) == [TIME]
    assert limits(door, target, client(stream_grant())) == []


def test_where_a_request_asks_for_a_span_the_bound_is_told_as_far_as_it_cuts(door: Door) -> None:
    bounded = client(stream_grant(since=SINCE))
    inside, outside = f"{LIST}?since=2026-03-01", f"{LIST}?since=2026-01-01"
    assert door.get(inside, bounded).warnings == []
    assert door.get(outside, bounded).warnings == ["outside_time_constraint"]


def test_limits_by_records_and_values_name_granted_fields_alone(door: Door) -> None:
    chosen = client(stream_grant(resources=("e1", "e2")))
    assert limits(door, LIST, chosen) == [{"time_constraint": None, "resource_count": 2}]
    only = {"pinned": (True,)}
    told = limits(door, LIST, client(stream_grant(only=only)))
    field = [{"field": "pinned", "value_count": 1}]
    assert told == [{"time_constraint": None, "resource_count": None, "only": field}]
    hidden = client(stream_grant(only=only, fields=("id", "title", "created_at")))
    (said,) = door.get(LIST, hidden).body["meta"]["warnings"]
    assert said["detail"]["further_limits"] is True
    assert "pinned" not in str(said)


def test_where_other_sources_are_not_limited_those_that_are_have_names(door: Door) -> None:
    both = package(
        one_grant(stream_grant(since=SINCE), stream_grant("attachments")),
        one_grant(stream_grant(instance_ids=(BANK,)), grant_id="grt_2", key="banking"),
    )
    (said,) = limits(door, "/v1/search?q=rain", both)
    assert said == {**TIME, "streams": ["entries"]}


def test_sources_that_are_limited_differently_are_named_by_stream(door: Door) -> None:
    both = package(
        one_grant(stream_grant(since=SINCE)),
        one_grant(stream_grant(instance_ids=(BANK,), until=SINCE), grant_id="grt_2", key="banking"),
    )
    assert limits(door, "/v1/timeline", both) == [{"streams": ["entries"]}]


INBOX = Condition("folder", TEXT, Operator.IN, "in", ("out", "sent"))
HIDDEN = Condition("sender", TEXT, Operator.EQ, "secret")
WINDOW = TimeConstraint("sent_at", 1, 2, "2026-01-01", "2026-02-01")


@pytest.mark.parametrize(
    ("limited", "said"),
    [
        ({"time_constraint": WINDOW}, {"'sent_at'", "2026-01-01", "2026-02-01"}),
        (
            {"time_constraint": TimeConstraint("sent_at", 1, since="2026-01-01")},
            {"'sent_at'", "2026-01-01"},
        ),
        ({"resources": frozenset("abcde")}, {"5"}),
        ({"only": (INBOX,)}, {"3", "'folder'"}),
        ({"only": (HIDDEN,)}, set[str]()),
        (
            {"time_constraint": WINDOW, "resources": frozenset("abcde"), "only": (INBOX, HIDDEN)},
            {"'sent_at'", "2026-01-01", "2026-02-01", "5", "3", "'folder'"},
        ),
    ],
)
def test_a_limit_is_said_with_its_names_and_numbers_and_nothing_else(
    limited: dict[str, Any], said: set[str]
) -> None:
    every = {"'sent_at'", "2026-01-01", "2026-02-01", "5", "3", "'folder'"}
    source = mails("id", "folder", "sent_at", **limited)
    (warning,) = bound_warnings([(source, ())])
    words = set(warning.message.replace(",", " ").replace(".", " ").split())
    assert words & every == said
    assert words.isdisjoint({"None", "secret", "'sender'"})
    assert (warning.connection_id, warning.display_name) == ("cin_a", "Home")
    (elsewhere,) = bound_warnings([(source, ()), (notes(), ())])
    detail: Any = elsewhere.detail
    assert detail["streams"] == ["mails"]
    assert "mails" in elsewhere.message
    assert "mails" not in warning.message


def test_a_limit_of_several_connections_is_of_none_of_them() -> None:
    chosen = {"resources": frozenset({"a"})}
    parts = [(mails(**chosen), ()), (mails(connection_id="cin_b", **chosen), ())]
    (warning,) = bound_warnings(parts)
    assert (warning.connection_id, warning.display_name) == (None, None)
    assert warning.detail == {"time_constraint": None, "resource_count": 1}
    assert bound_warnings([(mails(), ()), (notes(), ())]) == ()


def test_a_dozen_streams_are_named() -> None:
    parts: list[Any] = []
    for number in range(13):
        source = mails(resources=frozenset(map(str, range(number // 12 + 1))))
        object.__setattr__(source, "stream", f"s{number:02}")
        parts.append((source, ()))
    (warning,) = bound_warnings(parts)
    detail: Any = warning.detail
    assert detail == {"streams": [f"s{number:02}" for number in range(12)]}
