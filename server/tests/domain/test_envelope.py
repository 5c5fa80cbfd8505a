"""What stands around the data of an answer."""

from __future__ import annotations

import msgspec
import pytest

from pdpp_kernel.record import DamagedRow
from personal_server.domain.answer_warnings import (
    MAX_NAMED_RECORDS,
    Warning,
    damage_warnings,
)
from personal_server.domain.authority import Unavailable
from personal_server.domain.envelope import (
    MAX_NAMED_CONNECTIONS,
    UNCOUNTED,
    Counted,
    name_unavailable,
    render_unavailable,
)


def damaged(stream: str, *keys: str | None, connection: str = "cin_a") -> list[DamagedRow]:
    return [DamagedRow(connection, stream, key) for key in keys]


def said(warning: Warning) -> tuple[str, str | None, object]:
    return (warning.code, warning.connection_id, warning.detail)


def test_damage_is_told_once_for_each_stream_in_their_order() -> None:
    rows = [
        *damaged("notes", "n1", connection="cin_b"),
        *damaged("notes", "n2", None, ""),
        *damaged("mails", None),
        *damaged("notes", "n3"),
    ]
    assert [said(warning) for warning in damage_warnings(rows)] == [
        ("damaged_record", "cin_a", {"stream": "mails", "count": 1, "record_ids": []}),
        ("damaged_record", "cin_a", {"stream": "notes", "count": 4, "record_ids": ["n2", "n3"]}),
        ("damaged_record", "cin_b", {"stream": "notes", "count": 1, "record_ids": ["n1"]}),
    ]


def test_of_many_damaged_records_a_dozen_are_named_and_all_counted() -> None:
    (warning,) = damage_warnings(damaged("notes", *map(str, range(20))))
    assert warning.detail is not None
    assert (warning.detail["count"], len(warning.detail["record_ids"])) == (20, 12)
    assert MAX_NAMED_RECORDS == 12


def test_what_was_not_counted_says_so() -> None:
    assert msgspec.to_builtins(UNCOUNTED) == {"kind": "none"}
    assert msgspec.to_builtins(Counted("exact", 0)) == {"kind": "exact", "value": 0}


def test_an_unavailable_connection_says_why_and_what_to_do() -> None:
    ended = Unavailable("cin_a", "grant_revoked", "journal", "grt_1", "notes", "Diary")
    unknown = Unavailable("", "connection_revoked")
    assert render_unavailable([ended, unknown]) == {
        "unavailable_connections": [
            {
                "connection_id": "cin_a",
                "connector_key": "journal",
                "grant_id": "grt_1",
                "stream": "notes",
                "display_name": "Diary",
                "reason": "grant_revoked",
                "next_step": "reapprove",
            },
            {"reason": "connection_revoked", "next_step": "choose_another"},
        ]
    }


@pytest.mark.parametrize(("number", "told"), [(12, None), (13, 13)])
def test_of_many_unavailable_ones_a_dozen_are_named_and_all_counted(
    number: int, told: int | None
) -> None:
    members = name_unavailable([Unavailable(f"cin_{n}", "grant_expired") for n in range(number)])
    assert len(members["unavailable_connections"]) == MAX_NAMED_CONNECTIONS == 12
    assert members.get("unavailable_connection_count") == told
