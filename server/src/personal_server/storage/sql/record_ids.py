"""Ids of records: microseconds since 1970 and a slot, so that walking ids is walking time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

import orjson

from pdpp_kernel.values import bound
from personal_server.storage.sql.driver import Session
from personal_server.storage.sql.layout import Layout
from personal_server.storage.tables import ColumnKind

# Places in time: id = microseconds << SLOT_BITS, so that walking ids is walking time.
SLOT_BITS = 5
# A record whose place is taken stands at most so many ids later.
WIDEST_PROBE = 1 << 31


_TIMELESS = -5 * 10**18
# Before every place of a record that has a time.
FIRST_IN_TIME = -3 * 10**18


def place_in_time(placed_ns: int | None, created_at_ns: int, layout: Layout) -> int:
    """Where a record stands in time (`Layout.placed`); without one, before all that have one.

    Streams without times stand in the order of their creation.
    """
    if placed_ns is not None:
        # a column holds instants beyond 64 bits as doubles, which may lie before them
        bounded = bound(placed_ns)
        return (int(bounded) if isinstance(bounded, float) else placed_ns) // 1_000 << SLOT_BITS
    created = created_at_ns // 1_000 << SLOT_BITS
    return created if layout.column(layout.placed) is None else _TIMELESS + created


def free_places(
    session: Session, number: int, keys: Sequence[tuple[int, str]], reserved: Iterable[int] = ()
) -> list[int]:
    """For new records, as (place in time, key), the first free ids near their places.

    Those that are `reserved` will be taken again.
    """
    ids = session.dialect.values("?", ColumnKind.INTEGER)
    find = f"SELECT id FROM r{number} WHERE id IN {ids}"  # noqa: S608
    chosen, used = [at for at, _ in keys], set(reserved)
    waiting, attempt = list(range(len(keys))), 0
    while waiting:
        numbers = orjson.dumps([chosen[n] for n in waiting]).decode()
        used_ids = {line[0] for line in session.rows(find, (numbers,))}
        waiting, before = list[int](), waiting
        for n in before:
            if chosen[n] not in used_ids and chosen[n] not in used:
                used.add(chosen[n])
                continue
            at, key = keys[n]
            chosen[n] = at + crc32(f"{attempt} {key}".encode()) % min(32 << attempt, WIDEST_PROBE)
            waiting.append(n)
        attempt += 1
    return chosen
