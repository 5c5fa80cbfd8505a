"""Lines of the read log in words: who read what, how, and what was unusual.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from pdpp_kernel.texts import CatalogueText, Text, message
from personal_server.consent.unusual_reading import SENTENCES
from personal_server.console.words import cut, field_words
from personal_server.domain.disclosure import DENIED, AskedDetail, DisclosureEntry
from personal_server.domain.reading_history import held_id
from personal_server.storage.authorization_rows import ReadingAlarmRow

HOW: Mapping[str, Text] = {
    "query_records": message("listed records"),
    "aggregate": message("only counts and totals of records"),
    "search": message("searched"),
    "fetch": message("opened a record"),
    "read_record_field": message("read a long text"),
    "schema": message("read the overview"),
}
HOW_BY_ROUTE: Mapping[str, Text] = {
    "GET /v1/streams/{stream}/records": HOW["query_records"],
    "GET /v1/streams/{stream}/records/{record_key}": HOW["fetch"],
    "GET /v1/streams/{stream}/records/{record_key}/field-window": HOW["read_record_field"],
    "GET /v1/streams/{stream}/aggregate": HOW["aggregate"],
    "GET /v1/search": HOW["search"],
    "GET /v1/search/semantic": HOW["search"],
    "GET /v1/search/hybrid": HOW["search"],
    "GET /v1/schema": HOW["schema"],
    "GET /v1/timeline": message("read the timeline"),
    "GET /v1/blobs/{blob_id}": message("opened a file"),
}
SOUGHT_CHARS = 60
Alarms = Mapping[tuple[str | None, int], Sequence[Text]]
"""What was unusual, by access and instant."""


class DisclosureLine(msgspec.Struct, frozen=True):
    """One row of the table."""

    number: int
    at_ns: int
    who: Text
    access_id: str | None
    how: Text
    stream: str | None
    fields: tuple[str, ...]
    record_count: int
    size_bytes: int
    refused: str | None
    unusual: tuple[Text, ...] = ()
    sought: str = ""
    """The words that a search was for, as long as they are kept beside the line."""

    @property
    def title(self) -> Text:
        """Which app did what, as the heading of the entry."""
        return message("%(who)s %(how)s", who=self.who, how=self.how)

    @property
    def link(self) -> str:
        """Where what was asked stands."""
        return f"/owner/disclosures/{self.number}"


def disclosure_lines(
    found: Iterable[tuple[int, DisclosureEntry]],
    names: Mapping[str, str],
    alarms: Alarms | None = None,
    details: Mapping[int, AskedDetail] | None = None,
) -> list[DisclosureLine]:
    """Entries as lines; `names` of clients by id, `details` of searches by number."""
    return [
        DisclosureLine(
            number=number,
            at_ns=entry.at_ns,
            who=names.get(entry.client_id or "", entry.client_id or message("you")),
            access_id=entry.package_id or entry.grant_id,
            how=_how(entry),
            stream=entry.stream,
            fields=tuple(field_words(name) for name in entry.fields),
            record_count=entry.record_count,
            size_bytes=entry.size_bytes,
            refused=entry.error_code if entry.outcome == DENIED else None,
            unusual=tuple((alarms or {}).get((held_id(entry), entry.at_ns), ())),
            sought=_sought((details or {}).get(number)),
        )
        for number, entry in found
    ]


def searches(found: Iterable[tuple[int, DisclosureEntry]]) -> list[int]:
    """The numbers of those that were searches."""
    return [number for number, entry in found if _how(entry) is HOW["search"]]


def _sought(detail: AskedDetail | None) -> str:
    return "" if detail is None else cut(dict(detail.facts).get("words", ""), SOUGHT_CHARS)


def _how(entry: DisclosureEntry) -> Text:
    """What a read did, in words: by its tool, else by its route."""
    by_route = HOW_BY_ROUTE.get(entry.route, f"{entry.channel} {entry.tool or entry.route}")
    return HOW.get(entry.tool or "", by_route)


def alarm_words(row: ReadingAlarmRow) -> Text:
    """An alarm in a sentence."""
    sentence = SENTENCES.get(row.rule)
    if sentence is None:
        return row.rule
    figures = row.detail.items()
    return CatalogueText(sentence, {n: v if isinstance(v, int) else str(v) for n, v in figures})
