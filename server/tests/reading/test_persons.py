"""Persons as their owner sees them, and bait records behind a person that was given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from pdpp_kernel.errors import PersonalServerError
from personal_server.collecting.persons import turn_on
from personal_server.domain.authority import TokenKind
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.grant import Resolved
from personal_server.domain.stored import Batch, RecordWrite
from personal_server.enforcement.authority import read_authority
from personal_server.reading.owner import owner_of
from personal_server.reading.persons import every_person, planted_behind
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door
from server.tests.storage.conftest import sqlite_store
from server.tests.storage.worlds import declaration

TEXTS = {"type": "array", "items": {"type": "string"}}
CARDS = declaration(
    "cards",
    [
        {
            "name": "cards",
            "semantics": "mutable_state",
            "display": {"label": "Cards"},
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": True},
            "schema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "name": {"type": "string"},
                    "emails": TEXTS
                    | {"x_pdpp_person": {"form": "address", "card": True, "named_by": "name"}},
                },
                "required": ["id"],
            },
        }
    ],
)
PERSONS = "persons"


def put(store: RecordStore, found: Mapping[str, list[str]]) -> None:
    writes = [
        RecordWrite(key, {"id": key, "name": key, "emails": emails}, 1)
        for key, emails in found.items()
    ]
    store.commit(Batch("cin_a", CARDS.streams["cards"], writes, 1))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with sqlite_store(tmp_path) as opened:
        opened.put_declaration(CARDS, orjson.dumps(CARDS.raw), 1)
        account = Connection(
            "cin_a", CARDS.connector_key, CARDS.source_id, None, ConnectionStatus.ACTIVE, 1, 1
        )
        if "cin_a" not in {one.connection_id for one in connections(opened)}:
            opened.add_connection(account)
        yield opened


def connections(store: RecordStore) -> tuple[Connection, ...]:
    with store.snapshot() as snapshot:
        return tuple(snapshot.connections())


def on(store: RecordStore) -> None:
    turn_on(store, 1, lambda size: b"p" * size)


def test_nobody_is_listed_while_persons_are_off(store: RecordStore) -> None:
    put(store, {"ada": ["ada@x.org"]})
    with pytest.raises(PersonalServerError):
        list(every_person(store, KnownDeclarations()))


def test_those_who_are_mentioned_most_come_first_over_all_pages(store: RecordStore) -> None:
    on(store)
    put(store, {f"n{number:03}": [f"n{number}@x.org"] for number in range(150)})
    put(store, {"x": ["n7@x.org"], "y": ["n7@x.org"], "z": ["n3@x.org"]})
    listed = list(every_person(store, KnownDeclarations()))
    assert len(listed) == 150
    assert [each["addresses"] for each in listed[:2]] == [["n7@x.org"], ["n3@x.org"]]
    assert [each["mention_count"] for each in listed[:3]] == [3, 2, 1]


def given(store: RecordStore, planted: set[tuple[str, str, str]], *addresses: str) -> Any:
    """The bait records behind the persons of these addresses, once each was given."""
    known = KnownDeclarations()
    keys = [
        str(each["id"])
        for each in every_person(store, known)
        if set(addresses) & set(each["addresses"])  # type: ignore[call-overload]
    ]
    with store.snapshot() as snapshot:
        declared = known.current(snapshot.declarations())
        authority = read_authority(owner_of("owner"), snapshot.connections(), declared)
        (source,) = [one for one in authority.sources if one.stream == PERSONS]
        disclosed = [Disclosed(source, source.fields, len(keys), tuple(keys))]
        behind = planted_behind(snapshot, disclosed, planted)
    assert {found.record_count for found in behind} <= {0}  # told as without a record
    return [(found.source.connection_id, found.fields, found.keys) for found in behind]


def test_a_person_whom_a_bait_record_alone_mentions_gives_it_away(store: RecordStore) -> None:
    on(store)
    put(store, {"bait": ["bait@x.org"], "other": ["other@x.org"]})
    planted = {("cin_a", "cards", "bait"), ("cin_a", "cards", "gone"), ("cin_b", "cards", "bait")}
    assert given(store, planted, "bait@x.org") == [("cin_a", ("emails",), ("bait",))]
    assert given(store, planted, "other@x.org") == []
    assert given(store, {("cin_a", "cards", "gone")}, "bait@x.org") == []


def test_a_person_whom_other_records_mention_too_gives_none_away(store: RecordStore) -> None:
    on(store)
    put(store, {"bait": ["me@x.org"], "mail": ["me@x.org"]})
    assert given(store, {("cin_a", "cards", "bait")}, "me@x.org") == []
    both = {("cin_a", "cards", "bait"), ("cin_a", "cards", "mail")}
    assert given(store, both, "me@x.org") == [
        ("cin_a", ("emails",), ("bait",)),
        ("cin_a", ("emails",), ("mail",)),
    ]


def test_what_tells_of_no_person_has_no_bait_behind_it(store: RecordStore) -> None:
    on(store)
    put(store, {"bait": ["bait@x.org"]})
    known = KnownDeclarations()
    with store.snapshot() as snapshot:
        declared = known.current(snapshot.declarations())
        authority = read_authority(owner_of("owner"), snapshot.connections(), declared)
        (source,) = [one for one in authority.sources if one.stream == "cards"]
        disclosed = [Disclosed(source, source.fields, 1, ("bait",))]
        assert planted_behind(snapshot, disclosed, {("cin_a", "cards", "bait")}) == []


def test_a_schema_counts_cards_and_no_persons(store: RecordStore) -> None:
    """These would have to be made for it."""
    put(store, {"ada": ["ada@x.org"], "bob": ["bob@x.org"]})
    on(store)
    owner = Resolved(TokenKind.OWNER, store.subject_id, "", "", "", 0)
    with store.snapshot() as snapshot:
        current = KnownDeclarations().current(snapshot.declarations())
        authority = read_authority(owner, snapshot.connections(), current)
    body = Door(store).get("/v1/schema?view=compact", authority).body
    rows = {each["name"]: each for one in body["connectors"] for each in one["streams"]}
    assert rows["cards"]["visible"]["records"] == 2
    assert "visible" not in rows[PERSONS]
