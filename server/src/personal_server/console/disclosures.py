"""The pages of the read log: its days, and one of its lines.

Rule: the log tells names, counts and times; what was asked and which records were handed out is
told of one line, as long as it lies beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import DamagedRecord, InvalidRequest, NotFound
from pdpp_kernel.texts import Joined, Text, date_of, message
from pdpp_kernel.values import DAY_NANOSECONDS, day_number
from personal_server.console.disclosure_lines import (
    DisclosureLine,
    alarm_words,
    disclosure_lines,
    searches,
)
from personal_server.console.disclosure_plot import plot_of
from personal_server.console.pages import Templates
from personal_server.console.places import PAGE_LINES, list_page, parse_number
from personal_server.console.record_values import columns_of, table_row
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.static_files import LIVE
from personal_server.console.viewpoints import OWN
from personal_server.console.words import cut, field_words
from personal_server.domain.authority import ReadableSource
from personal_server.domain.disclosure import DisclosureEntry
from personal_server.enforcement.queries import FieldSelection, RecordQuery, Selectors
from personal_server.granting.holdings import client_names
from personal_server.reading.owner import OwnerReads
from personal_server.reading.single_records import read_record
from personal_server.storage.authorization_rows import ReadingAlarmRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
)
from personal_server.storage.ports.disclosure_stores import (
    DisclosedShare,
    DisclosureQuery,
    DisclosureStore,
)


class LogView(msgspec.Struct, frozen=True):
    """What of the log is looked at, as its link says it.  Shapes: `day` is a date of the
    owner's.
    """

    client: str | None = None
    stream: str | None = None
    day: str | None = None

    @property
    def link(self) -> str:
        """The address of its page, below the root of this server."""
        named = (("client", self.client), ("stream", self.stream), ("day", self.day))
        asked = urlencode([(name, text) for name, text in named if text])
        return "/owner/disclosures" + (f"?{asked}" if asked else "")

    @property
    def equal(self) -> tuple[tuple[str, str], ...]:
        """Its conditions on members of entries."""
        named = (("client_id", self.client), ("stream", self.stream))
        return tuple((name, text) for name, text in named if text)

    @property
    def day_number(self) -> int | None:
        """Its day, counted from 1970.  Raises: InvalidRequest."""
        if self.day is None:
            return None
        number = day_number(self.day)
        if number is None or number < 0:
            raise InvalidRequest("That is not a valid date.", param="day")
        return number


class ShareLine(msgspec.Struct, frozen=True):
    """An app or a stream with what it was given or gave, and the view of it alone."""

    words: Text
    link: str | None
    record_count: int
    answer_count: int


class GivenRecord(msgspec.Struct, frozen=True):
    """A record that was handed out; without a link where it is not there any more."""

    words: Text
    link: str | None


PLOT_DAYS = 30
SHARES_SHOWN = 8
NEW_SHOWN = 5
RECORDS_SHOWN = 50
RELATED_LINES = 50
ASKED_CHARS = 2_000
KEY_CHARS = 80
COLUMNS_SAID = 3
PAGE_SECONDS = 10.0


class DisclosurePages(msgspec.Struct, frozen=True):
    """`/owner/disclosures` and what is below it."""

    authorization: AuthorizationStore
    disclosures: DisclosureStore
    reads: OwnerReads
    pages: Templates
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        asked = frozenset({"client", "stream", "day", "before", "after", "seen"})
        return (
            PageRoute("GET", "/owner/disclosures", self.show_all, asked),
            PageRoute("GET", "/owner/disclosures/{number}", self.show_one, frozenset({"from"})),
        )

    def show_all(self, visit: PageRequest) -> Response:
        """Who read what, when.  Raises: InvalidRequest."""
        view, before = _view(visit), parse_number(visit.query.get("before"))
        after, seen = (parse_number(visit.query.get(name)) for name in ("after", "seen"))
        day, today = view.day_number, self.clock() // DAY_NANOSECONDS
        found = self.disclosures.disclosures(
            _query(view, PAGE_LINES + 1, before, self.pages.day_start)
        )
        head = found[0][0] if found else 0
        if seen is not None and head <= seen:
            return self.pages.nothing(visit)
        last = today if day is None or day > today - PLOT_DAYS else day
        span = DisclosureQuery(
            PLOT_DAYS,
            view.equal,
            since_ns=(last - PLOT_DAYS + 1) * DAY_NANOSECONDS,
            until_ns=(last + 1) * DAY_NANOSECONDS,
        )
        with self.authorization.read() as reader:
            apps, streams = self._shares(reader, view, span)
            lines = self._lines(reader, found)
            names = client_names(reader, (view.client,))
        values = {
            "page": list_page(lines, lambda line: str(line.number)),
            "newest": before is None,
            "view": view,
            "conditions": _conditions(view, names),
            "plot": plot_of(self.disclosures.shares("day", span), last, PLOT_DAYS, day),
            "head": head,
            "new": [] if after is None else [e for e in lines if e.number > after][:NEW_SHOWN],
            "apps": apps,
            "streams": streams,
        }
        script = LIVE if before is None else None
        return self.pages.show(visit, "disclosures.html", values, script=script)

    def _shares(
        self, reader: AuthorizationReader, view: LogView, span: DisclosureQuery
    ) -> tuple[list[ShareLine], list[ShareLine]]:
        """Who read in the days of the plot, and what of."""
        most = replace(span, limit=SHARES_SHOWN)
        apps = self.disclosures.shares("client_id", most)
        streams = self.disclosures.shares("stream", most)
        names = client_names(reader, (each.name for each in apps))
        return (
            [
                _share(e, names.get(e.name, message("you")), replace(view, client=e.name))
                for e in apps
            ],
            [
                _share(e, e.name or message("without results"), replace(view, stream=e.name))
                for e in streams
            ],
        )

    def _lines(
        self, reader: AuthorizationReader, found: Sequence[tuple[int, DisclosureEntry]]
    ) -> list[DisclosureLine]:
        names = client_names(reader, (entry.client_id for _, entry in found))
        details = self.disclosures.asked_details(searches(found))
        return disclosure_lines(found, names, _alarms(reader, found), details)

    def show_one(self, visit: PageRequest) -> Response:
        """One line: what was asked, and which records were handed out.  Raises: NotFound."""
        number = _number(visit.path["number"])
        first = parse_number(visit.query.get("from")) or 0
        about = self.disclosures.disclosures(
            DisclosureQuery(2 * RELATED_LINES, below=number + RELATED_LINES)
        )
        entry = next((each for at, each in about if at == number), None)
        if entry is None:
            raise NotFound("The log has no such entry, or no longer has it.")
        call = entry.request_id.partition(".")[0]
        beside = [each for each in about if each[1].request_id.partition(".")[0] == call]
        detail = self.disclosures.asked_details([number]).get(number)
        with self.authorization.read() as reader:
            lines = {line.number: line for line in self._lines(reader, beside)}
        keys = () if detail is None else detail.keys
        following = first + RECORDS_SHOWN
        values = {
            "line": lines.pop(number),
            "entry": entry,
            "asked": None
            if detail is None
            else [(field_words(n), cut(text, ASKED_CHARS)) for n, text in detail.facts],
            "records": self._given(entry, keys[first:following]),
            "key_count": len(keys),
            "next": following if following < len(keys) else None,
            "others": list(lines.values()),
        }
        return self.pages.show(visit, "disclosure.html", values)

    def _given(self, entry: DisclosureEntry, keys: Sequence[str]) -> list[GivenRecord]:
        """What records are called today."""
        if not keys or entry.connection_id is None or entry.stream is None:
            return [GivenRecord(cut(key, KEY_CHARS), None) for key in keys]
        stream_key = (entry.connection_id, entry.stream)
        with self.reads.open(PAGE_SECONDS) as (snapshot, authority):
            source = next((each for each in authority.sources if each.order == stream_key), None)
            if source is None:
                return [GivenRecord(cut(key, KEY_CHARS), None) for key in keys]
            cells = FieldSelection(columns_of(source))
            found: list[GivenRecord] = []
            for key in keys:
                query = RecordQuery(stream_key[1], key, Selectors(stream_key[0]), cells)
                try:
                    answer = read_record(snapshot, authority, query)
                except (NotFound, DamagedRecord):
                    found.append(GivenRecord(cut(key, KEY_CHARS), None))
                else:
                    found.append(_given_record(source, key, answer.data))
        return found


def _view(visit: PageRequest) -> LogView:
    asked = visit.query
    return LogView(asked.get("client"), asked.get("stream"), asked.get("day"))


def _query(
    view: LogView, limit: int, before: int | None, start: Callable[[int], int]
) -> DisclosureQuery:
    day = view.day_number
    since_ns, until_ns = (None, None) if day is None else (start(day), start(day + 1))
    return DisclosureQuery(limit, view.equal, since_ns, until_ns, before)


def _number(text: str) -> int:
    try:
        return parse_number(text) or 0
    except InvalidRequest:
        raise NotFound("The log has no such entry, or no longer has it.") from None


def _share(share: DisclosedShare, words: Text, view: LogView) -> ShareLine:
    link = view.link if share.name else None
    return ShareLine(words, link, share.record_count, share.answer_count)


def _conditions(view: LogView, names: Mapping[str, str]) -> list[tuple[Text, str]]:
    """Each in words, and the view without it."""
    found: list[tuple[Text, str]] = []
    if view.client:
        who = names.get(view.client, view.client)
        found.append((cut(who, KEY_CHARS), replace(view, client=None).link))
    if view.stream:
        found.append((cut(view.stream, KEY_CHARS), replace(view, stream=None).link))
    if view.day_number is not None:
        found.append((date_of(view.day_number), replace(view, day=None).link))
    return found


def _alarms(
    reader: AuthorizationReader, found: Sequence[tuple[int, DisclosureEntry]]
) -> dict[tuple[str | None, int], list[Text]]:
    """What was unusual at the instants of entries, dismissed or not."""
    if not found:
        return {}
    instants = [entry.at_ns for _, entry in found]
    raised = reader.rows(
        ReadingAlarmRow,
        ReadingAlarmRow.at_ns.above(min(instants) - 1),
        ReadingAlarmRow.at_ns.at_most(max(instants)),
    )
    sentences: dict[tuple[str | None, int], list[Text]] = {}
    for row in raised:
        sentences.setdefault((row.held_id, row.at_ns), []).append(alarm_words(row))
    return sentences


def _given_record(source: ReadableSource, key: str, record: object) -> GivenRecord:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(record))
    names = columns_of(source)[:COLUMNS_SAID]
    row = table_row(OWN, source, key, plain["data"], names)
    return GivenRecord(Joined(tuple(filter(None, (row.name, *row.cells))), " · "), row.link)
