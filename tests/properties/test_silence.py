"""The rule of silence: somebody is told of changes exactly if the feed since then has an item.

`PDPP_SILENCE_WORLDS` sets how many worlds are generated, `PDPP_SILENCE_STORES` at which stores.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest

from personal_server.domain.authority import ReadAuthority
from personal_server.reading.changes import COUNTED_NEWS, news_after
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door
from tests.properties.comparing import apply, authority, furnish
from tests.properties.reference import Json, Reader, same
from tests.properties.sizes import long_after
from tests.properties.stores import open_store
from tests.properties.worlds import TokenSpec, World, make_token, make_world

WORLDS = int(os.getenv("PDPP_SILENCE_WORLDS", "60"))
NAMED = os.getenv("PDPP_SILENCE_STORES", "")
STORES = (NAMED or "sqlite,postgres").split(",")
# Where no store is named most worlds are seen by the quicker one.
CASES = [
    pytest.param(kind, seed, marks=long_after(seed, WORLDS, "PDPP_SILENCE_WORLDS"))
    for kind in STORES
    for seed in range(WORLDS if NAMED or kind == "sqlite" else -(-WORLDS // 60))
]
TOKENS, WRITES = 5, 24
# of so many pairs one is asked over the route as well
ASKED = 12

Place = tuple[str, str]
Visible = dict[str, Json]


@dataclass
class Past:
    """What a token saw of each place after each write, and what each write let it notice."""

    states: dict[Place, list[Visible]]

    def items(self, place: Place, since: int) -> int:
        """How many records a feed of a place tells, from the state with that number on."""
        states = self.states[place]
        noticed = {
            key
            for before, after in zip(states[since:], states[since + 1 :], strict=False)
            for key in before.keys() | after.keys()
            if not same(before.get(key), after.get(key))
        }
        return len({key for key in noticed if key in states[-1] or key in states[since]})


def past_of(worlds: list[World], token: TokenSpec) -> Past:
    states: dict[Place, list[Visible]] = {}
    for world in worlds:
        reader = Reader(world, token)
        for source in reader.authority.sources:
            rows = {row.key: row.data for row in reader.visible(source)}
            states.setdefault((source.connection, source.stream), []).append(rows)
    return Past(states)


def grown(store: RecordStore, world: World) -> tuple[list[World], list[int]]:
    """The world after each of some writes, and the number of its newest change."""
    worlds, numbers = list[World](), list[int]()
    for turn in range(WRITES + 1):
        if turn:
            apply(store, world.write(1))
        worlds.append(World(world.seed, world.rng, world.statuses, list(world.writes)))
        with store.snapshot() as snapshot:
            numbers.append(snapshot.horizon)
    return worlds, numbers


@pytest.mark.parametrize(("kind", "seed"), CASES)
def test_what_is_told_is_what_the_feed_has(kind: str, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    world = make_world(seed, writes=40)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        worlds, numbers = grown(store, world)
        for _ in range(TOKENS):
            token = make_token(world)
            check_token(Door(store), rng, authority(world, token), past_of(worlds, token), numbers)


def check_token(
    door: Door, rng: random.Random, reads: ReadAuthority, past: Past, numbers: list[int]
) -> None:
    with door.store.snapshot() as snapshot:
        assert {(s.connection_id, s.stream) for s in reads.sources} == set(past.states)
        for place in past.states:
            for turn in rng.sample(range(WRITES + 1), 10):
                told = news_after(door.ports, snapshot, reads, place, numbers[turn])
                items = past.items(place, turn)
                assert (0 if told is None else told.count) == min(items, COUNTED_NEWS)
                assert told is None or place in snapshot.changed_after(numbers[turn])
                if told is not None and rng.randrange(ASKED) == 0:
                    assert len(asked(door, reads, place, told.bookmark)) == items


def asked(door: Door, reads: ReadAuthority, place: Place, bookmark: str) -> list[Json]:
    connection_id, stream = place
    since = quote(bookmark, safe="")
    target = f"/v1/streams/{stream}/records?limit=100&connection_id={connection_id}"
    reply = door.get(f"{target}&changes_since={since}", reads)
    assert reply.status == 200, reply.body
    return reply.data


@pytest.mark.parametrize("kind", STORES)
def test_where_changes_are_forgotten_the_beginning_is_told(kind: str, tmp_path: Path) -> None:
    world = make_world(3, writes=40)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        store.prune_history(2**62)
        door, reads = Door(store), authority(world, TokenSpec("owner"))
        with store.snapshot() as snapshot:
            told = news_after(door.ports, snapshot, reads, ("cin_a1", "notes"), 1)
        assert told is not None
        assert told.bookmark == "beginning"


@pytest.mark.parametrize("kind", STORES)
def test_what_cannot_be_read_is_silent(kind: str, tmp_path: Path) -> None:
    world = make_world(3, writes=40)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        door, token = Door(store), make_token(world)
        reads = authority(world, token)
        with store.snapshot() as snapshot:
            for place in (("cin_nobody", "notes"), ("cin_a1", "nothing")):
                assert news_after(door.ports, snapshot, reads, place, 0) is None
