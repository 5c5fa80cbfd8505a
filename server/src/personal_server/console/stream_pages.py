"""The lists of records: those of one stream, as what they are or as a table.

Rule: each page takes the road of a token's read, that of the viewpoint whose pages these are,
bounded in rows, characters and time.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

import time

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.texts import Joined, Text, message
from personal_server.console.account_cards import count_of, stored_counts
from personal_server.console.pages import Templates
from personal_server.console.presentations import layouts_of
from personal_server.console.record_figures import FIGURES_SECONDS, WANTED_SECONDS, ViewFigures
from personal_server.console.record_lists import Records
from personal_server.console.record_values import read_fields
from personal_server.console.record_view import (
    OPERATORS,
    RecordsLayout,
    RecordsView,
    check_view,
    sortable_fields,
    with_parameters,
)
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.stream_reading import WHOLE, StreamReading
from personal_server.console.viewpoints import (
    ROOTS,
    Viewpoints,
    account_name,
    source_of,
)
from personal_server.console.words import cut, declared_name, field_words
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.timeline import time_field

PAGE_SECONDS = 10.0
ALWAYS_THERE = (RecordsLayout.TABLE, RecordsLayout.READ)
NO_LAYOUT = message("There is no such page of these records.")
VALUE_CHARS = 60


class ViewCondition(msgspec.Struct, frozen=True):
    """A condition of a view in words, and the view without it."""

    words: Text
    without: str


class StreamPages(msgspec.Struct, frozen=True):
    """The pages of streams below `/owner/records`, for every viewpoint."""

    viewpoints: Viewpoints
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return tuple(route for root in ROOTS for route in self._routes(root))

    def _routes(self, root: str) -> tuple[PageRoute, ...]:
        stream = f"{root}/records/{{connection_id}}/{{stream}}"
        asked = frozenset({"since", "until", "sort", "as", "cursor", "figures", "of", "by"})
        asked |= {"field", "op", "value"}
        return (PageRoute("GET", stream, self.show_stream, asked, filtered=True),)

    def show_stream(self, visit: PageRequest) -> Response:
        """The records of a stream.

        Raises: NotFound, InvalidRequest, InvalidFilter, QueryTimeout.
        """
        stream_key, asked = (visit.path["connection_id"], visit.path["stream"]), visit.query
        viewpoint = self.viewpoints.of(visit)
        days, layout = (asked.get("since"), asked.get("until")), asked.get("as", "")
        if layout not in list(RecordsLayout) or asked.get("as") == "":
            raise InvalidRequest(NO_LAYOUT, param="as")
        sort, root = asked.get("sort"), viewpoint.root
        view = RecordsView(*stream_key, visit.filters, *days, sort, root, RecordsLayout(layout))
        with viewpoint.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = source_of(authority, *stream_key)
            check_view(view, source)
            if asked.get("field"):
                wanted = _added(view, visit)
                check_view(wanted, source)
                return self.pages.go(visit, wanted.link)
            layouts = layouts_of(source)
            if view.layout not in (RecordsLayout.FIRST, *ALWAYS_THERE, *layouts[1:]):
                raise InvalidRequest(NO_LAYOUT, param="as")
            which = asked.get("of"), asked.get("by")
            read = StreamReading(
                viewpoint, view, source, asked.get("cursor"), self.pages.zone, *which
            )
            found, ordered, following = read.records(snapshot, authority)
            stored = stored_counts(snapshot)
        is_whole = read.layout in WHOLE
        counts_all = asked.get("figures") == "all"
        until = time.monotonic() + (WANTED_SECONDS if counts_all else FIGURES_SECONDS)
        figures = ViewFigures(viewpoint.reads, view, source, until)
        kept = view if ordered.since == view.since else ordered
        # what a page is for is counted before what stands beside it
        drawn = read.shown(ordered, found, figures) if is_whole else None
        values = {
            "viewpoint": viewpoint,
            "masked": self.viewpoints.masked(viewpoint, source),
            "label": declared_name(source.declared.label),
            "account": account_name(source),
            "view": view,
            "place": view.place,
            "layout": read.layout,
            "earlier": replace(view, until=ordered.since).link if read.is_from(ordered) else None,
            "is_any": bool(found) or is_whole,
            "otherwise": _otherwise(read),
            "total": count_of(viewpoint, source, stored, until)
            if view.is_whole
            else figures.count(),
            "conditions": _conditions(view, source, found),
            "fields": [
                (name, field_words(name))
                for name, each in source.declared.properties.items()
                if each.kind is not None and name in source.fields
            ],
            "operators": OPERATORS,
            "sortable": sortable_fields(source),
            "has_time": time_field(source) is not None,
            "months": figures.months(),
            "facets": figures.facets(),
            # last, since what was counted before is kept as long as nothing is written
            "shown": drawn or read.shown(ordered, found, figures),
            "counting": None
            if counts_all
            else with_parameters(view.link, figures="all", of=which[0], by=which[1]),
            "next": None
            if is_whole
            else following and with_parameters(kept.link, cursor=following),
            "is_whole": is_whole,
            "is_cut": is_whole and following is not None,
            "whole_list": replace(ordered, layout=RecordsLayout.DAYS).link,
            "begins": not asked.get("cursor"),
        }
        return self.pages.show(visit, "stream.html", values)


def _otherwise(read: StreamReading) -> list[tuple[str, str]]:
    """How else these records can stand on the page: the name of the layout, and its link."""
    view, source = read.view, read.source
    looks = layouts_of(source)
    layouts = [*looks, RecordsLayout.TABLE]
    layouts += [RecordsLayout.READ] if read_fields(source) else []
    links: list[tuple[str, str]] = []
    for each in layouts:
        if each is not read.layout:
            alike = view.undated if each is RecordsLayout.MONTH else view
            is_first = each is layouts[0]
            layout = RecordsLayout.FIRST if is_first else each
            sort = None if each in WHOLE else view.sort
            links.append((each.value, replace(alike, layout=layout, sort=sort).link))
    return links


def _added(view: RecordsView, visit: PageRequest) -> RecordsView:
    """The view with the condition of its form."""
    field, operator = visit.query["field"], visit.query.get("op") or None
    if operator is not None and operator not in OPERATORS:
        raise InvalidRequest("There is no such condition for a field.", param="op")
    return view.having(FilterText(field, operator, visit.query.get("value", "")))


def _called(condition: FilterText, source: ReadableSource, found: Records) -> Text:
    """The value of a condition as people see it, where a record tells."""
    label = source.declared.properties[condition.field].label_field
    if condition.operator is None and label in source.fields:
        names = (data.get(label or "") for _, data in found)
        name = next((each for each in names if isinstance(each, str) and each), None)
        if name is not None:
            return cut(name, VALUE_CHARS)
    return ", ".join(cut(text, VALUE_CHARS) for text in (condition.text, *condition.further))


def _conditions(view: RecordsView, source: ReadableSource, found: Records) -> list[ViewCondition]:
    shown = [
        ViewCondition(
            Joined(
                (
                    field_words(each.field),
                    OPERATORS.get(each.operator or "", each.operator or ""),
                    _called(each, source, found),
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
