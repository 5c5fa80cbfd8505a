"""Blocks of signs: which stretches they cover, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pdpp_kernel.vectors import signs_of
from personal_server.storage.sql.compiler import MAX_ID
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.records import sign_blocks
from personal_server.storage.sql.records.sign_blocks import EVERYTHING, Stretch
from tests.new_files import new_file

TABLES, FIELD = 3, "body"
# in how many of 64 dimensions the vector of each id lies on the other side
APART = {10: 5, 20: 1, 30: 9, 40: 1, 50: 3, 60: 2, 70: 7}


def vector(other: int) -> bytes:
    return bytes([255] * other + [1] * (64 - other))


@pytest.fixture
def session(tmp_path: Path, small_blocks: None) -> Iterator[Session]:
    database = new_file(tmp_path / "records.db")
    with database.write() as opened:
        for number, apart in APART.items():
            put(opened, number, apart)
        yield opened
    database.close()


def put(session: Session, number: int, apart: int, place: int = 0, field: str = FIELD) -> None:
    session.run(
        "INSERT INTO passages (tables, field, id, place, start, stop, vector)"
        " VALUES (?, ?, ?, ?, 0, 1, ?)",
        (TABLES, field, number, place, vector(apart)),
    )


def pack_all(session: Session) -> list[Stretch]:
    packed: list[Stretch] = []
    while (stretch := sign_blocks.unpacked(session, TABLES, FIELD)) is not None:
        sign_blocks.pack(session, TABLES, FIELD, stretch)
        packed.append(stretch)
    return packed


def blocks(session: Session) -> list[tuple[int, int, int]]:
    lines = session.rows("SELECT first, last, length(ids) FROM passage_blocks ORDER BY last")
    return [(first, last, size // 8) for first, last, size in lines]


@pytest.mark.parametrize(
    ("covered", "expected"),
    [
        ([], [EVERYTHING]),
        ([(3, 5)], [(-MAX_ID, 2), (6, MAX_ID)]),
        ([(3, 5), (6, 9), (11, 11)], [(-MAX_ID, 2), (10, 10), (12, MAX_ID)]),
        ([(-MAX_ID, 4)], [(5, MAX_ID)]),
        ([(-MAX_ID, 4), (6, MAX_ID)], [(5, 5)]),
        ([(7, MAX_ID - 1)], [(-MAX_ID, 6), (MAX_ID, MAX_ID)]),
        ([EVERYTHING], []),
    ],
)
def test_what_lies_between(covered: list[Stretch], expected: list[Stretch]) -> None:
    assert list(sign_blocks.uncovered(covered)) == expected


def test_blocks_are_made_until_too_few_are_left(session: Session) -> None:
    assert sign_blocks.can_pack(session)
    assert pack_all(session) == [EVERYTHING, (41, MAX_ID)]
    assert blocks(session) == [(-MAX_ID, 40, 4), (41, 70, 3)]
    put(session, 80, 1)
    assert pack_all(session) == []
    put(session, 90, 1)
    assert pack_all(session) == [(71, MAX_ID)]
    assert blocks(session)[2:] == [(71, 90, 2)]


def test_the_passages_of_a_record_stay_together(session: Session) -> None:
    put(session, 40, 8, place=1)
    assert pack_all(session)[1:] == [(31, MAX_ID)]
    assert blocks(session) == [(-MAX_ID, 30, 3), (31, 60, 4)]


def test_a_passage_that_comes_or_goes_takes_its_block_along(session: Session) -> None:
    pack_all(session)
    sign_blocks.unpack(session, TABLES, [("title", 10)])
    sign_blocks.unpack(session, TABLES + 1, [(FIELD, 10)])
    sign_blocks.unpack(session, TABLES, [(FIELD, 71)])
    assert len(blocks(session)) == 2
    sign_blocks.unpack(session, TABLES, [(FIELD, 41)])
    assert blocks(session) == [(-MAX_ID, 40, 4)]
    sign_blocks.unpack(session, TABLES, [(FIELD, 40)])
    assert blocks(session) == []


def near(session: Session, between: Stretch, most: int = 3) -> object:
    return sign_blocks.nearest_in_blocks(session, TABLES, FIELD, between, signs_of(vector(0)), most)


def test_of_the_blocks_in_a_stretch_the_nearest_are_found(session: Session) -> None:
    pack_all(session)
    beyond = (-MAX_ID - 1, MAX_ID)
    assert near(session, beyond) == ([(1, 40), (1, 20), (2, 60)], [(71, MAX_ID)])
    # a block that reaches beyond it is not read
    assert near(session, (40, 71)) == ([(2, 60), (3, 50), (7, 70)], [(-MAX_ID, 40), (71, MAX_ID)])
    assert near(session, (40, 70)) == ([], [EVERYTHING])
    assert near(session, (41, 71)) == ([], [EVERYTHING])
    assert near(session, beyond, most=1) == ([(1, 40)], [(71, MAX_ID)])


def test_as_many_as_one_block_holds_are_one(session: Session) -> None:
    put(session, 80, 1)
    assert pack_all(session) == [EVERYTHING, (41, MAX_ID)]
    assert blocks(session) == [(-MAX_ID, 40, 4), (41, 80, 4)]
