"""Looking at records: every stream, a stream as a table, one record, a long text, a file.

Rule: each page takes the road of a token's read, that of the viewpoint whose pages these are,
bounded in rows, characters and time.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, cast
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import InvalidFilter, InvalidRequest, NotFound, QueryTimeout
from pdpp_kernel.texts import Joined, Text, message
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
    called,
    letter_of,
    look_of,
)
from personal_server.console.record_figures import FIGURES_SECONDS, WANTED_SECONDS, ViewFigures
from personal_server.console.record_values import (
    FIELDS_SHOWN,
    PICTURES,
    SHORT_CHARS,
    TEXTS,
    RelatedLink,
    Row,
    brief,
    columns_of,
    read_fields,
    read_row,
    record_fields,
    related_to,
    table_columns,
    table_row,
    title_of,
    told_columns,
)
from personal_server.console.record_view import (
    OPERATORS,
    READ,
    RecordsView,
    check_view,
    sortable_fields,
)
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.viewpoints import OWN, ROOTS, Viewpoint, Viewpoints, records_path
from personal_server.console.words import cut, field_words, said
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
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import read_records
from personal_server.reading.single_records import read_record
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.ports.disclosure_stores import DisclosureStore
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.web.byte_ranges import FilePart
from personal_server.web.responses import ChunkedResponse

STREAMS_SHOWN = 40
ROWS_SHOWN, READ_SHOWN = 25, 10
PAGE_CHARS = 1_000_000
PAGE_SECONDS = 10.0
LOOKED_AT = 2_000
READS_SHOWN = 20
IMPORTS_SHOWN = 5
VALUE_CHARS = 60
RELATED_SHOWN, RELATED_COLUMNS = 6, 3
AROUND_SHOWN = 10
SANDBOX = "sandbox; default-src 'none'; frame-ancestors 'none'"


@dataclass(frozen=True, slots=True)
class StreamLine:
    """A stream in the list of all."""

    link: str
    label: str
    name: str
    account: str
    count: int | None
    oldest: Text
    newest: Text


@dataclass(frozen=True, slots=True)
class RelatedRecords:
    """What a record belongs with; `rows` are the first of it, `None` if that takes too long."""

    words: Text
    link: str
    rows: tuple[Row, ...] | None = None


@dataclass(frozen=True, slots=True)
class ViewCondition:
    """A condition of a view in words, and the view without it."""

    words: Text
    without: str


@dataclass(frozen=True, slots=True)
class BrowsePages:
    """`/owner/records` and what is below it, for every viewpoint."""

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
        asked = frozenset({"since", "until", "sort", "as", "cursor", "figures"})
        asked |= {"field", "op", "value"}
        return (
            PageRoute("GET", f"{root}/records", self.show_streams, frozenset({"from"})),
            PageRoute("GET", stream, self.show_stream, asked, filtered=True),
            PageRoute("GET", record, self.show_record, frozenset({"from"})),
            PageRoute("GET", f"{record}/json", self.give_json),
            PageRoute("GET", f"{record}/text/{{field}}", self.show_text, frozenset({"offset"})),
            PageRoute("GET", f"{record}/files/{{field}}", self.give_file),
            PageRoute("GET", f"{record}/files/{{field}}/shown", self.show_file),
        )

    def show_streams(self, visit: PageRequest) -> Response:
        """Every stream that holds records."""
        first = parse_number(visit.query.get("from")) or 0
        viewpoint = self.viewpoints.of(visit)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            stored = _record_counts(snapshot)
            held = [source for source in authority.sources if stored.get(source.order)]
            held.sort(key=lambda s: (_account(s).lower(), s.connection_id, -stored[s.order]))
            shown = held[first : first + STREAMS_SHOWN]
            ends = [_ends(viewpoint.reads.ports, snapshot, authority, source) for source in shown]
        until = time.monotonic() + FIGURES_SECONDS
        lines = [
            _line(viewpoint, source, _count(viewpoint, source, stored, until), *times)
            for source, times in zip(shown, ends, strict=True)
        ]
        following = first + STREAMS_SHOWN
        values = {
            "viewpoint": viewpoint,
            "streams": lines,
            "records": sum(stored[source.order] for source in held),
            "next": following if following < len(held) else None,
            "begins": first == 0,
        }
        return self.pages.show(visit, "records.html", values)

    def show_stream(self, visit: PageRequest) -> Response:
        """A stream as a table.  Raises: NotFound, InvalidRequest, InvalidFilter, QueryTimeout."""
        place, asked = _place(visit), visit.query
        viewpoint = self.viewpoints.of(visit)
        days, is_read = (asked.get("since"), asked.get("until")), asked.get("as") is not None
        if asked.get("as") not in (None, READ):
            raise InvalidRequest("There is no such page of these records.", param="as")
        sort, root = asked.get("sort"), viewpoint.root
        view = RecordsView(*place, visit.filters, *days, sort, root, is_read)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = _source(authority, *place)
            check_view(view, source)
            if asked.get("field"):
                wanted = _added(view, visit)
                check_view(wanted, source)
                return self.pages.go(visit, wanted.link)
            dated, names = time_field(source), columns_of(source)
            ordered = view if view.sort or dated is None else replace(view, sort=f"-{dated.name}")
            texts = read_fields(source) if is_read else ()
            query = RecordsQuery(
                source.stream,
                Selectors(source.connection_id),
                limit=READ_SHOWN if is_read else ROWS_SHOWN,
                size=PageSize(chars=PAGE_CHARS),
                cursor=asked.get("cursor"),
                sort=ordered.sort,
                filters=view.filters,
                times=view.times,
                cut=FieldSelection(tuple(dict.fromkeys((*names, *texts)))),
            )
            answer = read_records(viewpoint.reads.ports, snapshot, authority, query)
            stored = _record_counts(snapshot)
        found = _plain(answer.data)
        names = told_columns(ordered, names, [each["data"] for each in found])
        begins = not asked.get("cursor")
        more = (
            None if answer.next_cursor is None else _with(view.link, "cursor", answer.next_cursor)
        )
        counts_all = asked.get("figures") == "all"
        until = time.monotonic() + (WANTED_SECONDS if counts_all else FIGURES_SECONDS)
        figures = ViewFigures(viewpoint.reads, view, source, until)
        values = {
            "viewpoint": viewpoint,
            "masked": self._masked(viewpoint, source),
            "label": source.declared.label,
            "account": _account(source),
            "view": view,
            "place": view.place,
            "columns": table_columns(ordered, source, names),
            "rows": [
                (read_row if is_read else table_row)(root, source, each["id"], each["data"], names)
                for each in found
            ],
            "otherwise": replace(view, is_read=not is_read).link,
            "total": _count(viewpoint, source, stored, until) if view.is_whole else figures.count(),
            "conditions": _conditions(view, source),
            "fields": [
                (name, field_words(name))
                for name, each in source.declared.properties.items()
                if each.kind is not None and name in source.fields
            ],
            "operators": OPERATORS,
            "sortable": sortable_fields(source),
            "has_time": dated is not None,
            "months": figures.months(),
            "facets": figures.facets(),
            "counting": None if counts_all else _with(view.link, "figures", "all"),
            "next": more,
            "begins": begins,
        }
        return self.pages.show(visit, "stream.html", values)

    def show_record(self, visit: PageRequest) -> Response:
        """One record.  Raises: NotFound, DamagedRecord."""
        place, key = _place(visit), visit.path["record_key"]
        first = parse_number(visit.query.get("from")) or 0
        viewpoint = self.viewpoints.of(visit)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = _source(authority, *place)
            siblings = {s.stream: s for s in authority.sources if s.connection_id == place[0]}
            answer = read_record(
                snapshot, authority, RecordQuery(place[1], key, Selectors(place[0]))
            )
            collected = snapshot.collections().get(source.connection_id)
        (record,) = _plain([answer.data])
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
            "label": source.declared.label,
            "account": _account(source),
            "account_id": source.connection_id,
            "place": records_path(root, *place),
            "own": records_path(root, *place, key),
            "fields": fields,
            "masked": self._masked(viewpoint, source),
            "unmasked": records_path(OWN, *place, key),
            "empty": [field_words(n) for n, v in data.items() if v is None or v in ("", [], {})],
            "next": following if following < len(data) else None,
            "related": self._related(viewpoint, siblings, related),
            "key": cut(key, VALUE_CHARS),
            "source_name": source.source_name or source.connector_key,
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
            for place, each in enumerate(related):
                source = siblings[each.view.stream]
                rows = _related_rows(viewpoint, snapshot, authority, source, each)
                found[place] = replace(found[place], rows=rows)
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
                rows = _plain(read_records(viewpoint.reads.ports, *state, query).data)
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

    def _masked(self, viewpoint: Viewpoint, source: ReadableSource) -> list[tuple[str, str]]:
        """The fields that an app does not get, by name and in words."""
        if not viewpoint.app:
            return []
        with self.viewpoints.owner.open(PAGE_SECONDS) as (_, owner):
            whole = _source(owner, *source.order)
        return [(name, field_words(name)) for name in whole.fields if name not in source.fields]

    def _history(self, source: ReadableSource, key: str) -> dict[str, object]:
        """What is told to the owner alone: what brought a record, and who was given it."""
        place = (*source.order, key)
        given = self.disclosures.disclosures_of(*place, LOOKED_AT)
        with self.authorization.read() as reader:
            names = client_names(reader, (entry.client_id for _, entry in given[:READS_SHOWN]))
        return {
            "imports": self._imports(source),
            "planted": place in self.viewpoints.owner.ports.planted(),
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
        place, key = _place(visit), visit.path["record_key"]
        with self.viewpoints.of(visit).reads.open(PAGE_SECONDS) as (snapshot, authority):
            _source(authority, *place)
            query = RecordQuery(place[1], key, Selectors(place[0]))
            content = msgspec.json.encode(read_record(snapshot, authority, query).data)
        return Response(content, 200, _sandboxed(visit), "application/json")

    def show_text(self, visit: PageRequest) -> Response:
        """A long text, a stretch at a time.  Raises: NotFound, FieldNotText, InvalidRequest."""
        place, key = _place(visit), visit.path["record_key"]
        offset = parse_number(visit.query.get("offset")) or 0
        viewpoint = self.viewpoints.of(visit)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = _source(authority, *place)
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
        own = records_path(viewpoint.root, *place, key)
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
        shown = TEXTS.get(kind)
        if kind in PICTURES:
            offset, mark = PICTURES[kind]
            begin = content.read(offset + len(mark))
            shown = kind if begin[offset:] == mark else None
        if shown is None:
            content.close()
            raise NotFound("This page cannot show the file. Download the file instead.")
        policy = f"{SANDBOX}; style-src 'unsafe-inline'; img-src data:"
        headers = {"Content-Security-Policy": policy, "Content-Type": shown}
        return _bytes_of(content, {**_sandboxed(visit), **headers})

    def _file(self, visit: PageRequest) -> tuple[BinaryIO, Mapping[str, object]]:
        """The bytes of a file, and what its record says of it.  Raises: NotFound."""
        place, key = _place(visit), visit.path["record_key"]
        reads = self.viewpoints.of(visit).reads
        with reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = _source(authority, *place)
            name = _declared(source, visit.path["field"])
            query = RecordQuery(place[1], key, Selectors(place[0]), FieldSelection((name,)))
            (record,) = _plain([read_record(snapshot, authority, query).data])
            reference = record["data"].get(name)
            named = cast("dict[str, object]", reference if isinstance(reference, dict) else {})
            blob_id = str(named.get("blob_id", ""))
            read = authorize_blob(authority, BlobQuery(blob_id, Selectors(place[0])))
            content = None
            if snapshot.blob(read.plan):
                content = reads.ports.store.open_blob(blob_id)
        if content is None:
            raise NotFound("There is no such file here.")
        return content, named


def _sandboxed(visit: PageRequest) -> dict[str, str]:
    """The headers of what is no page of ours: nothing of it runs."""
    return {**console_headers(visit.origin), "Content-Security-Policy": SANDBOX}


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
        table_row(viewpoint.root, source, each["id"], each["data"], names) for each in _plain(found)
    )


def _line(
    viewpoint: Viewpoint, source: ReadableSource, count: int | None, oldest: Text, newest: Text
) -> StreamLine:
    link = records_path(viewpoint.root, *source.order)
    label, account = source.declared.label, _account(source)
    return StreamLine(link, label, source.stream, account, count, oldest, newest)


def _ends(
    ports: ReadPorts, snapshot: ReadSnapshot, authority: ReadAuthority, source: ReadableSource
) -> tuple[Text, Text]:
    """The times of the oldest and of the newest record: steps into an index."""
    dated = time_field(source)
    if dated is None:
        return "", ""
    queries = (
        RecordsQuery(
            source.stream,
            Selectors(source.connection_id),
            limit=1,
            sort=f"{sign}{dated.name}",
            cut=FieldSelection((dated.name,)),
        )
        for sign in ("", "-")
    )
    answers = (read_records(ports, snapshot, authority, query) for query in queries)
    found = [[each["data"].get(dated.name) for each in _plain(a.data)] for a in answers]
    oldest, newest = (brief(values[0], dated.kind) if values else "" for values in found)
    return oldest, newest


def _count(
    viewpoint: Viewpoint,
    source: ReadableSource,
    stored: Mapping[tuple[str, str], int],
    until: float,
) -> int | None:
    """How many records a viewpoint has of a source; `None` where that takes too long."""
    if source.grant_id is None:  # no grant leaves any out
        return stored.get(source.order, 0)
    view = RecordsView(*source.order, root=viewpoint.root)
    return ViewFigures(viewpoint.reads, view, source, until).count()


def _place(visit: PageRequest) -> tuple[str, str]:
    return visit.path["connection_id"], visit.path["stream"]


def _source(authority: ReadAuthority, connection_id: str, stream: str) -> ReadableSource:
    found = (each for each in authority.sources if each.order == (connection_id, stream))
    source = next(found, None)
    if source is None:
        raise NotFound("This server has no such records.")
    return source


def _record_counts(snapshot: ReadSnapshot) -> dict[tuple[str, str], int]:
    """By connection and stream."""
    stored = snapshot.stored_streams()
    return {(each.connection_id, each.stream): each.record_count for each in stored}


def _declared(source: ReadableSource, name: str) -> str:
    if name not in source.fields:
        raise NotFound("These records have no such field.")
    return name


def _account(source: ReadableSource) -> str:
    return source.display_name or source.source_name or source.connection_id


def _plain(records: object) -> list[dict[str, Any]]:
    """Disclosed records as plain values."""
    return msgspec.json.decode(msgspec.json.encode(records))


def _with(link: str, name: str, value: str) -> str:
    return f"{link}{'&' if '?' in link else '?'}{name}={value}"


def _added(view: RecordsView, visit: PageRequest) -> RecordsView:
    """The view with the condition of its form."""
    field, operator = visit.query["field"], visit.query.get("op") or None
    if operator is not None and operator not in OPERATORS:
        raise InvalidRequest("There is no such condition for a field.", param="op")
    return view.having(FilterText(field, operator, visit.query.get("value", "")))


def _conditions(view: RecordsView, source: ReadableSource) -> list[ViewCondition]:
    shown = [
        ViewCondition(
            Joined(
                (
                    field_words(each.field),
                    OPERATORS.get(each.operator or "", each.operator or ""),
                    ", ".join(cut(text, VALUE_CHARS) for text in (each.text, *each.further)),
                ),
                " ",
            ),
            view.lacking(each).link,
        )
        for each in view.filters
    ]
    dated = time_field(source)
    named: Text = message("time") if dated is None else field_words(dated.name)
    if view.since:
        words = message("%(field)s from %(since)s", field=named, since=view.since)
        shown.append(ViewCondition(words, replace(view, since=None).link))
    if view.until:
        words = message("%(field)s before %(until)s", field=named, until=view.until)
        shown.append(ViewCondition(words, replace(view, until=None).link))
    return shown


def _as_attachment(filename: object) -> str:
    if not isinstance(filename, str) or not filename:
        return "attachment"
    return f"attachment; filename*=UTF-8''{quote(cut(filename, SHORT_CHARS).encode(), safe='')}"
