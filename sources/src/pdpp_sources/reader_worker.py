"""The process that reads exports: it is told a path, says who reads what, and sends the items.

`python -m pdpp_sources.reader_worker SLATE SECONDS BYTES`: requests on standard input,
replies on standard output, and on the slate, a file shared with whoever asked, where it stands.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, NoReturn
from zoneinfo import ZoneInfo

from pdpp_kernel.confinement import Limits, confine
from pdpp_kernel.source_item import Skipped, SourceBlob, SourceItem, SourceRecord
from pdpp_kernel.texts import message, render_text
from pdpp_sources.common.bookmark import BOOKMARK, parse_place
from pdpp_sources.common.errors import BadRecord, ExportError, MemberDamaged
from pdpp_sources.common.export import Export, open_export, open_parts
from pdpp_sources.file_texts.reader import read_text
from pdpp_sources.reader_messages import (
    BlobFacts,
    Broken,
    End,
    Look,
    Message,
    Misguided,
    Read,
    ReadFile,
    Ready,
    RecordItem,
    Refused,
    SaidByFile,
    Seen,
    SeenReading,
    SkippedItem,
    Slate,
    receive_request,
    send,
)
from pdpp_sources.registry import (
    SOURCES,
    Reading,
    reading_as,
    readings,
    source_named,
    unread_of,
)
from pdpp_sources.tables.reader import Guidance

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
            self._slate.clear()
            self._replies.flush()

    def _look(self, request: Look) -> Message:
        BOOKMARK.watch(self._slate, map(parse_place, request.costly))
        self._opened.close()
        try:
            export = self._opened.enter_context(_export(request))
            export = replace(export, zone=ZoneInfo(request.zone))
            self._readings = _readings(export, request)
        except ExportError as error:
            return Refused(error.code, render_text(error.sentence), render_text(error.next_step))
        except BadRecord as bad:
            return Misguided(bad.code, render_text(bad.reason))
        return Seen(
            export.total_bytes,
            [_seen(reading) for reading in self._readings],
            [_skipped_item(each) for each in export.refused],
            unread_of(export, [reading.export for reading in self._readings]),
        )

    def _said(self, request: ReadFile) -> Message:
        BOOKMARK.watch(self._slate, ())
        content = self._requests.read(request.size_bytes)
        found = read_text(content, request.mime_type, request.filename)
        return SaidByFile(found.state, found.text)

    def _read(self, items: Iterator[SourceItem]) -> None:
        for item in items:
            if isinstance(item, Skipped):
                send(self._replies, _skipped_item(item))
            else:
                self._send_record(item)
        send(self._replies, End())

    def _send_record(self, record: SourceRecord) -> None:
        try:
            send(self._replies, _record_item(record))
        except (TypeError, ValueError, OverflowError):
            reason = message("it holds a value that cannot be stored")
            send(
                self._replies,
                _skipped_item(Skipped(record.stream, "bad_record", reason, record.position)),
            )
            return
        for blob in record.blobs:
            self._send_content(blob)

    def _send_content(self, blob: SourceBlob) -> None:
        left = blob.size_bytes
        with blob.open() as content:
            while chunk := content.read(min(left, BLOB_CHUNK_BYTES)):
                self._replies.write(chunk)
                left -= len(chunk)
        if left:
            raise MemberDamaged  # it was longer when its digest was taken


def _export(request: Look) -> Export:
    within = None if request.within is None else Path(request.within)
    if request.further_parts:
        parts = [Path(each) for each in (request.path, *request.further_parts)]
        return open_parts(parts, within)
    return open_export(Path(request.path), request.copies, within)


def _readings(export: Export, request: Look) -> tuple[Reading, ...]:
    guidance = Guidance(*request.columns)
    source = source_named(request.connector_key) if request.connector_key else None
    return (reading_as(export, source, guidance),) if source else readings(export, guidance)


def _seen(reading: Reading) -> SeenReading:
    export = reading.export
    return SeenReading(
        reading.source.connector_key,
        reading.source.declaration,
        reading.why,
        reading.fingerprint,
        reading.captured_at,
        [member.name for member in export.members],
        export.members[0].offset,
        export.total_bytes,
    )


def _record_item(record: SourceRecord) -> RecordItem:
    blobs = [
        BlobFacts(each.json_path, each.mime_type, each.sha256, each.size_bytes, each.filename)
        for each in record.blobs
    ]
    return RecordItem(record.stream, record.data, record.position, blobs, record.thread)


def _skipped_item(skipped: Skipped) -> SkippedItem:
    return SkippedItem(skipped.where, skipped.code, render_text(skipped.reason), skipped.position)


def main() -> NoReturn:
    """Serve whoever started this process; end with it, or with a word on why not."""
    slate_file, seconds, memory_bytes = sys.argv[1:]
    limits = Limits(float(seconds), int(memory_bytes))
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb", BUFFER_BYTES)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # libraries may print
    worker = ReaderWorker(sys.stdin.buffer, replies, Slate(int(slate_file), limits.seconds))
    try:
        send(replies, Ready([each.connector_key for each in SOURCES], confine(limits)))
        replies.flush()
        worker.serve()
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BrokenPipeError:
        os._exit(0)
    except Exception as error:  # noqa: BLE001 (the boundary of the process)
        send(replies, Broken(_fault(error)))
        replies.flush()
        os._exit(1)
    os._exit(0)


def _fault(error: Exception) -> str:
    """The kind of an error and its line of code; its words may hold what was read."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}"


if __name__ == "__main__":
    main()
