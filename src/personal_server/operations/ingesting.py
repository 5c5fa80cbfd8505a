"""Ingest: lines of one stream become records of one connection, all accepted ones together.

Rule: lines are checked before the write transaction begins; accepted lines commit in order, with
the receipts of the refused ones.
Source: RS contract 13.1.
Raises: ConnectionNotFound, ConnectionNotWritable, BodyTooLarge, StorageUnavailable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from personal_server.domain.declaration import Stream
from personal_server.errors import BodyTooLarge
from personal_server.operations.line_checking import LineChecker, LineRefused
from personal_server.storage.ports import Batch, RecordWrite, RecordWriter, Rejection, WriteOutcome

MAX_LINES = 10_000
ITEMIZED_REJECTIONS = 1_000

# A line as bytes, or as the object that it would hold.
Line = bytes | Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LineRejection:
    """A refused line; `input_index` counts the lines that are not blank, from 0."""

    input_index: int
    receipt_id: str
    code: str
    path: str | None
    message: str


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of a call; `rejections` are the first thousand."""

    records_attempted: int
    records_accepted: int
    records_changed: int
    records_rejected: int
    rejections: tuple[LineRejection, ...]


def ingest(
    store: RecordWriter,
    connection_id: str,
    stream: Stream,
    lines: Iterable[Line],
    *,
    now_ns: int,
    new_receipt_id: Callable[[], str],
    run_id: str | None = None,
) -> IngestResult:
    """Check and commit the lines of one call."""
    call = _Call(LineChecker(stream), new_receipt_id)

    def receipts(outcomes: Sequence[WriteOutcome]) -> list[Rejection]:
        call.refuse_conflicts(outcomes)
        kept = call.rejections[:ITEMIZED_REJECTIONS]
        return [
            Rejection(each.receipt_id, stream.name, each.code, each.path, run_id, now_ns)
            for each in kept
        ]

    batch = Batch(connection_id, stream, call.accepted(lines), now_ns, receipts)
    return call.result(store.commit(batch))


class _Call:
    """The bookkeeping of one call."""

    def __init__(self, checker: LineChecker, new_receipt_id: Callable[[], str]) -> None:
        self._checker = checker
        self._new_receipt_id = new_receipt_id
        self._attempted = 0
        self._places: list[int] = []
        self.rejections: list[LineRejection] = []

    def accepted(self, lines: Iterable[Line]) -> Iterator[RecordWrite]:
        """The writes of good lines; bad ones are kept as rejections."""
        for line in lines:
            text = line if isinstance(line, bytes) else _rendered(line)
            if not text.strip():
                continue
            place, self._attempted = self._attempted, self._attempted + 1
            if place >= MAX_LINES:
                raise BodyTooLarge("One call takes at most 10,000 lines.", param="body")
            try:
                write = self._checker.check(text)
            except LineRefused as refused:
                self._refuse(place, refused)
            else:
                self._places.append(place)
                yield write

    def refuse_conflicts(self, outcomes: Sequence[WriteOutcome]) -> None:
        """Append-only records that another line would change."""
        message = "records of this stream do not change"
        for place, outcome in zip(self._places, outcomes, strict=True):
            if outcome is WriteOutcome.CONFLICT:
                self._refuse(place, LineRefused("append_only_conflict", message))
        self.rejections.sort(key=lambda each: each.input_index)

    def result(self, outcomes: Sequence[WriteOutcome]) -> IngestResult:
        """The counts of the call."""
        rejected = len(self.rejections)
        return IngestResult(
            self._attempted,
            self._attempted - rejected,
            sum(outcome is WriteOutcome.CHANGED for outcome in outcomes),
            rejected,
            tuple(self.rejections[:ITEMIZED_REJECTIONS]),
        )

    def _refuse(self, place: int, refused: LineRefused) -> None:
        receipt_id = self._new_receipt_id()
        self.rejections.append(
            LineRejection(place, receipt_id, refused.code, refused.path, refused.message)
        )


def _rendered(line: Mapping[str, object]) -> bytes:
    """An object that orjson cannot write is refused like any other malformed line."""
    try:
        return orjson.dumps(line)
    except (TypeError, orjson.JSONEncodeError):
        return b"not an object of JSON values"
