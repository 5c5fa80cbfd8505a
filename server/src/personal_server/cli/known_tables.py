"""Which stored table the next file of one belongs to: next month's statement, a copy, a new name.

Rule: a file goes where it went before, by its name or by its very content; else to the table whose
name differs by a date alone and which has the same columns. What a stored field is called, how its
column was read, and what names its rows, stays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import orjson
from msgspec.structs import replace

from pdpp_kernel.source_declaration import OWN_FILE_PREFIX
from pdpp_kernel.source_item import Data
from pdpp_sources.file_names import family_name, table_key
from pdpp_sources.reader_messages import KnownColumn, KnownTable, SeenColumn, SeenReading
from personal_server.collecting.receipts import receipts_of
from personal_server.storage.ports.whole_store import RecordStore

ALIKE = 0.6
_JUDGED = 200  # rows that are stored, for what names them
_BY_CONTENT = re.compile(r"row_[0-9a-f]{24}(?:\.\d+)?")  # the ids of rows without a key
COLUMN = "x_table_column"
_OLD_TITLE = "Column "
Columns = Mapping[str, Collection[str]]


def known_table(store: RecordStore, seen: SeenReading, facts: Data) -> KnownTable | None:
    """What is stored of the table that a file continues; None if it is the first of its kind.

    Shapes: without streams it only says what the new source is to be called, since another table
        has the name already.
    """
    tables = list(stored_tables(store))
    columns = _columns_of(seen.columns)
    for table in tables:
        if has_file(store, table, facts):
            return _with_keys(store, table)
    full_key = table_key(seen.full_name)
    same_name = [each for each in tables if each.connector_key == full_key]
    if same_name:
        return _with_keys(store, same_name[0])
    family = family_name(seen.full_name)
    of_family = [each for each in tables if family_name(each.name) == family]
    for table in of_family:
        if _are_alike(table, columns):
            return _with_keys(store, table)
    if of_family and seen.full_name != family:
        return KnownTable(full_key, seen.full_name)
    return None


def _with_keys(store: RecordStore, table: KnownTable) -> KnownTable:
    """The table with what names its rows, as those that are stored show."""
    keys: dict[str, str] = {}
    key = table.connector_key
    with store.snapshot() as snapshot:
        own = {c.connection_id for c in snapshot.connections() if c.connector_key == key}
        for held in snapshot.stored_streams():
            if held.connection_id in own and held.stream in table.streams:
                stored = snapshot.export(held.connection_id, held.stream)
                rows = [record.data for record in islice(stored, _JUDGED)]
                named = _key_of(rows, table.streams[held.stream])
                keys |= {held.stream: named} if named is not None else {}
    return replace(table, keys=keys)


def _key_of(rows: Sequence[Mapping[str, object]], columns: Mapping[str, KnownColumn]) -> str | None:
    """The column that names some rows, empty if their content does, `None` if neither is so."""
    ids = [str(row["id"]) for row in rows]
    if not ids:
        return None
    if all(map(_BY_CONTENT.fullmatch, ids)):
        return ""
    for name, column in columns.items():
        if ids == [str(row.get(column.field)) for row in rows]:
            return name
    return None


def changed_kinds(known: KnownTable, seen: SeenReading) -> dict[tuple[str, str], str]:
    """The columns that are read as another type than before: what that was, by stream and name."""
    found: dict[tuple[str, str], str] = {}
    for column in seen.columns:
        before = known.streams.get(column.stream, {}).get(column.name)
        word = _WORDS.get(before.kind, "text") if before else column.kind
        word = "code" if before and before.spelling == "code" else word
        if word != column.kind and {word, column.kind} != {"text", "code"}:
            found[column.stream, column.name] = word
    return found


_WORDS = {
    "integer": "number",
    "number": "number",
    "date": "day",
    "date-time": "instant",
    "boolean": "yes or no",
    "json": "nested",
}


def is_of_columns(known: KnownTable, seen: SeenReading) -> bool:
    """Whether a file has most of the columns of a table that is stored."""
    return bool(known.streams) and _are_alike(known, _columns_of(seen.columns))


def stored_tables(store: RecordStore) -> Iterable[KnownTable]:
    """The tables of the owner's own that an account holds."""
    with store.snapshot() as snapshot:
        current = snapshot.declarations()
        keys = {connection.connector_key for connection in snapshot.connections()}
    for each in current:
        if each.connector_key.startswith(OWN_FILE_PREFIX) and each.connector_key in keys:
            yield _table_of(each.connector_key, cast("Data", orjson.loads(each.raw)))


def _table_of(connector_key: str, declared: Data) -> KnownTable:
    streams: dict[str, dict[str, KnownColumn]] = {}
    times: dict[str, str] = {}
    for stream in cast("list[Data]", declared["streams"]):
        name, time = str(stream["name"]), stream.get("consent_time_field")
        meant = stream.get("query", {}).get("search", {}).get("semantic_fields", ())
        streams[name] = {
            column: replace(known, is_prose=known.field in meant)
            for column, known in _columns_declared(stream["schema"]["properties"])
        }
        times |= {name: str(time)} if time else {}
    return KnownTable(connector_key, str(declared["display"]["name"]), streams, times)


def _columns_declared(properties: Mapping[str, Any]) -> Iterable[tuple[str, KnownColumn]]:
    """The columns of a stream by the names that its files give them.

    Declarations of before name a column in the description of its field alone.
    """
    for field, schema in properties.items():
        named = schema.get(COLUMN)
        about = str(schema.get("description", ""))
        if named is not None:
            yield str(named[0]), KnownColumn(field, str(named[1]), _kind(schema), *_unit(schema))
        elif about.startswith(_OLD_TITLE):
            name = about.removeprefix(_OLD_TITLE).partition(", written as ")[0].strip()
            yield name, KnownColumn(field, None, _kind(schema), *_unit(schema))


def _unit(schema: Data) -> tuple[str | None, str | None, bool]:
    """The unit of a column, the field that says it, and whether it says that of others."""
    is_currency = schema.get("x_pdpp_type") == "currency"
    return schema.get("x_pdpp_unit"), schema.get("x_pdpp_unit_field"), is_currency


def _kind(schema: Data) -> str:
    """The JSON type, or the format of one that is a time."""
    declared: Any = schema.get("type", "json")
    kinds = cast("list[str]", declared) if isinstance(declared, list) else [str(declared)]
    return str(schema.get("format") or next((k for k in kinds if k != "null"), "json"))


def _columns_of(seen: Iterable[SeenColumn]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for column in seen:
        found.setdefault(column.stream, set()).add(column.name)
    return found


def _are_alike(table: KnownTable, columns: Columns) -> bool:
    """Whether each stream of the file has most of its columns with one that is stored."""
    return all(
        any(
            len(set(names) & stored.keys()) >= ALIKE * len(set(names) | stored.keys())
            for stored in table.streams.values()
        )
        for names in columns.values()
    )


def has_file(store: RecordStore, table: KnownTable, facts: Data) -> bool:
    """Whether a stored table got this very file."""
    digest = facts.get("sha256")
    return bool(digest and digest in digests_of(store, table.connector_key))


def digests_of(store: RecordStore, connector_key: str) -> set[str]:
    """The SHA-256 of the files that were imported into the accounts of a source."""
    with store.snapshot() as snapshot:
        own = [c for c in snapshot.connections() if c.connector_key == connector_key]
    return {
        str(receipt["sha256"])
        for connection in own
        for receipt in receipts_of(store, connection.connection_id)
        if "sha256" in receipt
    }
