"""Warnings about damaged streams."""

from __future__ import annotations

from pdpp_kernel.record import DamagedRow
from personal_server.domain.answer_warnings import MAX_NAMED_RECORDS, damage_warnings


def row(connection_id: str, stream: str, key: str) -> DamagedRow:
    return DamagedRow(connection_id=connection_id, stream=stream, key=key)


def test_each_stream_has_one_warning_and_streams_are_in_order() -> None:
    rows = [row("cin_b", "notes", "1"), row("cin_a", "notes", "2"), row("cin_b", "notes", "3")]
    found = [(each.connection_id, each.detail) for each in damage_warnings(rows)]
    assert found == [
        ("cin_a", {"stream": "notes", "count": 1, "record_ids": ["2"]}),
        ("cin_b", {"stream": "notes", "count": 2, "record_ids": ["1", "3"]}),
    ]
    assert damage_warnings([]) == []


def test_ids_that_are_damaged_count_and_are_not_named() -> None:
    keys = ["", *map(str, range(MAX_NAMED_RECORDS + 1))]
    [warning] = damage_warnings([row("cin_a", "notes", key) for key in keys])
    assert warning.detail is not None
    assert warning.detail["count"] == MAX_NAMED_RECORDS + 2
    assert warning.detail["record_ids"] == keys[1 : MAX_NAMED_RECORDS + 1]
