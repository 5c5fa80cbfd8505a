"""Whether records, what is made from them, blobs and the change feed fit each other.

Rule: records are what everything else is compared with; nothing here changes them.  What is made
from them (words, comparables) can be made anew; what they themselves lack is only told.
Bounds: the words of a stream are compared by a sum, so that memory does not grow with them; each
stream is read in one state.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import Protocol, cast

import msgspec

from pdpp_kernel.errors import StorageUnavailable
from personal_server.storage.sql.care.faults import BlobFault, FeedCheck, StreamCheck
from personal_server.storage.sql.care.stream_walk import (
    WORD_SUM_MASK,
    Progress,
    StreamWalk,
    word_mark,
)
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import (
    BlobReferenceRow,
    BlobUploadRow,
    ChangeRow,
    ErasureRow,
    SourceRow,
    StoreRow,
)
from personal_server.storage.sql.layout import FORM
from personal_server.storage.sql.records.blob_files import PREFIX, blob_path, digest_of, stray_files
from personal_server.storage.sql.records.rebuilds import make_anew
from personal_server.storage.sql.records.summaries import summaries_are_sound
from personal_server.storage.sql.source_tables import SourceTables, all_sources, find_source
from personal_server.storage.sql.statements import exists, select

_FACT = select(StoreRow, StoreRow.name, columns=(StoreRow.value,))
_CHANGES = (
    f"SELECT {ChangeRow.sequence} FROM {ChangeRow.table}"  # noqa: S608
    f" WHERE {ChangeRow.source} = ? ORDER BY {ChangeRow.sequence}"
)
_ALL_SOURCES = f"SELECT {SourceRow.source} FROM {SourceRow.table}"  # noqa: S608
_CONNECTION_ERASED = f"SELECT 1 FROM {ErasureRow.table} WHERE {ErasureRow.stream} IS NULL LIMIT 1"  # noqa: S608
_BLOBS = (
    f"SELECT DISTINCT {BlobUploadRow.blob_id} FROM {BlobUploadRow.table}"  # noqa: S608
    f" WHERE {BlobUploadRow.blob_id} > ? ORDER BY 1 LIMIT 500"
)
_REFERRING = (
    f"SELECT s.{SourceRow.connection_id}, s.{SourceRow.stream} FROM {BlobReferenceRow.table} b"  # noqa: S608
    f" JOIN {SourceRow.table} s USING ({BlobReferenceRow.source})"
    f" WHERE b.{BlobReferenceRow.blob_id} = ? LIMIT 1"
)
_IS_HELD = exists(BlobUploadRow, BlobUploadRow.blob_id)


class WordIndexes(Protocol):
    """A database whose word indexes can be read back."""

    def indexed_words(self, session: Session, index: str) -> Iterator[tuple[bytes, int, int]]:
        """(word, id, place) of everything in an index.  Raises: StorageUnavailable if damaged."""
        ...


class CheckedDatabase(Database, WordIndexes, Protocol):
    """What the checks need."""


PrimaryKeys = Callable[[str, str], Sequence[str] | None]
"""The primary key of a (connection, stream), `None` where it is not declared any more."""


class IntegrityChecks(msgspec.Struct, frozen=True):
    """The checks of one subject's records."""

    _database: CheckedDatabase
    _subject_id: str
    _blob_directory: Path

    def places(self) -> list[tuple[str, str]]:
        """Every (connection, stream) with records."""
        with self._database.read() as session:
            sources = all_sources(session, self._subject_id)
        return [(source.connection_id, source.stream) for source in sources]

    def stream(
        self, connection_id: str, stream: str, primary_keys: PrimaryKeys, progress: Progress
    ) -> StreamCheck:
        """Read every record of a stream, and everything that is made from it."""
        check = StreamCheck(connection_id, stream)
        with self._database.read() as session:
            source = find_source(session, self._subject_id, connection_id, stream)
            if source is not None:
                primary_key = primary_keys(connection_id, stream)
                walk = StreamWalk(session, source, primary_key, check)
                words = walk.follow(progress)
                if not summaries_are_sound(session, source.layout, source.tables):
                    check.values_differ = True
                # the words of another form are made anew in any case
                is_whole = source.layout.form == FORM and not check.damaged.count
                if source.layout.lexical and is_whole:
                    check.words_differ = words != self._indexed(session, source)
        return check

    def feed(self) -> FeedCheck:
        """The numbers of all changes, of all streams together."""
        with self._database.read() as session:
            numbers = [session.run(_CHANGES, line) for line in session.rows(_ALL_SOURCES)]
            count = disordered = newest = 0
            for (number,) in merge(*numbers):
                count += 1
                disordered += number <= newest
                newest = max(newest, number)
            sequence = int(session.value(_FACT, ("sequence",)))
            retained = int(session.value(_FACT, ("retained_from",)))
            # the newest changes may be gone with a connection, or be over their time
            may_lack = retained >= sequence or session.first(_CONNECTION_ERASED) is not None
        return FeedCheck(count, disordered, newest == sequence or (newest < sequence and may_lack))

    def blobs(self, progress: Progress) -> Generator[BlobFault, None, int]:
        """Read every blob; returns how many there are."""
        count, after = 0, ""
        while True:
            with self._database.read() as session:
                ids = [str(blob_id) for (blob_id,) in session.rows(_BLOBS, (after,))]
            if not ids:
                return count
            for blob_id in ids:
                digest = _digest(blob_path(self._blob_directory, blob_id))
                if digest != blob_id.removeprefix(PREFIX):
                    yield from self._blob_fault(blob_id, digest is None)
                count += 1
                progress(count)
            after = ids[-1]

    def strays(self, before_ns: int) -> int:
        """Files of the blob directory, older than that, whose bytes no connection holds."""
        paths = stray_files(self._blob_directory, before_ns)
        with self._database.read() as session:
            return sum(session.first(_IS_HELD, (PREFIX + path.name,)) is None for path in paths)

    def make_anew(self, connection_id: str, stream: str) -> None:
        """Have everything that is made from the records of a stream made again, in slices."""
        with self._database.write() as session:
            source = find_source(session, self._subject_id, connection_id, stream)
            if source is not None:
                make_anew(session, source)

    def _indexed(self, session: Session, source: SourceTables) -> int | None:
        """The sum of what the word index holds, `None` where it cannot be read."""
        try:
            words = self._database.indexed_words(session, f"w{source.tables}")
            return sum(word_mark(*word) for word in words) & WORD_SUM_MASK
        except StorageUnavailable:
            return None

    def _blob_fault(self, blob_id: str, is_missing: bool) -> Iterator[BlobFault]:
        """One that was erased meanwhile is none."""
        with self._database.read() as session:
            if session.first(_IS_HELD, (blob_id,)) is not None:
                reference = session.first(_REFERRING, (blob_id,))
                yield BlobFault(blob_id, is_missing, cast("tuple[str, str] | None", reference))


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return digest_of(file)
    except FileNotFoundError:
        return None
