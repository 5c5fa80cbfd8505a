"""The passages of records, embedded in the background: a few at a time, behind the writes.

Rule: whatever ends it, nothing is embedded twice but the last batch, and nothing is left out; it
takes the lowest priority and rests between batches, so that nobody notices it at work.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from personal_server.domain.values import percent_of
from personal_server.domain.vectors import Passage
from personal_server.semantics.embedder import Embedder
from personal_server.semantics.passages import passages_of
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.ports import EmbeddingProgress, RecordStore, Unembedded

EVERY_SECONDS = 5.0
RECORDS_AT_ONCE = 16
TEXTS_AT_ONCE = 16
BATCHES_AT_ONCE = 20
# It rests for this share of the time that a batch took.
REST_SHARE = 0.25
WHOLE = 100
_log = logging.getLogger(__name__)


def percent_embedded(progress: Sequence[EmbeddingProgress]) -> int:
    """Of all records together; not a hundred before the end."""
    records, waiting = sum(p.records for p in progress), sum(p.waiting for p in progress)
    return percent_of(records - waiting, records) if waiting else WHOLE


class PassageIndex:
    """Work for a worker thread; without an embedder it forgets what another one made."""

    def __init__(
        self,
        store: RecordStore,
        declarations: KnownDeclarations,
        embedder: Callable[[], Embedder | None],
        *,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._declarations = declarations
        self._embedder = embedder
        self._sleep = sleep
        self._monotonic = monotonic
        self._share = WHOLE

    def __call__(self) -> None:
        """Up to `BATCHES_AT_ONCE`.  Raises: EmbedderFailed."""
        embedder = self._embedder()
        while self._store.use_embedding_model(None if embedder is None else embedder.model):
            self._sleep(0)
        if embedder is None:
            self._share = WHOLE
            return
        for _ in range(BATCHES_AT_ONCE):
            if not self._batch(embedder):
                self._share = WHOLE
                embedder.close()  # until there is more to do
                return
        self._share = percent_embedded(self._store.embedding_progress())

    def progress(self) -> dict[str, int]:
        """How many percent of the records are embedded, while some are not."""
        return {} if self._share == WHOLE else {"embedding": self._share}

    def _batch(self, embedder: Embedder) -> bool:
        for connection_id, stream, fields in self._sources():
            work = self._store.unembedded(connection_id, stream, fields, RECORDS_AT_ONCE)
            if work is not None:
                begun = self._monotonic()
                self._store.put_passages(work, self._made(embedder, work))
                self._sleep((self._monotonic() - begun) * REST_SHARE)
                return True
        return False

    def _made(self, embedder: Embedder, work: Unembedded) -> dict[tuple[int, str], list[Passage]]:
        wanted = [
            (record.id, field, start, end, text[start:end])
            for record in work.records
            for field, text in record.texts.items()
            for start, end in passages_of(text)
        ]
        # alike in length, they are padded little
        wanted.sort(key=lambda each: len(each[-1]))
        made: dict[tuple[int, str], list[Passage]] = {}
        for begin in range(0, len(wanted), TEXTS_AT_ONCE):
            some = wanted[begin : begin + TEXTS_AT_ONCE]
            vectors = embedder.embed([each[-1] for each in some], is_query=False)
            for (row_id, field, start, end, _), vector in zip(some, vectors, strict=True):
                made.setdefault((row_id, field), []).append(Passage(start, end, vector))
        for passages in made.values():
            passages.sort(key=lambda each: each.start_chars)
        return made

    def _sources(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Every stream that declares semantic fields, those last written to first."""
        with self._store.snapshot() as snapshot:
            declared = self._declarations.current(snapshot.declarations())
            stored = snapshot.stored_streams()
        found: list[tuple[str, str, tuple[str, ...]]] = []
        for each in stored:
            source = declared.get(each.connector_key)
            stream = None if source is None else source.streams.get(each.stream)
            if stream is not None and stream.semantic_fields and each.record_count:
                found.append((each.connection_id, each.stream, stream.semantic_fields))
        return found
