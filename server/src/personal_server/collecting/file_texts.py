"""The text of files that came with records: read once they are stored, kept while they stay.

Rule: a record whose file was not looked at says so (`waiting`), so that the next import goes on
with it. What a file says is part of its record: granted, searched, exported and erased with it. A
file is read once; a record that comes again with the same bytes has the text that it had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import cast

import msgspec

from pdpp_kernel.declaration import Stream
from pdpp_kernel.errors import DamagedRecord, InvalidRequest
from pdpp_kernel.record import StoredRecord, canonical_key
from pdpp_kernel.source_item import TEXT, TEXT_STATE, Data, FileText, TextState
from pdpp_kernel.values import instant_text
from personal_server.collecting.ingest import IngestResult
from personal_server.collecting.text_readings import TextReadings
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.storage.record_changes import latest_change

LOOKED_UP_AT_ONCE = 20
READ_AT_ONCE = 50
WRITTEN_AT_ONCE_CHARS = 4_000_000
_SILENT = ("image/", "audio/", "video/", "font/")
Line = Mapping[str, object]
Keep = Callable[[list[Line]], IngestResult]


def keeps_text(stream: Stream) -> bool:
    """Whether the records of a stream have a file, and a place for what it says."""
    return {TEXT, TEXT_STATE} <= stream.properties.keys() and len(stream.blob_fields) == 1


class FileTexts(msgspec.Struct, frozen=True):
    """The texts of one stream of a connection, which `keeps_text`.

    Shapes: `counts` gets the state of each file that was looked at.
    """

    store: RecordStore
    connection_id: str
    stream: Stream
    readings: TextReadings
    counts: Counter[str] = msgspec.field(default_factory=Counter[str])

    def recalled(self, lines: Sequence[Line]) -> Iterator[list[Line]]:
        """The lines with the text that their records have already, some at a time."""
        part: list[Line] = []
        chars = 0
        for begin in range(0, len(lines), LOOKED_UP_AT_ONCE):
            group = lines[begin : begin + LOOKED_UP_AT_ONCE]
            stored = self._stored([self._key(_data(line)) for line in group])
            for line in group:
                data = _data(line)
                recalled_text = self._known(data, stored.get(self._key(data)))
                part.append({**line, "data": data | recalled_text})
                chars += len(recalled_text.get(TEXT) or "")
            if chars > WRITTEN_AT_ONCE_CHARS:
                yield part
                part, chars = [], 0
        if part:
            yield part

    def begin(self, lines: Sequence[Line]) -> None:
        """Have files of lines that are stored read beside what is stored next."""
        waiting = (data for data in map(_data, lines) if data.get(TEXT_STATE) == TextState.WAITING)
        for data in islice(waiting, self.readings.room()):
            self.readings.begin(*self._reading(data))

    def read(self, keep: Keep) -> Iterator[int]:
        """Read every file that waits, and `keep` the records with their texts; yields how many."""
        after = ""
        while rows := self._waiting(after):
            texts: dict[str, FileText] = {}
            of_blobs: dict[str, FileText] = {}
            chars = 0
            for number, row in enumerate(rows):
                for near in rows[number : number + 2 * self.readings.at_once]:
                    blob_id, read = self._reading(near.data)
                    if blob_id not in of_blobs:
                        self.readings.begin(blob_id, read)
                blob_id, read = self._reading(row.data)
                if blob_id not in of_blobs:
                    of_blobs[blob_id] = self.readings.take(blob_id, read)
                texts[row.key] = of_blobs[blob_id]
                after = row.key
                chars += len(texts[row.key].text or "")
                yield 1
                # what cost most is kept at once: whatever ends the import, it is not paid twice
                if chars > WRITTEN_AT_ONCE_CHARS or texts[row.key].state is TextState.TOO_COSTLY:
                    break
            _keep_all(keep, self._lines(texts, rows))

    def _known(self, data: Data, stored: StoredRecord | None) -> Data:
        """The text of a record's file, as far as it is known before the file is looked at."""
        reference = self._reference(data)
        if "blob_id" not in reference:
            return {}
        kind = str(data.get("mime_type") or reference.get("mime_type") or "").lower()
        before: Mapping[str, object] = {} if stored is None else stored.data
        is_same = self._reference(before).get("blob_id") == reference["blob_id"]
        state = before.get(TEXT_STATE) if is_same else None
        if (is_silent := kind.startswith(_SILENT)) or state not in (None, TextState.READ):
            from personal_server.collecting import pictures_due  # noqa: PLC0415 (of few files)

            is_silent = is_silent and not pictures_due.are_read(kind)
            state = None if pictures_due.are_due(state, kind, reference) else state
        if state is not None:
            return {n: before[n] for n in (TEXT, TEXT_STATE) if n in before}
        if is_silent:
            self.counts[TextState.OTHER_KIND.value] += 1
            return {TEXT_STATE: TextState.OTHER_KIND.value}
        return {TEXT_STATE: TextState.WAITING.value}

    def _reading(self, data: Mapping[str, object]) -> tuple[str, Callable[[], FileText]]:
        """The id of a record's bytes, and what reads them."""
        blob_id = str(self._reference(data).get("blob_id"))
        return blob_id, partial(self._said, blob_id, data)

    def _said(self, blob_id: str, data: Mapping[str, object]) -> FileText:
        reference = self._reference(data)
        upload = self.store.blob_upload(self.connection_id, blob_id)
        try:
            content = None if upload is None else self.store.open_blob(blob_id)
        except DamagedRecord:
            content = None
        if upload is None or content is None:
            return FileText(TextState.DAMAGED)
        declared = (data.get(n) or reference.get(n) for n in ("mime_type", "filename"))
        kind, name = (each if isinstance(each, str) else None for each in declared)
        with content:
            return self.readings.reader.text_of(content, upload.size_bytes, kind, name)

    def _lines(self, texts: Mapping[str, FileText], rows: Sequence[StoredRecord]) -> list[Line]:
        """The records as they are now: one that was erased meanwhile, or changed, is left."""
        before = {row.key: self._reference(row.data).get("blob_id") for row in rows}
        lines: list[Line] = []
        for key, row in self._stored(list(texts)).items():
            file_text = texts[key]
            is_same = self._reference(row.data).get("blob_id") == before[key]
            if is_same and row.data.get(TEXT_STATE) == TextState.WAITING:
                members = {TEXT_STATE: file_text.state.value} | (
                    {TEXT: file_text.text} if file_text.text else {}
                )
                lines.append({"data": {**row.data, **members}, "emitted_at": _emitted_at(row)})
                self.counts[file_text.state.value] += 1
        return lines

    def _waiting(self, after: str) -> list[StoredRecord]:
        row_key = (self.connection_id, self.stream.name)
        return self.store.records_holding(
            *row_key, TEXT_STATE, TextState.WAITING.value, after, READ_AT_ONCE
        )

    def _stored(self, keys: Sequence[str]) -> dict[str, StoredRecord]:
        records = self.store.records_named(self.connection_id, self.stream.name, keys)
        return {row.key: row for row in records}

    def _reference(self, data: Mapping[str, object]) -> Data:
        (name,) = self.stream.blob_fields
        reference = data.get(name)
        return cast("Data", reference) if isinstance(reference, dict) else {}

    def _key(self, data: Data) -> str:
        try:
            return canonical_key([data.get(name) for name in self.stream.primary_key])
        except InvalidRequest:
            return ""  # the line is refused when it is checked


def _keep_all(keep: Keep, lines: list[Line]) -> None:
    """A record that its text would make longer than a record may be goes without it."""
    if lines and keep(lines).records_rejected:
        for line in lines:
            if keep([line]).records_rejected:
                data = {name: value for name, value in _data(line).items() if name != TEXT}
                keep([{**line, "data": data | {TEXT_STATE: TextState.TOO_COSTLY.value}}])


def _data(line: Line) -> Data:
    return cast("Data", line["data"])


def _emitted_at(row: StoredRecord) -> str:
    return instant_text(latest_change(row.created, row.field_changes, row.data).emitted_at_ns)
