"""A second look at a path: a recipe that lies in it, and files that were a table before.

Rule: a recipe in an export is shown and asked about, never trusted. What was imported as a plain
table before a source knew it goes on there, so that nothing is stored twice and every app keeps
what it may read; the report says which source knows it now, and `--as` makes one of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from pdpp_mcp_server.commands.tables import indented, plain, words
from pdpp_sources.common.errors import BadRecord, ExportError
from pdpp_sources.file_names import family_name, table_key
from pdpp_sources.reader_messages import KnownTable, RecipeInside
from pdpp_sources.reader_process import PathContents, ProcessReading, ReaderProcess, Wanted
from personal_server.cli.import_questions import YES, answered
from personal_server.cli.known_tables import (
    digests_of,
    has_file,
    is_of_columns,
    known_table,
    stored_tables,
)
from personal_server.cli.store import ImportOpener
from personal_server.storage.ports.whole_store import RecordStore

TABLE = "table"
_SHOWN_FILES = 5
_SHOWN_CHARS = 200


class LookingCommand(Protocol):
    """What an import asked for; without an opener it stores nothing."""

    @property
    def reader(self) -> ReaderProcess:
        """What looks."""
        ...

    @property
    def open_ports(self) -> ImportOpener | None:
        """What opens the store."""
        ...

    @property
    def as_json(self) -> bool:
        """Whether programs read the report."""
        ...


def second_look(
    command: LookingCommand,
    path: Path,
    wanted: Wanted,
    found: PathContents | ExportError,
) -> tuple[PathContents, list[str]]:
    """What a path holds, and the sources that know it now where a table goes on.

    Raises: ExportError, such as the refusal that the first look found.
    """
    reader = command.reader
    if reader.recipes_inside:
        may_ask = sys.stdin.isatty() and not command.as_json
        chosen = _chosen_recipe(reader.recipes_inside, wanted, may_ask=may_ask)
        if chosen is not None:
            return reader.look(path, chosen), []
    if isinstance(found, ExportError):
        raise found
    if command.open_ports is None:
        return found, []
    with command.open_ports() as ports:
        contents, keys = as_before(reader, ports.store, wanted, found)
    if keys:
        words().print(
            f"  These files are known as {', '.join(keys)} now. They go on in their table, so that "
            f"apps keep what they read. To make a source of them: --as {keys[0]}"
        )
    return contents, keys


def _chosen_recipe(
    found: Sequence[RecipeInside], wanted: Wanted, *, may_ask: bool
) -> Wanted | None:
    """How to read the export by the recipe that its owner chose; `None` where they chose none."""
    for recipe in found:
        words().print(plain(f"  This export contains a recipe, {recipe.name}."), soft_wrap=True)
        files = ", ".join(recipe.files[:_SHOWN_FILES])
        indented(f"it reads {files} as {recipe.source}", 4, words())
        for label, detail in zip(recipe.labels, recipe.details, strict=True):
            indented(f"{label}: {detail}"[:_SHOWN_CHARS], 6, words())
        words().print("  Whoever made the export may have written the recipe.")
        if not may_ask:
            words().print("  It is not used. To use it, read it and name it with --recipe.")
        elif answered("  Read the export by this recipe? [y/N] ").lower() in YES - {""}:
            return replace(wanted, recipe=Path(recipe.name), recipe_text=recipe.text)
    return None


def as_before(
    reader: ReaderProcess, store: RecordStore, wanted: Wanted, contents: PathContents
) -> tuple[PathContents, list[str]]:
    """The path as its table reads it, and the sources that know it now; else as it was seen.

    In: `goodreads_library_export.csv`, seen as Goodreads, and a stored table of that name whose
    columns it has. Out: the file read as that table, `["goodreads"]`.
    Rule: what was no table but the object of a file as one row becomes the records of its source.
    Raises: ExportError.
    """
    keys = [each.connector_key for each in contents.readings]
    if wanted.connector_key or not _may_be_stored(store, contents):
        return contents, []
    files = {name for reading in contents.readings for name in reading.seen.files}
    try:
        again = reader.look(contents.path, replace(wanted, connector_key=TABLE))
        table = again.readings[0]
        known = known_table(store, table.seen, table.facts())
        is_all = files <= set(table.seen.files)
        is_alike = known and is_all and is_of_columns(known, table.seen)
        if known and is_alike and not _is_a_row_a_file(store, known, table):
            return again, keys
    except (BadRecord, ExportError):
        pass  # it is no table any more
    return reader.look(contents.path, wanted), []


def _is_a_row_a_file(store: RecordStore, known: KnownTable, reading: ProcessReading) -> bool:
    """Whether a stored table of JSON holds no more rows than it got files."""
    if not all(name.lower().endswith(".json") for name in reading.seen.files):
        return False
    with store.snapshot() as snapshot:
        key = known.connector_key
        own = {c.connection_id for c in snapshot.connections() if c.connector_key == key}
        stored = [each for each in snapshot.stored_streams() if each.connection_id in own]
        count = sum(each.record_count for each in stored)
    return count <= len(digests_of(store, known.connector_key))


def _may_be_stored(store: RecordStore, contents: PathContents) -> bool:
    """Whether a stored table bears the name of one of the files, or holds this very content."""
    paths = [contents.path, *(Path(n) for r in contents.readings for n in r.seen.files)]
    names = {name for path in paths for name in (path.stem, family_name(path.stem))}
    keys = {table_key(name) for name in names}
    return any(
        each.connector_key in keys
        or any(has_file(store, each, r.facts()) for r in contents.readings[:1])
        for each in stored_tables(store)
    )
