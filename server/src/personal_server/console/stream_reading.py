"""What the page of a stream reads of it, and shows as what it is.

Rule: each page takes the road of a token's read, that of the viewpoint whose pages these are,
bounded in rows and characters.
Source: docs/contract/authorization-server.md 13.5; resource-server.md 17 ("What a stream looks
like").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date
from zoneinfo import ZoneInfo

import msgspec
from msgspec.structs import replace

from pdpp_kernel.texts import local_moment, moment_of
from personal_server.console.list_figures import (
    CategorySum,
    ChatLine,
    category_sums,
    chat_lines,
    month_sums,
)
from personal_server.console.measurement_lines import MeasurementLine, line_of
from personal_server.console.month_calendar import (
    FIRST_MONTH,
    LAST_MONTH,
    CalendarMonth,
    asked_month,
    beginning_within,
    begun_before,
    calendar_of,
    day_fields,
    month_times,
    month_view,
)
from personal_server.console.picture_grid import PictureDay, picture_days
from personal_server.console.place_maps import PlaceMap, is_of_one, map_of
from personal_server.console.presentations import (
    Appearance,
    layouts_of,
    look_of,
    picture_field,
    place_fields,
)
from personal_server.console.record_figures import ViewFigures
from personal_server.console.record_lists import (
    AgendaDay,
    Conversation,
    ListedRecord,
    PaymentMonth,
    Records,
    agenda,
    conversations,
    inbox,
    list_fields,
    months_of,
    payment_months,
    payments,
    times_of,
)
from personal_server.console.record_values import (
    Row,
    ShownColumn,
    columns_of,
    plain_records,
    read_fields,
    read_row,
    table_columns,
    table_row,
    told_columns,
)
from personal_server.console.record_view import RecordsLayout, RecordsView
from personal_server.console.viewpoints import Viewpoint
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.filter_texts import FilterText
from personal_server.enforcement.queries import (
    ALWAYS,
    FieldSelection,
    PageSize,
    RecordsQuery,
    Selectors,
    Times,
)
from personal_server.enforcement.timeline import time_field
from personal_server.reading.records import read_records
from personal_server.storage.ports.snapshots import ReadSnapshot

ROWS_SHOWN, READ_SHOWN = 25, 10
EVENTS_READ, PLACES_READ, TRACK_READ, PICTURES_SHOWN = 300, 500, 1_500, 40
PAGE_CHARS = 1_000_000
WHOLE = (RecordsLayout.MONTH, RecordsLayout.LINES, RecordsLayout.MAP)
"""Layouts that show what they show on one page."""
DRAWN = (*WHOLE, RecordsLayout.PICTURES)


class ShownRecords(msgspec.Struct, frozen=True):
    """The records of a page as what they are, else as the rows of a table."""

    records: Sequence[ListedRecord] = ()
    chats: Sequence[ChatLine] | None = ()
    conversations: Sequence[Conversation] = ()
    days: Sequence[AgendaDay] = ()
    months: Sequence[PaymentMonth] = ()
    is_summed: bool = True
    categories: Sequence[CategorySum] = ()
    calendar: CalendarMonth | None = None
    line: MeasurementLine | None = None
    map: PlaceMap | None = None
    pictures: Sequence[PictureDay] = ()
    rows: Sequence[Row] = ()
    columns: Sequence[ShownColumn] = ()


class StreamReading(msgspec.Struct, frozen=True):
    """What of a stream a page reads: a view, as what it is shown, and where a page goes on."""

    viewpoint: Viewpoint
    view: RecordsView
    source: ReadableSource
    cursor: str | None
    zone: ZoneInfo
    of: str | None = None
    by: str | None = None

    @property
    def layout(self) -> RecordsLayout:
        """That of the page; what is asked for but a month is no calendar."""
        view, looks = self.view, layouts_of(self.source)
        layout = view.layout or (looks[0] if looks else RecordsLayout.TABLE)
        if layout is RecordsLayout.MONTH:
            is_dated = bool(view.since or view.until)
            is_month = asked_month(view) is not None if is_dated else not self.cursor
            return layout if is_month and not view.sort else RecordsLayout.DAYS
        return layout

    @property
    def look(self) -> Appearance | None:
        """As what records stand in a list, if they do not stand in a table."""
        is_table = self.layout in (RecordsLayout.TABLE, RecordsLayout.READ)
        return None if is_table else look_of(self.source)

    def is_from(self, ordered: RecordsView) -> bool:
        """Whether a list begins today, though nobody asked for that."""
        return self.layout is RecordsLayout.DAYS and ordered.since != self.view.since

    def records(
        self, snapshot: ReadSnapshot, authority: ReadAuthority
    ) -> tuple[Records, RecordsView, str | None]:
        """The records, the view in whose order they are, and where the next page begins.

        Of an agenda from today on, where there are such; else the newest first.
        """
        view, dated, today = self.view, time_field(self.source), self._from_today()
        if self.layout is RecordsLayout.MONTH:
            return self._month(snapshot, authority)
        if self.layout is RecordsLayout.LINES:
            return (), view, None
        if dated is not None and today is not None:
            upcoming = replace(view, since=today, sort=dated.name)
            found, following = self._page(snapshot, authority, upcoming)
            if found:
                return found, upcoming, following
        ordered = view if view.sort or dated is None else replace(view, sort=f"-{dated.name}")
        if self.layout is RecordsLayout.MAP:
            return *self._placed(snapshot, authority, ordered), None
        found, following = self._page(snapshot, authority, ordered)
        return found, ordered, following

    def _placed(
        self, snapshot: ReadSnapshot, authority: ReadAuthority, ordered: RecordsView
    ) -> tuple[Records, RecordsView]:
        """The newest of what has a place, so many as a page has time for."""
        source = self.source
        fields = place_fields(source) or ()
        names = (*list_fields(source, Appearance.TITLES), *fields, *source.declared.primary_key)
        limit = TRACK_READ if is_of_one(self.view, source) else PLACES_READ
        query = self._query(names, limit, ordered.times, ordered.sort)
        return self._found(snapshot, authority, query)[0], ordered

    def _month(
        self, snapshot: ReadSnapshot, authority: ReadAuthority
    ) -> tuple[Records, RecordsView, str | None]:
        """What takes place in the month asked for, else in this one or the next with something."""
        dated = time_field(self.source)
        if dated is None:
            return (), self.view, None
        first = asked_month(self.view) or self._month_to_show(snapshot, authority, dated.name)
        times = month_times(first, self.zone)
        names = list_fields(self.source, Appearance.AGENDA)
        within = beginning_within(self.source, times)
        if within is None:
            query = self._query(names, EVENTS_READ, times, dated.name)
            found, following = self._found(snapshot, authority, query)
            return found, month_view(self.view, first), following
        query = self._query(names, EVENTS_READ, ALWAYS, dated.name, *within)
        found, following = self._found(snapshot, authority, query)
        before = begun_before(self.source, times)
        if before:
            query = self._query(names, EVENTS_READ, ALWAYS, f"-{dated.name}", *before)
            found = [*self._found(snapshot, authority, query)[0], *found]
        return found, month_view(self.view, first), following

    def _month_to_show(self, snapshot: ReadSnapshot, authority: ReadAuthority, dated: str) -> date:
        this = self.today.replace(day=1)
        since = Times(since_ns=month_times(this, self.zone).since_ns)
        for times, sort in ((since, dated), (ALWAYS, f"-{dated}")):
            query = self._query((dated, *day_fields(self.source)), 1, times, sort)
            for _, data in self._found(snapshot, authority, query)[0]:
                begin_ns, _, is_whole = times_of(self.source, data)
                if begin_ns is not None:
                    zone = UTC if is_whole else self.zone
                    first = local_moment(begin_ns, zone).date().replace(day=1)
                    return min(max(first, this if times is since else FIRST_MONTH), LAST_MONTH)
        return this

    @property
    def today(self) -> date:
        """The day that it is where the owner lives."""
        return local_moment(self.viewpoint.reads.ports.clock(), self.zone).date()

    def _query(
        self, names: Sequence[str], limit: int, times: Times, sort: str | None, *filters: FilterText
    ) -> RecordsQuery:
        return RecordsQuery(
            self.source.stream,
            Selectors(self.source.connection_id),
            limit=limit,
            size=PageSize(chars=PAGE_CHARS),
            sort=sort,
            filters=(*self.view.filters, *filters),
            times=times,
            cut=FieldSelection(tuple(dict.fromkeys(names))),
        )

    def _found(
        self, snapshot: ReadSnapshot, authority: ReadAuthority, query: RecordsQuery
    ) -> tuple[list[tuple[str, Mapping[str, object]]], str | None]:
        answer = read_records(self.viewpoint.reads.ports, snapshot, authority, query)
        found = [(each["id"], each["data"]) for each in plain_records(answer.data)]
        return found, answer.next_cursor

    def _page(
        self, snapshot: ReadSnapshot, authority: ReadAuthority, view: RecordsView
    ) -> tuple[Records, str | None]:
        source, is_read = self.source, view.layout is RecordsLayout.READ
        names = columns_of(source) if self.look is None else list_fields(source, self.look)
        limit = READ_SHOWN if is_read else ROWS_SHOWN
        picture = picture_field(source)
        if self.layout is RecordsLayout.PICTURES and picture is not None:
            names = (*list_fields(source, Appearance.TITLES), picture)
            limit = PICTURES_SHOWN
        texts = read_fields(source) if is_read else ()
        query = RecordsQuery(
            source.stream,
            Selectors(source.connection_id),
            limit=limit,
            size=PageSize(chars=PAGE_CHARS),
            cursor=self.cursor,
            sort=view.sort,
            filters=view.filters,
            times=view.times,
            cut=FieldSelection(tuple(dict.fromkeys((*names, *texts)))),
        )
        return self._found(snapshot, authority, query)

    def _from_today(self) -> str | None:
        """The day from which an agenda is shown where nothing else was asked for.

        It is a day in UTC, so for some owners the one before theirs.
        """
        view = self.view
        is_asked = view.since or view.until or view.sort or self.cursor
        if self.layout is not RecordsLayout.DAYS or is_asked:
            return None
        now = moment_of(self.viewpoint.reads.ports.clock())
        local = now.astimezone(self.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return min(local.date(), local.astimezone(UTC).date()).isoformat()

    def shown(self, ordered: RecordsView, found: Records, figures: ViewFigures) -> ShownRecords:
        """The records as what they are, else as the rows of a table."""
        root, source, view = self.viewpoint.root, self.source, self.view
        dated = time_field(source)
        is_latest_first = dated is not None and ordered.sort == f"-{dated.name}"
        if self.layout in DRAWN:
            return self._drawn(ordered, found, figures)
        match self.look:
            case Appearance.MAIL | Appearance.TITLES:
                return ShownRecords(records=inbox(root, source, found))
            case Appearance.CHAT:
                talks = conversations(view, source, found[::-1] if is_latest_first else found)
                return ShownRecords(
                    conversations=talks, chats=[] if self.cursor else chat_lines(figures)
                )
            case Appearance.AGENDA:
                zone = self.zone
                days = agenda(root, source, found, zone, latest_first=is_latest_first)
                return ShownRecords(days=days)
            case Appearance.PAYMENTS:
                is_timed = dated is not None and (ordered.sort or "").lstrip("-") == dated.name
                months = months_of(source, found) if is_timed else [""] * len(found)
                sums = month_sums(figures, months)
                by_category = []
                if months and months[0] and not self.cursor:
                    by_category = category_sums(figures, months[0])
                paid = payment_months(payments(root, source, found), months, sums or {})
                is_summed = sums is not None and by_category is not None
                return ShownRecords(months=paid, is_summed=is_summed, categories=by_category or ())
            case None:
                names = told_columns(ordered, columns_of(source), [data for _, data in found])
                row = read_row if view.layout is RecordsLayout.READ else table_row
                rows = [row(root, source, key, data, names) for key, data in found]
                return ShownRecords(rows=rows, columns=table_columns(ordered, source, names))

    def _drawn(self, ordered: RecordsView, found: Records, figures: ViewFigures) -> ShownRecords:
        """The records as a month, a line, a map or pictures."""
        root, source, view = self.viewpoint.root, self.source, self.view
        match self.layout:
            case RecordsLayout.MONTH:
                first = asked_month(ordered) or self.today.replace(day=1)
                month = calendar_of(view, source, found, first, self.zone, self.today)
                return ShownRecords(calendar=month)
            case RecordsLayout.LINES:
                return ShownRecords(line=line_of(figures, self.of, self.by, self.zone))
            case RecordsLayout.MAP:
                return ShownRecords(map=map_of(view, source, found))
            case _:
                return ShownRecords(pictures=picture_days(root, source, found, self.zone))
