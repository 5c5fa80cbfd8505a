"""Evidence for a decision: how many records a review would open, from when, and a few of them.

Rule: what was chosen is counted by the same read road as any read, under the review as authority;
what is not chosen yet shows its stored total, and the values of a limit are counted as the owner.
A figure that does not fit the time says "at least".  Nothing here is stored, logged or recorded;
the values alone are remembered in memory, for one state of the records.
Source: docs/contract/authorization-server.md 7.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from pdpp_kernel.declaration import Stream
from pdpp_kernel.errors import QueryTimeout
from pdpp_kernel.unprinted import Unprinted
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.envelope import ReadResult
from personal_server.domain.grant import LimitValue, Resolved, is_limit_value
from personal_server.enforcement.authority import read_authority
from personal_server.enforcement.queries import AggregateQuery, RecordsQuery, Selectors
from personal_server.reading.aggregates import ShownAggregation, read_aggregate
from personal_server.reading.owner import OwnerReads
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import read_records
from personal_server.storage.known_declarations import KnownDeclarations

BUDGET_SECONDS: Final = 2.0
LEAST_SECONDS: Final = 0.05
SAMPLE_RECORDS: Final = 3
ROUGH_RECORDS: Final = 100
ROUGH_SECONDS: Final = 0.25
VALUES_SECONDS: Final = 0.5
VALUES_SHOWN: Final = 20

StreamKey = tuple[str, str]
"""(connection_id, stream)"""


class Evidence(Unprinted, frozen=True):
    """What approving would let the app read of one stream of one account.

    Shapes: `earliest` and `latest` are stored values of the consent-time field; `samples` hold
        granted fields only.  `at_least`: there may be more than `count`; `synced_at_ns` is the
        end of the last successful collection, if collections are reported.
    """

    count: int
    at_least: bool = False
    earliest: str | None = None
    latest: str | None = None
    synced_at_ns: int | None = None
    samples: tuple[Mapping[str, object], ...] = ()


class HeldValue(msgspec.Struct, frozen=True):
    """A value that a grant could be limited to, and how many records have it."""

    value: LimitValue
    count: int


FieldValues = Mapping[str, tuple[HeldValue, ...]]


class EvidenceReader(Unprinted, frozen=True):
    """Reads evidence from the store.  `monotonic` gives seconds."""

    ports: ReadPorts
    declarations: KnownDeclarations
    monotonic: Callable[[], float] = time.monotonic
    # The values of the newest state of the records, which grouping them all takes its time for.
    remembered: dict[tuple[str, int], dict[object, FieldValues]] = msgspec.field(
        default_factory=dict[tuple[str, int], dict[object, FieldValues]]
    )

    def gather(self, prospective: Resolved) -> dict[StreamKey, Evidence]:
        """The evidence of every readable source, within one budget."""
        until = self.monotonic() + BUDGET_SECONDS
        authority, synced = self._authority(prospective)
        return {
            source.order: replace(
                self._of(authority, source, until), synced_at_ns=synced.get(source.connection_id)
            )
            for source in authority.sources
        }

    def stored_counts(self) -> dict[StreamKey, int]:
        """How many records each stream holds, also those that nobody chose yet."""
        with self.ports.snapshot(BUDGET_SECONDS) as snapshot:
            stored = snapshot.stored_streams()
        return {(found.connection_id, found.stream): found.record_count for found in stored}

    def values(self, connections: Iterable[str], declared: Stream) -> FieldValues:
        """By field the most frequent values that a stream can be limited to, as its owner sees it.

        Shapes: fields that are not counted by value, or not in time, have none.
        """
        with self.ports.snapshot(BUDGET_SECONDS) as snapshot:
            state = snapshot.epoch, snapshot.horizon
        if state not in self.remembered:
            self.remembered.clear()
        known = self.remembered.setdefault(state, {})
        of = (tuple(connections), declared.name, tuple(declared.limiting))
        if of not in known:
            known[of] = self._counted_values(of[0], declared)
        return known[of]

    def _counted_values(self, connections: Iterable[str], declared: Stream) -> FieldValues:
        until = self.monotonic() + VALUES_SECONDS
        reads = OwnerReads(self.ports, self.declarations)
        counted = [name for name in declared.limiting if name in declared.groupable]
        found: dict[str, tuple[HeldValue, ...]] = {}
        for name in counted if declared.aggregations.count else ():
            counts: dict[tuple[bool, LimitValue], int] = {}
            with suppress(QueryTimeout):
                for connection_id in connections:
                    left = until - self.monotonic()
                    if left < LEAST_SECONDS:
                        return found
                    with reads.open(left) as (snapshot, authority):
                        asked = _by_value(declared.name, connection_id, name)
                        answer = read_aggregate(self.ports, snapshot, authority, asked)
                    for each in cast("ShownAggregation", answer.data).groups or ():
                        value: object = msgspec.json.decode(each.key)
                        if isinstance(value, str | int) and is_limit_value(value):
                            key = (isinstance(value, bool), value)
                            counts[key] = counts.get(key, 0) + each.count
                most = sorted(counts.items(), key=lambda each: -each[1])[:VALUES_SHOWN]
                if any(count > 1 for _, count in most):  # else each names one record
                    found[name] = tuple(HeldValue(value, count) for (_, value), count in most)
        return found

    def _authority(self, prospective: Resolved) -> tuple[ReadAuthority, dict[str, int | None]]:
        with self.ports.snapshot(BUDGET_SECONDS) as snapshot:
            connections = snapshot.connections()
            declarations = self.declarations.current(snapshot.declarations())
            collections = snapshot.collections()
        synced = {name: found.last_succeeded_at_ns for name, found in collections.items()}
        return read_authority(prospective, connections, declarations), synced

    def _of(self, authority: ReadAuthority, source: ReadableSource, until: float) -> Evidence:
        left = until - self.monotonic()
        if left >= LEAST_SECONDS:
            try:
                return _exact(self._read(authority, source, left, SAMPLE_RECORDS, figures=True))
            except QueryTimeout:
                pass  # the count takes too long; the next read only looks at the first records
        try:
            return _rough(
                self._read(authority, source, ROUGH_SECONDS, ROUGH_RECORDS, figures=False)
            )
        except QueryTimeout:
            return Evidence(0, at_least=True)

    def _read(
        self,
        authority: ReadAuthority,
        source: ReadableSource,
        seconds: float,
        limit: int,
        *,
        figures: bool,
    ) -> ReadResult:
        query = RecordsQuery(
            stream=source.stream,
            selectors=Selectors(connection_id=source.connection_id),
            limit=limit,
            count=figures,
            window=figures and source.declared.consent_time_field in source.fields,
        )
        with self.ports.snapshot(seconds) as snapshot:
            return read_records(self.ports, snapshot, authority, query)


def _by_value(stream: str, connection_id: str, field: str) -> AggregateQuery:
    selectors = Selectors(connection_id=connection_id)
    return AggregateQuery(stream, "count", selectors, group_by=field, limit=VALUES_SHOWN)


def _exact(answer: ReadResult) -> Evidence:
    window = cast("Mapping[str, str | None]", answer.meta.get("window") or {})
    return Evidence(
        count=0 if answer.count is None else answer.count.value,
        earliest=window.get("earliest_at"),
        latest=window.get("latest_at"),
        samples=_samples(answer),
    )


def _rough(answer: ReadResult) -> Evidence:
    return Evidence(
        count=len(cast("list[object]", answer.data)),
        at_least=answer.next_cursor is not None,
        samples=_samples(answer),
    )


def _samples(answer: ReadResult) -> tuple[Mapping[str, object], ...]:
    records = cast("list[object]", answer.data)[:SAMPLE_RECORDS]
    parsed: list[dict[str, object]] = msgspec.json.decode(msgspec.json.encode(records))
    return tuple(cast("dict[str, object]", record.get("data") or {}) for record in parsed)
