"""Reading one record by its key.

Source: docs/contract/resource-server.md 9.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import msgspec

from pdpp_kernel.errors import DamagedRecord, NotFound
from pdpp_kernel.record import StoredRecord
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.ambiguity import ambiguous
from personal_server.enforcement.authorize import authorize_record
from personal_server.enforcement.disclose import (
    Record,
    discloser,
    granted_value,
)
from personal_server.enforcement.local_times import clock_of
from personal_server.enforcement.queries import FieldSelection, RecordQuery
from personal_server.enforcement.timeline import time_field
from personal_server.reading.expansions import expand
from personal_server.storage.damage import MEND_RECORDS
from personal_server.storage.ports.snapshots import ReadSnapshot

_TITLE_CHARS = 200


class NamedRecord(Record, kw_only=True):
    """A record with the time and the title that its fields tell.

    Source: docs/contract/resource-server.md 9.1.
    """

    component: ClassVar = "NamedRecord"

    at: str | None = None
    title: str | None = None


def read_record(snapshot: ReadSnapshot, authority: ReadAuthority, query: RecordQuery) -> ReadResult:
    """One record.

    Raises: what `authorize_record` raises, NotFound, AmbiguousConnection.
    """
    read = authorize_record(authority, query)
    row = the_one(snapshot, authority, read.sources, snapshot.record(read.plan))
    expansions = expand(snapshot, authority, read.expansions, [row])
    source = next(s for s in read.sources if s.connection_id == row.connection_id)
    shown = read.shown[source.connection_id]
    record = discloser(authority, source, shown)(row)
    meta: dict[str, object] = {}
    if query.time_zone is not None:
        record = _named(record, source, row, query)
        meta["time_zone"] = query.time_zone
    if read.expansions:
        record.expanded = expansions.by_parent[row.connection_id, row.key]
    disclosed = [Disclosed(source, shown, 1, (row.key,)), *expansions.disclosed([row])]
    return ReadResult(data=record, warnings=read.warnings, meta=meta, disclosed=disclosed)


def _named(
    record: Record, source: ReadableSource, row: StoredRecord, query: RecordQuery
) -> NamedRecord:
    """The record with its time, what clocks of the zone say of it, and its title.

    Only whole: of one of which fields were asked for, they say nothing.
    """
    members = msgspec.structs.asdict(record)
    if query.cut == FieldSelection():
        time = time_field(source)
        at = granted_value(row, source, None if time is None else time.name)
        title = granted_value(row, source, source.declared.title_field)
        members["when"] = clock_of(source, query.time_zone, source.fields)(row)
        members["at"] = at if isinstance(at, str) else None
        if isinstance(title, str) and title.strip():
            members["title"] = title[:_TITLE_CHARS]
    return NamedRecord(**members)


def the_one(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    sources: Sequence[ReadableSource],
    rows: Sequence[StoredRecord],
) -> StoredRecord:
    """The only visible row with a key.

    Raises: NotFound (hidden and absent alike), DamagedRecord, AmbiguousConnection naming
        exactly the holders.
    """
    if not rows:
        raise no_such_record(snapshot)
    if len(rows) > 1:
        holders = {row.connection_id for row in rows}
        raise ambiguous(
            authority, [s for s in sources if s.connection_id in holders], rows[0].stream
        )
    return rows[0]


def no_such_record(snapshot: ReadSnapshot) -> NotFound | DamagedRecord:
    """The one answer for records that are absent, deleted or hidden, and that for damaged ones."""
    if snapshot.damaged:
        return DamagedRecord(MEND_RECORDS)
    return NotFound("There is no such record here.")
