"""What a search can be narrowed to: accounts and kinds with all of their hits, and the last days.

Rule: hits are counted as an aggregate counts the records that hold the words, in a short time.
Where that counts fewer than the search found (words were widened, or the time was up), the chips
are those of the shown page, and say so.
Source: docs/contract/authorization-server.md 13.5; docs/contract/resource-server.md 10.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from time import monotonic
from urllib.parse import urlencode

import msgspec

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.texts import Text, message
from personal_server.console.record_figures import FIGURES_SECONDS, LEAST_SECONDS, with_times
from personal_server.console.record_view import RecordsView
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.authorize import authorize_aggregate
from personal_server.enforcement.queries import AggregateQuery, Selectors
from personal_server.enforcement.search import searchable_fields
from personal_server.reading.owner import AuthorityReads
from personal_server.storage.ports.snapshots import ReadSnapshot

CHIPS_SHOWN = 6
SPANS = ((message("last 7 days"), 7), (message("last 30 days"), 30), (message("last year"), 365))
Order = tuple[str, str]
"""The connection and the stream of a hit."""


class Chip(msgspec.Struct, frozen=True):
    """Something to narrow a search to, or `chosen`; `link` does it, or takes it back.

    Shapes: `count` is how many hits it has, `None` where that is not counted.
    """

    words: Text
    link: str
    chosen: bool
    count: int | None = None


class FoundPlaces(msgspec.Struct, frozen=True):
    """Where hits are.  Shapes: `is_all` says that all hits are counted, not those of a page."""

    counts: Mapping[Order, int]
    is_all: bool

    def by(self, part: int) -> Counter[str]:
        """By account (0) or kind (1)."""
        found = Counter[str]()
        for order, count in self.counts.items():
            found[order[part]] += count
        return found


def found_places(
    reads: AuthorityReads,
    asked: Mapping[str, str],
    shown: Sequence[Order],
    filled: frozenset[Order],
    total: int | None,
    *,
    is_least: bool,
) -> FoundPlaces:
    """Where the hits of a search are: all of them, or those of the shown page.

    Shapes: `filled` are the sources that hold records, `total` is how many hits the search counted,
    `is_least` says that there may be more.
    """
    on_page = FoundPlaces(Counter(shown), is_all=total == len(shown) and not is_least)
    if on_page.is_all or total is None:
        return on_page
    counts: dict[Order, int] = {}
    until = monotonic() + FIGURES_SECONDS
    try:
        with reads.open(FIGURES_SECONDS) as (snapshot, authority):
            for source in authority.sources:
                if monotonic() > until - LEAST_SECONDS:
                    return on_page
                if source.order in filled and (count := _count(snapshot, authority, source, asked)):
                    counts[source.order] = count
    except PersonalServerError:
        return on_page
    return FoundPlaces(counts, is_all=True) if sum(counts.values()) >= total else on_page


def _count(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    source: ReadableSource,
    asked: Mapping[str, str],
) -> int:
    """How many records of a source hold the words; 0 of one that the search leaves out."""
    wanted = (asked.get("account"), asked.get("stream"))
    is_asked = all(w in (None, own) for w, own in zip(wanted, source.order, strict=True))
    view = RecordsView(*source.order, since=asked.get("since"), until=asked.get("until"))
    conditions = with_times(view, source)
    if not is_asked or not searchable_fields(source) or conditions is None:
        return 0
    query = AggregateQuery(
        source.stream,
        "count",
        Selectors(source.connection_id),
        text=asked["q"],
        filters=conditions,
    )
    return snapshot.aggregate(authorize_aggregate(authority, query).plan).record_count


def chips_of(
    path: str,
    kept: Mapping[str, str],
    found: FoundPlaces,
    accounts: Mapping[str, Text],
    kinds: Mapping[str, Text],
    today: date,
) -> list[Chip]:
    """Accounts and kinds in which hits differ, those with most first, and the last days."""
    return [
        *_chips(path, kept, "account", accounts, found, found.by(0)),
        *_chips(path, kept, "stream", kinds, found, found.by(1)),
        *_days(path, kept, today),
    ]


def _link(path: str, kept: Mapping[str, str], **changed: str | None) -> str:
    """The same search with something changed; what is `None` is left out."""
    asked = {name: value for name, value in {**kept, **changed}.items() if value}
    return f"{path}?{urlencode(asked)}"


def _chips(
    path: str,
    kept: Mapping[str, str],
    name: str,
    words: Mapping[str, Text],
    found: FoundPlaces,
    counts: Counter[str],
) -> list[Chip]:
    """What the hits differ in, the most frequent first; what is chosen alone."""
    chosen = kept.get(name)
    if chosen is not None:
        return [Chip(words.get(chosen, chosen), _link(path, kept, **{name: None}), chosen=True)]
    if len(counts) < 2:
        return []
    return [
        Chip(
            words.get(each, each),
            _link(path, kept, **{name: each}),
            chosen=False,
            count=count if found.is_all else None,
        )
        for each, count in counts.most_common(CHIPS_SHOWN)
    ]


def _days(path: str, kept: Mapping[str, str], today: date) -> list[Chip]:
    """The last days, weeks and months."""
    if "until" in kept:
        return []
    chips: list[Chip] = []
    for words, days in SPANS:
        since = (today - timedelta(days=days)).isoformat()
        is_chosen = kept.get("since") == since
        chips.append(Chip(words, _link(path, kept, since=None if is_chosen else since), is_chosen))
    return chips
