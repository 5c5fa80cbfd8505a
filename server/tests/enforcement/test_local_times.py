"""What the clock of a named zone says of a record."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from pdpp_kernel.declaration import Property
from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.authorize import authorize_records
from personal_server.enforcement.local_times import clock_of, clocks_of
from personal_server.enforcement.queries import RecordsQuery
from server.tests.enforcement.mailbox import MAILS, authority, mails, notes, row

ROME = "Europe/Rome"
SHOWN = ("id", "sent_at", "read_at", "unread")
AT = "2026-03-09T16:00:00Z"


def lasting(kind: ValueKind = ValueKind.INSTANT) -> ReadableSource:
    """Mails that begin at `sent_at` and last until `read_at`, perhaps whole days."""
    times = {
        "sent_at": replace(MAILS.properties["sent_at"], kind=kind),
        "read_at": Property("read_at", {}, ValueKind.INSTANT, role="event-end"),
        "unread": Property("unread", {}, ValueKind.BOOLEAN, role="whole-days"),
    }
    ranges = {**MAILS.range_filters, "read_at": ("gte",)}
    declared = replace(MAILS, properties={**MAILS.properties, **times}, range_filters=ranges)
    return dataclasses.replace(
        mails(), declared=declared, fields=(*mails().fields, "read_at", "unread")
    )


def said(
    zone: str | None = ROME,
    shown: tuple[str, ...] = SHOWN,
    *,
    sent_at: str | None = AT,
    **data: object,
) -> str | None:
    return clock_of(lasting(), zone, shown)(row("m1", sent_at=sent_at, **data))


@pytest.mark.parametrize(
    ("until", "text"),
    [
        (None, "Mon 2026-03-09 17:00"),
        ("2026-03-09T17:30:00Z", "Mon 2026-03-09 17:00 to 18:30"),
        ("2026-03-10T17:30:00Z", "Mon 2026-03-09 17:00 to Tue 2026-03-10 18:30"),
        (AT, "Mon 2026-03-09 17:00"),
        ("2026-03-09T15:00:00Z", "Mon 2026-03-09 17:00"),
    ],
)
def test_an_instant_is_said_as_the_zone_has_it(until: str | None, text: str) -> None:
    assert said(read_at=until) == text


@pytest.mark.parametrize("zone", ["UTC", ROME, "Pacific/Auckland"])
def test_whole_days_are_days_whatever_the_zone(zone: str) -> None:
    def until(end: str | None) -> str | None:
        return said(zone, sent_at="2026-03-10T00:00:00Z", unread=True, read_at=end)

    assert until(None) == "Tue 2026-03-10 (whole day)"
    assert until("2026-03-11T00:00:00Z") == "Tue 2026-03-10 (whole day)"
    assert until("2026-03-12T00:00:00Z") == "Tue 2026-03-10 to Wed 2026-03-11 (whole days)"


def test_only_what_is_shown_is_said() -> None:
    late = "2026-03-09T17:30:00Z"
    assert said(shown=("sent_at",), read_at=late, unread=True) == "Mon 2026-03-09 17:00"
    assert said(shown=("read_at", "unread"), read_at=late) is None


def test_nothing_is_said_without_a_zone_or_a_time_or_of_utc() -> None:
    assert said(None) is None
    assert said("UTC") is None
    assert said(sent_at=None) is None
    assert clock_of(lasting(ValueKind.DATE), ROME, SHOWN)(row(sent_at="2026-03-09")) is None
    assert clock_of(notes(), ROME, ("said",))(row(said="rain")) is None


def test_a_list_has_clocks_where_its_caller_named_a_zone() -> None:
    read = authorize_records(authority(), RecordsQuery("mails"))
    assert clocks_of(read, None) is None
    clocks = clocks_of(read, ROME) or {}
    assert [*clocks] == ["cin_a"]
    assert clocks["cin_a"](row(sent_at=AT)) == "Mon 2026-03-09 17:00"
