"""The lists of records: every stream that holds some, and the records of one stream.

Rule: each page takes the road of a token's read, that of the viewpoint whose pages these are,
bounded in rows, characters and time.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.texts import Joined, Text, message
from personal_server.console.pages import Templates
from personal_server.console.places import parse_number
from personal_server.console.record_figures import FIGURES_SECONDS, WANTED_SECONDS, ViewFigures
from personal_server.console.record_values import (
    brief,
    columns_of,
    plain_records,
    read_fields,
    read_row,
    table_columns,
    table_row,
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
from personal_server.console.viewpoints import (
    ROOTS,
    Viewpoint,
    Viewpoints,
    account_name,
    records_path,
    source_of,
)
from personal_server.console.words import cut, field_words
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import (
    FieldSelection,
    PageSize,
    RecordsQuery,
    Selectors,
)
from personal_server.enforcement.timeline import time_field
from personal_server.reading.ports import ReadPorts
from personal_server.reading.records import read_records
from personal_server.storage.ports.snapshots import ReadSnapshot

STREAMS_SHOWN = 40
ROWS_SHOWN, READ_SHOWN = 25, 10
PAGE_CHARS = 1_000_000
PAGE_SECONDS = 10.0
VALUE_CHARS = 60


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
class ViewCondition:
    """A condition of a view in words, and the view without it."""

    words: Text
    without: str


@dataclass(frozen=True, slots=True)
class StreamPages:
    """`/owner/records` and the pages of streams below it, for every viewpoint."""

    viewpoints: Viewpoints
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return tuple(route for root in ROOTS for route in self._routes(root))

    def _routes(self, root: str) -> tuple[PageRoute, ...]:
        stream = f"{root}/records/{{connection_id}}/{{stream}}"
        asked = frozenset({"since", "until", "sort", "as", "cursor", "figures"})
        asked |= {"field", "op", "value"}
        return (
            PageRoute("GET", f"{root}/records", self.show_streams, frozenset({"from"})),
            PageRoute("GET", stream, self.show_stream, asked, filtered=True),
        )

    def show_streams(self, visit: PageRequest) -> Response:
        """Every stream that holds records."""
        first = parse_number(visit.query.get("from")) or 0
        viewpoint = self.viewpoints.of(visit)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            stored = _record_counts(snapshot)
            held = [source for source in authority.sources if stored.get(source.order)]
            held.sort(key=lambda s: (account_name(s).lower(), s.connection_id, -stored[s.order]))
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
        place, asked = (visit.path["connection_id"], visit.path["stream"]), visit.query
        viewpoint = self.viewpoints.of(visit)
        days, is_read = (asked.get("since"), asked.get("until")), asked.get("as") is not None
        if asked.get("as") not in (None, READ):
            raise InvalidRequest("There is no such page of these records.", param="as")
        sort, root = asked.get("sort"), viewpoint.root
        view = RecordsView(*place, visit.filters, *days, sort, root, is_read)
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = source_of(authority, *place)
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
        found = plain_records(answer.data)
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
            "masked": self.viewpoints.masked(viewpoint, source),
            "label": source.declared.label,
            "account": account_name(source),
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


def _line(
    viewpoint: Viewpoint, source: ReadableSource, count: int | None, oldest: Text, newest: Text
) -> StreamLine:
    link = records_path(viewpoint.root, *source.order)
    label, account = source.declared.label, account_name(source)
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
    found = [[each["data"].get(dated.name) for each in plain_records(a.data)] for a in answers]
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


def _record_counts(snapshot: ReadSnapshot) -> dict[tuple[str, str], int]:
    """By connection and stream."""
    stored = snapshot.stored_streams()
    return {(each.connection_id, each.stream): each.record_count for each in stored}


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
