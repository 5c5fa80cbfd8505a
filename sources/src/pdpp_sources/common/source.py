"""The port every reader stands behind: a declaration, a recognizer, and a stream of items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Protocol

import msgspec
import orjson

from pdpp_kernel.source_item import Data, Skipped, SourceItem
from pdpp_kernel.texts import message
from pdpp_sources.common import json_values
from pdpp_sources.common.errors import BadRecord, MemberDamaged
from pdpp_sources.common.export import HEAD_BYTES, Export, ExportMember
from pdpp_sources.common.json_stream import Element
from pdpp_sources.common.resume_point import BOOKMARK

MOST_REMEMBERED = 1_000_000
_EMPTY_BYTES = 16  # an empty list, and what may stand around it, takes no more


class Claim(msgspec.Struct, frozen=True):
    """What a source says of an export: these members are mine, for this reason.

    Shapes: `missed` are reports of what it sought in the export and did not find.
    """

    members: tuple[ExportMember, ...]
    why: str
    missed: tuple[Skipped, ...] = ()


class SourceReader(Protocol):
    """A reader of one kind of export.

    `declaration` is the source declaration of docs/contract/resource-server.md 17. `read`
    streams: it holds one record at a time, yields the same items for the same bytes, never the same
    key with other data, and leaves out what lies before `start`.
    """

    @property
    def connector_key(self) -> str:
        """The short name of the source."""
        ...

    @property
    def declaration(self) -> Data:
        """What the streams are, as the resource server takes it."""
        ...

    @property
    def how_to_export(self) -> str:
        """How a person gets this export from the platform."""
        ...

    def recognize(self, export: Export) -> Claim | None:
        """Say which members of an export are of this kind, by their content."""
        ...

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield the records of an export narrowed to the members claimed."""
        ...


def claim(members: Iterable[ExportMember], reason: str) -> Claim | None:
    """A claim, unless there is nothing to claim."""
    mine = tuple(members)
    return Claim(mine, reason) if mine else None


def matching(
    export: Export,
    test: Callable[[bytes], object],
    *suffixes: str,
    head_bytes: int = HEAD_BYTES,
) -> Iterator[ExportMember]:
    """The members whose first bytes pass a test; suffixes, if given, only narrow the search."""
    for member in export.members:
        if member.size_bytes and (not suffixes or member.suffix in suffixes):
            try:
                BOOKMARK.looking_at(member)
                is_match = test(member.head(head_bytes))
            except (MemberDamaged, BadRecord):
                continue
            if is_match:
                yield member


def each_member(
    export: Export, read_member: Callable[[ExportMember], Iterator[SourceItem]]
) -> Iterator[SourceItem]:
    """Read one member after the other; report a damaged one and go on with the next.

    One that gives neither a record nor a reason is reported, too.
    """
    for member in export.members:
        position, is_silent = member.offset, member.size_bytes > _EMPTY_BYTES
        export.accounted_for.add(member.name)
        try:
            BOOKMARK.beginning(member)
            for item in read_member(member):
                position, is_silent = item.position, False
                yield item
        except MemberDamaged:
            reason = message("the rest of this file cannot be read")
            yield Skipped(member.name, "damaged_file", reason, position)
        except BadRecord as bad:
            yield Skipped(member.name, bad.code, bad.reason, position)
        else:
            if is_silent:
                reason = message("the file holds no entry")
                yield Skipped(member.name, "no_entries", reason, position)


def each_element(
    elements: Iterable[Element | Skipped], build: Callable[[Element], Iterable[SourceItem]]
) -> Iterator[SourceItem]:
    """The items that `build` makes of each element; what could not be cut out is passed on."""
    for element in elements:
        if isinstance(element, Skipped):
            yield element
        else:
            yield from one_record(element.where, element.position, partial(build, element))


def others_in(element: Element, name: str) -> Iterator[Skipped]:
    """A report of each entry of a list inside an element that is no object."""
    for inner in json_values.things(element.value, name):
        if not isinstance(inner, dict):
            reason = message("an entry of a list in the file is not an object")
            yield Skipped(element.where, "bad_record", reason, element.position)


def one_record(
    position_text: str, position: int, build: Callable[[], Iterable[SourceItem]]
) -> Iterator[SourceItem]:
    """The items that `build` makes, or a report of why it could not make them.

    Raises: BadRecord, if reading on after it was too costly before.
    """
    try:
        BOOKMARK.entry(position)
        items = tuple(build())
    except BadRecord as bad:
        yield Skipped(position_text, bad.code, bad.reason, position)
    except RecursionError:
        yield Skipped(position_text, "bad_record", "the entry is nested too deeply", position)
    else:
        yield from items
    BOOKMARK.after(position)


def beginning_at(start: int, items: Iterable[SourceItem]) -> Iterator[SourceItem]:
    """The items from a position on, for readers that cannot leap."""
    return (item for item in items if item.position >= start)


def without_repeats(items: Iterable[SourceItem]) -> Iterator[SourceItem]:
    """Give each key once; report one that comes again, with the same data or with other.

    Memory is bounded: a key beyond the first million is given as it comes.
    """
    counts: dict[int, int] = {}
    for item in items:
        if isinstance(item, Skipped):
            yield item
            continue
        key = hash((item.stream, item.data["id"]))
        data = hash(orjson.dumps(item.data, option=orjson.OPT_SORT_KEYS))
        if key not in counts:
            if len(counts) < MOST_REMEMBERED:
                counts[key] = data
            yield item
        elif counts[key] != data:
            reason = message("another entry has the same id; only the first one was imported")
            yield Skipped(item.stream, "duplicate_id", reason, item.position)
        else:
            reason = message("the same entry is in the file twice")
            yield Skipped(item.stream, "duplicate", reason, item.position)
