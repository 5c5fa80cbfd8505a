"""Persons are what a client's own data says, and nothing hidden changes any byte about them.

The reference follows docs/contract/resource-server.md 22 by brute force and shares no code with the
server: spellings are looked up in a table of what they mean, sets of identities are joined until
nothing joins any more.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest

from pdpp_kernel.person_fields import (
    Identity,
    IdentityKind,
)
from pdpp_kernel.persons import Corrections
from pdpp_kernel.values import instant_ns
from personal_server.collecting.persons import turn_on
from personal_server.domain.authority import ReadAuthority, SourceId, TimeConstraint
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.grant import Grant, MemberGrant, Resolved, StreamGrant
from personal_server.domain.stored import Batch, RecordWrite
from personal_server.enforcement.authority import read_authority
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door, Reply
from tests.properties.sizes import worlds
from tests.properties.stores import STORES, open_store

Json = dict[str, Any]
Known = tuple[str, str]
MARK = "hidden"
TEXT: Json = {"type": ["string", "null"]}
TEXTS: Json = {"type": "array", "items": {"type": "string"}}
NAMES = ("Ada Byron", "Bob", "Eve", "Carol Ann", "Zoë")
# canonical -> as it is written somewhere
SPELLINGS: dict[Known, tuple[str, ...]] = {
    ("address", "ada@x.example"): ("Ada@X.example", "mailto:ada@x.example", " ada@x.example "),
    ("address", "bob@x.example"): ("bob@x.example", "BOB@x.example"),
    ("address", "eve@y.example"): ("eve@y.example",),
    ("address", "zoe@y.example"): ("zoe@y.example",),
    ("number", "+491701234567"): ("+49 170 1234567", "0049-170-1234567", "+49 (0)170/1234567"),
    ("number", "+4930999999"): ("tel:+4930999999", "+49 30 999999 ext. 7"),
    ("number", "01701234567"): ("0170 1234567", "(0170) 1234-567"),
    ("handle", "chat:u1"): ("u1", "U1"),
    ("handle", "chat:u2"): ("u2",),
}
NOBODY = ("me", "Ada", "", "12 34", "no@", "at the lake")
OF_KIND = {
    kind: [(known, s) for known, written in SPELLINGS.items() if known[0] == kind for s in written]
    for kind in ("address", "number", "handle")
}
IMS = {f"chat: {spelled}": known for known, spelled in OF_KIND["handle"]}
READ: dict[tuple[str, str], Known] = {
    (kind, spelled): known for kind, found in OF_KIND.items() for known, spelled in found
}


def said(form: str, **more: Any) -> Json:
    return {"x_pdpp_person": {"form": form, **more}}


def stream(name: str, properties: Json) -> Json:
    return {
        "name": name,
        "semantics": "mutable_state",
        "display": {"label": name},
        "primary_key": ["id"],
        "cursor_field": "at",
        "consent_time_field": "at",
        "selection": {"fields": True, "resources": True},
        "schema": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "at": {"type": "string", "format": "date-time"},
                **properties,
                "note": TEXT,
            },
            "required": ["id", "at"],
        },
    }


CARD = {"card": True, "named_by": "title"}
FIELDS: dict[str, dict[str, Json]] = {
    "cards": {
        "title": TEXT,
        "emails": TEXTS | said("address", **CARD),
        "phones": TEXTS | said("number", **CARD),
        "ims": TEXTS | said("handle", **CARD),
    },
    "posts": {
        "sender_name": TEXT,
        "sender": TEXT | said("address", named_by="sender_name"),
        "to": TEXTS | said("written"),
    },
    "chats": {
        "author": TEXT,
        "author_id": TEXT | said("handle", network="chat", named_by="author"),
        "people": TEXTS | said("written"),
    },
}
SOURCES: dict[str, Json] = {
    key: {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": f"https://connectors.example/{key}"},
        "connector_key": key,
        "declaration_version": "1",
        "display": {"name": key.title()},
        "streams": [stream(key, fields)],
    }
    for key, fields in FIELDS.items()
}
CONNECTIONS = {"cin_a": "cards", "cin_b": "cards", "cin_m": "posts", "cin_c": "chats"}
DAYS = ("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z")
Places = dict[tuple[str, str], Json]


@dataclass
class World:
    """Records by (connection, key), and what the owner said."""

    rng: random.Random
    records: Places = field(default_factory=dict[tuple[str, str], Json])
    merged: set[tuple[Known, Known]] = field(default_factory=set[tuple[Known, Known]])
    parted: set[Known] = field(default_factory=set[Known])
    written: dict[str, tuple[Known, str | None]] = field(
        default_factory=dict[str, tuple[Known, str | None]]
    )

    def spelled(self, *kinds: str) -> str:
        if self.rng.random() < 0.15:
            return self.rng.choice(NOBODY)
        return self.rng.choice([s for kind in kinds for _, s in OF_KIND[kind]])

    def written_for_people(self) -> str:
        known, spelled = self.rng.choice([*OF_KIND["address"], *OF_KIND["number"]])
        name = self.rng.choice((*NAMES, None, None))
        text = spelled if name is None else f'"{name}" <{spelled}>'
        self.written[text] = (known, name)
        return text if self.rng.random() < 0.9 else self.rng.choice(NOBODY)

    def record(self, connection_id: str, key: str) -> Json:
        rng = self.rng

        def some(kind: str) -> list[str]:
            return [self.spelled(kind) for _ in range(rng.choice((0, 1, 1, 2)))]

        name = rng.choice((*NAMES, None))
        people = [self.written_for_people() for _ in range(rng.randint(0, 2))]
        own: dict[str, Json] = {
            "cards": {
                "title": name,
                "emails": some("address"),
                "phones": some("number"),
                "ims": [rng.choice(list(IMS))] if rng.random() < 0.3 else [],
            },
            "posts": {"sender_name": name, "sender": self.spelled("address"), "to": people},
            "chats": {
                "author": name,
                "author_id": rng.choice(("u1", "U1", "u2")),
                "people": people,
            },
        }
        common = {"id": key, "at": rng.choice(DAYS), "note": rng.choice(("a", "b", MARK))}
        return common | own[CONNECTIONS[connection_id]]

    def change(self) -> tuple[tuple[str, str], Json | None]:
        """A random write: (place, data), a delete without data."""
        place = (self.rng.choice(list(CONNECTIONS)), f"r{self.rng.randint(1, 6)}")
        if self.rng.random() < 0.15 and place in self.records:
            return place, None
        fresh = self.record(*place)
        known = self.records.get(place)
        if known is not None and self.rng.random() < 0.6:
            name = self.rng.choice([each for each in fresh if each != "id"])
            fresh = known | {name: fresh[name]}
        return place, fresh

    def say(self) -> None:
        one, other = sorted(self.rng.sample(list(SPELLINGS), 2))
        if self.rng.random() < 0.6:
            self.merged ^= {(one, other)}
        else:
            self.parted ^= {one}


@dataclass(frozen=True)
class Seen:
    """One readable source of a token."""

    connection: str
    fields: frozenset[str]
    since: str | None = None
    resources: frozenset[str] | None = None


# The reference --------------------------------------------------------------------------------
def projected(records: Places, sources: Iterable[Seen]) -> Places:
    """All that the token reads."""
    return {
        (cid, key): {name: value for name, value in data.items() if name in source.fields}
        for source in sources
        for (cid, key), data in sorted(records.items())
        if cid == source.connection
        and (source.since is None or data["at"] >= source.since)
        and (source.resources is None or key in source.resources)
    }


def mentions(world: World, visible: Places) -> list[tuple[Known, str | None, str, str, str, bool]]:
    """(identity, name, connection, key, field, whether it is a card)."""
    found: list[tuple[Known, str | None, str, str, str, bool]] = []
    for (cid, key), data in visible.items():
        for name, schema in FIELDS[CONNECTIONS[cid]].items():
            told = schema.get("x_pdpp_person")
            if told is None or name not in data:
                continue
            entries = data[name] if isinstance(data[name], list) else [data[name]]
            beside = data.get(told.get("named_by", ""))
            for text in entries:
                if told["form"] == "written":
                    known, title = world.written.get(text, (None, None))
                elif name == "ims":
                    known, title = IMS.get(text), beside
                else:
                    known, title = READ.get((told["form"], text)), beside
                if known is not None:
                    found.append((known, title, cid, key, name, bool(told.get("card"))))
    return found


def together(world: World, found: list[Any]) -> list[set[Known]]:
    """Sets of identities, joined until nothing joins any more."""
    sets = [{each[0]} for each in found]
    for _, _, cid, key, _, is_card in found:
        if is_card:
            same = {e[0] for e in found if (e[2], e[3]) == (cid, key) and e[5]} - world.parted
            sets.append(same)
    visible = {each[0] for each in found}
    sets += [{one, other} for one, other in world.merged if {one, other} <= visible]
    joined: list[set[Known]] = []
    for each in filter(None, sets):
        touching = [other for other in joined if other & each]
        joined = [other for other in joined if not other & each] + [each.union(*touching)]
    return joined


def expected(world: World, visible: Places) -> list[Json]:
    found = mentions(world, visible)
    persons: list[Json] = []
    for group in together(world, found):
        mine = [each for each in found if each[0] in group]
        kinds = {k: sorted(v for kind, v in group if kind == k) for k in OF_KIND}
        first = min(group, key=lambda each: (list(OF_KIND).index(each[0]), each[1]))
        names = {each[1] for each in mine if each[1]}
        ranked = sorted(
            names,
            key=lambda n: (
                -sum(1 for e in mine if e[1] == n and e[5]),
                -sum(1 for e in mine if e[1] == n),
                n,
            ),
        )
        cards = sorted({(e[2], e[3]) for e in mine if e[5]})
        others = sorted({(e[2], e[4]) for e in mine if not e[5]})
        links = [link(cid, key) for cid, key in cards] + [
            link(cid, min(e[3] for e in mine if (e[2], e[4]) == (cid, name))) | {"field": name}
            for cid, name in sorted(others, key=lambda o: (o[0], CONNECTIONS[o[0]], o[1]))
        ]
        digest = hashlib.sha256(f"{first[0]}\0{first[1]}".encode()).hexdigest()
        persons.append(
            {
                "id": f"per_{digest[:24]}",
                "name": ranked[0] if ranked else None,
                "other_names": ranked[1:11],
                "address": next(iter(kinds["address"]), None),
                "addresses": kinds["address"],
                "number": next(iter(kinds["number"]), None),
                "numbers": kinds["number"],
                "handles": kinds["handle"],
                "reachable_at": " ".join([*kinds["address"], *kinds["number"], *kinds["handle"]]),
                "mention_count": len(mine),
                "links": links[:20],
            }
        )
    return sorted(persons, key=lambda person: person["id"])


def link(cid: str, key: str) -> Json:
    source = CONNECTIONS[cid]
    return {"connector_key": source, "connection_id": cid, "stream": source, "id": key}


# The server -----------------------------------------------------------------------------------
class Bench:
    """A store with a world in it."""

    def __init__(self, store: RecordStore, world: World) -> None:
        self.store, self.world = store, world
        self.declared = {key: parse_declaration(raw) for key, raw in SOURCES.items()}
        for declaration in self.declared.values():
            store.put_declaration(declaration, orjson.dumps(declaration.raw), 1)
        for cid, key in CONNECTIONS.items():
            source_id = SOURCES[key]["source"]["id"]
            store.add_connection(
                Connection(cid, key, source_id, None, ConnectionStatus.ACTIVE, 1, 1)
            )
        self.persons, _ = turn_on(store, 5, lambda size: b"p" * size)
        self.door = Door(store)
        for _ in range(25):
            self.write(*world.change())
        for _ in range(world.rng.randint(0, 3)):
            world.say()
        self.correct()

    def write(self, place: tuple[str, str], data: Json | None) -> None:
        cid, key = place
        if data is None:
            del self.world.records[place]
        else:
            self.world.records[place] = data
        stream = self.declared[CONNECTIONS[cid]].streams[CONNECTIONS[cid]]
        self.store.commit(Batch(cid, stream, [RecordWrite(key, data, 1)], 1))

    def correct(self) -> None:
        def identity(known: Known) -> Identity:
            return Identity(IdentityKind(known[0]), known[1])

        world = self.world
        pairs = frozenset((identity(one), identity(other)) for one, other in world.merged)
        told = Corrections(pairs, frozenset(map(identity, world.parted)))
        self.store.correct_persons(lambda _: told)

    def token(self) -> tuple[ReadAuthority, list[Seen], frozenset[str]]:
        """A random token: its authority, what it reads, and which fields of persons."""
        rng, seen = self.world.rng, list[Seen]()
        for cid, key in CONNECTIONS.items():
            if rng.random() < 0.8:
                names = list(stream(key, FIELDS[key])["schema"]["properties"])
                fields = {n for n in names if rng.random() < rng.choice((0.4, 0.9))} | {"id", "at"}
                since = rng.choice((None, None, DAYS[1]))
                keys = frozenset(f"r{n}" for n in range(1, 5)) if rng.random() < 0.25 else None
                seen.append(Seen(cid, frozenset(fields), since, keys))
        own = self.fields_of_persons()
        shown = {n for n in own if rng.random() < rng.choice((0.5, 1.0))} | {"id"}
        members = [self._member(i, source) for i, source in enumerate(seen)]
        persons = StreamGrant(
            "persons", (self.persons.connection_id,), tuple(sorted(shown)), None, None
        )
        members.append(self._grant("grt_p", self.persons.source_id, persons))
        resolved = Resolved(
            "mcp_package", "owner", "planner", "tok", "http://x", 2**62, tuple(members), "gpkg_1"
        )
        with self.store.snapshot() as snapshot:
            declared = {d.connector_key: parse_declaration(d.raw) for d in snapshot.declarations()}
            return (
                read_authority(resolved, snapshot.connections(), declared),
                seen,
                frozenset(shown),
            )

    def fields_of_persons(self) -> list[str]:
        found = self.store.declaration("persons", None)
        assert found is not None
        return list(json.loads(found.raw)["streams"][0]["schema"]["properties"])

    def _member(self, index: int, source: Seen) -> MemberGrant:
        key = CONNECTIONS[source.connection]
        window = None
        if source.since is not None:
            window = TimeConstraint("at", instant_ns(source.since), None, source.since, None)
        resources = None if source.resources is None else tuple(sorted(source.resources))
        names = tuple(sorted(source.fields))
        granted = StreamGrant(key, (source.connection,), names, window, resources)
        return self._grant(f"grt_{index}", SOURCES[key]["source"]["id"], granted)

    def _grant(self, grant_id: str, source_id: str, granted: StreamGrant) -> MemberGrant:
        grant = Grant(
            grant_id=grant_id,
            issued_at="2026-01-01T00:00:00Z",
            subject_id="owner",
            client_id="planner",
            source=SourceId("connector", source_id),
            declaration_version="1",
            purpose_code="https://pdpp.dev/purpose/agent_context",
            access_mode="continuous",
            streams=(granted,),
            expires_at=None,
        )
        return MemberGrant(grant_id, grant, "x", "active")

    def get(self, target: str, authority: ReadAuthority) -> Reply:
        joint = "&" if "?" in target else "?"
        where = f"connection_id={self.persons.connection_id}"
        return self.door.get(f"{target}{joint}{where}", authority)

    def listed(self, authority: ReadAuthority, more: str = "") -> list[Json]:
        """All pages, laid end to end."""
        found: list[Json] = []
        cursor = ""
        while True:
            reply = self.get(f"/v1/streams/persons/records?limit=2{more}{cursor}", authority)
            assert reply.status == 200, reply.body
            found += reply.data
            if not reply.body["has_more"]:
                return found
            cursor = f"&cursor={reply.body['next_cursor']}"

    def answers(self, authority: ReadAuthority, shown: frozenset[str]) -> list[bytes]:
        """Bytes of every kind of read, without the cursors, which are sealed anew each time."""
        targets = [
            "/v1/streams/persons/records?limit=3&count=exact",
            "/v1/streams/persons/records?limit=3&order=desc",
            "/v1/streams/persons/aggregate?metric=count",
            "/v1/streams/persons",
            "/v1/streams",
            "/v1/search?q=Bob&streams%5B%5D=persons",
            "/v1/search?q=x.example&streams%5B%5D=persons",
        ]
        if "address" in shown:
            targets.append("/v1/streams/persons/records?filter%5Baddress%5D=ada%40x.example")
        if "mention_count" in shown:
            targets.append("/v1/streams/persons/records?sort=-mention_count&window=exact")
        found = [self.get(target, authority) for target in targets]
        keys = [person["id"] for person in found[0].data]
        found += [self.get(f"/v1/streams/persons/records/{key}", authority) for key in keys]
        assert [reply.body for reply in found if reply.status != 200] == []
        return [CURSORS.sub(b"", reply.text) for reply in found]


CURSORS = re.compile(rb'"(next_cursor|next)":"[^"]*"')


def checked(bench: Bench, world: World) -> None:
    authority, seen, shown = bench.token()
    persons = expected(world, projected(world.records, seen))
    wanted = [{name: p[name] for name in shown} for p in persons]
    assert [each["data"] for each in bench.listed(authority)] == wanted
    down = bench.listed(authority, "&order=desc")
    assert [each["data"] for each in down] == wanted[::-1]
    counted = bench.get("/v1/streams/persons/records?count=exact&limit=1", authority)
    assert counted.body["meta"]["count"]["value"] == len(persons)
    for person in persons:
        one = bench.get(f"/v1/streams/persons/records/{person['id']}", authority)
        assert one.body["data"] == {name: person[name] for name in shown}
    nobody = bench.get("/v1/streams/persons/records/per_000000000000000000000000", authority)
    assert nobody.code == "not_found"
    if {"name", "address"} & shown:
        _check_found(bench, authority, persons, shown)
    refused = bench.get("/v1/streams/persons/records?changes_since=beginning", authority)
    assert refused.code == "invalid_request"
    assert MARK not in json.dumps([each["data"] for each in down])


def _check_found(
    bench: Bench, authority: ReadAuthority, persons: list[Json], shown: frozenset[str]
) -> None:
    if "name" in shown:
        hits = bench.get("/v1/search?q=Byron&streams%5B%5D=persons&limit=100", authority)
        named = {person["id"] for person in persons if person["name"] == "Ada Byron"}
        assert {hit["id"] for hit in hits.data} == named
    if "address" in shown:
        same = bench.listed(authority, "&filter%5Baddress%5D=ada%40x.example")
        wanted = [p["id"] for p in persons if p["address"] == "ada@x.example"]
        assert [each["id"] for each in same] == wanted


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", worlds(10))
def test_persons_follow_from_what_the_grant_shows(kind: str, seed: int, tmp_path: Path) -> None:
    world = World(random.Random(f"persons {seed}"))
    with open_store(kind, tmp_path) as store:
        bench = Bench(store, world)
        for _ in range(4):
            checked(bench, world)
            bench.write(*world.change())


def restricted(world: World, visible: Places) -> tuple[Any, Any]:
    """What the owner said of identities that are visible."""
    seen = {each[0] for each in mentions(world, visible)}
    return {pair for pair in world.merged if {*pair} <= seen}, world.parted & seen


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", worlds(10))
def test_nothing_hidden_changes_a_byte_about_persons(kind: str, seed: int, tmp_path: Path) -> None:
    world = World(random.Random(f"hidden {seed}"))
    hidden_writes = 0
    with open_store(kind, tmp_path) as store:
        bench = Bench(store, world)
        authority, seen, shown = bench.token()
        visible = projected(world.records, seen)
        before = bench.answers(authority, shown)
        first = bench.get("/v1/streams/persons/records?limit=2", authority)
        for _ in range(150):
            place, data = world.change()
            after = {**world.records, place: data}
            kept = {each: value for each, value in after.items() if value is not None}
            if projected(kept, seen) == visible:
                bench.write(place, data)
                hidden_writes += 1
        said_before = restricted(world, visible)
        for _ in range(20):
            merged, parted = set(world.merged), set(world.parted)
            world.say()
            if restricted(world, visible) != said_before:
                world.merged, world.parted = merged, parted
        bench.correct()
        assert bench.answers(authority, shown) == before
        if first.body["has_more"]:
            cursor = first.body["next_cursor"]
            rest = bench.get(f"/v1/streams/persons/records?limit=2&cursor={cursor}", authority)
            assert rest.data == bench.listed(authority)[2:4]
    assert hidden_writes > 0
