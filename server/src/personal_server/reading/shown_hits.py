"""What a search shows of the records that it found, and what is logged of them.

Rule: every record is read and authorized anew when it is shown.
Source: docs/contract/resource-server.md 11.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from pdpp_kernel.criteria import Condition
from pdpp_kernel.record import StoredRecord
from personal_server.domain.authority import ReadableSource
from personal_server.domain.disclosure import Disclosed
from personal_server.enforcement.authorized_reads import AuthorizedRead, neighbours_plan
from personal_server.enforcement.local_times import clock_of
from personal_server.enforcement.page_sizes import PageFill
from personal_server.enforcement.queries import SearchQuery
from personal_server.enforcement.rows import Neighbours
from personal_server.enforcement.search import searchable_fields
from personal_server.enforcement.search_hits import (
    SoughtHit,
    disclose_context,
    disclose_hit,
    naming_conversations,
    paid_in,
    spoken_fields,
    text_chars,
)
from personal_server.enforcement.semantic_queries import meaning_fields
from personal_server.reading.empty_answers import Emptiness, explain_empty
from personal_server.reading.freshness import ShownFreshness
from personal_server.storage.ports.snapshots import ReadSnapshot

# A page of hits ends early when so much text was looked at for it.
PAGE_TEXT_CHARS = 1 << 25


class HitPage:
    """The hits of a page, each already JSON, where they are, and how far was read for them.

    Shapes: `places` holds the source and the key of each hit, `beside` those of neighbours in its
        conversation that hits tell of; `end` counts what was passed over, too.
    """

    def __init__(
        self, snapshot: ReadSnapshot, read: AuthorizedRead[Any], query: SearchQuery, begin: int = 0
    ) -> None:
        self._snapshot = snapshot
        self._authority = read.authority
        self._is_lean = query.size.chars is not None
        self._clocks = {s.order: clock_of(s, query.time_zone, s.fields) for s in read.sources}
        self._fill = PageFill(query.size)
        self._looked_at: int = 0
        self.places: list[tuple[ReadableSource, str]] = []
        self.beside: list[tuple[ReadableSource, str]] = []
        self.end = begin

    @property
    def hits(self) -> list[msgspec.Raw]:
        """The hits, ready to be sent."""
        return self._fill.items

    @property
    def sources(self) -> list[ReadableSource]:
        """The source of each hit."""
        return [source for source, _ in self.places]

    @property
    def is_spent(self) -> bool:
        """Whether so much text was looked at that no further record is read."""
        return self._looked_at >= PAGE_TEXT_CHARS

    def takes(self, source: ReadableSource, row: StoredRecord, sought: SoughtHit) -> bool:
        """Show the record of a hit, if there is room; one of which nothing shows needs none."""
        self._looked_at += text_chars(source, row)
        hit = disclose_hit(self._authority, source, row, sought, is_lean=self._is_lean)
        if hit is None:
            return True
        plan = neighbours_plan(source, row)
        neighbours = Neighbours() if plan is None else self._snapshot.neighbours(plan)
        hit.context = disclose_context(source, neighbours)
        hit.duplicates, hit.when = sought.duplicates or None, self._clocks[source.order](row)
        if not self._fill.takes(hit):
            return False
        self.places.append((source, row.key))
        self.beside += [(source, each.key) for each in neighbours.rows]
        return True

    def disclosed(self) -> list[Disclosed]:
        """Which records of which sources were shown, and which of their fields a hit may show."""
        sources = {source.order: source for source, _ in (*self.places, *self.beside)}
        keys: dict[tuple[str, str], list[str]] = {}
        for source, key in (*self.places, *self.beside):
            keys.setdefault(source.order, []).append(key)
        return [
            Disclosed(sources[order], _hit_fields(sources[order]), len(found), tuple(found))
            for order, found in ((at, dict.fromkeys(each)) for at, each in sorted(keys.items()))
        ]


def found_nothing(sources: Sequence[ReadableSource]) -> list[Disclosed]:
    """A search whose words nothing holds, once for each grant: many of them are a way to probe."""
    by_grant = {source.grant_id: source for source in reversed(sources)}
    return [Disclosed(source, (), 0) for source in by_grant.values()]


def _hit_fields(source: ReadableSource) -> tuple[str, ...]:
    """The fields that a hit may show."""
    declared = source.declared
    named = {*searchable_fields(source), *meaning_fields(source)}
    named |= {declared.title_field, declared.event_time_field}
    named |= {declared.event_end_field, declared.whole_days_field}
    if declared.conversation_field is not None:
        named |= {declared.conversation_field, *spoken_fields(source)}
    named |= {*declared.fields_with_role("author"), *naming_conversations(source)}
    named |= {each for name, unit in paid_in(source) for each in (name, unit.field)}
    return tuple(name for name in source.fields if name in named)


def explain_search(
    snapshot: ReadSnapshot,
    read: AuthorizedRead[Any],
    asked: Sequence[tuple[Condition, ...]],
    freshness: ShownFreshness | None,
) -> Emptiness:
    """Sources that meet the conditions of the first one speak for the search."""
    alike = [s for s, conditions in zip(read.sources, asked, strict=True) if conditions == asked[0]]
    return explain_empty(snapshot, alike, asked[0], read.warnings, freshness)


def clocks_meta(query: SearchQuery) -> dict[str, object]:
    """Whose days and clocks are meant, where somebody said it."""
    return {} if query.time_zone is None else {"time_zone": query.time_zone}
