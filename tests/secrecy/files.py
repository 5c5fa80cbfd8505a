"""What a test run leaves on the disk: databases whole, and every other file.

Rule: a credential file of the command line is the one file that holds tokens by design.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from pages.parts import modules
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.sqlite.database import SqliteSession
from tests.secrecy.watch import Watch

MAGIC = b"SQLite format 3\x00"
DIGEST_BYTES = 32
SMALLEST_PAGE_BYTES = 512
LEAVES = (b"\x0d", b"\x0a")  # of a table, and of one without numbers of rows
NO_CELL = b"\x00\x00"
VALUE_CHARS = 8
_RECORDS = re.compile(r"h[0-9]+\Z")
_RUN = re.compile(r"\w+")
_WORD = re.compile(r"[A-Za-z]{8,}")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CREDENTIALS = re.compile(r"/(clients|owners)/[^/]+\.json\Z")


def look_at_files(folder: Path, watch: Watch) -> list[str]:
    """Look through every file below a folder; where record values stand that may not."""
    found: list[str] = []
    held: dict[str, str] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
        place = path.relative_to(folder).as_posix()
        if _CREDENTIALS.search(f"/{place}"):
            continue
        raw = path.read_bytes()
        if raw.startswith(MAGIC):
            values, trail = look_at_database(path, raw, place, watch)
            found += _misplaced(values, trail, "the audit trail")
            held = values | held
        for page in pages(raw):
            watch.hear(page, place)
    return found + _misplaced(held, "\n".join(watch.logged), "the log")


def pages(raw: bytes) -> Iterator[bytes]:
    """The pages of a database, each for itself; any other file as it is.

    No text goes on from one page to the next: each begins with a header, or with the number of the
    page that goes on, and what is longer than a page is read from its table.
    """
    size = page_bytes(raw)
    if size < SMALLEST_PAGE_BYTES:  # 1 stands for the largest, which nothing here has
        yield raw
        return
    for start in range(0, len(raw), size):
        yield raw[start : start + size]


def page_bytes(raw: bytes) -> int:
    """How long a page of a database is, as its header says; 0 for any other file."""
    return int.from_bytes(raw[16:18], "big") if raw.startswith(MAGIC) else 0


def is_empty_table(raw: bytes, root: int) -> bool:
    """Whether the root page (1 …) of a table says that it has no row: a leaf with no cell.

    False where the page cannot be told: the table is asked then.

    Source: the SQLite file format, 1.6 B-tree Pages.  Most of the hundred tables of a database that
    a test leaves are empty, and to ask each of them takes longer than all else.
    """
    size = page_bytes(raw)
    begin = (root - 1) * size
    if root < 2 or size < SMALLEST_PAGE_BYTES or begin + size > len(raw):
        return False
    return raw[begin : begin + 1] in LEAVES and raw[begin + 3 : begin + 5] == NO_CELL


def look_at_database(
    path: Path, raw: bytes, place: str, watch: Watch
) -> tuple[dict[str, str], str]:
    """Dump every table; learn the digests; its record values, each at its place, and its trail."""
    log = path.with_name(f"{path.name}-wal")
    is_whole = not (log.exists() and log.stat().st_size)  # else newer pages stand in the log
    try:
        return _look_at_tables(path, raw if is_whole else b"", place, watch)
    except (apsw.NotADBError, apsw.CorruptError, UnicodeDecodeError, json.JSONDecodeError):
        return {}, ""  # broken on purpose; its bytes were read all the same


def _look_at_tables(path: Path, raw: bytes, place: str, watch: Watch) -> tuple[dict[str, str], str]:
    """The same; `raw` is empty where the file does not have every page."""
    database = SqliteSession(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY))
    tables = [name for name, root in database.rows(_TABLES) if not is_empty_table(raw, root)]
    for table in tables:
        for row in database.run(f'SELECT * FROM "{table}"'):  # noqa: S608 (names of the file)
            for value in row:
                _look_at_value(value, f"{place} table {table}", watch)
    audit = AuditRow.table.name
    trail = "\n".join(_texts(database, audit)) if audit in tables else ""
    values = set[str]()
    if trail or watch.logged:
        for table in tables:
            if _RECORDS.match(table):
                values |= _record_values(database, table)
    database.driver.close()
    return dict.fromkeys(values, place), trail


def _misplaced(values: Mapping[str, str], text: str, where: str) -> list[str]:
    words = set(_RUN.findall(text))
    return [
        f"{values[value]}: a record value stands in {where}: {value!r}"
        for value in sorted(values)
        # what stands alone begins and ends with whole words, and few values have words of a log
        if words.issuperset(_RUN.findall(value)) and value in text and _stands_alone(value, text)
        if value not in _own_words()
    ]


@cache
def _own_words() -> frozenset[str]:
    """Single words of the program, which it may say whatever a record holds."""
    return frozenset(_WORD.findall("\n".join(path.read_text("utf-8") for path in modules())))


def _stands_alone(value: str, text: str) -> bool:
    """Whether a value is not just a part of a longer word, such as the id of an account."""
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


_TABLES = (
    "SELECT name, rootpage FROM sqlite_master"
    " WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
)


def _look_at_value(value: object, place: str, watch: Watch) -> None:
    if isinstance(value, bytes):
        if len(value) == DIGEST_BYTES:
            watch.digests.add(value)
        watch.hear(value, place)
    elif isinstance(value, str):
        watch.hear(value, place)


def _texts(database: SqliteSession, table: str) -> Iterator[str]:
    for row in database.run(f'SELECT * FROM "{table}"'):  # noqa: S608 (names of the file)
        yield from (value for value in row if isinstance(value, str))


def _record_values(database: SqliteSession, table: str) -> set[str]:
    """The texts of records that are long enough to be told from a word of the program."""
    found = set[str]()
    for text in _texts(database, table):
        found |= set(_leaves(json.loads(text)))
    return found


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            yield from _leaves(member)
    elif isinstance(value, str) and len(value) >= VALUE_CHARS and not _INSTANT.match(value):
        yield value
