"""Exports read by a process of its own, so that no file can harm the one that stores.

The process (`reader_worker.py`) has given up the network, most of its memory and its time
(`confinement.py`). When a file ends it all the same, the place where it stood is kept as
too costly, another process is started, reports that place, and goes on behind it.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Self

import msgspec
import orjson
from msgspec.structs import replace

from pdpp_kernel.source_item import Data, FileText, Skipped, SourceItem
from pdpp_kernel.system.confinement import LIMITS, Limits
from pdpp_kernel.texts import parse_text
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.resume_point import Place, parse_place
from pdpp_sources.export_files import file_facts
from pdpp_sources.live_databases import copies_of_live
from pdpp_sources.reader_child import ReaderChild, ReaderEnded, skipped_of
from pdpp_sources.reader_messages import (
    KnownSources,
    KnownTable,
    ListSources,
    Look,
    Misguided,
    Read,
    ReadFile,
    Ready,
    RecipeInside,
    Refused,
    Seen,
    SeenReading,
    UnusableRecipe,
)
from pdpp_sources.reader_refusals import refusal, too_costly, with_package
from pdpp_sources.text_processes import TextProcesses

RECIPES = "recipes"  # the folder of the owner's, in the data directory
TABLES = (".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson")
DATABASES = (".sqlite", ".sqlite3", ".db", "/history", "/bookmarks")  # Chrome's have no endings
MOST_ENDS = 100  # of the process, in one reading
MOST_PLACES = 10_000


class CostlyPlaces:
    """The places of files that ended the process reading them, so that none is tried twice.

    They are digests of a file's name, size and time with an offset, kept in a file if one is named,
    which may be deleted at any time; then each costs its time once more.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._places: dict[Place, None] = {}

    def known(self) -> tuple[Place, ...]:
        """All of them, oldest first."""
        self._places = dict.fromkeys([*self._stored(), *self._places])
        return tuple(self._places)

    def add(self, costly: Place) -> None:
        """Keep one more; the oldest are forgotten."""
        places = [*self.known(), costly][-MOST_PLACES:]
        self._places = dict.fromkeys(places)
        if self._path is not None and self._path.parent.is_dir():
            scratch = self._path.with_suffix(f".{os.getpid()}")
            scratch.touch(mode=0o600)
            scratch.write_bytes(orjson.dumps([str(place) for place in places]))
            scratch.replace(self._path)

    def _stored(self) -> list[Place]:
        """What the file holds; one that cannot be read holds nothing."""
        if self._path is None:
            return []
        with suppress(OSError, ValueError, AttributeError, TypeError):
            return [parse_place(place) for place in orjson.loads(self._path.read_bytes())]
        return []


class Wanted(msgspec.Struct, frozen=True):
    """How the owner wants a path to be read.

    Shapes: `columns` of a table: its key, its time, its title; `kinds` of its columns, by their
        names, each a word of `columns.KINDS`; `known` is what is stored of it; `zone` is the name
        of one;
        `further_parts` of an export whose first part is the path; `within` the folder that all
        that is read must lie in, wherever links lead; `recipe` is the file of the one to read by,
        with its `recipe_text` where it lies in the export.
    """

    connector_key: str | None = None
    columns: tuple[str | None, str | None, str | None] = (None, None, None)
    zone: str = "UTC"
    further_parts: tuple[Path, ...] = ()
    within: Path | None = None
    kinds: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    known: KnownTable | None = None
    recipe: Path | None = None
    recipe_text: str | None = None


class PathContents(msgspec.Struct, frozen=True):
    """What a path holds: who reads what, what may not be read, what nobody reads.

    Shapes: `unread` as `sources.registry.unread_of` says.
    """

    path: Path
    total_bytes: int
    readings: tuple[ProcessReading, ...]
    refused: tuple[Skipped, ...]
    unread: Mapping[str, list[str]]

    @property
    def could_be_tables(self) -> bool:
        """Whether another source than tables reads files that could be some."""
        others = (reading.seen for reading in self.readings if not reading.seen.full_name)
        return any(could_be_table(name) for seen in others for name in seen.files)


def could_be_table(name: str) -> bool:
    """Whether a file that is called so is of a kind that tables are made of."""
    return f"/{name.lower()}".endswith((*TABLES, *DATABASES))


class ReaderProcess:
    """Reads one path after the other, each in as many processes as it takes.

    A process can open no file but those of its export, where the kernel has Landlock; with
    `beneath` it is one process for all exports in that folder, which only looks at what they are.
    """

    def __init__(
        self,
        costly: CostlyPlaces,
        limits: Limits = LIMITS,
        beneath: Path | None = None,
        recipes: Path | None = None,
    ) -> None:
        self._costly = costly
        self._recipes = recipes
        self._limits = limits
        self._beneath = beneath
        self._opened = ExitStack()
        self._child: ReaderChild | None = None
        self._copied = ExitStack()
        self._copies: dict[Path, dict[str, str]] = {}
        self._failed: dict[Place, None] = {}  # tried again by the next import: code may be mended
        self.faults: list[str] = []  # errors of its own that it met, of which none was expected
        self._texts = TextProcesses(limits, self.faults)
        self.package_faults: list[str] = []  # the same of readers of other packages, with these
        self.unusable_recipes: list[UnusableRecipe] = []  # of the owner's, at the last look
        self.recipes_inside: list[RecipeInside] = []  # of the export that was looked at last
        self.used_zone = False  # whether the last reading had times without a zone

    def __enter__(self) -> Self:
        self._child = self._started()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()
        self._texts.leave()
        self._copied.close()

    def look(self, path: Path, instructions: Wanted) -> PathContents:
        """Say what a path holds.

        Raises: ExportError; BadRecord, where `wanted` names columns that are not there.
        """
        self.recipes_inside = []
        while True:
            costly = [str(costly_place) for costly_place in self._costly.known()]
            request = Look(
                str(path),
                instructions.connector_key,
                instructions.columns,
                instructions.zone,
                costly,
                self._copies_under(path, instructions.within),
                [str(part) for part in instructions.further_parts],
                None if instructions.within is None else str(instructions.within),
                dict(instructions.kinds),
                instructions.known,
                None if self._beneath is None else str(self._beneath),
                self._recipe_texts(instructions.recipe, instructions.recipe_text),
                None if instructions.recipe is None else str(instructions.recipe),
                [str(place) for place in self._failed],
            )
            try:
                reply = self._running_for(request).ask(request)
            except ReaderEnded as ended:
                self._learn(ended)
                continue
            match reply:
                case Seen():
                    self.package_faults += reply.faults
                    self.recipes_inside = reply.recipes_inside
                    self.unusable_recipes = reply.unusable_recipes
                    return self._contents(path, instructions, reply)
                case Refused():
                    self.package_faults += reply.faults
                    self.recipes_inside = reply.recipes_inside
                    raise refusal(reply)
                case Misguided():
                    raise BadRecord(reply.code, parse_text(reply.reason))
                case _:
                    raise too_costly()

    def items(self, reading: ProcessReading, start: int) -> Iterator[SourceItem]:
        """The items of a reading from a place on, read again behind what ended the process."""
        at, given, ends, package = start, 0, 0, reading.seen.package
        self.used_zone = False
        while True:
            try:
                for item in islice(self._running().items(Read(reading.number, at)), given, None):
                    at, given = item.position, given + 1 if item.position == at else 1
                    yield item if package is None else with_package(item, package)
            except ReaderEnded as ended:
                ends += 1
                self._learn(ended, package)
                if ends > MOST_ENDS:
                    raise ended.refusal(package) from None
                self._find_again(reading)
            else:
                self.used_zone = self._running().used_zone
                return

    def text_of(
        self, content: BinaryIO, size_bytes: int, mime_type: str | None, filename: str | None
    ) -> FileText:
        """What a file says; the process that it ends is another than the one that reads exports.

        Threads may ask at once.
        Raises: ExportTooCostly, if none starts.
        """
        return self._texts.text_of(content, ReadFile(size_bytes, mime_type, filename))

    def facts(self) -> Ready:
        """Which built-in sources it knows, and what the system could not take from it."""
        return self._running().wait_until_ready()

    def sources(self) -> KnownSources:
        """Which sources there are, those of other packages among them.

        Raises: ExportTooCostly, where a reader of another package ends the process.
        """
        try:
            reply = self._running().ask(ListSources(self._recipe_texts()))
        except ReaderEnded as ended:
            self._learn(ended)
            raise too_costly() from None
        if not isinstance(reply, KnownSources):
            raise too_costly()
        return reply

    def _recipe_texts(
        self, named: Path | None = None, text: str | None = None
    ) -> dict[str, str | None]:
        """Raises: RecipeError, where the one that was named cannot be read."""
        if named is not None and text is not None:
            return {str(named): text}
        if named is None and (self._recipes is None or not self._recipes.is_dir()):
            return {}
        # most have none
        from pdpp_sources.recipe_texts import recipe_texts  # noqa: PLC0415

        return recipe_texts(self._recipes, named)

    def _copies_under(self, path: Path, within: Path | None) -> dict[str, str]:
        """What is to be read in place of the databases that a program has open."""
        if path not in self._copies:
            folder = self._copied.enter_context(tempfile.TemporaryDirectory(prefix="pdpp-"))
            self._copies[path] = copies_of_live(path, Path(folder), within)
        return self._copies[path]

    def _contents(self, path: Path, instructions: Wanted, contents: Seen) -> PathContents:
        return PathContents(
            path,
            contents.total_bytes,
            tuple(
                ProcessReading(self, path, instructions, number, reading)
                for number, reading in enumerate(contents.readings)
            ),
            tuple(skipped_of(e) for e in contents.refused),
            contents.unread,
        )

    def _find_again(self, reading: ProcessReading) -> None:
        """Have a new process open the same path. Raises: ExportTooCostly."""
        readings = self.look(reading.path, reading.wanted).readings[reading.number :][:1]
        if [reading.connector_key for reading in readings] != [reading.connector_key]:
            raise too_costly()

    def _learn(self, ended: ReaderEnded, package: str | None = None) -> None:
        """Keep the place.

        Raises: ExportTooCostly, ExportReaderFailed, where there is none, or it is no news.
        """
        self._child = None
        if ended.fault is not None and package is not None:
            self.package_faults.append(f"{package}: {ended.fault}")
        elif ended.fault is not None:
            self.faults.append(ended.fault)
        if ended.place is None or ended.place in (*self._failed, *self._costly.known()):
            raise ended.refusal(package) from None
        if ended.fault is None:
            self._costly.add(ended.place)
        else:
            self._failed[ended.place] = None

    def _running(self) -> ReaderChild:
        """The process; another where that one has ended, or has more to say than was asked for."""
        if self._child is None or not self._child.is_idle:
            self._child = self._started()
        return self._child

    def _running_for(self, request: Look) -> ReaderChild:
        """The process, if it reads nothing yet or this very export: it can open no other file."""
        places = (request.path, *request.further_parts, request.within)
        places = places if request.beneath is None else (request.beneath,)
        # what has the name of another is another: the process may open the one that it saw
        places = tuple(map(_identity, places))
        child = self._running()
        if child.places not in (None, places):
            child = self._child = self._started()
        child.places = places
        return child

    def _started(self) -> ReaderChild:
        self._opened.close()
        return self._opened.enter_context(ReaderChild(self._limits))


def _identity(place: str | None) -> tuple[object, ...]:
    """A file or folder, told from one that was made in its place.

    The kernel keeps the number of what a process may open, also once that was removed.
    """
    try:
        status = None if place is None else os.stat(place)
    except OSError:
        status = None
    return (place, *((status.st_dev, status.st_ino) if status else ()))


class ProcessReading(msgspec.Struct, frozen=True):
    """A source, and the part of a path that it reads in a process of its own."""

    process: ReaderProcess
    path: Path
    wanted: Wanted
    number: int
    seen: SeenReading

    @property
    def connector_key(self) -> str:
        """The short name of the source."""
        return self.seen.connector_key

    @property
    def captured_at(self) -> datetime:
        """When the export was made, as far as its files tell."""
        return self.seen.captured_at

    @property
    def fingerprint(self) -> str:
        """What tells these very files from others."""
        return self.seen.fingerprint

    def items(self, start: int = 0) -> Iterator[SourceItem]:
        """What the source yields from a place on. Raises: ExportTooCostly, ExportReaderFailed."""
        return self.process.items(self, start)

    def looked_again(self, known: KnownTable | None = None) -> ProcessReading:
        """The same of a reader at its beginning, by what is stored. Raises: ExportError."""
        wanted = self.wanted if known is None else replace(self.wanted, known=known)
        return self.process.look(self.path, wanted).readings[self.number]

    def facts(self) -> Data:
        """What identifies the files that were read."""
        parts = (self.path, *self.wanted.further_parts)
        return file_facts(parts, len(self.seen.files), self.seen.total_bytes)
