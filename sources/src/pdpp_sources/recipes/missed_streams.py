"""The streams of an owner's recipe that find no row, or find it in files of other names."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping

from msgspec.structs import replace

from pdpp_kernel.source_item import Skipped
from pdpp_kernel.texts import CatalogueText, message
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.recipes.recipe import Recipe, RecipeStream
from pdpp_sources.recipes.recipe_rows import (
    HEAD_BYTES,
    RecipeRow,
    is_json,
    is_named,
    may_have,
    rows_in,
    streams_in,
)
from pdpp_sources.recipes.recipe_values import has_place
from pdpp_sources.tables.csv_file import SUFFIXES
from pdpp_sources.tables.reader import JSON_SUFFIXES

_OF_ROWS = frozenset({*SUFFIXES, *JSON_SUFFIXES})


def missed_streams(
    export: Export, recipe: Recipe, found: Mapping[str, tuple[RecipeStream, ...]]
) -> Iterator[Skipped]:
    """A report of each stream that has no row: in any file called so (`no_rows`), or none is so.

    In: `found`, the streams by the names of the files in which they have rows. A stream that says
    nothing of names is looked for in the files of rows that no stream reads. Where no file is
    called so (`no_file`), one that no stream reads and that has its rows is named, or that there is
    none; of a single file that is another's nothing is said.
    """
    begin = min((m.offset for m in export.members if m.name in found), default=0)
    with_rows = {stream.name for streams in found.values() for stream in streams}
    for stream in recipe.streams:
        if stream.within is not None or stream.name in with_rows:
            continue
        for member in export.members:
            if _may_be(member, stream, is_read=member.name in found):
                reason = _why(member, stream)
                if reason is not None:
                    yield Skipped(member.name, "no_rows", reason, begin)
                break
        else:
            yield from _unnamed(export, stream, found, begin)


def misnamed_files(export: Export, recipe: Recipe) -> Iterator[Skipped]:
    """A report (`no_file`) of each file with rows of a stream, but not called as its `files` say.

    Of a recipe that knows no file of an export.
    """
    for stream in recipe.streams:
        if stream.within is None:
            yield from _fitting(export.members, stream, 0)


def _unnamed(
    export: Export, stream: RecipeStream, found: Container[str], begin: int
) -> Iterator[Skipped]:
    """Why a stream whose `files` name no file has no row."""
    patterns = [pattern for pattern in stream.files if not pattern.startswith("!")]
    if not patterns:
        return
    others = [member for member in export.members if member.name not in found]
    fitting = list(_fitting(others, stream, begin))
    yield from fitting
    if not fitting and len(export.members) > 1:
        reason = message(
            "%(stream)s: no file has a name that fits `files` (%(names)s)",
            stream=stream.name,
            names=", ".join(patterns),
        )
        yield Skipped(stream.name, "no_file", reason, begin)


def _fitting(
    members: Iterable[ExportMember], stream: RecipeStream, begin: int
) -> Iterator[Skipped]:
    """The first file that has rows of a stream under another name than its `files` say."""
    for member in members:
        is_of_rows = member.size_bytes and member.suffix in _OF_ROWS
        if is_of_rows and not is_named(member.name, stream.files) and _has_rows(member, stream):
            reason = message(
                "%(stream)s: this file has its rows, but its name does not fit `files` (%(names)s)",
                stream=stream.name,
                names=", ".join(stream.files),
            )
            yield Skipped(member.name, "no_file", reason, begin)
            return


def _has_rows(member: ExportMember, stream: RecipeStream) -> bool:
    of_any_name = replace(stream, files=())
    return bool(streams_in(member, Recipe("", "", "", "", (of_any_name,))))


def _may_be(member: ExportMember, stream: RecipeStream, *, is_read: bool) -> bool:
    if not member.size_bytes or not is_named(member.name, stream.files):
        return False
    is_by_name = any(not pattern.startswith("!") for pattern in stream.files)
    return is_by_name or (not is_read and member.suffix in _OF_ROWS)


def _why(member: ExportMember, stream: RecipeStream) -> CatalogueText | None:
    """Why a stream has no row in a file; None where the file cannot be read."""
    try:
        BOOKMARK.looking_at(member)
        is_there = not stream.rows or (
            is_json(member.head(HEAD_BYTES)) and may_have(member, stream.rows)
        )
        rows = rows_in(member, [stream]) if is_there else ()
        first = next((row for row in rows if isinstance(row, RecipeRow)), None)
    except (MemberDamaged, BadRecord):
        return None
    if first is None and stream.rows:
        return message(
            "%(stream)s: nothing stands at `rows` (%(place)s)",
            stream=stream.name,
            place=stream.rows,
        )
    lacking = [
        " / ".join(places)
        for places in stream.has
        if first is None or not has_place(first.values, places)
    ]
    return message(
        "%(stream)s: the first row has no column or field that `has` requires (%(names)s)",
        stream=stream.name,
        names=", ".join(lacking),
    )
