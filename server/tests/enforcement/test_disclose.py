"""Rows become records: what is shown of them, and where they came from."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pdpp_kernel.record import FieldChange, StoredRecord, TombstoneRow
from personal_server.domain.authority import ReadableSource, TokenKind
from personal_server.enforcement.disclose import (
    disclose_tombstone,
    disclosed_records,
    discloser,
    granted_emitted_at_ns,
    granted_value,
    identity,
)
from server.tests.enforcement.mailbox import authority, mails, row

SECOND = 1_000_000_000


def shown(source: ReadableSource, found: StoredRecord, *names: str) -> dict[str, Any]:
    record = discloser(authority(source), source, names or source.fields)(found)
    return msgspec.json.decode(msgspec.json.encode(record))


def test_a_record_is_its_projection_with_where_it_came_from() -> None:
    found = row(subject="Rain", body="hidden", size=3)
    assert shown(mails("id", "subject", "due"), found) == {
        "object": "record",
        "id": "m1",
        "record_id": "m1",
        "stream": "mails",
        "data": {"id": "m1", "subject": "Rain"},
        "emitted_at": "1970-01-01T00:00:01.000Z",
        "connection_id": "cin_a",
        "connector_key": "mail",
        "display_name": "Home",
    }


def test_a_field_that_is_not_granted_is_not_shown_whoever_asks_for_it() -> None:
    data = shown(mails("id", "subject"), row(subject="Rain", body="hidden"), "id", "body")["data"]
    assert data == {"id": "m1"}


def test_a_blob_says_where_it_is_fetched() -> None:
    found = row(file={"blob_id": "blob_sha256_a/b", "size_bytes": 3})
    assert shown(mails("id", "file"), found)["data"]["file"] == {
        "blob_id": "blob_sha256_a/b",
        "size_bytes": 3,
        "fetch_url": "/v1/blobs/blob_sha256_a%2Fb?connection_id=cin_a",
    }


@pytest.mark.parametrize("value", [None, "blob_sha256_a", {"blob_id": 7}, {}])
def test_what_is_no_reference_stays_as_it_is(value: object) -> None:
    assert shown(mails("id", "file"), row(file=value))["data"]["file"] == value


def test_only_a_package_says_of_which_grant_a_record_is() -> None:
    source = mails(display_name=None)
    assert identity(authority(source), source) == {
        "connection_id": "cin_a",
        "connector_key": "mail",
    }
    package = authority(source, kind=TokenKind.PACKAGE)
    assert identity(package, source)["grant_id"] == "grt_1"


@pytest.mark.parametrize(
    ("changes", "seconds"),
    [
        ({}, 1),
        ({"body": FieldChange(5, 9 * SECOND)}, 1),
        ({"subject": FieldChange(4, 3 * SECOND), "body": FieldChange(5, 9 * SECOND)}, 3),
        ({"subject": FieldChange(4, 3 * SECOND), "id": FieldChange(6, 2 * SECOND)}, 2),
        ({"subject": FieldChange(1, 3 * SECOND)}, 1),
    ],
)
def test_a_record_is_dated_by_the_last_change_of_a_granted_field(
    changes: dict[str, FieldChange], seconds: int
) -> None:
    found = granted_emitted_at_ns(
        row()._replace(field_changes=changes), frozenset({"id", "subject"})
    )
    assert found == seconds * SECOND


def test_a_value_is_told_where_its_field_is_granted() -> None:
    found, source = row(subject="Rain", body="hidden"), mails("id", "subject")
    values = [granted_value(found, source, name) for name in ("subject", "body", "due", None)]
    assert values == ["Rain", None, None, None]


def test_rows_of_several_connections_are_shown_each_as_its_own_source_grants() -> None:
    narrow, wide = mails("id", "subject"), mails("id", "body", connection_id="cin_b")
    rows = [
        row(subject="Rain", body="a"),
        row(subject="Snow", body="b")._replace(connection_id="cin_b"),
    ]
    names = {"cin_a": narrow.fields, "cin_b": wide.fields}
    found = disclosed_records(authority(narrow, wide), (narrow, wide), names, rows)
    assert [(each.connection_id, msgspec.json.decode(each.data)) for each in found] == [
        ("cin_a", {"id": "m1", "subject": "Rain"}),
        ("cin_b", {"id": "m1", "body": "b"}),
    ]


def test_each_record_says_when_it_was_by_the_clock_of_its_source() -> None:
    source = mails("id", "subject")

    def clock(found: StoredRecord) -> str:
        return f"the day of {found.key}"

    names, rows = {"cin_a": source.fields}, [row(), row("m2")]
    found = disclosed_records(authority(source), (source,), names, rows, {"cin_a": clock})
    assert [each.when for each in found] == ["the day of m1", "the day of m2"]
    plain = disclosed_records(authority(source), (source,), names, rows)
    assert [each.when for each in plain] == [None, None]


@pytest.mark.parametrize(("is_filtered", "left"), [(False, None), (True, "filter")])
def test_a_record_that_left_says_when_and_whether_it_only_left_the_filter(
    is_filtered: bool, left: str | None
) -> None:
    gone = TombstoneRow("cin_a", "mails", "m1", 2 * SECOND, 3 * SECOND, is_filtered)
    source = mails()
    told = msgspec.to_builtins(disclose_tombstone(authority(source), source, gone))
    assert told.pop("left", None) == left
    assert told == {
        "object": "record",
        "id": "m1",
        "record_id": "m1",
        "stream": "mails",
        "deleted": True,
        "deleted_at": "1970-01-01T00:00:02.000Z",
        "emitted_at": "1970-01-01T00:00:03.000Z",
        "connection_id": "cin_a",
        "connector_key": "mail",
        "display_name": "Home",
    }
