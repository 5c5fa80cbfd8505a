"""A day of the owner's life, from all sources in the order of time; years that lead to days.

Rule: the pages take the roads of a time line and of an aggregate as the owner, bounded in entries
and time.  Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import date, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, NotFound, QueryTimeout
from pdpp_kernel.texts import Date, Text, local_moment, message
from pdpp_kernel.values import instant_ns
from personal_server.console.account_cards import stored_counts
from personal_server.console.day_map import day_map
from personal_server.console.day_measures import measured_streams, streams_of_day
from personal_server.console.pages import Templates
from personal_server.console.record_figures import FIGURES_SECONDS
from personal_server.console.record_values import plain_records
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.viewpoints import OWN, account_name, records_path
from personal_server.console.words import cut, declared_name
from personal_server.domain.authority import ReadableSource
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.asked_times import times_in
from personal_server.enforcement.queries import PageSize, TimelineQuery
from personal_server.reading.day_counts import CountedTimes, day_counts, year_counts
from personal_server.reading.owner import OwnerReads
from personal_server.reading.timeline import read_timeline

ENTRIES_SHOWN, YEARS_SHOWN = 50, 40
PAGE_CHARS = 200_000
PAGE_SECONDS, COUNT_SECONDS = 10.0, 5.0
TITLE_CHARS, WHO_CHARS, WHERE_CHARS = 160, 60, 60
ALL_DAY = message("all day")
_YEAR = re.compile(r"[0-9]{4}\Z")


class DayEntry(msgspec.Struct, frozen=True):
    """One record of a day: when, who, where it was said or kept, and what it is called."""

    times: Text
    who: str
    title: str
    chat: str
    account: str
    kind: Text
    link: str


class YearLink(msgspec.Struct, frozen=True):
    """A year with its records."""

    year: str
    count: int
    chosen: bool


class DayPages(msgspec.Struct, frozen=True):
    """`/owner/days`, and a day below it."""

    reads: OwnerReads
    pages: Templates

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        asked = frozenset({"year", "day"})
        return (
            PageRoute("GET", "/owner/days", self.show_year, asked),
            PageRoute("GET", "/owner/days/{day}", self.show_day, frozenset({"cursor"})),
        )

    def show_year(self, visit: PageRequest) -> Response:
        """A year as a map of its days.  Raises: InvalidRequest."""
        if asked := visit.query.get("day"):
            if _date(asked) is None:
                raise InvalidRequest("That is not a valid date.", param="day")
            return self.pages.go(visit, f"/owner/days/{asked}")
        wanted = visit.query.get("year")
        if wanted is not None and not (_YEAR.match(wanted) and 1 < int(wanted) < 9999):
            raise InvalidRequest("That is not a valid year.", param="year")
        today = local_moment(self.reads.ports.clock(), self.pages.zone).date()
        shown, years = CountedTimes({}), CountedTimes({})
        year, is_counted = int(wanted) if wanted else today.year, False
        with suppress(QueryTimeout), self.reads.open(COUNT_SECONDS) as (snapshot, authority):
            years = year_counts(snapshot, authority, self.pages.zone)
            if not wanted and year not in years.counts:
                year = max((y for y in years.counts if y <= today.year), default=year)
            shown, is_counted = day_counts(snapshot, authority, year, self.pages.zone), True
        listed = sorted(years.counts, reverse=True)[:YEARS_SHOWN]
        values = {
            "years": [YearLink(f"{y:04}", years.counts[y], y == year) for y in listed],
            "map": day_map(year, shown.counts),
            "is_counted": is_counted,
            "uncounted": sorted({account_name(source) for source in shown.uncounted}),
            "today": today.isoformat(),
        }
        return self.pages.show(visit, "days.html", values)

    def show_day(self, visit: PageRequest) -> Response:
        """Everything of one day.  Raises: NotFound, InvalidCursor, QueryTimeout."""
        day = _date(visit.path["day"])
        if day is None:
            raise NotFound("There is no such day.")
        zone = str(self.pages.zone)
        bounds = {"since": day.isoformat(), "until": (day + timedelta(days=1)).isoformat()}
        query = TimelineQuery(
            times=times_in(bounds, zone),
            descending=False,
            limit=ENTRIES_SHOWN,
            size=PageSize(chars=PAGE_CHARS),
            cursor=visit.query.get("cursor"),
            time_zone=zone,
        )
        with self.reads.open(PAGE_SECONDS) as (snapshot, authority):
            streams, sampled = streams_of_day(authority.sources)
            # a time line without names is that of all streams
            answer = (
                read_timeline(
                    self.reads.ports, snapshot, authority, replace(query, streams=streams)
                )
                if streams
                else ReadResult([])
            )
            sources = {source.order: source for source in authority.sources}
            stored = stored_counts(snapshot)
        entries = [self._entry(each, sources, day) for each in plain_records(answer.data)]
        begins, until = query.cursor is None, time.monotonic() + FIGURES_SECONDS
        shown = [each for each in sampled if begins and stored.get(each.order)]
        measured = measured_streams(self.reads, shown, day, self.pages.zone, until)
        values = {
            "day": Date(day, "named_day"),
            "year": f"{day.year:04}",
            "here_at": f"/owner/days/{day.isoformat()}",
            "earlier": (day - timedelta(days=1)).isoformat(),
            "later": (day + timedelta(days=1)).isoformat(),
            "date": day.isoformat(),
            "entries": entries,
            "next": answer.next_cursor,
            "measured": measured,
            "begins": begins,
        }
        return self.pages.show(visit, "day.html", values)

    def _entry(
        self,
        entry: Mapping[str, Any],
        sources: Mapping[tuple[str, str], ReadableSource],
        day: date,
    ) -> DayEntry:
        """A disclosed entry.  Source: docs/contract/resource-server.md 7.9."""
        source, data = sources[entry["connection_id"], entry["stream"]], entry["data"]
        title = " ".join((data.get("title") or data.get("preview") or "").split())
        return DayEntry(
            self._times(data["at"], data.get("when"), day),
            cut(data.get("author") or "", WHO_CHARS),
            cut(title, TITLE_CHARS),
            cut(data.get("conversation") or "", WHERE_CHARS),
            cut(account_name(source), WHERE_CHARS),
            declared_name(cut(source.declared.label, WHERE_CHARS)),
            records_path(OWN, *source.order, entry["id"]),
        )

    def _times(self, at: str, when: str | None, day: date) -> Text:
        """When it was by the clocks of the owner's zone; a span that began before with its day."""
        at_ns = instant_ns(at)
        if at_ns is None or (when is not None and "(whole day" in when):
            return ALL_DAY
        if when is None:
            return f"{local_moment(at_ns, self.pages.zone):%H:%M}"
        _, of_this_day, clock = when.partition(f" {day.isoformat()} ")
        return (clock if of_this_day else when).replace(" to ", " – ")


def _date(text: str) -> date | None:
    """A day that has one before and one after it."""
    with suppress(ValueError):
        found = date.fromisoformat(text)
        if len(text) == len("2026-01-31") and date.min < found < date.max:
            return found
    return None
