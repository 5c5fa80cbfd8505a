"""What the port to the authorization store promises, on every store."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from personal_server.storage.authorization_rows import (
    ROW_TYPES,
    AuditRow,
    AuthorizationRow,
    ClientRow,
    OwnerLinkRow,
    OwnerRow,
    RequestRow,
)
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from tests.new_files import new_file
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.postgresql import postgres_database


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AuthorizationStore]:
    if request.param == "memory":
        yield MemoryAuthorizationStore("own_1")
        return
    if request.param == "postgres":
        with postgres_database(tmp_path) as database:
            yield SqlAuthorizationStore(database, "own_1")
        return
    file = new_file(tmp_path / "pdpp.db")
    yield SqlAuthorizationStore(file, "own_1")
    file.close()


def link(number: int, expires: int, used: int | None = None) -> OwnerLinkRow:
    return OwnerLinkRow(link_hash=bytes([number]) * 32, expires_at_ns=expires, used_at_ns=used)


CLIENT = ClientRow(
    client_id="cli_1",
    client_ref="clr_1",
    registration="dynamic",
    name="Notes",
    display={"uri": "https://app.example"},
    redirect_uris=("http://127.0.0.1/cb",),
    registered_at_ns=5,
)
REQUEST = RequestRow(
    request_id="ar_1",
    flow="code",
    client_id="cli_1",
    origin="http://127.0.0.1:7662",
    resource="http://127.0.0.1:7662",
    scope="pdpp:read",
    picker=True,
    details=[{"type": "x", "n": [1, None]}],
    created_at_ns=1,
    expires_at_ns=2,
)


@pytest.mark.parametrize("row", [CLIENT, REQUEST, link(1, 5)])
def test_a_row_comes_back_as_it_was(store: AuthorizationStore, row: AuthorizationRow) -> None:
    with store.write() as writer:
        writer.insert(row)
    with store.read() as reader:
        assert reader.get(type(row)) == row


def test_conditions_compare_null_bounds_and_equality(store: AuthorizationStore) -> None:
    with store.write() as writer:
        for row in (link(1, 10), link(2, 20, used=3), link(3, 30)):
            writer.insert(row)
    with store.read() as reader:
        assert reader.count(OwnerLinkRow, OwnerLinkRow.used_at_ns.equals(None)) == 2
        assert reader.count(OwnerLinkRow, OwnerLinkRow.expires_at_ns.at_most(20)) == 2
        assert (
            reader.count(
                OwnerLinkRow,
                OwnerLinkRow.expires_at_ns.above(20),
                OwnerLinkRow.used_at_ns.equals(None),
            )
            == 1
        )
        newest = reader.rows(
            OwnerLinkRow, order=OwnerLinkRow.expires_at_ns, descending=True, limit=1
        )
    assert newest == [link(3, 30)]


def test_a_conditional_change_tells_who_won(store: AuthorizationStore) -> None:
    with store.write() as writer:
        writer.insert(REQUEST)
    wins: list[int] = []

    def decide() -> None:
        with store.write() as writer:
            wins.append(
                writer.change(
                    RequestRow,
                    [RequestRow.status.to("approved")],
                    RequestRow.request_id.equals("ar_1"),
                    RequestRow.status.equals("pending"),
                )
            )

    threads = [threading.Thread(target=decide) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wins) == [0, 0, 0, 1]


def test_a_failed_transaction_leaves_nothing(store: AuthorizationStore) -> None:
    class Failure(Exception):
        pass

    def fail() -> None:
        with store.write() as writer:
            writer.insert(CLIENT)
            writer.insert(REQUEST)
            raise Failure

    with pytest.raises(Failure):
        fail()
    with store.read() as reader:
        assert reader.get(ClientRow) is None
        assert reader.rows(RequestRow) == []


def test_a_duplicate_key_or_unique_column_is_refused(store: AuthorizationStore) -> None:
    again = replace(CLIENT, client_id="cli_2")

    def insert(row: AuthorizationRow) -> None:
        with store.write() as writer:
            writer.insert(row)

    insert(CLIENT)
    for row in (CLIENT, again):
        with pytest.raises(Exception):  # noqa: B017, PT011 - each store has its own defect error
            insert(row)
    with store.read() as reader:
        assert reader.count(ClientRow) == 1


def test_audit_events_are_numbered_in_order(store: AuthorizationStore) -> None:
    with store.write() as writer:
        for event in ("a", "b"):
            writer.insert(AuditRow(event=event, at_ns=1, actor="owner", detail={"n": 1}))
    with store.read() as reader:
        rows = reader.rows(AuditRow)
    assert [(row.event_id, row.event) for row in rows] == [(1, "a"), (2, "b")]


def test_delete_removes_what_meets_the_conditions(store: AuthorizationStore) -> None:
    with store.write() as writer:
        writer.insert(link(1, 10))
        writer.insert(link(2, 20))
        assert writer.delete(OwnerLinkRow, OwnerLinkRow.expires_at_ns.at_most(10)) == 1
        assert writer.rows(OwnerLinkRow) == [link(2, 20)]


def test_two_subjects_share_a_file_and_see_nothing_of_each_other(tmp_path: Path) -> None:
    database = new_file(tmp_path / "pdpp.db")
    one = SqlAuthorizationStore(database, "own_1")
    two = SqlAuthorizationStore(database, "own_2")
    for store in (one, two):
        with store.write() as writer:
            writer.insert(OwnerRow(created_at_ns=1))
            writer.insert(CLIENT)
    with two.write() as writer:
        writer.delete(ClientRow)
    with one.read() as reader:
        assert reader.get(ClientRow) == CLIENT
    database.close()


@pytest.mark.parametrize("table", ROW_TYPES, ids=lambda row: row.table.name)
def test_each_table_is_keyed_by_subject_and_has_the_columns_of_its_row(
    table: type[AuthorizationRow], tmp_path: Path
) -> None:
    database = new_file(tmp_path / "pdpp.db")
    with database.read() as session:
        info = session.rows("SELECT name, pk FROM pragma_table_info(?)", [table.table.name])
    database.close()
    names = {name for name, _ in info}
    key = [name for name, place in sorted(info, key=lambda line: line[1]) if place]
    assert names == {"subject_id", *(column.name for column in dataclasses.fields(table))}
    assert key == ["subject_id", *table.table.key]
