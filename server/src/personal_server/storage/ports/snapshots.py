"""What reads ask of a store: one state of it, in which everything of a read is looked up.

Rule: a backend receives plans and values, never grants or tokens.  All methods are synchronous;
surfaces call them in worker threads.

Units:  `*_ns` are UTC nanoseconds since 1970; `timeout_seconds` counts from the call.
Raises: QueryTimeout past the time limit, StorageUnavailable when the backend cannot answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from pdpp_kernel.record import DamagedRow, RecordPlace, StoredRecord
from personal_server.domain.connection import Connection
from personal_server.domain.stored import Collection, StoredDeclaration, StoredStream
from personal_server.enforcement.plans import (
    AggregatePlan,
    BesidePlan,
    BlobPlan,
    ChangesPlan,
    ChildrenPlan,
    FieldWindowPlan,
    KeysPlan,
    MeaningPlan,
    NeighboursPlan,
    RecordPlan,
    RecordsPlan,
    SearchPlan,
    TimelinePlan,
)
from personal_server.enforcement.rows import (
    Aggregation,
    BlobReference,
    Children,
    Feed,
    FieldWindow,
    Matches,
    Nearest,
    Neighbours,
    RowPage,
    Span,
    Summary,
)
from personal_server.enforcement.scopes import Scope
from personal_server.storage.derived import Derived

READ_DEADLINE_SECONDS = 15.0


class PastBudget(Exception):
    """A brief read took more than it may.  It is asked again where it may take its time."""


class ChangeSignal(Protocol):
    """Tells whoever waits that something changed: a record, or anything that is audited.

        seen = signal.count
        while is_serving:
            do_what_is_due()  # reads for itself what changed
            seen = signal.wait(seen, timeout_seconds=60)

    Rule: whichever process wrote.  It tells after the write is committed, at once or within about
    a second; several changes may be told as one.  Nothing is missed between `count` and `wait`.
    While the database does not answer nothing is told, and what changed meanwhile afterwards.
    """

    @property
    def count(self) -> int:
        """How often something was told since the store was opened."""
        ...

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        """Block this worker thread until the count is beyond `seen`, or so long; the count then."""
        ...


class CatalogReads(Protocol):
    """What exists: declarations, connections, streams, runs."""

    @property
    def derived(self) -> Derived:
        """What was made of this state of the store before; another state has none of it."""
        ...

    def declarations(self) -> tuple[StoredDeclaration, ...]:
        """The current revision of every source, by connector key."""
        ...

    def connections(self) -> tuple[Connection, ...]:
        """All connections that are not erased, by id."""
        ...

    def stored_streams(self) -> tuple[StoredStream, ...]:
        """Streams with their stored record counts, by (connection, stream)."""
        ...

    def collections(self) -> Mapping[str, Collection]:
        """Freshness inputs by connection id; connections without runs are absent."""
        ...


class ReadSnapshot(CatalogReads, Protocol):
    """One consistent state of the store.  Used by one thread at a time."""

    # Rows by place, key and relation.

    def page(self, plan: RecordsPlan) -> RowPage:
        """The rows after a position, in order."""
        ...

    def timeline(self, plan: TimelinePlan) -> RowPage:
        """The rows of several streams after a position, in the order of their times."""
        ...

    def record(self, plan: RecordPlan) -> tuple[StoredRecord, ...]:
        """The visible rows with a key, by connection."""
        ...

    def records(self, plans: Sequence[KeysPlan]) -> Mapping[RecordPlace, StoredRecord]:
        """The visible rows with some keys, of several sources at once."""
        ...

    def children(self, plan: ChildrenPlan) -> Mapping[str, Children]:
        """Children by parent value; parents without any are absent."""
        ...

    def neighbours(self, plan: NeighboursPlan) -> Neighbours:
        """The rows beside a position."""
        ...

    def beside(self, plan: BesidePlan) -> Mapping[str, tuple[str | None, str | None, object]]:
        """By key the keys of the rows before and after it, `None` where there is none, and the
        value that it shares with them.
        """
        ...

    def field_window(self, plan: FieldWindowPlan) -> tuple[FieldWindow, ...]:
        """One window per visible record with the key, by connection."""
        ...

    # Exact numbers over visible records.

    def count(self, plan: RecordsPlan) -> int:
        """How many."""
        ...

    def span(self, plan: RecordsPlan) -> Span:
        """How many, and the extreme stored values of a field."""
        ...

    def summary(self, scope: Scope) -> Summary:
        """How many, and when the newest granted change came."""
        ...

    def aggregate(self, plan: AggregatePlan) -> Aggregation:
        """A metric, perhaps grouped."""
        ...

    @property
    def damaged(self) -> Sequence[DamagedRow]:
        """Visible records that the reads of this snapshot met and left out, since their bytes are
        not those that were written; figures count them.
        """
        ...

    # The change feed and what its bookmarks are judged by.

    @property
    def epoch(self) -> str:
        """A random id made with the store; a restored store has another."""
        ...

    @property
    def horizon(self) -> int:
        """The highest committed change number of this snapshot (0 before the first)."""
        ...

    @property
    def retained_from(self) -> int:
        """Feeds with `since` below this number cannot be answered any more (0: all can)."""
        ...

    @property
    def forgotten_until_ns(self) -> int:
        """Changes written before this instant may be forgotten (0: none is)."""
        ...

    def first_change_after(self, scopes: Sequence[Scope], instant_ns: int) -> int | None:
        """The number of the first change of these streams that was written after an instant.

        Where the clock was set back meanwhile: of one of the places where it passed the instant.
        """
        ...

    def changed_after(self, sequence: int) -> Sequence[tuple[str, str]]:
        """Each (connection, stream) with a later change, whoever may see it; in order."""
        ...

    def era(self, sequence: int) -> str:
        """The era in which a change was written; a copy put back goes on in another one."""
        ...

    def changes(self, plan: ChangesPlan) -> Feed:
        """Relevant changes in order of their number."""
        ...

    # Search, blobs, and the whole of a stream.

    def search(self, plan: SearchPlan) -> Matches:
        """Candidates for ranking, with exact document frequencies."""
        ...

    def count_terms(self, plan: SearchPlan) -> tuple[int, ...] | None:
        """How many visible records hold each of the terms; counting stops at the frequency limit.

        `None` where that takes longer than the scopes may take together.
        """
        ...

    def walked_seconds(self, scopes: Sequence[Scope]) -> float:
        """How long it may take for a word to look at all records, hidden ones too, of the sources
        that are searched by an index of words instead of by texts.
        """
        ...

    def nearest(self, plan: MeaningPlan) -> Nearest:
        """The records nearest in meaning."""
        ...

    def embedding_model(self) -> str | None:
        """The model whose vectors are kept."""
        ...

    def count_unembedded(self, scopes: Sequence[Scope]) -> int:
        """How many visible records wait for their passages, at least."""
        ...

    def blob(self, plan: BlobPlan) -> tuple[BlobReference, ...]:
        """References of visible records to a blob uploaded for their connection, in order."""
        ...

    def export(self, connection_id: str, stream: str) -> Iterator[StoredRecord]:
        """Every stored row of a stream by key, declared today or not.  The owner's export only."""
        ...


class Snapshots(Protocol):
    """Where every read begins."""

    @property
    def subject_id(self) -> str:
        """The owner whose records these are."""
        ...

    def snapshot(
        self, timeout_seconds: float | None = READ_DEADLINE_SECONDS
    ) -> AbstractContextManager[ReadSnapshot]:
        """A snapshot whose reads together may take that long (`None`: as long as they take)."""
        ...
