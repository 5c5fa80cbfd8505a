"""How SQLite says what databases say differently."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import apsw
import orjson

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.values import Comparable, ValueKind, bound, comparable
from personal_server.enforcement.plans import FieldWindowPlan
from personal_server.storage.folding import fold
from personal_server.storage.sql.dialect import Conditions, Lines, Value
from personal_server.storage.sql.reads.word_entries import marked, sought_entries
from personal_server.storage.sql.records.word_index import MARK, STEM_MARK
from personal_server.storage.tables import ColumnKind

SCRATCH = "temp."  # where tables are that no file holds
# What `merge_words` merges (what writes merge themselves stays as it is), and how many bytes of
# words wait in memory for the end of a transaction: a batch of mails goes into the index at once.
WORD_INDEX_SETTINGS = {"usermerge": 2, "hashsize": 8 * 1024 * 1024}

_TYPES = {
    ColumnKind.TEXT: "TEXT",
    ColumnKind.INTEGER: "INTEGER",
    ColumnKind.FLAG: "INTEGER",
    ColumnKind.BYTES: "BLOB",
    ColumnKind.BITS: "BLOB",
    ColumnKind.SCALAR: "ANY",
    ColumnKind.JSON: "TEXT",
}


class SqliteDialect:
    """Field names are `[A-Za-z0-9_-]`, so that they stand in a JSON path without escapes."""

    numbered_key = "INTEGER PRIMARY KEY AUTOINCREMENT"
    line = "rowid"
    looked_at_seconds = 2e-6
    ordered_join = "CROSS JOIN"
    steers = True
    waits = False
    packs = True
    find_table = "SELECT 1 FROM sqlite_schema WHERE name = ?"
    find_column = "SELECT 1 FROM pragma_table_info(?) WHERE name = ?"

    def column_type(self, kind: ColumnKind) -> str:
        """One of the types that STRICT tables know."""
        return _TYPES[kind]

    def table_options(self, *, rowid: bool) -> str:
        """Values have the type of their column; lines lie by their key where they can."""
        return " STRICT" if rowid else " STRICT, WITHOUT ROWID"

    def comparable_type(self, kind: ValueKind) -> str:  # noqa: ARG002 (the port's)
        """None: each value keeps the type that it has."""
        return ""

    def create_table(self, name: str, *, scratch: bool = False) -> str:
        """In memory, or in the file."""
        return f"CREATE TABLE {SCRATCH if scratch else ''}{name}"

    def create_index(self, name: str, *, unique: bool = False, scratch: bool = False) -> str:
        """Beside its table."""
        return f"CREATE {'UNIQUE ' if unique else ''}INDEX {SCRATCH if scratch else ''}{name}"

    def word_index(self, name: str, *, scratch: bool = False) -> list[str]:
        """The index keeps words, not texts, and forgets them one id at a time."""
        table = f"{SCRATCH if scratch else ''}{name}"
        tokens = f"ascii tokenchars '{MARK}{STEM_MARK}'"
        options = f"words, content='', contentless_delete=1, tokenize=\"{tokens}\""
        statement = f"CREATE VIRTUAL TABLE {table} USING fts5 ({options})"
        settings = {} if scratch else WORD_INDEX_SETTINGS
        setting = f"INSERT INTO {name} ({name}, rank) VALUES"
        return [statement, *(f"{setting} ('{n}', {value})" for n, value in settings.items())]

    def drop_words(self, name: str) -> list[str]:
        """The tables that it lies in go with it."""
        return [f"DROP TABLE IF EXISTS {name}"]

    def listed(self, array: str) -> str:
        """Elements of the array."""
        return f"json_each({array}) AS asked"

    def indexed_lines(
        self, index: str, words: Sequence[tuple[int, str]]
    ) -> Iterator[tuple[str, Sequence[str], Lines]]:
        """As they are."""
        yield index, ("rowid", "words"), words

    def parts_of(self, table: str) -> tuple[str, ...]:
        """A word index lies in tables of its own."""
        return (table,) if table[0] in "rh" else (f"{table}_data", f"{table}_docsize")

    def last_number(self, table: str, column: str) -> str:  # noqa: ARG002 (the port's)
        """Kept beside the tables."""
        return f"SELECT seq FROM sqlite_sequence WHERE name = '{table}'"  # noqa: S608

    def set_last_number(self, table: str, column: str) -> str:  # noqa: ARG002 (the port's)
        """A table that never had a line has none."""
        return (
            "INSERT OR REPLACE INTO sqlite_sequence (rowid, name, seq) VALUES"  # noqa: S608
            f" ((SELECT rowid FROM sqlite_sequence WHERE name = '{table}'), '{table}', ?)"
        )

    def walking(self, index: str) -> str:
        """The planner obeys, or the statement fails."""
        return f" INDEXED BY {index}"

    def unsteering(self, comparison: str) -> str:
        """An expression is no column, and no index serves it."""
        return f"+{comparison}"

    def one_of_keys(self, key: str, array: str) -> str:
        """The index is named (`walking`)."""
        return f"{key} IN {self.values(array, ColumnKind.TEXT)}"

    def behind_index(self, condition: str) -> str:
        """The index is named (`walking`)."""
        return condition

    def with_line(self, number: str, lines: str) -> str:
        """The planner keeps the order of a cross join."""
        return f"CROSS JOIN {lines} ON r.id = {number}"

    def of_each(self, ids: str, table: str, where: str) -> str:
        """The planner keeps the order of a cross join."""
        return f"({ids}) AS v CROSS JOIN {table} b ON {where} AND b.id = v.id"

    def values(self, array: str, kind: ColumnKind) -> str:  # noqa: ARG002 (the port's)
        """Elements of the array."""
        return f"(SELECT value FROM json_each({array}))"  # noqa: S608

    def bytes_of(self, text: str) -> str:
        """Damaged texts are no texts."""
        return f"CAST({text} AS BLOB)"

    def as_stored(self, column: str, kind: ValueKind) -> str:  # noqa: ARG002 (damage knows none)
        """By the type that is there."""
        return f"CASE typeof({column}) WHEN 'text' THEN {self.bytes_of(column)} ELSE {column} END"

    def rounded(self, number: str) -> str:
        """Exact below 2^53."""
        return f"CAST(round({number}) AS INTEGER)"

    def quotient(self, number: str, divisor: str) -> str:
        """A division of integers, or one of doubles without its fraction."""
        return f"CAST(({number}) / {divisor} AS INTEGER)"

    def integer_sums(self, integer: str) -> tuple[str, ...]:
        """Neither half comes near 64 bits."""
        return (f"sum({integer} >> 32)", f"sum({integer} & {(1 << 32) - 1})")

    def is_dated(self, changes: str, sequence: str) -> str:
        """The first of each pair."""
        return (
            f"EXISTS (SELECT 1 FROM json_each({changes}) f"  # noqa: S608
            f" WHERE json_extract(f.value, '$[0]') = {sequence})"
        )

    def is_json(self, text: str) -> str:
        """The parsed text is kept for the functions that follow."""
        return f"json_valid({text})"

    def string_at(self, text: str, field: str) -> str:
        """A JSON null is no SQL null until it is asked for its type."""
        path = f"'$.\"{field}\"'"
        return f"CASE json_type({text}, {path}) WHEN 'text' THEN json_extract({text}, {path}) END"

    def alike(
        self, text: str, sought: str, *, starts: bool = False, ends: bool = False
    ) -> tuple[str, Value]:
        """SQLite's own `lower` knows ASCII only."""
        if starts and ends:
            return f"pdpp_fold({text}) = ?", fold(sought)
        return f"pdpp_find({text}, ?) {'=' if starts else '>='} 0", sought

    def window(
        self, texts: str, params: Sequence[Value], plan: FieldWindowPlan
    ) -> tuple[str, tuple[Value, ...]]:
        """Each text is parsed once."""
        path = f'$."{plan.field}"'
        values = (path, path, path, plan.offset_chars, plan.before_chars, plan.match, plan.match)
        return _WINDOW.format(texts=texts), (*params, *values, plan.limit_chars)

    def comparable_at(self, text: str, field: str, kind: ValueKind | None) -> str:
        """Booleans and lists by their type; all else by the function that fills columns."""
        path = f"'$.\"{field}\"'"
        if kind is None:
            return f"iif(json_type({text}, {path}) = 'array', json_extract({text}, {path}), NULL)"
        if kind is ValueKind.BOOLEAN:
            return f"CASE json_type({text}, {path}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 END"
        # bytes that are no text cannot be handed to a function as one
        value = f"json_extract({text}, {path})"
        value_sql = (
            f"CASE json_type({text}, {path}) WHEN 'text' THEN CAST({value} AS BLOB)"
            f" WHEN 'integer' THEN {value} WHEN 'real' THEN {value} END"
        )
        return f"pdpp_comparable({value_sql}, '{kind.value}')"

    def matches(
        self,
        index: str,
        words: WordQuery,
        indexes: Mapping[str, int],
        among: Mapping[str, int] | None = None,
        visible: Conditions = ((), ()),  # noqa: ARG002 (it is walked by its numbers)
    ) -> Conditions:
        """The table stands for its only column."""
        return (f"{index} MATCH ?",), (all_in_any(words, indexes, among),)

    def bits(self, content: str) -> str:
        """Bytes."""
        return content

    def sign_distance(self, signs: str) -> str:
        """The extension takes bytes for numbers unless it is told that they are bits."""
        return f"vec_distance_hamming(vec_bit({signs}), vec_bit(?))"

    def vector_distance(
        self, column: str, vector: bytes
    ) -> tuple[str, tuple[Value, ...], Callable[[Any], float]]:
        """A vector of zeros has no direction: it is far from all."""
        apart = f"ifnull(vec_distance_cosine(vec_int8({column}), vec_int8(?)), 1.0)"
        return apart, (vector,), float

    def bound(self, value: Comparable | None) -> Value:
        """Numbers beyond 64 bits are doubles."""
        return bound(value)


DIALECT = SqliteDialect()


# Words as FTS5 is asked for them: phrases stand term by term, for each term field by field.
# What no record holds:
_NO_WORD = f'"{MARK}"'


def all_in_any(
    words: WordQuery, indexes: Mapping[str, int], among: Mapping[str, int] | None = None
) -> str:
    """Records that hold each term in at least one of the fields, and nothing that is excluded,
    which is sought `among` others, if so asked.
    """
    sought = [term for term in words.terms if term.tokens]
    match = f"({' AND '.join(in_any(term, indexes) for term in sought) or _NO_WORD})"
    return " NOT ".join([match, *(in_any(term, among or indexes) for term in words.excluded)])


def in_any(term: Term, indexes: Mapping[str, int]) -> str:
    """Records that hold a term in at least one of the fields."""
    if term.is_plain:  # as hundreds of neighbours are
        alternatives = [f'"{marked(index, term.tokens[0])}"' for index in indexes.values()]
    else:
        alternatives = [
            f'"{" ".join(entry.words)}"{" *" if entry.is_prefix else ""}'
            for entry in sought_entries(term, indexes)
        ]
    return f"({' OR '.join(alternatives or [_NO_WORD])})"


_WINDOW = """
WITH text (data) AS MATERIALIZED ({texts}),
     field (type, value) AS MATERIALIZED (
       SELECT json_type(data, ?), CASE json_type(data, ?) WHEN 'text' THEN json_extract(data, ?) END
       FROM text),
     start (type, value, matched, begun) AS MATERIALIZED (
       SELECT type, value, matched,
         CASE WHEN matched IS NULL THEN min(length(value), ?) ELSE max(0, matched - ?) END
       FROM (SELECT type, value, CASE WHEN ? IS NULL THEN NULL ELSE pdpp_find(value, ?) END matched
             FROM field))
SELECT type, matched, begun, length(value), substr(value, begun + 1, ?), pdpp_sha256(value)
FROM start
"""


def _vectors() -> str | None:
    """Where the library with functions over vectors is, which comes with the extra `semantic`."""
    spec = find_spec("sqlite_vec")
    return None if spec is None or spec.origin is None else str(Path(spec.origin).parent / "vec0")


_VECTORS = _vectors()


# Functions of our own that statements call: digests, folded search, word statistics.


def register(connection: apsw.Connection) -> None:
    """Make the functions known to a connection; those over vectors where they are installed."""
    driver = cast("Any", connection)
    if _VECTORS is not None:
        driver.enable_load_extension(True)
        driver.load_extension(_VECTORS)
        driver.enable_load_extension(False)
    scalar: Callable[..., None] = driver.create_scalar_function
    scalar("pdpp_sha256", _sha256, 1, deterministic=True)
    scalar("pdpp_find", _find, 2, deterministic=True)
    scalar("pdpp_fold", _fold, 1, deterministic=True)
    scalar("pdpp_comparable", _comparable, 2, deterministic=True)
    driver.register_fts5_function("pdpp_hits", _hits)


def _sha256(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _find(text: str | None, sought: str) -> int | None:
    """Where folded text begins to match, in code points; -1 if nowhere."""
    return None if text is None else fold(text).find(fold(sought))


def _fold(text: str | None) -> str | None:
    return None if text is None else fold(text)


def _comparable(value: object, kind: str) -> Value:
    """Of a JSON value, a text of it as bytes."""
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    return bound(comparable(value, ValueKind(kind)))


def _hits(api: apsw.FTS5ExtensionApi, weights: str) -> str | int:
    """How much each term weighs, with blanks between, of one term a number: its occurrences,
    weighted field by field.

    `weights` has for each term, in the order of the phrases asked for, (phrases, weight) by field.
    """
    count, phrases = _parsed_weights(weights)
    hits_left = api.inst_count  # the index has counted all phrases itself
    totals = [0] * count
    for phrase, term, weight in phrases:
        if hits_left <= 0:  # most phrases stand in no record, or in few
            break
        if hits := len(api.phrase_column_offsets(phrase, 0)):
            hits_left -= hits
            totals[term] += weight * hits
    return totals[0] if count == 1 else " ".join(map(str, totals))


@lru_cache(maxsize=64)
def _parsed_weights(text: str) -> tuple[int, list[tuple[int, int, int]]]:
    """How many terms there are, and (phrase, term, weight): the first of each field first, and
    that of a title, in which fewer words stand, behind others.
    """
    terms: list[list[tuple[int, int]]] = orjson.loads(text)
    listed: list[tuple[int, int, int, int]] = []
    for term, fields in enumerate(terms):
        for size, weight in fields:
            listed += [(at, weight, len(listed) + at, term) for at in range(size)]
    return len(terms), [(phrase, term, weight) for _, weight, phrase, term in sorted(listed)]
