"""What records mention follows every write of them, and what is erased takes its share away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from pdpp_kernel.errors import ConnectionNotWritable
from pdpp_kernel.person_fields import (
    Identity,
    identity_of,
)
from pdpp_kernel.persons import (
    merged,
    parted,
)
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.collecting.persons import turn_on
from personal_server.domain.stored import Batch, RecordWrite
from personal_server.enforcement.plans import RecordsPlan
from personal_server.enforcement.scopes import Scope
from personal_server.reading.persons import every_person
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.records import copy_slices, rebuilds
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import BY_DATABASE, Opened
from server.tests.storage.worlds import connection, declaration, scope

TEXTS = {"type": "array", "items": {"type": "string"}}


def cards(version: str, *, tells: bool = True) -> SourceDeclaration:
    told = {"x_pdpp_person": {"form": "address", "card": True, "named_by": "name"}}
    properties = {
        "id": {"type": "string"},
        "name": {"type": "string"},
        "emails": TEXTS | (told if tells else {}),
    }
    return declaration(
        version,
        [
            {
                "name": "cards",
                "semantics": "mutable_state",
                "display": {"label": "Cards"},
                "primary_key": ["id"],
                "selection": {"fields": True, "resources": True},
                "schema": {"type": "object", "properties": properties, "required": ["id"]},
            }
        ],
    )


CARDS = cards("cards")


def declare(store: RecordStore, found: SourceDeclaration) -> None:
    store.put_declaration(found, orjson.dumps(found.raw), 1)


def put(store: RecordStore, connection_id: str, found: Mapping[str, list[str] | None]) -> None:
    writes = [
        RecordWrite(key, None if emails is None else {"id": key, "name": key, "emails": emails}, 1)
        for key, emails in found.items()
    ]
    store.commit(Batch(connection_id, CARDS.streams["cards"], writes, 1))


def everybody(store: RecordStore) -> list[Any]:
    found = (each["addresses"] for each in every_person(store, KnownDeclarations()))
    return sorted(found, key=str)


@pytest.fixture
def carded(store: RecordStore) -> RecordStore:
    declare(store, CARDS)
    turn_on(store, 1, lambda size: b"p" * size)
    put(store, "cin_a", {"ada": ["ada@x.org", "a@x.org"], "bob": ["bob@x.org"]})
    put(store, "cin_b", {"eve": ["A@x.org", "eve@x.org"]})
    return store


def address(text: str) -> Identity:
    found = identity_of(text)
    assert found is not None
    return found


def test_persons_are_joined_over_connections(carded: RecordStore) -> None:
    assert everybody(carded) == [["a@x.org", "ada@x.org", "eve@x.org"], ["bob@x.org"]]


def test_mentions_follow_updates_and_deletes(carded: RecordStore) -> None:
    put(carded, "cin_a", {"ada": ["ada@x.org"], "bob": None})
    assert everybody(carded) == [["a@x.org", "eve@x.org"], ["ada@x.org"]]
    put(carded, "cin_a", {"bob": ["ada@x.org", "bob@x.org"]})
    assert everybody(carded) == [["a@x.org", "eve@x.org"], ["ada@x.org", "bob@x.org"]]


def test_what_is_erased_takes_its_share_away(carded: RecordStore) -> None:
    carded.delete_record("cin_a", "cards", "ada", 2)
    assert everybody(carded) == [["a@x.org", "eve@x.org"], ["bob@x.org"]]
    carded.erase_connection("cin_b", 2)
    assert everybody(carded) == [["bob@x.org"]]
    carded.delete_stream("cin_a", "cards", 2)
    assert everybody(carded) == []


def test_corrections_outlive_what_comes_again_but_not_what_they_name(carded: RecordStore) -> None:
    carded.correct_persons(lambda known: merged(known, address("bob@x.org"), address("eve@x.org")))
    carded.correct_persons(lambda known: parted(known, address("a@x.org")))
    kept = carded.person_corrections()
    assert everybody(carded) == [["a@x.org"], ["ada@x.org"], ["bob@x.org", "eve@x.org"]]
    put(carded, "cin_a", {"bob": None})
    put(carded, "cin_a", {"bob": ["bob@x.org"]})
    assert carded.person_corrections() == kept
    carded.erase_connection("cin_b", 2)
    left = carded.person_corrections()
    assert left.merged == frozenset()
    assert left.parted == {address("a@x.org")}
    carded.delete_record("cin_a", "cards", "ada", 2)
    assert carded.person_corrections().parted == frozenset()


def test_the_connection_of_persons_takes_no_records(carded: RecordStore) -> None:
    persons, is_new = turn_on(carded, 1, lambda size: b"q" * size)
    assert not is_new
    with pytest.raises(ConnectionNotWritable):
        put(carded, persons.connection_id, {"x": []})


def test_persons_of_two_views_in_one_snapshot_are_kept_apart(carded: RecordStore) -> None:
    persons, _ = turn_on(carded, 1, lambda size: b"q" * size)
    found = carded.declaration("persons", None)
    assert found is not None
    stream = KnownDeclarations().one(found).streams["persons"]

    def seen(*made_of: Scope) -> RecordsPlan:
        return RecordsPlan((scope(persons.connection_id, stream, made_of=made_of),))

    one = scope("cin_a", CARDS.streams["cards"])
    other = scope("cin_b", CARDS.streams["cards"])
    with carded.snapshot() as snapshot:
        for _ in range(2):
            counts = [
                snapshot.count(seen(*made_of)) for made_of in ((one,), (other,), (one, other))
            ]
            assert counts == [2, 1, 2]
            assert snapshot.count(seen()) == 0
    with carded.snapshot() as snapshot:
        assert snapshot.count(seen(one)) == 2


@BY_DATABASE
def test_what_was_stored_before_a_declaration_told_of_persons_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    monkeypatch.setattr(rebuilds, "AT_ONCE", -1)
    monkeypatch.setattr(rebuilds, "SLICE_SECONDS", 0)
    monkeypatch.setattr(copy_slices, "LINES_AT_ONCE", 2)
    with opened(tmp_path) as store:
        declare(store, cards("1", tells=False))
        store.add_connection(connection("cin_a"))
        turn_on(store, 1, lambda size: b"p" * size)
        put(store, "cin_a", {f"n{place}": [f"n{place}@x.org"] for place in range(6)})
        assert everybody(store) == []
        declare(store, cards("2"))
        _change_meanwhile(store)
        while store.rebuild_slice():
            pass
        wanted = [["m0@x.org"], ["n2@x.org"], ["n4@x.org"], ["n5@x.org"], ["z@x.org"]]
        assert everybody(store) == wanted
        declare(store, cards("3", tells=False))
        while store.rebuild_slice():
            pass
        assert everybody(store) == []
        declare(store, cards("4"))
        while store.rebuild_slice():
            pass
        assert everybody(store) == wanted


def _change_meanwhile(store: SqlRecordStore) -> None:
    """Of what is copied already, and of what is not."""
    assert store.rebuild_slice()
    put(store, "cin_a", {"n0": ["m0@x.org"], "n1": None, "z": ["z@x.org"]})
    store.delete_record("cin_a", "cards", "n3", 2)
