"""What the page of a stream reads of it, and shows as what it is.

Rule: each page takes the road of a token's read, that of the viewpoint whose pages these are,
bounded in rows and characters.
Source: docs/contract/authorization-server.md 13.5; resource-server.md 17 ("What a stream looks
like").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from zoneinfo import ZoneInfo

from pdpp_kernel.texts import moment_of
from personal_server.console.list_figures import ChatLine, chat_lines, month_sums
from personal_server.console.presentations import Appearance
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
from personal_server.enforcement.queries import FieldSelection, PageSize, RecordsQuery, Selectors
from personal_server.enforcement.timeline import time_field
from personal_server.reading.records import read_records
from personal_server.storage.ports.snapshots import ReadSnapshot

ROWS_SHOWN, READ_SHOWN = 25, 10
PAGE_CHARS = 1_000_000


@dataclass(frozen=True, slots=True)
class Shown:
    """The records of a page as what they are, else as the rows of a table."""

    records: Sequence[ListedRecord] = ()
    chats: Sequence[ChatLine] | None = ()
    conversations: Sequence[Conversation] = ()
    days: Sequence[AgendaDay] = ()
    months: Sequence[PaymentMonth] = ()
    is_summed: bool = True
    rows: Sequence[Row] = ()
    columns: Sequence[ShownColumn] = ()


@dataclass(frozen=True, slots=True)
class StreamReading:
    """What of a stream a page reads: a view, as what it is shown, and where a page goes on."""

    viewpoint: Viewpoint
    view: RecordsView
    source: ReadableSource
    look: Appearance | None
    cursor: str | None
    zone: ZoneInfo

    def records(
        self, snapshot: ReadSnapshot, authority: ReadAuthority, today: str | None
    ) -> tuple[Records, RecordsView, str | None]:
        """The records, the view in whose order they are, and where the next page begins.

        From `today` on, where there are such; else the newest first.
        """
        view, dated = self.view, time_field(self.source)
        if dated is not None and today is not None:
            upcoming = replace(view, since=today, sort=dated.name)
            found, following = self._page(snapshot, authority, upcoming)
            if found:
                return found, upcoming, following
        ordered = view if view.sort or dated is None else replace(view, sort=f"-{dated.name}")
        found, following = self._page(snapshot, authority, ordered)
        return found, ordered, following

    def _page(
        self, snapshot: ReadSnapshot, authority: ReadAuthority, view: RecordsView
    ) -> tuple[Records, str | None]:
        source, is_read = self.source, view.layout is RecordsLayout.READ
        names = columns_of(source) if self.look is None else list_fields(source, self.look)
        texts = read_fields(source) if is_read else ()
        query = RecordsQuery(
            source.stream,
            Selectors(source.connection_id),
            limit=READ_SHOWN if is_read else ROWS_SHOWN,
            size=PageSize(chars=PAGE_CHARS),
            cursor=self.cursor,
            sort=view.sort,
            filters=view.filters,
            times=view.times,
            cut=FieldSelection(tuple(dict.fromkeys((*names, *texts)))),
        )
        answer = read_records(self.viewpoint.reads.ports, snapshot, authority, query)
        found = [(each["id"], each["data"]) for each in plain_records(answer.data)]
        return found, answer.next_cursor

    def from_today(self) -> str | None:
        """The day from which an agenda is shown where nothing else was asked for.

        It is a day in UTC, so for some owners the one before theirs.
        """
        view = self.view
        is_asked = view.since or view.until or view.sort or self.cursor
        if self.look is not Appearance.AGENDA or is_asked:
            return None
        now = moment_of(self.viewpoint.reads.ports.clock())
        local = now.astimezone(self.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return min(local.date(), local.astimezone(UTC).date()).isoformat()

    def shown(self, ordered: RecordsView, found: Records, figures: ViewFigures) -> Shown:
        """The records as what they are, else as the rows of a table."""
        root, source, view = self.viewpoint.root, self.source, self.view
        dated = time_field(source)
        is_latest_first = dated is not None and ordered.sort == f"-{dated.name}"
        match self.look:
            case Appearance.MAIL | Appearance.TITLES:
                return Shown(records=inbox(root, source, found))
            case Appearance.CHAT:
                said = conversations(view, source, found[::-1] if is_latest_first else found)
                return Shown(conversations=said, chats=[] if self.cursor else chat_lines(figures))
            case Appearance.AGENDA:
                zone = self.zone
                days = agenda(root, source, found, zone, latest_first=is_latest_first)
                return Shown(days=days)
            case Appearance.PAYMENTS:
                is_timed = dated is not None and (ordered.sort or "").lstrip("-") == dated.name
                months = months_of(source, found) if is_timed else [""] * len(found)
                sums = month_sums(figures, months)
                paid = payment_months(payments(root, source, found), months, sums or {})
                return Shown(months=paid, is_summed=sums is not None)
            case None:
                names = told_columns(ordered, columns_of(source), [data for _, data in found])
                row = read_row if view.layout is RecordsLayout.READ else table_row
                rows = [row(root, source, key, data, names) for key, data in found]
                return Shown(rows=rows, columns=table_columns(ordered, source, names))
