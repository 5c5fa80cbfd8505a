"""A follower of the change feed ends with exactly the visible records, and hears nothing else."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from server.tests.resource_server.door import Door
from tests.properties.comparing import Session, apply, furnish
from tests.properties.reference import Json, Reader, Source, filtered, same
from tests.properties.sizes import worlds
from tests.properties.stores import STORES, open_store
from tests.properties.worlds import TokenSpec, World, make_token, make_world

FILTERED: dict[str, list[tuple[str | None, str]]] = {
    "mood": [(None, "calm"), (None, "wild")],
    "pinned": [(None, "true"), (None, "false")],
    "words": [("gte", "2"), ("lt", "3")],
    "day": [("gte", "2026-01-01")],
    "seen_at": [("lt", "2026-01-03")],
}
Copy = dict[tuple[str, str], Json]


class Follower:
    """Keeps a copy of one connection's or several connections' notes by the feed alone."""

    def __init__(self, session: Session, target: str) -> None:
        self.session = session
        self.target = target
        self.bookmark = "beginning"
        self.forgives = False  # tombstones of records that it never had
        self.copy: Copy = {}

    def follow(self, rng: random.Random, world: World, *, busy: bool) -> set[tuple[str, str]]:
        """Read the feed to its end, perhaps while others write; the items seen."""
        session = self.session
        limit = rng.choice((1, 2, 5, 100))
        changes_since = quote(self.bookmark, safe="")
        size = rng.choice(("", "&page_chars=1", "&page_chars=700&member_chars=20"))
        reply = session.door.get(
            f"{self.target}&limit={limit}&changes_since={changes_since}{size}", session.authority
        )
        seen: set[tuple[str, str]] = set()
        while True:
            assert reply.status == 200, reply.body
            session.reader = Reader(world, session.token)
            session.allowed |= session.allowed_markers()
            session.no_leak(reply)
            self._take(reply.data, seen)
            if not reply.body["has_more"]:
                break
            if busy:
                apply(session.door.store, world.write(3))
                session.allowed |= self._fresh_markers(world)
            assert "next_changes_since" not in reply.body
            reply = session.door.get(reply.body["links"]["next"], session.authority)
        self.bookmark = reply.body["next_changes_since"]
        return seen

    def _take(self, items: list[Json], seen: set[tuple[str, str]]) -> None:
        for item in items:
            place = (item["connection_id"], item["id"])
            assert place not in seen
            seen.add(place)
            if item.get("deleted"):
                assert self.forgives or place in self.copy
                assert "data" not in item
                self.copy.pop(place, None)
            else:
                self.copy[place] = item

    def _fresh_markers(self, world: World) -> set[int]:
        self.session.reader = Reader(world, self.session.token)
        return self.session.allowed_markers()


def visible(session: Session, world: World, sources: list[Source]) -> Copy:
    reader = Reader(world, session.token)
    return {
        (row.source.connection, row.key): reader.record(row)
        for source in sources
        for row in reader.visible(source)
    }


def chosen(session: Session) -> tuple[list[Source], str] | None:
    """The notes that this token can follow in one feed."""
    sources = [s for s in session.reader.authority.sources if s.stream == "notes"]
    if not sources:
        return None
    single = session.token.kind == "mcp_package" or len({s.key for s in sources}) > 1
    if single:
        sources = sources[:1]
        return sources, f"/v1/streams/notes/records?connection_id={sources[0].connection}"
    return sources, "/v1/streams/notes/records?connector_id=" + sources[0].key


def relevant(
    world: World, session: Session, sources: list[Source], begin: int
) -> set[tuple[str, str]]:
    """Records with a change after write number `begin` that these sources can notice."""
    found: set[tuple[str, str]] = set()
    past = World(world.seed, world.rng, world.statuses, world.writes[:begin])
    before = visible_data(past, session.token, sources)
    for write in world.writes[begin:]:
        past.writes.append(write)
        if write.stream != "notes":
            continue
        after = visible_data(past, session.token, sources)
        place = (write.connection_id, write.key)
        if not same(before.get(place), after.get(place)):
            found.add(place)
        before = after
    return found


def visible_data(world: World, token: TokenSpec, sources: list[Source]) -> Copy:
    reader = Reader(world, token)
    return {(s.connection, row.key): row.data for s in sources for row in reader.visible(s)}


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", worlds(share=3))
def test_a_follower_ends_with_exactly_the_visible_records(
    kind: str, seed: int, tmp_path: Path
) -> None:
    world = make_world(seed, writes=60)
    rng = random.Random(seed)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        for _ in range(2):
            session = Session(Door(store), world, make_token(world))
            place = chosen(session)
            if place is None:
                continue
            sources, target = place
            follower = Follower(session, target)
            follower.follow(rng, world, busy=False)
            assert follower.copy == visible(session, world, sources)
            begin = len(world.writes)
            apply(store, world.write(rng.choice((0, 3, 25))))
            seen = follower.follow(rng, world, busy=False)
            assert follower.copy == visible(session, world, sources)
            assert seen <= relevant(world, session, sources, begin)
            follower.follow(rng, world, busy=True)
            follower.follow(rng, world, busy=False)
            assert follower.copy == visible(session, world, sources)


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", worlds(share=3))
def test_a_feed_since_an_instant_is_the_feed_since_a_bookmark_of_then(
    kind: str, seed: int, tmp_path: Path
) -> None:
    world = make_world(seed, writes=60)
    rng = random.Random(seed)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        for _ in range(3):
            session = Session(Door(store), world, make_token(world))
            place = chosen(session)
            if place is None:
                continue
            _, target = place
            apply(store, world.write(rng.choice((0, 3))))
            then = Follower(session, target)
            then.bookmark = "now"
            assert then.follow(rng, world, busy=False) == set()
            at = datetime.fromtimestamp(world.clock_s, UTC).isoformat()
            apply(store, world.write(rng.choice((0, 3, 25))))
            since = Follower(session, target)
            since.bookmark, since.forgives, then.forgives = at, True, True
            found = [each.follow(rng, world, busy=False) for each in (then, since)]
            assert found[0] == found[1]
            assert then.copy == since.copy


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", worlds(share=2))
def test_a_follower_with_a_filter_ends_with_exactly_what_matches(
    kind: str, seed: int, tmp_path: Path
) -> None:
    world = make_world(seed, writes=60)
    rng = random.Random(seed)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        for _ in range(3):
            session = Session(Door(store), world, make_token(world))
            place = chosen(session)
            if place is None:
                continue
            sources, target = place
            granted = [n for n in FILTERED if all(n in s.fields for s in sources)]
            if not granted:
                continue
            field = rng.choice(granted)
            operator, value = rng.choice(FILTERED[field])
            named = f"filter[{field}]" + (f"[{operator}]" if operator else "")
            follower = Follower(session, f"{target}&{named}={quote(value)}")
            follower.forgives = True
            for count in (0, rng.choice((3, 25)), 10):
                apply(store, world.write(count))
                follower.follow(rng, world, busy=False)
                reader = Reader(world, session.token)
                wanted = {
                    (row.source.connection, row.key): reader.record(row)
                    for row in filtered(reader, sources, ((field, operator, value),))
                }
                assert follower.copy == wanted


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", worlds(share=6))
def test_pages_laid_end_to_end_are_the_list_while_others_write(
    kind: str, seed: int, tmp_path: Path
) -> None:
    world = make_world(seed, writes=80)
    rng = random.Random(seed)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        session = Session(Door(store), world, make_token(world))
        place = chosen(session)
        if place is None:
            return
        sources, target = place
        before = visible(session, world, sources)
        limit = rng.choice((1, 2, 5))
        reply = session.door.get(f"{target}&limit={limit}", session.authority)
        shown = [(r["connection_id"], r["id"]) for r in reply.data]
        begin = len(world.writes)
        while reply.body["has_more"]:
            apply(store, world.write(2))
            reply = session.door.get(reply.body["links"]["next"], session.authority)
            assert reply.status == 200, reply.body
            shown += [(r["connection_id"], r["id"]) for r in reply.data]
        touched = {(w.connection_id, w.key) for w in world.writes[begin:] if w.stream == "notes"}
        stable = [each for each in shown if each not in touched]
        assert len(stable) == len(set(stable))
        assert set(before) - touched <= set(stable)
