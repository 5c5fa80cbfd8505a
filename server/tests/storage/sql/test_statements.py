"""Row classes as statements, and what their columns hold."""

from __future__ import annotations

from typing import Any, cast

import pytest

from personal_server.storage.authorization_rows import AuditRow, ClientRow
from personal_server.storage.sql import statements
from personal_server.storage.sql.fixed_tables import RejectionRow, StoreRow
from personal_server.storage.sql.logs.log_chain import LogHeadRow


def test_statements_name_the_columns_of_a_row() -> None:
    assert statements.insert(StoreRow) == "INSERT INTO store (name, value) VALUES (?, ?)"
    assert statements.ignoring(statements.insert(StoreRow)).endswith("ON CONFLICT DO NOTHING")
    assert statements.replacing(StoreRow) == (
        "INSERT INTO store (name, value) VALUES (?, ?)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    )
    assert statements.select(StoreRow, StoreRow.name) == (
        "SELECT name, value FROM store WHERE name = ?"
    )
    assert statements.select(StoreRow, StoreRow.name, columns=(StoreRow.value,)) == (
        "SELECT value FROM store WHERE name = ?"
    )
    assert statements.exists(StoreRow, StoreRow.name) == "SELECT 1 FROM store WHERE name = ?"
    assert statements.delete(StoreRow, StoreRow.name, StoreRow.value) == (
        "DELETE FROM store WHERE name = ? AND value = ?"
    )
    assert statements.update(StoreRow, [StoreRow.value], StoreRow.name) == (
        "UPDATE store SET value = ? WHERE name = ?"
    )
    assert statements.listed((StoreRow.name, StoreRow.value)) == "name, value"


def test_the_subject_leads_where_rows_do_not_carry_it() -> None:
    assert statements.insert(LogHeadRow) == (
        "INSERT INTO log_heads (subject_id, log, number, link, at_ns, is_cut, signature)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)"
    )
    assert statements.select(LogHeadRow, LogHeadRow.log, columns=(LogHeadRow.link,)) == (
        "SELECT link FROM log_heads WHERE subject_id = ? AND log = ?"
    )
    assert statements.replacing(LogHeadRow).endswith(
        " ON CONFLICT (log, number, subject_id) DO UPDATE SET link = excluded.link,"
        " at_ns = excluded.at_ns, is_cut = excluded.is_cut, signature = excluded.signature"
    )
    # a number that a row gets is not said
    assert "(subject_id, connection_id, receipt_id," in statements.insert(RejectionRow)


def test_a_row_comes_back_from_what_its_columns_hold() -> None:
    head = LogHeadRow(log="a", number=3, link=b"l", at_ns=5, is_cut=True)
    line = statements.values_of(head)
    assert line == ["a", 3, b"l", 5, 1, None]
    assert type(line[4]) is int
    found = statements.row_from(LogHeadRow, tuple(line))
    assert (found, found.is_cut) == (head, True)
    refused = RejectionRow(
        subject_id="o",
        connection_id="c",
        receipt_id="r",
        stream="s",
        code="e",
        path=None,
        run_id=None,
        at=9,
    )
    assert statements.values_of(refused) == ["o", "c", "r", "s", "e", None, None, 9]
    audit = AuditRow(event="e", at_ns=1, actor="owner", detail={"a": [1, None]})
    held = statements.values_of(audit)
    assert held[-2] == '{"a":[1,null]}'
    assert statements.row_from(AuditRow, tuple(held)).detail == {"a": [1, None]}


@pytest.mark.parametrize(
    ("column", "value", "held"),
    [
        (ClientRow.redirect_uris, ("a", "b"), '["a","b"]'),
        (ClientRow.redirect_uris, None, None),
        (AuditRow.detail, {}, "{}"),
        (LogHeadRow.is_cut, False, 0),
        (LogHeadRow.number, 7, 7),
        (LogHeadRow.link, b"x", b"x"),
        (StoreRow.name, "x", "x"),
    ],
    ids=str,
)
def test_a_value_is_stored_as_its_column_holds_it(column: Any, value: object, held: object) -> None:
    found = statements.stored(column, value)
    assert (found, type(found)) == (held, type(held))


def test_a_column_of_scalars_takes_nothing_else() -> None:
    with pytest.raises(TypeError):
        statements.stored(cast("Any", StoreRow.name), ["x"])
