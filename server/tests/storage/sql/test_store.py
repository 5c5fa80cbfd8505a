"""SQLite answers every plan as the memory store does, while writes go on."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from random import Random
from typing import Any, cast

import msgspec
import orjson
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import instant_ns
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.search_words import tokens
from personal_server.enforcement.plans import SearchPlan, TimelinePlan
from personal_server.enforcement.scopes import TimedScope
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.sql.reads import changes, figures, pages, segments
from personal_server.storage.sql.records import writes
from server.tests.storage.conftest import BY_DATABASE, Opened
from server.tests.storage.plans_at_random import (
    BLOB_BYTES,
    CONNECTIONS,
    KEYS,
    file,
    note,
    question,
    renewed_at_random,
)
from server.tests.storage.worlds import FILES_STREAM, condition, furnish, order, scope, write
from server.tests.storage.worlds import note as plain_note
from tests.oracle.memory import MemoryStore

# A seed says little when it shrinks; it is the example.
AT_RANDOM = settings(max_examples=10, phases=[Phase.generate])
# Each run draws other worlds, and the properties draw theirs on both databases.
A_THIRD = pytest.mark.parametrize(
    "third", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))]
)


def plain(value: Any) -> Any:
    """Values as data, with the types of numbers kept apart."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {str(key): plain(members[key]) for key in sorted(members)}
    if isinstance(value, list | tuple):
        return [plain(each) for each in cast("Iterable[Any]", value)]
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 2**63 else float(value)  # far from our days: to 32 µs
    return orjson.dumps(value, default=str).decode()


def write_at_random(
    random: Random, stores: list[RecordStore], clock: int, *, prunes: bool = True
) -> None:
    connection_id = random.choice(CONNECTIONS)
    match random.randint(0, 12 if prunes else 11):
        case 12:
            before = random.choice((0, clock - 2_000))
            done = [store.prune_history(before) for store in stores]
        case 11:
            renewed = renewed_at_random(random, str(clock))
            raw = orjson.dumps(renewed.raw)
            done = [store.put_declaration(renewed, raw, clock) for store in stores]
        case 10:
            content = random.choice(BLOB_BYTES)
            done = [
                store.receive_blob(connection_id, [content], "text/plain", clock, 99)
                for store in stores
            ]
        case 0:
            done = [store.delete_stream(connection_id, "notes", clock) for store in stores]
        case 1:
            key = random.choice(KEYS)
            done = [store.delete_record(connection_id, "notes", key, clock) for store in stores]
        case 2:
            files: list[Any] = [file(random) for _ in range(random.randint(1, 4))]
            done = [
                write(store, connection_id, files, stream=FILES_STREAM, now=clock)
                for store in stores
            ]
        case _:
            lines: list[Any] = [
                random.choice(KEYS) if random.random() < 0.2 else note(random)
                for _ in range(random.randint(1, 6))
            ]
            emitted = random.randint(1, 50) * 1_000
            done = [
                write(store, connection_id, lines, emitted=emitted, now=clock) for store in stores
            ]
    assert done[0] == done[1]


@BY_DATABASE
@A_THIRD
@AT_RANDOM
@given(seed=st.integers(0, 2**32))
def test_every_plan_has_the_same_answer_on_both_stores(
    seed: int, third: int, opened: Opened
) -> None:
    del third
    compare_at_random(Random(seed), opened)


def compare_at_random(random: Random, opened: Opened) -> None:
    with tempfile.TemporaryDirectory() as directory, opened(Path(directory)) as fast:
        stores: list[RecordStore] = [MemoryStore(), fast]
        for store in stores:
            furnish(store, *CONNECTIONS)
        for clock in range(1, random.randint(2, 13)):
            write_at_random(random, stores, clock * 1_000)
            compare(random, stores)


@BY_DATABASE
@pytest.mark.parametrize("down", [False, True])
def test_words_are_found_at_an_instant_beyond_64_bits(
    opened: Opened, tmp_path: Path, *, down: bool
) -> None:
    forever = "9999-12-31T23:59:59Z"  # what calendars write where an entry never ends
    said = WordQuery((Term(("heavy",)),))
    window = TimeConstraint("at", instant_ns(forever), None)
    with opened(tmp_path) as store:
        furnish(store, "cin_a")
        write(store, "cin_a", [plain_note("n1", forever, body="Heavy rain")])
        asked = condition("at", Operator.GTE, forever)
        line = TimelinePlan(
            (TimedScope(scope(), order("at", down=down), (asked,)),), down, 3, None, said
        )
        limited = TimelinePlan(
            (TimedScope(scope(window=window), order("at", down=down)),), down, 3, None, said
        )
        with store.snapshot() as snapshot:
            for plan in (line, limited):
                assert [each.row.key for each in snapshot.timeline(plan).rows] == ["n1"]


@BY_DATABASE
@A_THIRD
@AT_RANDOM
@given(seed=st.integers(0, 2**32))
def test_the_ways_of_large_archives_give_the_same_answers(
    seed: int, third: int, opened: Opened
) -> None:
    del third
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "FEW", 2)
        patch.setattr(segments, "CROWDED", -1)
        patch.setattr(changes, "WALKED_AT_ONCE", 2)
        patch.setattr(figures, "WALKED_AT_ONCE", 2)
        patch.setattr(writes, "FLUSHED_AT", 2)
        compare_at_random(Random(seed), opened)


def compare(random: Random, stores: list[RecordStore]) -> None:
    with stores[0].snapshot() as slow, stores[1].snapshot() as fast:
        assert slow.horizon == fast.horizon
        assert slow.retained_from == fast.retained_from
        for _ in range(12):
            ask = question(random, slow.retained_from, slow.horizon)
            assert plain(ask(fast)) == plain(ask(slow)), _told(ask)


def _told(ask: Any) -> str:
    return "\n".join(repr(cell.cell_contents) for cell in ask.__closure__ or ())


@BY_DATABASE
def test_every_token_of_any_text_finds_it(opened: Opened, tmp_path: Path) -> None:
    """Also where a record held other words before, of an earlier example."""
    with opened(tmp_path) as store:
        furnish(store, "cin_a")

        @settings(max_examples=60)
        @given(texts=st.lists(st.text(), min_size=1, max_size=4))
        def of_texts(texts: list[str]) -> None:
            write(store, "cin_a", [plain_note(str(i), body=text) for i, text in enumerate(texts)])
            with store.snapshot() as snapshot:
                for number, text in enumerate(texts):
                    for token in tokens(text):
                        found = snapshot.search(
                            SearchPlan((scope("cin_a"),), WordQuery((Term((token,)),)))
                        )
                        assert str(number) in {candidate.key for candidate in found.candidates}

        of_texts()
