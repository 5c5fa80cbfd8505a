"""Signs of passages in blocks, of which thousands are compared in one pass.

A block covers a stretch of ids and holds the signs of all passages of a field in it.  Blocks follow
from the vectors: they are made when nothing is left to be embedded (`pack`), where the
database is in this process, and a passage that comes or goes takes its block along (`unpack`).
What no block covers is compared line by line.

Rule: a block is read only where everything in its stretch is visible.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from personal_server.storage.sql.compiler import MAX_ID
from personal_server.storage.sql.driver import Line, Session
from personal_server.storage.sql.fixed_tables import PassageBlockRow, PassageRow
from personal_server.storage.sql.statements import insert

PACKED_TOGETHER = 2_048
# Fewer, between two blocks or behind the last, stay as they are.
FEWEST_PACKED = 512

Stretch = tuple[int, int]
"""Ids from the first to the last."""
EVERYTHING: Stretch = (-MAX_ID, MAX_ID)

_OF_FIELD = f"FROM {PassageBlockRow.table} WHERE tables = ? AND field = ?"
_COVERED = f"SELECT first, last {_OF_FIELD} ORDER BY last"
_INSIDE = f"SELECT first, last, ids, signs {_OF_FIELD} AND first > ? AND last < ? ORDER BY last"
_UNPACK = (
    f"DELETE {_OF_FIELD} AND first <= ? AND last = (SELECT min(last) {_OF_FIELD} AND last >= ?)"
)
_IN_STRETCH = f"FROM {PassageRow.table} WHERE tables = ? AND field = ? AND id >= ? AND id <= ?"
_VECTORS = f"SELECT id, vector {_IN_STRETCH} ORDER BY id, place LIMIT ?"
_COUNT = f"SELECT count(*) FROM (SELECT 1 {_IN_STRETCH} LIMIT ?) AS met"  # noqa: S608


def can_pack(session: Session) -> bool:
    """Whether blocks are made and read here."""
    return session.dialect.packs


def unpack(session: Session, tables: int, field_ids: Collection[tuple[str, int]]) -> None:
    """Forget the blocks that passages of records are in, as (field, id)."""
    if session.dialect.packs:
        lists = [(tables, field, number) for field, number in field_ids]
        session.many(_UNPACK, [parameters * 2 for parameters in lists])


def unpacked(session: Session, tables: int, field: str) -> Stretch | None:
    """The first stretch of a field whose passages are enough for a block."""
    for stretch in uncovered(session.rows(_COVERED, (tables, field))):
        if session.value(_COUNT, (tables, field, *stretch, FEWEST_PACKED)) == FEWEST_PACKED:
            return stretch
    return None


def pack(session: Session, tables: int, field: str, stretch: Stretch) -> None:
    """A block from the beginning of a stretch that no other covers."""
    from personal_server.storage.packed_signs import packed  # noqa: PLC0415 (numpy takes long)

    first, last = stretch
    lines = session.rows(_VECTORS, (tables, field, first, last, PACKED_TOGETHER + 1))
    if len(lines) > PACKED_TOGETHER:  # a record's passages stay together
        beyond = lines[-1][0]
        lines = [line for line in lines if line[0] != beyond]
        last = lines[-1][0]
    elif last == MAX_ID:
        last = lines[-1][0]
    session.run(insert(PassageBlockRow), (tables, field, last, first, *packed(lines)))


def nearest_in_blocks(
    session: Session, tables: int, field: str, between: Stretch, signs: bytes, most: int
) -> tuple[list[tuple[int, int]], list[Stretch]]:
    """The nearest passages of the blocks that lie between two ids, as (how many signs differ, id),
    and the stretches that are in none of these blocks.
    """
    if not can_pack(session):
        return [], [EVERYTHING]
    from personal_server.storage.packed_signs import nearest_packed  # noqa: PLC0415 (numpy takes long)

    covered: list[Stretch] = []

    def blocks() -> Iterator[tuple[bytes, bytes]]:
        for first, last, ids, signs in session.run(_INSIDE, (tables, field, *between)):
            session.check()
            covered.append((first, last))
            yield ids, signs

    near = nearest_packed(blocks(), signs, most)
    return near, list(uncovered(covered))


def uncovered(covered: Iterable[Line | Stretch]) -> Iterator[Stretch]:
    """What lies between stretches, which stand in their order, before and behind them."""
    begin = -MAX_ID
    for first, last in covered:
        if begin < first:
            yield begin, first - 1
        begin = last + 1
    if begin <= MAX_ID:
        yield begin, MAX_ID
