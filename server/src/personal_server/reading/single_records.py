"""Reading one record by its key.

Source: docs/contract/resource-server.md 9.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from pdpp_kernel.errors import DamagedRecord, NotFound
from pdpp_kernel.record import StoredRecord
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.ambiguity import ambiguous
from personal_server.enforcement.authorize import authorize_record
from personal_server.enforcement.disclose import discloser
from personal_server.enforcement.queries import RecordQuery
from personal_server.reading.expansions import expand
from personal_server.storage.damage import MEND_RECORDS
from personal_server.storage.ports.snapshots import ReadSnapshot


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
    if read.expansions:
        record.expanded = expansions.by_parent[row.connection_id, row.key]
    disclosed = [Disclosed(source, shown, 1, (row.key,)), *expansions.disclosed([row])]
    return ReadResult(data=record, warnings=read.warnings, disclosed=disclosed)


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
