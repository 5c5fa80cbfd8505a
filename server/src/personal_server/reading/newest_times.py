"""The times of the newest and of the oldest record of a stream, as whoever reads may see them."""

from __future__ import annotations

from typing import Any

import msgspec

from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import FieldSelection, RecordsQuery, Selectors
from personal_server.enforcement.timeline import time_field
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import read_records
from personal_server.storage.ports.snapshots import ReadSnapshot


def newest_time(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    source: ReadableSource,
    filters: tuple[FilterText, ...] = (),
) -> str | None:
    """The latest value of the stream's `time_field` among records that these filters let through.

    Shapes: as it is stored, an instant or a day; `None` where no record has one, or none may be
    seen or sorted by.
    Raises: what `read_records` raises.
    """
    return _first_time(ports, snapshot, authority, source, "-", filters)


def oldest_time(
    ports: ReadPorts, snapshot: ReadSnapshot, authority: ReadAuthority, source: ReadableSource
) -> str | None:
    """The earliest value of the stream's `time_field`, as `newest_time` the latest."""
    return _first_time(ports, snapshot, authority, source, "")


def _first_time(
    ports: ReadPorts,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    source: ReadableSource,
    sign: str,
    filters: tuple[FilterText, ...] = (),
) -> str | None:
    """The time of the first record in an order by time, or against it (`-`): a step in an index."""
    dated = time_field(source)
    if dated is None:
        return None
    query = RecordsQuery(
        source.stream,
        Selectors(source.connection_id),
        limit=1,
        sort=f"{sign}{dated.name}",
        filters=filters,
        cut=FieldSelection((dated.name,)),
    )
    answer = read_records(ports, snapshot, authority, query)
    first: list[dict[str, Any]] = msgspec.json.decode(msgspec.json.encode(answer.data))
    value = first[0]["data"].get(dated.name) if first else None
    return value if isinstance(value, str) else None
