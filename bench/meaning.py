"""`python -m bench.meaning [RECORDS] [--model FOLDER]`: what searching by meaning costs.

Records of generated words, one passage each, with generated vectors of 384 dimensions: they say
what looking at so many costs, and nothing about what is found.  Ways are asked in turn, in one run,
in this process and without the door; times are of the processor, so that what else the machine does
counts little.  So is a word with a letter too many, beside the same word as it is spelled.  With a
model folder the embedding of a query is measured beside it; a folder to keep is filled once.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from pdpp_kernel.values import render_instant
from pdpp_kernel.vectors import Passage
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.domain.authority import ReadAuthority, TimeConstraint, TokenKind
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration, render_declaration
from personal_server.domain.grant import Resolved
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
)
from personal_server.enforcement.authority import read_authority
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.reading.ports import ReadPorts
from personal_server.reading.sealed_tokens import store_sealer
from personal_server.reading.search import search
from personal_server.semantics.embedder import ModelProcess
from personal_server.storage.sql.store import SqlRecordStore
from personal_server.storage.sqlite.database import SqliteDatabase

DIMENSIONS = 384
VECTORS = 4_000
VOCABULARY = 20_000
WORDS_EACH = 12
AT_ONCE = 2_000
REPEATS = 15
CONNECTION = "cin_bench"
SECOND = 10**9
BEGIN = 1_600_000_000 * SECOND
STEP = 60 * SECOND
FIELDS = ("subject", "body")
MODEL = "generated"
# Numbers of words that thousands of records hold, and of words that a handful hold together.
COMMON, RARE = (40, 3), (900, 60)
# Words of one letter case, far from each other; one that thousands hold, and one of a handful.
LETTERS = "abcdefghiklmnoprstuvwz"
SPELLED = {"a common word": 40, "a rare word": 9_000}


@dataclass
class Generated:
    """A query embedder whose vectors mean nothing."""

    model: str | None
    rng: random.Random

    def embed_query(self, text: str) -> bytes:
        """Any vector."""
        del text
        return self.rng.randbytes(DIMENSIONS)


def main() -> None:
    """Fill a store, ask, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.meaning", description=__doc__)
    parser.add_argument("records", type=int, nargs="?", default=100_000)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--kept", type=Path, help="where the records stay for the next run")
    options = parser.parse_args()
    console = Console(highlight=False)
    if options.model is not None:
        _show_model(options.model, console)
    with tempfile.TemporaryDirectory(prefix="pdpp-meaning-") as scratch:
        folder = Path(options.kept or scratch)
        is_filled = (folder / "data").exists()
        database = SqliteDatabase(folder / "data" / "records.sqlite3")
        store = SqlRecordStore(database, "own_bench", folder / "blobs")
        if not is_filled:
            _fill(store, options.records, console)
        _show(store, options.records, console)
        _show_mistyped(store, options.records, console)
        database.close()


def _fill(store: SqlRecordStore, records: int, console: Console) -> None:
    rng = random.Random(7)
    declared = parse_declaration(MAIL)
    store.put_declaration(declared, render_declaration(MAIL), BEGIN)
    place = (CONNECTION, "mail", declared.source_id, None, ConnectionStatus.ACTIVE, BEGIN, BEGIN)
    store.add_connection(Connection(*place))
    begun = time.process_time()
    for first in range(0, records, AT_ONCE):
        some = range(first, min(records, first + AT_ONCE))
        batch = Batch(CONNECTION, declared.streams["messages"], _writes(rng, some), BEGIN)
        store.commit(batch)
    console.print(f"{records} records written in {time.process_time() - begun:.0f} s of processor")
    begun = time.process_time()
    vectors = [rng.randbytes(DIMENSIONS) for _ in range(VECTORS)]
    while store.use_embedding_model(MODEL):
        pass
    while (work := store.unembedded(CONNECTION, "messages", ("body",), AT_ONCE)) is not None:
        made = {
            (each.id, field): [Passage(0, 10, vectors[rng.randrange(VECTORS)])]
            for each in work.records
            for field in each.texts
        }
        store.put_passages(work, made)
    while store.pack_passages() or store.merge_slice():  # as a server does behind an import
        pass
    console.print(f"their vectors kept in {time.process_time() - begun:.0f} s")


def _writes(rng: random.Random, some: range) -> Iterator[RecordWrite]:
    for number in some:
        words = [_word(int(rng.paretovariate(0.6)) % VOCABULARY) for _ in range(WORDS_EACH)]
        at = render_instant(BEGIN + number * STEP)
        data = {"id": f"m{number}", "sent_at": at, "received_at": at, "body": " ".join(words)}
        yield RecordWrite(f"m{number}", data, BEGIN + number)


@cache
def _word(number: int) -> str:
    rng = random.Random(number)
    return "".join(rng.choices(LETTERS, k=rng.randint(6, 10)))


def _show(store: SqlRecordStore, records: int, console: Console) -> None:
    ways = {
        "words": SearchMode.WORDS,
        "meaning": SearchMode.MEANING,
        "hybrid": SearchMode.HYBRID,
    }
    table = Table(title=f"{records} records, ms of processor, median of {REPEATS}")
    columns = ("asked", "everything", "beside words", "the newest tenth", "few hold both words")
    for column in columns:
        table.add_column(column, justify="left" if column == "asked" else "right")
    whole = _authority(store)
    tenth = _limited(whole, BEGIN + records * STEP * 9 // 10)
    took = {name: _ask(store, whole, mode) for name, mode in ways.items()}
    part = {name: _ask(store, tenth, mode) for name, mode in ways.items()}
    few = {name: _ask(store, whole, mode, RARE) for name, mode in ways.items()}
    for name in ways:
        ratio = took[name] / took["words"]
        others = (f"{part[name]:.1f}", f"{few[name]:.1f}")
        table.add_row(name, f"{took[name]:.1f}", f"{ratio:.1f} ×", *others)
    console.print(table)


def _authority(store: SqlRecordStore) -> ReadAuthority:
    owner = Resolved(TokenKind.OWNER, store.subject_id, "", "", "", 0)
    with store.snapshot() as snapshot:
        return read_authority(owner, snapshot.connections(), {"mail": parse_declaration(MAIL)})


def _limited(whole: ReadAuthority, since_ns: int) -> ReadAuthority:
    sources = (each for each in whole.sources if each.declared.consent_time_field is not None)
    bounded = tuple(
        replace(
            each,
            time_constraint=TimeConstraint(each.declared.consent_time_field or "", since_ns),
        )
        for each in sources
    )
    return replace(whole, sources=bounded)


def _show_mistyped(store: SqlRecordStore, records: int, console: Console) -> None:
    title = f"{records} records, a word alone, ms of processor, median of {REPEATS}"
    table = Table(title=title)
    for column in ("asked", "by words", "mistyped", "more", "hybrid", "mistyped", "more"):
        table.add_column(column, justify="left" if column == "asked" else "right")
    authority = _authority(store)
    for name, first in SPELLED.items():
        words = [_word(first + n) for n in range(REPEATS)]
        typos = [f"{word[:3]}{word[2:]}" for word in words]
        cells: list[str] = []
        for mode in (SearchMode.WORDS, SearchMode.HYBRID):
            right, wrong = (_asked(store, authority, mode, each) for each in (words, typos))
            cells += [f"{each:.1f}" for each in (right, wrong, wrong - right)]
        table.add_row(name, *cells)
    console.print(table)


def _ask(
    store: SqlRecordStore,
    authority: ReadAuthority,
    mode: SearchMode,
    words: tuple[int, int] = COMMON,
) -> float:
    first, other = words
    texts = [f"{_word(first + n % 9)} {_word(other + n % 5)}" for n in range(REPEATS)]
    return _asked(store, authority, mode, texts)


def _asked(
    store: SqlRecordStore, authority: ReadAuthority, mode: SearchMode, texts: Sequence[str]
) -> float:
    rng = random.Random(11)
    embedder = Generated(MODEL, rng)
    sealer = store_sealer(store, rng.randbytes, BEGIN)
    ports = ReadPorts(store, sealer, lambda: BEGIN, rng.randbytes, embedder=embedder)

    def call(text: str) -> None:
        with store.snapshot() as snapshot:
            search(ports, snapshot, authority, SearchQuery(text, mode=mode))

    return _milliseconds([partial(call, text) for text in texts])


def _milliseconds(calls: Sequence[Callable[[], object]]) -> float:
    calls[0]()
    took: list[float] = []
    for each in calls:
        begun = time.process_time_ns()
        each()
        took.append((time.process_time_ns() - begun) / 1e6)
    return median(took)


def _show_model(folder: Path, console: Console) -> None:
    """By the clock: the processor time is another process's."""
    process = ModelProcess(folder, "bench", seconds=120)
    texts = ["how did we settle the invoice of last spring", "rain", "who wrote about the garden"]
    process.embed(texts, is_query=True)
    took: list[float] = []
    for number in range(60):
        begun = time.perf_counter()
        process.embed([texts[number % len(texts)]], is_query=True)
        took.append((time.perf_counter() - begun) * 1e3)
    console.print(f"a query embedded in {median(took):.1f} ms (least {min(took):.1f})")
    passage = "They met at the station and talked about what to do with the house. " * 8
    begun = time.perf_counter()
    for _ in range(4):
        process.embed([passage] * 16, is_query=False)
    console.print(f"{64 / (time.perf_counter() - begun):.0f} passages of 550 characters a second")
    process.close()


if __name__ == "__main__":
    main()
