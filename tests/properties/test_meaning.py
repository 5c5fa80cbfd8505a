"""What is found by meaning equals a brute-force comparison of everything that the grant shows.

The embedder is tiny and takes some words for alike, so that hits by words and by meaning differ.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from personal_server.domain.declaration_document import parse_declaration
from personal_server.semantics.index import PassageIndex
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.records import sign_blocks
from server.tests.resource_server.door import Door, Reply
from server.tests.semantics.tiny import TinyEmbedder, vector_of
from tests.properties import hits
from tests.properties.comparing import DECLARATIONS, Session, furnish
from tests.properties.meaning import Term, wanted_of
from tests.properties.reference import Json, Reader, Refused, Row, filter_errors, filtered
from tests.properties.requests import Ask
from tests.properties.sizes import worlds
from tests.properties.stores import STORES, open_store
from tests.properties.timeline import is_within, named_sources, time_of
from tests.properties.worlds import (
    MOODS,
    SOURCES,
    STREAM_NOTES,
    STREAMS,
    WORDS,
    make_token,
    make_world,
)

TOKENS, ASKS = 6, 8
FARTHEST = 0.92
DAYS = ("2026-01-01", "2026-01-03", "2026-03-29T00:30:00Z")
ASKED = ("dog", "weather", "wet", "letter", *WORDS)
FIELDS: list[str] = STREAM_NOTES["query"]["search"]["semantic_fields"]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few passages are enough for a block of signs."""
    monkeypatch.setattr(sign_blocks, "FEWEST_PACKED", 2)
    monkeypatch.setattr(sign_blocks, "PACKED_TOGETHER", 3)


@pytest.mark.parametrize("searched", [["title", "body"], ["mood", "body"]])
@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", worlds(6))
def test_a_search_by_meaning_is_exactly_what_the_grant_lets_through(
    kind: str,
    seed: int,
    searched: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # where moods are searched, which say who wrote, questions name some
    for key, raw in SOURCES.items():
        monkeypatch.setitem(STREAMS[key, "notes"]["query"]["search"], "lexical_fields", searched)
        monkeypatch.setitem(DECLARATIONS, key, parse_declaration(raw))
    asked = (*ASKED, *MOODS[:4]) if "mood" in searched else ASKED
    world = make_world(seed)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        embed(store)
        door = Door(store, embedder=TinyEmbedder())
        for turn in range(TOKENS):
            session = Session(door, world, make_token(world))
            rng = random.Random(f"meaning {seed}/{turn}")
            for _ in range(ASKS):
                ask = make_ask(rng, asked)
                try:
                    check(session, ask)
                except AssertionError as failure:
                    failure.add_note(f"{kind} {ask.target}\n{session.token}")
                    raise


def embed(store: RecordStore) -> None:
    """Everything there is."""
    index = PassageIndex(store, KnownDeclarations(), TinyEmbedder, sleep=lambda _: None)
    for _ in range(4):
        index()


def make_ask(rng: random.Random, asked: Sequence[str]) -> Ask:
    """Plain words, and now and then what narrows a search."""
    words = rng.choices(asked, k=rng.randint(1, 3))
    scalars = {"q": " ".join(words), "mode": rng.choice(("meaning", "hybrid"))}
    if rng.random() < 0.5:
        scalars["limit"] = str(rng.choice((1, 2, 3, 100)))
    if rng.random() < 0.25:
        scalars["since"] = rng.choice(DAYS)
    if rng.random() < 0.25:
        filters = (("mood", None, rng.choice(("calm", "wild"))),)
        return Ask("search", "notes", None, scalars, filters, streams=("notes",))
    return Ask("search", "notes", None, scalars)


def check(session: Session, ask: Ask) -> None:
    """Hits in their order on all pages, counts, and nothing hidden in any byte."""
    reply = session.door.get(ask.target, session.authority)
    session.no_leak(reply)
    try:
        by_words = hits.expected_search(session.reader, ask)
    except Refused as refused:
        session.same_refusal(refused, reply)
        return
    is_hybrid = ask.scalars["mode"] == "hybrid"
    near = nearest(session.reader, ask, by_words.authors if is_hybrid else [])
    expected = joined(session.reader, by_words, near, ask) if is_hybrid else near
    assert reply.status == 200, reply.body
    meta = reply.body["meta"]
    assert meta["count"]["value"] == len(expected)
    assert meta["recall"].get("unembedded_record_count", 0) == 0
    assert meta.get("relaxed") == (by_words.relaxed if is_hybrid else None)
    first = hits.first_page(expected, int(ask.scalars.get("limit", "25")))
    rest = [hit for hit in expected if not any(hit is each for each in first)]
    fields = {place(hit.row): hit.matched for hit in near}
    shown = list(walked(session, reply))
    assert [told_place(hit) for hit in shown] == [place(hit.row) for hit in first + rest]
    for hit in shown:
        if not is_hybrid or hit.get("retrieval_sources") == ["semantic"]:
            assert set(hit["matched_fields"]) == fields[told_place(hit)]


def walked(session: Session, reply: Reply) -> Iterator[Json]:
    """The hits of a page and of those behind it."""
    yield from reply.data
    while reply.body["has_more"]:
        reply = session.door.get(reply.body["links"]["next"], session.authority)
        session.no_leak(reply)
        yield from reply.data


def nearest(reader: Reader, ask: Ask, authors: list[Term]) -> list[hits.Found]:
    """11.6: records by their nearest passage in a granted semantic field; names are left out."""
    pieces = ask.scalars["q"].split()
    said = [each for each in pieces if wanted_of(each).terms[0] not in authors] or pieces
    asked = vector_of(" ".join(said))
    found: list[hits.Found] = []
    for source in named_sources(reader, ask):
        fields = [name for name in FIELDS if name in source.fields]
        if source.stream != "notes" or filter_errors(reader, [source], ask.filters):
            continue
        if "since" in ask.scalars and time_of(source) is None:
            continue
        for row in filtered(reader, [source], ask.filters):
            if "since" in ask.scalars and not is_within(row, ask):
                continue
            texts = {name: row.data.get(name) or "" for name in fields}
            apart = [
                (distance(asked, vector_of(text)), name)
                for name, text in texts.items()
                if sum(map(str.isalnum, text)) >= 3
            ]
            if apart and min(apart)[0] <= FARTHEST:
                least, name = min(apart)
                found.append(hits.Found(row, least, {name}, []))
    return sorted(found, key=hits.hit_place)


def joined(
    reader: Reader, by_words: hits.Expected, near: list[hits.Found], ask: Ask
) -> list[hits.Found]:
    """11.6: what holds all terms, then what holds some and what is near, by their weight."""
    terms, authors = len(wanted_of(ask.scalars["q"]).terms), by_words.authors
    whole = [hit for hit in by_words.hits if hit.words is None or len(hit.words) == terms]
    some = {place(hit.row): hit for hit in by_words.hits if not any(hit is each for each in whole)}
    folded = {place(hit.row) for hit in by_words.folded}
    apart = {place(hit.row): hit for hit in near if place(hit.row) not in folded}
    least = min((hit.score for hit in apart.values()), default=0.0)
    shares = {
        known: (FARTHEST - hit.score) / (FARTHEST - least) if least != FARTHEST else 1.0
        for known, hit in apart.items()
    }
    best = min((hit.score for hit in some.values()), default=0.0)

    def by_words_of(hit: hits.Found) -> float:
        known = place(hit.row)
        return some[known].score / best if known in some else 0.0

    def in_hour(hit: hits.Found, other: hits.Found) -> bool:
        apart_ns = hits.hit_place(hit)[1] - hits.hit_place(other)[1]
        alike = hits.conversation(hit.row) == hits.conversation(other.row)
        return alike and abs(apart_ns) <= 3_600 * 10**9

    def weight(hit: hits.Found) -> float:
        held, meant = by_words_of(hit), shares.get(place(hit.row), 0.0)
        if hits.conversation(hit.row) is None:
            return held + 0.7 * meant
        for share, other in zip((0.6, 0.4), hits.beside(reader, hit.row), strict=True):
            meant += share * (0.0 if other is None else shares.get(place(other), 0.0))
        hour = max(
            (by_words_of(other) for other in some.values() if in_hour(hit, other)), default=0
        )
        words = 0.25 * held + 0.55 * hour + 0.4 * around(hit) + 0.4 * writers(hit)
        return words + 0.45 * meant

    def around(hit: hits.Found) -> float:
        rows = [hit.row]
        for _ in range(2):  # two steps to each side
            rows += [row for each in rows for row in hits.beside(reader, each) if row is not None]
        near = {place(row) for row in rows}
        counted = [other.held for known, other in some.items() if known in near]
        total = sum(weight for _, weight, _ in next(iter(some.values())).held) if some else 0.0
        words = {term: weight for held in counted for term, weight, count in held if count}
        return sum(words.values()) / total if total else 0.0

    def writers(hit: hits.Found) -> float:
        named = [other.held for other in some.values() if talk(other) == talk(hit)]
        terms = {term for other in some.values() for term, _, _ in other.held} & {*authors}
        found = {term for held in named for term, _, count in held if count > 1} & terms
        return len(found) / len(terms) if terms else 0.0

    def talk(hit: hits.Found) -> object:
        return hits.conversation(hit.row)

    def gain(hit: hits.Found) -> float:
        if hits.conversation(hit.row) is None:
            return 0.0
        before, _ = hits.beside(reader, hit.row)
        asked_before = before is not None and "?" in hits.spoken(before)
        return 0.15 * asked_before - 0.1 * hits.spoken(hit.row).rstrip().endswith("?")

    first = {place(hit.row) for hit in whole}
    others = [hit for known, hit in (apart | some).items() if known not in first]
    others.sort(key=lambda hit: (-round(weight(hit), 6), *hits.hit_place(hit)[1:]))
    best_others = others[:30]
    best_others.sort(key=lambda hit: (-round(weight(hit) + gain(hit), 6), *hits.hit_place(hit)[1:]))
    others[:30] = best_others
    return [*whole, *others]


def distance(one: bytes, other: bytes) -> float:
    a, b = ([value - 256 if value > 127 else value for value in each] for each in (one, other))
    lengths = math.hypot(*a) * math.hypot(*b)
    return round(1 - sum(x * y for x, y in zip(a, b, strict=True)) / lengths, 4) if lengths else 1.0


def place(row: Row) -> tuple[str, str, str]:
    return (row.source.connection, row.source.stream, row.key)


def told_place(hit: Json) -> tuple[str, str, str]:
    return (hit["connection_id"], hit["stream"], hit["id"])
