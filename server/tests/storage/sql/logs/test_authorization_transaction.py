"""Rows of one subject: which are found, in which order, how many, and what a change leaves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from personal_server.storage.authorization_rows import (
    AuditRow,
    ClientRow,
    GrantRow,
    OwnerLinkRow,
)
from personal_server.storage.ports.authorization_store import ClientQuery, HeldQuery, ListPlace
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from tests.new_files import new_file

NOW = 100
EXPIRES = OwnerLinkRow.expires_at_ns
# another subject's rows in the same file are never among them
SUBJECTS = ("own_1", "own_2")


def client(number: int, at: int) -> ClientRow:
    return ClientRow(
        client_id=f"cli_{number}",
        client_ref=f"clr_{number}",
        registration="dynamic",
        name="App",
        registered_at_ns=at,
        first_approved_at_ns=at,
    )


def grant(number: int, at: int, client_id: str = "cli_1") -> GrantRow:
    return GrantRow(
        grant_id=f"grt_{number}",
        grant=b"{}",
        client_id=client_id,
        connector_key="mail",
        access_mode="continuous",
        issued_at_ns=at,
        expires_at_ns=None,
        reason=None,
        revision=f"rv_{number}",
    )


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlAuthorizationStore]:
    database = new_file(tmp_path / "pdpp.db")
    for subject in SUBJECTS:
        with SqlAuthorizationStore(database, subject).write() as writer:
            for number, expires in enumerate((30, 10, 20)):
                writer.insert(OwnerLinkRow(link_hash=bytes([number]) * 32, expires_at_ns=expires))
            for number, at in enumerate((5, 7, 7, 6)):
                writer.insert(client(number, at))
                writer.insert(grant(number, at, f"cli_{number % 2}"))
    yield SqlAuthorizationStore(database, SUBJECTS[0])
    database.close()


def test_rows_come_in_the_order_that_is_asked_for(store: SqlAuthorizationStore) -> None:
    with store.read() as reader:

        def expiring(**more: object) -> list[int]:
            return [row.expires_at_ns for row in reader.rows(OwnerLinkRow, **more)]  # type: ignore[arg-type]

        assert expiring() == [30, 10, 20]  # by their key
        assert expiring(descending=True) == [20, 10, 30]
        assert expiring(order=EXPIRES) == [10, 20, 30]
        assert expiring(order=EXPIRES, descending=True, limit=2) == [30, 20]
        assert expiring(limit=0) == []
        assert [row.expires_at_ns for row in reader.rows(OwnerLinkRow, EXPIRES.above(10))] == [
            30,
            20,
        ]
        assert reader.count(OwnerLinkRow) == 3
        assert reader.count(OwnerLinkRow, EXPIRES.above(10), EXPIRES.below(30)) == 1


def test_one_row_is_got_and_never_one_of_several(store: SqlAuthorizationStore) -> None:
    with store.read() as reader:
        found = reader.get(OwnerLinkRow, EXPIRES.at_most(10))
        assert found is not None
        assert found.expires_at_ns == 10
        assert reader.get(OwnerLinkRow, EXPIRES.equals(11)) is None
        with pytest.raises(LookupError):
            reader.get(OwnerLinkRow, EXPIRES.at_most(20))


def test_a_change_and_a_removal_tell_how_many_they_met(store: SqlAuthorizationStore) -> None:
    used = OwnerLinkRow.used_at_ns
    with store.write() as writer:
        assert writer.change(OwnerLinkRow, [used.to(5), EXPIRES.to(50)], EXPIRES.at_most(20)) == 2
        assert writer.count(OwnerLinkRow, used.equals(5), EXPIRES.equals(50)) == 2
        assert writer.change(OwnerLinkRow, [used.to(None)], EXPIRES.equals(30)) == 1
        assert writer.delete(OwnerLinkRow, used.equals(None)) == 1
        assert writer.delete(OwnerLinkRow, used.equals(None)) == 0
        assert writer.delete(OwnerLinkRow) == 2


def test_lists_go_on_below_a_place(store: SqlAuthorizationStore) -> None:
    held, query = HeldQuery(NOW), ClientQuery(NOW, known=True)
    with store.read() as reader:
        assert reader.held(held) == ["grt_2", "grt_1", "grt_3", "grt_0"]
        assert reader.held(held, 2) == ["grt_2", "grt_1"]
        assert reader.held(held, below=ListPlace(7, "grt_2")) == ["grt_1", "grt_3", "grt_0"]
        assert reader.held(held, 1, ListPlace(7, "grt_1")) == ["grt_3"]
        assert (reader.count_held(held), reader.count_held(HeldQuery(NOW, False))) == (4, 0)
        assert reader.held(HeldQuery(NOW, None, "cli_1")) == ["grt_1", "grt_3"]
        refs = [row.client_ref for row in reader.clients(query)]
        assert refs == ["clr_2", "clr_1", "clr_3", "clr_0"]
        some = reader.clients(query, 2, ListPlace(7, "clr_2"))
        assert [row.client_ref for row in some] == ["clr_1", "clr_3"]
        assert reader.clients(query, 1, ListPlace(5, "clr_0")) == []
        assert reader.count_clients(query) == 4
        assert reader.count_clients(ClientQuery(NOW, known=False)) == 0


def test_events_are_numbered_and_chained(store: SqlAuthorizationStore) -> None:
    with store.write() as writer:
        for event in ("a", "b", "c"):
            writer.insert(AuditRow(event=event, at_ns=1, actor="owner", detail={}))
    with store.read() as reader:
        rows = reader.rows(AuditRow)
        assert [(row.event_id, row.event) for row in rows] == [(1, "a"), (2, "b"), (3, "c")]
        assert len({row.link for row in rows}) == 3


def test_what_was_derived_is_known_until_something_is_written(store: SqlAuthorizationStore) -> None:
    with store.read() as reader:
        reader.derived["known"] = 1
    with store.read() as reader:
        assert reader.derived["known"] == 1
    with store.write() as writer:
        writer.delete(OwnerLinkRow)
        writer.derived["known"] = 2
    with store.read() as reader:
        assert "known" not in reader.derived
