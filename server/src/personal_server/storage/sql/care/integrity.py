"""Whether records, what is made from them, blobs and the change feed fit each other.

Rule: records are what everything else is compared with; nothing here changes them.  What is made
from them (words, comparables) can be made anew; what they themselves lack is only told.
Bounds: the words of a stream are compared by a sum, so that memory does not grow with them; each
stream is read in one state.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from pathlib import Path
from typing import NamedTuple, Protocol, cast

import orjson

from pdpp_kernel.errors import PersonalServerError, StorageUnavailable
from pdpp_kernel.record import JsonObject, canonical_key
from personal_server.storage.damage import line_sum
from personal_server.storage.sql.dialect import Value
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
from personal_server.storage.sql.records.blobs import PREFIX, blob_path, digest_of, stray_files
from personal_server.storage.sql.records.rebuilds import make_anew
from personal_server.storage.sql.records.summaries import summaries_are_sound
from personal_server.storage.sql.records.written_rows import prepare_one
from personal_server.storage.sql.source_tables import (
    SourceTables,
    all_sources,
    checked_data,
    find_source,
)
from personal_server.storage.sql.statements import exists, select

# Longer words stand in the index by their beginning.
LONGEST_WORD_BYTES = 32_768
SHOWN_KEYS = 3
TOLD_EVERY = 20_000
WORD_SUM_MASK = (1 << 64) - 1

_FACT = select(StoreRow, StoreRow.name, columns=(StoreRow.value,))
_IS_CHANGE = exists(ChangeRow, ChangeRow.source, ChangeRow.sequence, ChangeRow.key)
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


class DamagedTable(NamedTuple):
    """A table that cannot be relied on.

    Shapes: `kind` is `r`, `h`, `w` or `f` (`storage/sql/layout`) of a source, which is named as far
        as it is known; `is_index` where its pages are whole and only what they say as a word index
        is not.  Without a name: the list of tables, or pages that no table has.
    """

    name: str = ""
    kind: str = ""
    connection_id: str = ""
    stream: str = ""
    is_index: bool = False


PrimaryKeys = Callable[[str, str], Sequence[str] | None]
"""The primary key of a (connection, stream), `None` where it is not declared any more."""
Progress = Callable[[int], None]
"""Called with how many records were read so far."""


@dataclass
class StreamCheck:
    """What was found in one stream.

    Shapes: `damaged` are records whose bytes are not those that were written, or are no JSON
        object; `misnamed` those whose key is another's, `unexplained` those with a change that the
        feed lacks: of each some keys and how many; `words_differ`, `values_differ`: the word index
        or the comparables are not those of the texts.
    """

    connection_id: str
    stream: str
    records: int = 0
    damaged: Faulty = field(default_factory=lambda: Faulty())
    misnamed: Faulty = field(default_factory=lambda: Faulty())
    unexplained: Faulty = field(default_factory=lambda: Faulty())
    words_differ: bool = False
    values_differ: bool = False

    @property
    def can_be_made_anew(self) -> bool:
        """Where every record can be read, what is made from them can be made again."""
        return (self.words_differ or self.values_differ) and not self.damaged.count


@dataclass
class Faulty:
    """Records with a fault: how many, and the keys of the first."""

    count: int = 0
    keys: list[str] = field(default_factory=list[str])

    def add(self, key: str) -> None:
        """One more."""
        self.count += 1
        if len(self.keys) < SHOWN_KEYS:
            self.keys.append(key)


@dataclass(frozen=True, slots=True)
class FeedCheck:
    """How the change feed stands: `disordered` changes have a number that is not above the last."""

    changes: int
    disordered: int
    newest_fits: bool


@dataclass(frozen=True, slots=True)
class BlobFault:
    """Bytes that are missing or not what their name says, and a stream that refers to them."""

    blob_id: str
    is_missing: bool
    place: tuple[str, str] | None


class IntegrityChecks:
    """The checks of one subject's records."""

    def __init__(self, database: CheckedDatabase, subject_id: str, blob_directory: Path) -> None:
        self._database = database
        self._subject_id = subject_id
        self._blob_directory = blob_directory

    def places(self) -> list[tuple[str, str]]:
        """Every (connection, stream) with records."""
        with self._database.read() as session:
            found = all_sources(session, self._subject_id)
        return [(source.connection_id, source.stream) for source in found]

    def stream(
        self, connection_id: str, stream: str, primary_keys: PrimaryKeys, progress: Progress
    ) -> StreamCheck:
        """Read every record of a stream, and everything that is made from it."""
        found = StreamCheck(connection_id, stream)
        with self._database.read() as session:
            source = find_source(session, self._subject_id, connection_id, stream)
            if source is not None:
                primary_key = primary_keys(connection_id, stream)
                walk = StreamWalk(session, source, primary_key, found)
                words = walk.follow(progress)
                if not summaries_are_sound(session, source.layout, source.tables):
                    found.values_differ = True
                # the words of another form are made anew in any case
                is_whole = source.layout.form == FORM and not found.damaged.count
                if source.layout.lexical and is_whole:
                    found.words_differ = words != self._indexed(session, source)
        return found

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
            found = self._database.indexed_words(session, f"w{source.tables}")
            return sum(hash(each) for each in found) & WORD_SUM_MASK
        except StorageUnavailable:
            return None

    def _blob_fault(self, blob_id: str, is_missing: bool) -> Iterator[BlobFault]:
        """One that was erased meanwhile is none."""
        with self._database.read() as session:
            if session.first(_IS_HELD, (blob_id,)) is not None:
                place = session.first(_REFERRING, (blob_id,))
                yield BlobFault(blob_id, is_missing, cast("tuple[str, str] | None", place))


class _Line(NamedTuple):
    """What is stored of a record, texts as bytes."""

    row_id: int
    key: bytes
    created: int
    created_at_ns: int
    changes: bytes | None
    word_counts: bytes | None
    checksum: int | None
    text: bytes | None


class StreamWalk:
    """Along the records of one stream."""

    def __init__(
        self,
        session: Session,
        source: SourceTables,
        primary_key: Sequence[str] | None,
        found: StreamCheck,
    ) -> None:
        self._session = session
        self._source = source
        self._primary_key = primary_key
        self._found = found
        self._words = 0

    def follow(self, progress: Progress) -> int:
        """Look at every record; the sum of the words that its index should hold."""
        number, found = self._source.tables, self._found
        key, changes, text = map(self._session.dialect.bytes_of, ("k", "fc", "data"))
        layout = self._source.layout
        # damaged texts are no texts: they are read as bytes
        values = "".join(
            f", {self._session.dialect.as_stored(column.name, column.kind)}"
            for column in (*layout.columns, *layout.folded)
        )
        lines = self._session.run(
            f"SELECT r.id, {key}, cs, ce, {changes}, wc, sum, {text}"  # noqa: S608
            f"{values} FROM r{number} r LEFT JOIN h{number} h ON h.id = r.id ORDER BY r.id"
        )
        for line in lines:
            found.records += 1
            self._look_at(_Line(*line[:8]), line[8:])
            if found.records % TOLD_EVERY == 0:
                progress(found.records)
        return self._words & WORD_SUM_MASK

    def _look_at(self, line: _Line, stored: Sequence[Value | bytes]) -> None:
        row_id, key_bytes, created, created_at_ns, changes, counts, stored_sum, text = line
        key = key_bytes.decode(errors="replace")
        dated = None if changes is None else changes.decode(errors="replace")
        own = line_sum(key, created, created_at_ns, dated)
        data = checked_data(self._source.layout, own, stored_sum, text)
        if data is None:
            self._found.damaged.add(key)
            return
        if not self._is_its_own(key, data):
            self._found.misnamed.add(key)
        if not self._is_in_feed(key, created, changes):
            self._found.unexplained.add(key)
        wanted = prepare_one(key, data, created_at_ns, self._source.layout)
        values = [each.encode() if isinstance(each, str) else each for each in wanted.values]
        if list(stored) != values or counts not in (None, wanted.word_counts):
            self._found.values_differ = True
        if counts is not None:  # else it waits for its words (`rebuilds.adopt`)
            self._words += sum(
                hash((word.encode()[:LONGEST_WORD_BYTES], row_id, place))
                for place, word in enumerate(wanted.words.split())
            )

    def _is_its_own(self, key: str, data: JsonObject) -> bool:
        if self._primary_key is None:
            return True
        try:
            return canonical_key([data.get(name) for name in self._primary_key]) == key
        except PersonalServerError:
            return False

    def _is_in_feed(self, key: str, created: int, changes: bytes | None) -> bool:
        try:
            dated: dict[str, tuple[int, int]] = orjson.loads(changes) if changes else {}
            numbers = {created, *(int(pair[0]) for pair in dated.values())}
        except (ValueError, TypeError, AttributeError, LookupError):
            return False
        place = self._source.source
        return all(self._session.first(_IS_CHANGE, (place, each, key)) for each in numbers)


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return digest_of(file)
    except FileNotFoundError:
        return None
