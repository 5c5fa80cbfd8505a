"""Looking at a record: its fields, what it belongs with, a long text, a file.

Rule: each page takes the road of a token's read, that of the viewpoint whose pages these are,
bounded in rows, characters and time.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, cast
from urllib.parse import quote

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import InvalidFilter, NotFound, QueryTimeout
from pdpp_kernel.texts import Text
from pdpp_kernel.values import instant_ns
from personal_server.collecting.receipts import receipts_of
from personal_server.console.disclosure_lines import disclosure_lines
from personal_server.console.pages import Templates, console_headers
from personal_server.console.places import parse_number
from personal_server.console.presentations import (
    Appearance,
    Bubble,
    bubble_fields,
    bubbles,
    letter_of,
    look_of,
)
from personal_server.console.record_figures import FIGURES_SECONDS
from personal_server.console.record_values import (
    FIELDS_SHOWN,
    PICTURES,
    SHORT_CHARS,
    TEXTS,
    RelatedLink,
    Row,
    called,
    columns_of,
    plain_records,
    record_fields,
    related_to,
    table_row,
    title_of,
)
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.thumbnails import HEAD_BYTES, embedded_thumbnail
from personal_server.console.viewpoints import (
    OWN,
    ROOTS,
    Viewpoint,
    Viewpoints,
    account_name,
    records_path,
    source_of,
)
from personal_server.console.words import cut, declared_name, field_words, said
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.asked_times import moment_of
from personal_server.enforcement.authorize import authorize_blob
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import (
    MAX_WINDOW_CHARS,
    BlobQuery,
    FieldSelection,
    FieldWindowQuery,
    PageSize,
    RecordQuery,
    RecordsQuery,
    Selectors,
    Times,
)
from personal_server.enforcement.timeline import time_field
from personal_server.granting.holdings import client_names
from personal_server.reading.field_windows import ShownFieldWindow, read_field_window
from personal_server.reading.records import read_records
from personal_server.reading.single_records import read_record
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.ports.disclosure_stores import DisclosureStore
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.web.byte_ranges import FilePart
from personal_server.web.responses import ChunkedResponse

PAGE_CHARS = 1_000_000
PAGE_SECONDS = 10.0
LOOKED_AT = 2_000
READS_SHOWN = 20
IMPORTS_SHOWN = 5
VALUE_CHARS = 60
LARGEST_WHOLE_BYTES = 256 * 1024
PLACEHOLDER = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 160" fill="none" stroke="#7d8a83" '
    b'stroke-width="5"><rect x="45" y="50" width="70" height="60" rx="6"/>'
    b'<path d="M50 103l20-24 14 16 10-11 17 19"/><circle cx="96" cy="69" r="6"/></svg>'
)
"""What stands for a large picture without a thumbnail in it."""
MARK_BYTES = 16
"""Within these a picture says of which form it is."""
RELATED_SHOWN, RELATED_COLUMNS = 6, 3
AROUND_SHOWN = 10
SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"


class RelatedRecords(msgspec.Struct, frozen=True):
    """What a record belongs with; `rows` are the first of it, `None` if that takes too long."""

    words: Text
    link: str
    rows: tuple[Row, ...] | None = None


class RecordPages(msgspec.Struct, frozen=True):
    """The pages of a record below `/owner/records`, for every viewpoint."""

    authorization: AuthorizationStore
    disclosures: DisclosureStore
    viewpoints: Viewpoints
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return tuple(route for root in ROOTS for route in self._routes(root))

    def _routes(self, root: str) -> tuple[PageRoute, ...]:
        stream = f"{root}/records/{{connection_id}}/{{stream}}"
        record = f"{stream}/{{record_key}}"
        return (
            PageRoute("GET", record, self.show_record, frozenset({"from"})),
            PageRoute("GET", f"{record}/json", self.give_json),
            PageRoute("GET", f"{record}/text/{{field}}", self.show_text, frozenset({"offset"})),
            PageRoute("GET", f"{record}/files/{{field}}", self.give_file),
            PageRoute("GET", f"{record}/files/{{field}}/shown", self.show_file),
            PageRoute("GET", f"{record}/files/{{field}}/thumbnail", self.show_thumbnail),
        )

    def show_record(self, visit: PageRequest) -> Response:
        """One record.  Raises: NotFound, DamagedRecord."""
        stream_key, key = _place(visit), visit.path["record_key"]
        first = parse_number(visit.query.get("from")) or 0
        viewpoint = self.viewpoints.of(visit)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = source_of(authority, *stream_key)
            siblings = {s.stream: s for s in authority.sources if s.connection_id == stream_key[0]}
            answer = read_record(
                snapshot, authority, RecordQuery(stream_key[1], key, Selectors(stream_key[0]))
            )
            collected = snapshot.collections().get(source.connection_id)
        (record,) = plain_records([answer.data])
        data: dict[str, object] = record["data"]
        root, following = viewpoint.root, first + FIELDS_SHOWN
        shown = dict(list(data.items())[first:following])
        related = related_to(root, source, siblings, key, data)
        fields, look = record_fields(root, source, key, shown), look_of(source)
        is_letter = look is Appearance.MAIL and not first
        values = {
            "viewpoint": viewpoint,
            "title": title_of(source, data) or called(source, data) or cut(key, SHORT_CHARS),
            "letter": letter_of(source, data, fields) if is_letter else None,
            "around": self._around(viewpoint, source, key, data) if look is Appearance.CHAT else [],
            "label": declared_name(source.declared.label),
            "account": account_name(source),
            "account_id": source.connection_id,
            "place": records_path(root, *stream_key),
            "own": records_path(root, *stream_key, key),
            "fields": fields,
            "masked": self.viewpoints.masked(viewpoint, source),
            "unmasked": records_path(OWN, *stream_key, key),
            "empty": [field_words(n) for n, v in data.items() if v is None or v in ("", [], {})],
            "next": following if following < len(data) else None,
            "related": self._related(viewpoint, siblings, related),
            "key": cut(key, VALUE_CHARS),
            "source_name": declared_name(source.source_name or source.connector_key),
            "version": source.declaration_version,
            "written_ns": instant_ns(record["emitted_at"]),
            "collected_ns": None if collected is None else collected.last_succeeded_at_ns,
            "history": None if viewpoint.app else self._history(source, key),
        }
        return self.pages.show(visit, "record.html", values)

    def _related(
        self,
        viewpoint: Viewpoint,
        siblings: Mapping[str, ReadableSource],
        related: Sequence[RelatedLink],
    ) -> list[RelatedRecords]:
        """Each with the first of its records, as far as they are read in a moment."""
        found = [RelatedRecords(each.words, each.link) for each in related]
        with suppress(QueryTimeout), viewpoint.reads.open(FIGURES_SECONDS) as (snapshot, authority):
            for index, each in enumerate(related):
                source = siblings[each.view.stream]
                rows = _related_rows(viewpoint, snapshot, authority, source, each)
                found[index] = replace(found[index], rows=rows)
        return found

    def _around(
        self, viewpoint: Viewpoint, source: ReadableSource, key: str, data: Mapping[str, object]
    ) -> list[Bubble]:
        """What was said right before and after a message, as far as that is read in a moment."""
        dated, conversation = time_field(source), source.declared.conversation_field or ""
        at, value = data.get("" if dated is None else dated.name), data.get(conversation)
        at_ns = moment_of(at, None) if isinstance(at, str) else None
        if dated is None or at_ns is None or not isinstance(value, str) or not value:
            return []
        # Those of its very instant come with the second read, in the order of their keys.
        before = Times(until_ns=at_ns), f"-{dated.name}", AROUND_SHOWN
        since = Times(since_ns=at_ns), dated.name, 2 * AROUND_SHOWN + 1
        found: dict[str, Mapping[str, object]] = {}
        with suppress(QueryTimeout, InvalidFilter), viewpoint.reads.open(FIGURES_SECONDS) as state:
            for times, sort, limit in (before, since):
                query = RecordsQuery(
                    source.stream,
                    Selectors(source.connection_id),
                    limit=limit,
                    size=PageSize(chars=PAGE_CHARS),
                    sort=sort,
                    filters=(FilterText(conversation, None, value),),
                    times=times,
                    cut=FieldSelection(bubble_fields(source)),
                )
                rows = plain_records(read_records(viewpoint.reads.ports, *state, query).data)
                if times.since_ns is None:
                    rows.reverse()
                found |= {each["id"]: each["data"] for each in rows}
        if not found:
            return []
        found.setdefault(key, data)  # more than a page of one instant lie before it
        keys = list(found)
        here = keys.index(key)
        near = keys[max(0, here - AROUND_SHOWN) : here + AROUND_SHOWN + 1]
        return bubbles(viewpoint.root, source, key, [(each, found[each]) for each in near])

    def _history(self, source: ReadableSource, key: str) -> dict[str, object]:
        """What is told to the owner alone: what brought a record, and who was given it."""
        row_key = (*source.order, key)
        given = self.disclosures.disclosures_of(*row_key, LOOKED_AT)
        with self.authorization.read() as reader:
            names = client_names(reader, (entry.client_id for _, entry in given[:READS_SHOWN]))
        return {
            "imports": self._imports(source),
            "planted": row_key in self.viewpoints.owner.ports.planted(),
            "reads": disclosure_lines(given[:READS_SHOWN], names),
            "read_count": len(given),
            "looked_at": LOOKED_AT,
        }

    def _imports(self, source: ReadableSource) -> list[tuple[str, int | None]]:
        """The last files that brought records of the stream: name and time."""
        brought = reversed(receipts_of(self.viewpoints.owner.ports.store, source.connection_id))
        found = [one for one in brought if source.stream in one.get("streams", {})]
        return [
            (str(one.get("name", "")), instant_ns(str(one.get("imported_at"))))
            for one in found[:IMPORTS_SHOWN]
        ]

    def give_json(self, visit: PageRequest) -> Response:
        """A record to the byte, as a read of it is answered.  Raises: NotFound, DamagedRecord."""
        stream_key, key = _place(visit), visit.path["record_key"]
        with self.viewpoints.of(visit).reads.open(PAGE_SECONDS) as (snapshot, authority):
            source_of(authority, *stream_key)
            query = RecordQuery(stream_key[1], key, Selectors(stream_key[0]))
            content = msgspec.json.encode(read_record(snapshot, authority, query).data)
        return Response(content, 200, _sandboxed(visit), "application/json")

    def show_text(self, visit: PageRequest) -> Response:
        """A long text, a stretch at a time.  Raises: NotFound, FieldNotText, InvalidRequest."""
        stream_key, key = _place(visit), visit.path["record_key"]
        offset = parse_number(visit.query.get("offset")) or 0
        viewpoint = self.viewpoints.of(visit)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = source_of(authority, *stream_key)
            name = _declared(source, visit.path["field"])
            query = FieldWindowQuery(
                source.stream,
                key,
                name,
                Selectors(source.connection_id),
                offset_chars=offset,
                limit_chars=MAX_WINDOW_CHARS,
            )
            answer = read_field_window(snapshot, authority, query, "")
        window = cast("ShownFieldWindow", answer.data).window
        own = records_path(viewpoint.root, *stream_key, key)
        values = {
            "viewpoint": viewpoint,
            "words": field_words(name),
            "own": own,
            "path": f"{own}/text/{quote(name, safe='')}",
            "text": said(window.text, MAX_WINDOW_CHARS),
            "window": window,
        }
        return self.pages.show(visit, "text.html", values)

    def give_file(self, visit: PageRequest) -> Response:
        """The bytes of a file, to be kept.  Raises: NotFound."""
        content, named = self._file(visit)
        headers = {
            "Content-Disposition": _as_attachment(named.get("filename")),
            "Content-Type": "application/octet-stream",
        }
        return _bytes_of(content, {**_sandboxed(visit), **headers})

    def show_file(self, visit: PageRequest) -> Response:
        """A picture or a text as it is; nothing in it runs or is loaded.  Raises: NotFound."""
        content, named = self._file(visit)
        kind = str(named.get("mime_type"))
        shown = kind if _is_picture(kind, content.read(MARK_BYTES)) else TEXTS.get(kind)
        if shown is None:
            content.close()
            raise _not_shown()
        policy = f"{SANDBOX}; style-src 'unsafe-inline'; img-src data:"
        headers = {"Content-Security-Policy": policy, "Content-Type": shown}
        return _bytes_of(content, {**_sandboxed(visit), **headers})

    def show_thumbnail(self, visit: PageRequest) -> Response:
        """A picture as small as it is there: what its camera put into it, else a small one whole.

        Raises: NotFound.
        """
        content, named = self._file(visit)
        kind = str(named.get("mime_type"))
        with content:
            head = content.read(HEAD_BYTES)
            if not _is_picture(kind, head):
                raise _not_shown()
            found = embedded_thumbnail(head) if kind == "image/jpeg" else None
            if found is None:
                found = head + content.read(LARGEST_WHOLE_BYTES - len(head) + 1)
                if len(found) > LARGEST_WHOLE_BYTES:
                    found, kind = PLACEHOLDER, "image/svg+xml"
        return Response(found, 200, _sandboxed(visit), kind)

    def _file(self, visit: PageRequest) -> tuple[BinaryIO, Mapping[str, object]]:
        """The bytes of a file, and what its record says of it.  Raises: NotFound."""
        stream_key, key = _place(visit), visit.path["record_key"]
        reads = self.viewpoints.of(visit).reads
        with reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = source_of(authority, *stream_key)
            name = _declared(source, visit.path["field"])
            query = RecordQuery(
                stream_key[1], key, Selectors(stream_key[0]), FieldSelection((name,))
            )
            (record,) = plain_records([read_record(snapshot, authority, query).data])
            reference = record["data"].get(name)
            named = cast("dict[str, object]", reference if isinstance(reference, dict) else {})
            blob_id = str(named.get("blob_id", ""))
            read = authorize_blob(authority, BlobQuery(blob_id, Selectors(stream_key[0])))
            content = None
            if snapshot.blob(read.plan):
                content = reads.ports.store.open_blob(blob_id)
        if content is None:
            raise NotFound("There is no such file here.")
        return content, named


def _not_shown() -> NotFound:
    return NotFound("This page cannot show the file. Download the file instead.")


def _is_picture(kind: str, head: bytes) -> bool:
    """Whether a file is of a form that browsers show, and begins as such a picture does."""
    offset, mark = PICTURES.get(kind, (0, b""))
    return bool(mark) and head[offset : offset + len(mark)] == mark


def _sandboxed(visit: PageRequest) -> dict[str, str]:
    """The headers of what is no page of ours: nothing of it runs.

    Source: HTML, 7.4.5: a browser opens nothing that is sandboxed and has an opener policy.
    """
    headers = console_headers(visit)
    headers.pop("Cross-Origin-Opener-Policy", None)
    return {**headers, "Content-Security-Policy": SANDBOX}


def _bytes_of(content: BinaryIO, headers: Mapping[str, str]) -> Response:
    size_bytes = content.seek(0, 2)
    return ChunkedResponse(FilePart(content, range(size_bytes)), size_bytes, 200, headers)


def _related_rows(
    viewpoint: Viewpoint,
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    source: ReadableSource,
    related: RelatedLink,
) -> tuple[Row, ...]:
    """The first records of a relation, oldest first; none where its value is one of no filter."""
    names, selectors = columns_of(source)[:RELATED_COLUMNS], Selectors(source.connection_id)
    cut, dated = FieldSelection(names), time_field(source)
    listed = RecordsQuery(
        source.stream,
        selectors,
        limit=RELATED_SHOWN,
        sort=None if dated is None else dated.name,
        filters=related.view.filters,
        cut=cut,
    )
    try:
        if related.key is None:
            found: object = read_records(viewpoint.reads.ports, snapshot, authority, listed).data
        else:
            one = RecordQuery(source.stream, related.key, selectors, cut)
            found = [read_record(snapshot, authority, one).data]
    except (NotFound, InvalidFilter):
        return ()
    return tuple(
        table_row(viewpoint.root, source, each["id"], each["data"], names)
        for each in plain_records(found)
    )


def _place(visit: PageRequest) -> tuple[str, str]:
    return visit.path["connection_id"], visit.path["stream"]


def _declared(source: ReadableSource, name: str) -> str:
    if name not in source.fields:
        raise NotFound("These records have no such field.")
    return name


def _as_attachment(filename: object) -> str:
    if not isinstance(filename, str) or not filename:
        return "attachment"
    return f"attachment; filename*=UTF-8''{quote(cut(filename, SHORT_CHARS).encode(), safe='')}"
