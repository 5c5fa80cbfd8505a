"""The passages of records, embedded in the background: a few at a time, behind the writes.

Rule: whatever ends it, nothing is embedded twice but the last batch, and nothing is left out; it
takes the lowest priority and rests between batches, so that nobody notices it at work.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from pdpp_kernel.values import percent_of
from pdpp_kernel.vectors import Passage
from personal_server.domain.stored import (
    EmbeddingProgress,
    Unembedded,
)
from personal_server.semantics.embedder import Embedder, EmbedderFailed
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.whole_store import RecordStore

EVERY_SECONDS = 5.0
RECORDS_AT_ONCE = 16
TEXTS_AT_ONCE = 16
BATCHES_AT_ONCE = 20
# It rests for this share of the time that a batch took.
REST_SHARE = 0.25
WHOLE = 100
# A passage has at most so many code points: most models look at some hundred words.
PASSAGE_CHARS = 600
# What is behind so many of them is found by its words only.
MOST_PASSAGES = 64
# Fewer letters and digits mean nothing.
FEWEST_SIGNS = 3

_CUTS = (re.compile(r"\n\s*\n"), re.compile(r"[.!?…。！？]\s|[。！？]|\n"), re.compile(r"\s"))
_SIGN = re.compile(r"[^\W_]")
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
        sleep: Callable[[float], object] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._declarations = declarations
        self._embedder = embedder
        self._stopped = threading.Event()
        self._sleep = sleep or self._stopped.wait
        self._monotonic = monotonic
        self._share = WHOLE
        self._is_packed = False

    def __call__(self) -> None:
        """Up to `BATCHES_AT_ONCE`, until it is stopped.  Raises: EmbedderFailed."""
        embedder = self._embedder()
        while self._store.use_embedding_model(None if embedder is None else embedder.model):
            self._sleep(0)
            if self._stopped.is_set():
                return
        if embedder is None:
            self._share = WHOLE
            return
        for _ in range(BATCHES_AT_ONCE):
            if self._stopped.is_set():
                return
            if not self._batch(embedder):
                self._share = WHOLE
                embedder.close()  # until there is more to do
                self._pack()
                return
        self._share = percent_embedded(self._store.embedding_progress())

    def _pack(self) -> None:
        """What was embedded since it was done before."""
        while not self._is_packed and not self._stopped.is_set():
            self._is_packed = not self._store.pack_passages()
            self._sleep(0)

    def stop(self) -> None:
        """Begin no further batch, and end the one that is made, of which nothing is kept."""
        self._stopped.set()

    def progress(self) -> dict[str, int]:
        """How many percent of the records are embedded, while some are not."""
        return {} if self._share == WHOLE else {"embedding": self._share}

    def _batch(self, embedder: Embedder) -> bool:
        for connection_id, stream, fields in self._sources():
            work = self._store.unembedded(connection_id, stream, fields, RECORDS_AT_ONCE)
            if work is not None:
                begun = self._monotonic()
                try:
                    made = self._made(embedder, work)
                except EmbedderFailed:
                    if self._stopped.is_set():  # it was closed meanwhile
                        return True
                    raise
                if self._stopped.is_set():
                    return True
                self._store.put_passages(work, made)
                self._is_packed = False
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
            if self._stopped.is_set():
                break
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


# Long texts cut into passages: a vector says well what a few sentences mean, and no more.
def passages_of(text: str) -> list[tuple[int, int]]:
    """The stretches [start, end) of a text that say something."""
    found: list[tuple[int, int]] = []
    for start, end in _stretches(text):
        if len(found) == MOST_PASSAGES:
            break
        if len(_SIGN.findall(text, start, end)) >= FEWEST_SIGNS:
            found.append((start, end))
    return found


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Cut at paragraphs where there are any, else at sentences, else at blanks."""
    start = 0
    while start < len(text):
        end = _end(text, start)
        inner = text[start:end]
        lead = len(inner) - len(inner.lstrip())
        yield start + lead, start + max(lead, len(inner.rstrip()))
        start = end


def _end(text: str, start: int) -> int:
    most = start + PASSAGE_CHARS
    if most >= len(text):
        return len(text)
    for cut in _CUTS:
        places = [match.end() for match in cut.finditer(text, start + PASSAGE_CHARS // 2, most)]
        if places:
            return places[-1]
    return most
