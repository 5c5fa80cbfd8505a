"""Corrections as they are stored, and which of them outlive what they name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pdpp_kernel.criteria import Order
from pdpp_kernel.person_fields import Identity, IdentityKind
from pdpp_kernel.persons import Corrections
from personal_server.collecting.persons import turn_on
from personal_server.enforcement.plans import RecordsPlan
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.sql.fixed_tables import MentionRow
from personal_server.storage.sql.records.persons import corrections, forget_lost_corrections
from personal_server.storage.sql.source_tables import find_source
from personal_server.storage.sql.statements import insert
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase
from server.tests.storage.ports.test_persons import CARDS, declare, put
from server.tests.storage.worlds import connection, scope
from tests.new_files import new_file

ADA, BOB, EVE = (Identity(IdentityKind.ADDRESS, f"{name}@x.org") for name in ("ada", "bob", "eve"))
LISTED = Order(None, None, False)
SAID = Corrections(frozenset({(ADA, BOB)}), frozenset({EVE}))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteDatabase]:
    opened = new_file(tmp_path / "records.db")
    store = SqlRecordStore(opened, "owner", tmp_path / "blobs")
    declare(store, CARDS)
    store.add_connection(connection("cin_a"))
    put(store, "cin_a", {"ada": [ADA.value], "bob": [BOB.value], "eve": [EVE.value]})
    store.correct_persons(lambda _: SAID)
    yield opened
    opened.close()


def known(database: SqliteDatabase, subject: str = "owner") -> Corrections:
    with database.read() as session:
        return corrections(session, subject)


def test_pairs_and_what_stands_alone_are_told_apart(database: SqliteDatabase) -> None:
    assert known(database) == SAID
    assert known(database, "another") == Corrections()
    SqlRecordStore(database, "another", Path("blobs")).correct_persons(lambda _: Corrections())
    assert known(database) == SAID
    SqlRecordStore(database, "owner", Path("blobs")).correct_persons(lambda _: Corrections())
    assert known(database) == Corrections()


@pytest.mark.parametrize(
    ("lost", "kept"),
    [
        ((), SAID),
        ((ADA,), Corrections(frozenset(), frozenset({EVE}))),
        ((BOB,), Corrections(frozenset(), frozenset({EVE}))),
        ((EVE,), Corrections(SAID.merged, frozenset())),
        ((ADA, EVE), Corrections()),
    ],
)
def test_what_names_an_identity_that_nothing_mentions_is_forgotten(
    database: SqliteDatabase, lost: tuple[Identity, ...], kept: Corrections
) -> None:
    with database.write() as session:
        for identity in lost:
            session.run("DELETE FROM mentions WHERE kind = ? AND value = ?", tuple(identity))
        forget_lost_corrections(session, "owner")
        forget_lost_corrections(session, "another")
    assert known(database) == kept


def test_a_mention_of_another_field_or_source_holds_nothing(database: SqliteDatabase) -> None:
    with database.write() as session:
        source = find_source(session, "owner", "cin_a", "cards")
        assert source is not None
        session.run("DELETE FROM mentions")
        for number, field in ((source.source, "name"), (source.source + 1, "emails")):
            line = (number, field, "k", 0, EVE.kind, EVE.value, None)
            session.run(insert(MentionRow), line)
        forget_lost_corrections(session, "owner")
    assert known(database) == Corrections()


ADDRESSES = CARDS.streams["cards"]


def seen_through(database: SqliteDatabase, **more: Any) -> list[Any]:
    """Addresses and name of the persons that are made of what a scope sees."""
    store = SqlRecordStore(database, "owner", Path("blobs"))
    persons, _ = turn_on(store, 1, lambda size: b"p" * size)
    found = store.declaration("persons", None)
    assert found is not None
    stream = KnownDeclarations().one(found).streams["persons"]
    seen = scope("cin_a", ADDRESSES, **more)
    plan = RecordsPlan((scope(persons.connection_id, stream, made_of=(seen,)),), LISTED, 10)
    with store.snapshot() as snapshot:
        rows = [placed.row.data for placed in snapshot.page(plan).rows]
    return sorted((each["addresses"], each["name"]) for each in rows)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [(["ada@x.org"], "ada"), (["bob@x.org"], "bob"), (["eve@x.org"], "eve")]),
        ({"resources": frozenset({"bob", "none"})}, [(["bob@x.org"], "bob")]),
        ({"resources": frozenset[str]()}, []),
        (
            {"resources": frozenset({"ada", "eve"}), "fields": ("id", "emails")},
            [(["ada@x.org"], None), (["eve@x.org"], None)],
        ),
        ({"fields": ("id", "name")}, []),
    ],
)
def test_persons_are_those_whom_visible_records_mention(
    database: SqliteDatabase, limits: dict[str, Any], expected: Any
) -> None:
    SqlRecordStore(database, "owner", Path("blobs")).correct_persons(lambda _: Corrections())
    assert seen_through(database, **limits) == expected
