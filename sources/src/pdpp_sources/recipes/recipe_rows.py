"""The rows of the files that a recipe knows: of JSON where its pointers lead, of CSV all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice, product
from pathlib import PurePosixPath
from typing import Any

import msgspec
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, Skipped
from pdpp_kernel.texts import message
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import ExportMember
from pdpp_sources.common.json_stream import (
    Element,
    json_elements,
    json_lines,
    json_objects,
    json_within,
)
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.text import decoded
from pdpp_sources.recipes.json_places import json_places, path_of, segments_of
from pdpp_sources.recipes.recipe import Recipe, RecipeStream
from pdpp_sources.recipes.recipe_values import has_place
from pdpp_sources.tables.csv_file import CsvForm, charset_of, form_with_header, rows_of_csv
from pdpp_sources.tables.json_file import form_of_json
from pdpp_sources.tables.meta_text import MetaText

HEAD_BYTES = 64 * 1024
_MOST_NAMINGS = 64
# What X writes before its JSON, so that a browser can load it.
_ASSIGNED = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*[\w.$]{1,100}\s*=\s*(?=[\[{])")
_AS_FORMULA = re.compile(r'\s*="([^"]*)"\s*')
_PLAIN_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)  # one that is not escaped in any file
_IS_JSON = re.compile(rb"\A(?:\xef\xbb\xbf)?\s*[\[{]")


class RecipeRow(msgspec.Struct, frozen=True):
    """One row, and the streams that it may be a record of.

    Shapes: `around` has the names of what it stands in, by the words of `AROUND`.
    """

    position: int
    where: str
    values: Data
    streams: tuple[RecipeStream, ...]
    around: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])


class Cells(dict[str, Any]):
    """The cells of a row of CSV by the names of their columns, whose case counts for nothing."""

    def get(self, key: str, default: Any = None) -> Any:
        """The cell of a column."""
        return super().get(key.strip().lower(), default)


def streams_in(member: ExportMember, recipe: Recipe) -> tuple[RecipeStream, ...]:
    """The streams whose rows a file holds, by its name and by its first row."""
    named = [s for s in recipe.streams if s.within is None and is_named(member.name, s.files)]
    if not named or not member.size_bytes:
        return ()
    try:
        BOOKMARK.looking_at(member)
        head = member.head(HEAD_BYTES)
        if not is_json(head):
            return tuple(s for s in named if not s.rows and csv_form(head, s) is not None)
        return tuple(_with_places(member, head, named))
    except (MemberDamaged, BadRecord):
        return ()


def is_named(name: str, patterns: Sequence[str]) -> bool:
    """Whether a file is called so; a pattern with a slash is one of the end of its path.

    In: `deleted/diary.csv` and `diary*.csv`, `!deleted/*`; out: no, as a pattern behind ! fits it.
    """
    wanted = [pattern for pattern in patterns if not pattern.startswith("!")]
    unwanted = [pattern[1:] for pattern in patterns if pattern.startswith("!")]
    return (not wanted or any(_fits(name, p) for p in wanted)) and not any(
        _fits(name, p) for p in unwanted
    )


def _fits(name: str, pattern: str) -> bool:
    path, form = name.lower(), pattern.lower()
    if "/" in form:
        return fnmatchcase(path, f"*/{form}") or fnmatchcase(path, form)
    return fnmatchcase(path.rpartition("/")[2], form)


def is_json(head: bytes) -> bool:
    """Whether a file is JSON, also with the name of a variable before it."""
    return bool(_IS_JSON.match(head) or _ASSIGNED.match(head))


def csv_form(head: bytes, stream: RecipeStream) -> CsvForm | None:
    """The form of a file of CSV with the columns of a stream, whichever of their names it has."""
    for names in islice(product(*stream.has), _MOST_NAMINGS):
        if form := form_with_header(head, {name.lower() for name in names}):
            return form
    return None


def _with_places(
    member: ExportMember, head: bytes, named: Sequence[RecipeStream]
) -> Iterator[RecipeStream]:
    """The streams of which the first row of a file of JSON has what it must."""
    first: Data | None = None
    for stream in named:
        if stream.rows:
            rows = _json_rows(member, head, [stream]) if may_have(member, stream.rows) else ()
            row = next((row for row in rows if isinstance(row, RecipeRow)), None)
            if row and all(has_place(row.values, places) for places in stream.has):
                yield stream
            continue
        first = _first_object(head) if first is None else first
        if (first and all(has_place(first, places) for places in stream.has)) or (
            not first and all(any(_is_written(n, head) for n in each) for each in stream.has)
        ):
            yield stream


def may_have(member: ExportMember, pointer: str) -> bool:
    """Whether the last name of a pointer is written anywhere in a file.

    Looking for it takes a hundredth of the time that finding its place does, and where any file may
    be called so, most have none: Google's places are a gigabyte.
    """
    names = [part for part in segments_of(pointer) if _PLAIN_NAME.fullmatch(part)]
    if not names:
        return True
    name, before = f'"{names[-1]}"'.encode(), b""
    with member.open() as stream:
        while chunk := stream.read(HEAD_BYTES):
            before += chunk
            if name in before:
                return True
            before = before[-len(name) :]
    return False


def _first_object(head: bytes) -> Data:
    """The first object of a file; an empty one where it is longer than what was read of it."""
    text = decoded(head)
    try:
        value, _ = json.JSONDecoder().raw_decode(text, text.index("{"))
    except (ValueError, RecursionError):
        return {}
    return value


def _is_written(place: str, head: bytes) -> bool:
    last = path_of(place)[-1]
    return re.search(rb'"' + re.escape(last.encode()) + rb'"\s*:', head) is not None


def rows_in(member: ExportMember, streams: Sequence[RecipeStream]) -> Iterator[RecipeRow | Skipped]:
    """The rows of a file in their order."""
    head = member.head(HEAD_BYTES)
    path = PurePosixPath(member.name)
    names = {"file": path.stem, "folder": path.parent.name}
    if not is_json(head):
        yield from _csv_rows(member, head, streams, names)
        return
    texts = MetaText(member)
    for row in _json_rows(member, head, streams):
        if isinstance(row, RecipeRow):
            around = {**names, **row.around}
            yield replace(row, values=texts.mended(row.values), around=around)
        else:
            yield row


def _json_rows(
    member: ExportMember, head: bytes, streams: Sequence[RecipeStream]
) -> Iterator[RecipeRow | Skipped]:
    pointers = list(dict.fromkeys(stream.rows for stream in streams))
    by_pointer = [tuple(s for s in streams if s.rows == pointer) for pointer in pointers]
    if pointers == [""] and not _ASSIGNED.match(head):
        for element in _whole(member, head):
            yield _row(element, by_pointer[0])
        return
    is_found = False
    for place in json_places(member, [segments_of(pointer) for pointer in pointers]):
        is_found = True
        around = {"member": place.name}
        for element in json_within(member, place.begin, place.end, is_list=place.is_list):
            yield _row(element, by_pointer[place.number], around)
    if not is_found:
        reason = message("the rows that the recipe names are not in this file")
        yield Skipped(member.name, "no_rows", reason, member.offset)


def _whole(member: ExportMember, head: bytes) -> Iterator[Element | Skipped]:
    """The objects of a file: of its list, one on each line, or one after the other."""
    if form_of_json(head) == "lines":
        return json_lines(member)
    if decoded(head).lstrip().startswith("["):
        return json_elements(member)
    return json_objects(member)


def _row(
    element: Element | Skipped,
    streams: tuple[RecipeStream, ...],
    around: Mapping[str, str] | None = None,
) -> RecipeRow | Skipped:
    if isinstance(element, Skipped):
        return element
    return RecipeRow(element.position, element.where, element.value, streams, around or {})


def _csv_rows(
    member: ExportMember, head: bytes, streams: Sequence[RecipeStream], names: Mapping[str, str]
) -> Iterator[RecipeRow | Skipped]:
    forms = [form for stream in streams if (form := csv_form(head, stream))]
    if not forms:
        return
    form = replace(forms[0], charset=charset_of(member))
    columns = [name.lower() for name in form.names]
    for row in rows_of_csv(member, form):
        where, position = member.where(row.offset), member.offset + row.offset
        if row.code:
            yield Skipped(where, row.code, row.reason, position)
        elif len(row.cells) > form.width and any(cell.strip() for cell in row.cells[form.width :]):
            reason = message("the row has more cells than the header")
            yield Skipped(where, "bad_record", reason, position)
        else:
            cells = Cells(zip(columns, map(_bare, row.cells), strict=False))
            yield RecipeRow(position, where, cells, tuple(streams), names)


def _bare(cell: str) -> str:
    """A cell without what keeps a spreadsheet from taking a code for a number: `="0316"`."""
    found = _AS_FORMULA.fullmatch(cell)
    return found[1] if found else cell
