"""The process that reads exports: it is told a path, says who reads what, and sends the items.

Requests and replies come and go over pipes; on the slate, a file shared with whoever asked, it says
where it stands.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, NoReturn

from pdpp_kernel.source_item import Skipped, SourceBlob, SourceItem, SourceRecord
from pdpp_kernel.system.confinement import Limits, confine
from pdpp_kernel.system.landlock import read_only
from pdpp_kernel.system.picture_languages import language_folder
from pdpp_kernel.texts import message, render_text
from pdpp_sources.common.errors import BadRecord, ExportError, MemberDamaged
from pdpp_sources.common.export import Export, open_export, open_parts
from pdpp_sources.common.resume_point import BOOKMARK, parse_place
from pdpp_sources.common.source import SourceReader
from pdpp_sources.common.times import NotedZone
from pdpp_sources.export_files import BESIDE
from pdpp_sources.file_texts.reader import read_text
from pdpp_sources.outside_readers import OutsideReader, outside_readers
from pdpp_sources.reader_channel import (
    Slate,
    fault_of,
    receive_request,
    send,
)
from pdpp_sources.reader_messages import (
    BlobFacts,
    Broken,
    End,
    KnownSource,
    KnownSources,
    ListSources,
    Look,
    Message,
    Misguided,
    Read,
    ReadFile,
    Ready,
    RecipeInside,
    RecordItem,
    Refused,
    SaidByFile,
    Seen,
    SeenColumn,
    SeenReading,
    SkippedItem,
    UnusableReader,
    UnusableRecipe,
)
from pdpp_sources.recipes.recipe_reader import RecipeSource
from pdpp_sources.recipes.recipe_readings import in_zone_of, reading_by_recipe, told_apart
from pdpp_sources.recipes.recipe_shelf import recipes_with
from pdpp_sources.recipes.recipes_inside import recipes_inside
from pdpp_sources.registry import (
    SOURCES,
    Reading,
    reading_as,
    readings,
    source_named,
    unread_of,
    with_outside,
)
from pdpp_sources.tables.reader import FittedTable
from pdpp_sources.tables.table_fit import Guidance

OUT_OF_MEMORY = 3  # the exit code
BLOB_CHUNK_BYTES = 1024 * 1024
BUFFER_BYTES = 64 * 1024


class ReaderWorker:
    """Answers one request after the other, on one export at a time."""

    def __init__(self, requests: BinaryIO, replies: BinaryIO, slate: Slate) -> None:
        self._requests = requests
        self._replies = replies
        self._slate = slate
        self._opened = ExitStack()
        self._readings: tuple[Reading, ...] = ()
        self._faults: list[str] = []
        self._zone = NotedZone("UTC")
        self._places: tuple[Path, ...] | None = None
        self._recipe_texts: dict[str, str | None] = {}

    @cached_property
    def _outside(self) -> tuple[tuple[OutsideReader, ...], list[UnusableReader]]:
        """The readers of other packages: looked for once this process is confined, and asked."""
        readers, unusable = outside_readers(SOURCES)
        self._faults += [f"{reader.package}: {reader.fault}" for reader in unusable]
        return readers, unusable

    @property
    def _sources(self) -> tuple[SourceReader, ...]:
        return with_outside(self._outside[0], self._recipes[0])

    @cached_property
    def _recipes(self) -> tuple[tuple[RecipeSource, ...], list[UnusableRecipe]]:
        """The recipes of the last texts, and those that cannot be used."""
        recipes, unusable = recipes_with(self._recipe_texts, self._taken)
        return recipes, [
            UnusableRecipe(path, fault.code, render_text(fault.sentence))
            for path, fault in unusable
        ]

    @property
    def _taken(self) -> list[str]:
        """The names of readers in code, which no recipe may have."""
        return [source.connector_key for source in (*SOURCES, *self._outside[0])]

    def _take_recipes(self, texts: dict[str, str | None]) -> None:
        if texts != self._recipe_texts:
            self._recipe_texts = texts
            self.__dict__.pop("_recipes", None)

    def serve(self) -> None:
        """Until nobody asks any more."""
        while (request := receive_request(self._requests)) is not None:
            self._slate.clear()
            self._slate.goes_on()
            match request:
                case Look():
                    send(self._replies, self._look(request))
                case Read():
                    self._read(self._readings[request.reading].items(request.start))
                case ReadFile():
                    send(self._replies, self._said(request))
                case ListSources():
                    self._take_recipes(request.recipes)
                    send(self._replies, self._known_sources())
            self._slate.clear()
            self._replies.flush()

    def _read_only(self, places: tuple[Path, ...]) -> None:
        """Read these files and no others from now on, where the kernel has Landlock.

        Whoever asks starts another process for another export: what is given up is given up.
        """
        if self._places is None:
            self._places = places
            read_only(places)

    def _look(self, request: Look) -> Message:
        self._read_only(tuple(_places(request)))
        failed = map(parse_place, request.failed)
        BOOKMARK.watch(self._slate, map(parse_place, request.costly), failed)
        self._opened.close()
        # one that was named is read by alone
        self._take_recipes(request.recipes if request.recipe is None else {})
        inside: list[RecipeInside] = []
        try:
            export = self._opened.enter_context(_export(request))
            self._zone = NotedZone.no_cache(request.zone)
            export = replace(export, zone=self._zone)
            if (request.recipe, request.connector_key) == (None, None):
                inside = recipes_inside(export, self._taken)
            self._readings = self._read_by(export, request)
        except ExportError as error:
            sentence, next_step = render_text(error.sentence), render_text(error.next_step)
            return Refused(error.code, sentence, next_step, self._new_faults(), inside)
        except BadRecord as bad:
            return Misguided(bad.code, render_text(bad.reason))
        return Seen(
            export.total_bytes,
            [_seen(reading) for reading in self._readings],
            [_skipped_item(item) for item in (*export.refused, *self._misnamed(export))],
            unread_of(export, [reading.export for reading in self._readings]),
            self._new_faults(),
            self._recipes[1] if self._recipe_texts else [],
            inside,
        )

    def _read_by(self, export: Export, request: Look) -> tuple[Reading, ...]:
        """Who reads what of an export; other packages are not asked where one of ours is named.

        A recipe that is named beside `table` says only in which zone its times are.
        """
        guidance = Guidance(*request.columns, request.kinds, request.known)
        key = request.connector_key
        if request.recipe is not None and key != "table":
            return (reading_by_recipe(export, request.recipes, request.recipe, SOURCES, key),)
        own = source_named(key) if key else None
        if own:
            # the recipes that no package is asked for
            keys = (each.connector_key for each in SOURCES)
            recipes = recipes_with(request.recipes, keys)[0] if key == "table" else ()
            return (reading_as(in_zone_of(export, own, recipes), own, guidance),)
        source = source_named(key, self._sources) if key else None
        if source:
            return (reading_as(export, source, guidance, self._sources),)
        return told_apart(readings(export, guidance, self._sources), self._recipes[0])

    def _misnamed(self, export: Export) -> Iterator[Skipped]:
        """Files that a recipe of the owner's would read, were they called as it says."""
        own = [each for each in self._recipes[0] if each.origin] if self._recipe_texts else []
        used = {reading.source.connector_key for reading in self._readings}
        mine = [r for r in self._readings if not isinstance(r.source, FittedTable)]
        read = {member.name for reading in mine for member in reading.export.members}
        rest = export.only(member for member in export.members if member.name not in read)
        for source in own:
            if source.connector_key not in used:
                from pdpp_sources.recipes.missed_streams import misnamed_files  # noqa: PLC0415

                yield from misnamed_files(rest, source.recipe)

    def _new_faults(self) -> list[str]:
        """Errors of readers of other packages that were not told yet."""
        if "_outside" in self.__dict__:
            for reader in self._outside[0]:
                self._faults += reader.faults
                reader.faults.clear()
        faults, self._faults = self._faults, []
        return faults

    def _known_sources(self) -> Message:
        packages = {reader.connector_key: reader.package for reader in self._outside[0]}
        sources = [
            KnownSource(
                source.connector_key,
                source.declaration,
                str(source.how_to_export),
                packages.get(source.connector_key),
                (source.origin or None) if isinstance(source, RecipeSource) else None,
            )
            for source in self._sources
        ]
        return KnownSources(sources, self._outside[1], self._recipes[1])

    def _said(self, request: ReadFile) -> Message:
        languages = language_folder()
        self._read_only((languages,) if languages else ())
        BOOKMARK.watch(self._slate, ())
        content = self._requests.read(request.size_bytes)
        text = read_text(content, request.mime_type, request.filename)
        return SaidByFile(text.state, text.text)

    def _read(self, items: Iterator[SourceItem]) -> None:
        for item in items:
            if isinstance(item, Skipped):
                send(self._replies, _skipped_item(item))
            else:
                self._send_record(item)
        send(self._replies, End(self._zone.was_used))

    def _send_record(self, record: SourceRecord) -> None:
        try:
            send(self._replies, _record_item(record))
        except (TypeError, ValueError, OverflowError):
            reason = message("the entry contains a value that cannot be stored")
            send(
                self._replies,
                _skipped_item(Skipped(record.stream, "bad_record", reason, record.position)),
            )
            return
        for blob in record.blobs:
            self._send_content(blob)

    def _send_content(self, blob: SourceBlob) -> None:
        bytes_left = blob.size_bytes
        with blob.open() as content:
            while chunk := content.read(min(bytes_left, BLOB_CHUNK_BYTES)):
                self._replies.write(chunk)
                bytes_left -= len(chunk)
        if bytes_left:
            raise MemberDamaged  # it was longer when its digest was taken


def _places(request: Look) -> Iterator[Path]:
    """The files and folders of an export, as far as they lie where they must."""
    if request.beneath is not None:
        yield Path(request.beneath)
        return
    within = None if request.within is None else Path(request.within)
    for part in (request.path, *request.further_parts):
        for path in (part, *(f"{part}{ending}" for ending in BESIDE)):
            real = Path(path).resolve()
            if within is None or real.is_relative_to(within):
                yield real
    yield from map(Path, request.copies.values())


def _export(request: Look) -> Export:
    within = None if request.within is None else Path(request.within)
    if request.further_parts:
        parts = [Path(part) for part in (request.path, *request.further_parts)]
        return open_parts(parts, within)
    return open_export(Path(request.path), request.copies, within)


def _seen(reading: Reading) -> SeenReading:
    export = reading.export
    columns = reading.source.columns if isinstance(reading.source, FittedTable) else []
    return SeenReading(
        reading.source.connector_key,
        reading.source.declaration,
        reading.why,
        reading.fingerprint,
        reading.captured_at,
        [member.name for member in export.members],
        export.members[0].offset,
        export.total_bytes,
        [
            SeenColumn(stream, c.source_name, c.name, c.word, c.why, list(c.examples))
            for stream, c in columns
        ],
        reading.source.full_name if isinstance(reading.source, FittedTable) else "",
        reading.source.package if isinstance(reading.source, OutsideReader) else None,
        isinstance(reading.source, RecipeSource),
    )


def _record_item(record: SourceRecord) -> RecordItem:
    blobs = [
        BlobFacts(blob.json_path, blob.mime_type, blob.sha256, blob.size_bytes, blob.filename)
        for blob in record.blobs
    ]
    return RecordItem(record.stream, record.data, record.position, blobs, record.thread)


def _skipped_item(skipped: Skipped) -> SkippedItem:
    return SkippedItem(skipped.where, skipped.code, render_text(skipped.reason), skipped.position)


def main(files: Sequence[int], seconds: float, memory_bytes: int) -> NoReturn:
    """Serve whoever had this process started; end with it, or with a word on why not.

    Source: `process_starter.py`.
    """
    requests_file, replies_file, slate_file = files
    limits = Limits(seconds, memory_bytes)
    replies = os.fdopen(replies_file, "wb", BUFFER_BYTES)
    nowhere = os.open(os.devnull, os.O_WRONLY)  # libraries may print, and a terminal obeys letters
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
    slate = Slate(slate_file, limits.seconds)
    worker = ReaderWorker(os.fdopen(requests_file, "rb", BUFFER_BYTES), replies, slate)
    try:
        send(replies, Ready([source.connector_key for source in SOURCES], confine(limits)))
        replies.flush()
        worker.serve()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:  # noqa: BLE001 (the boundary of the process)
        send(replies, Broken(fault_of(error)))
        replies.flush()
        os._exit(1)
    os._exit(0)
