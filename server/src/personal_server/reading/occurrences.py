"""One thing counts once: a record that another stream shows at each time it takes place.

Rule: whether it is left out follows from records that this request sees, and from nothing else; its
occurrence of the same time has to stand in the same answer.
Source: docs/contract/resource-server.md 7.9, 11.3; docs/decisions.md C32.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from pdpp_kernel.record import JsonObject, RecordPlace
from pdpp_kernel.values import event_instant_ns
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource
from personal_server.enforcement.authorized_reads import AuthorizedRead, occurrences_plan
from personal_server.enforcement.plans import TimelinePlan
from personal_server.enforcement.ranking import Ranked, place_of
from personal_server.enforcement.rows import PlacedRow, Position, RowPage
from personal_server.enforcement.scopes import TimedScope
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.storage.row_rules import holds


def page_of_line(
    snapshot: ReadSnapshot, read: AuthorizedRead[TimelinePlan], after: Position | None
) -> tuple[RowPage, tuple[Warning, ...]]:
    """A page of a time line without what its occurrences show, and what is said of it."""
    rows, left_out = list[PlacedRow](), Counter[tuple[str, str]]()
    while True:
        limit = read.plan.limit - len(rows)
        page = snapshot.timeline(replace(read.plan, after=after, limit=limit))
        shown, gone = _once(snapshot, read, page.rows)
        rows += shown
        left_out += gone
        if not left_out:
            return page, ()
        after = page.end if page.end is not None or not page.rows else page.rows[-1].position
        # as many stand on the page as without what was left out
        if not gone or not page.more or len(rows) >= read.plan.limit:
            warnings = tuple(map(_told, sorted(left_out.items())))
            return RowPage(tuple(rows), page.more, after), warnings


def without_occurrences(
    snapshot: ReadSnapshot, sources: Sequence[ReadableSource], ranked: Sequence[Ranked], most: int
) -> list[Ranked]:
    """Hits, among the best `most` of which a record and its occurrence of the same time are one:
    the better one, which counts the other.

    In: an event, a mail, a place in a calendar at the event's time.  Out: the event with one
        duplicate, the mail.
    """
    numbers = {place_of(each.candidate): number for number, each in enumerate(ranked[:most])}
    shown, gone = list(ranked), set[int]()
    for pair in _hits_that_are_one(snapshot, sources, numbers):
        better, worse = sorted(pair)
        times = {ranked[number].candidate.event_time_ns for number in pair}
        if len(times) == 1 and gone.isdisjoint(pair):
            duplicates = shown[better].duplicates + shown[worse].duplicates + 1
            shown[better] = shown[better]._replace(duplicates=duplicates)
            gone.add(worse)
    return [each for number, each in enumerate(shown) if number not in gone]


def _hits_that_are_one(
    snapshot: ReadSnapshot, sources: Sequence[ReadableSource], numbers: Mapping[RecordPlace, int]
) -> Iterator[tuple[int, int]]:
    """The number of a record and that of its first occurrence, for each of which both are hits."""
    for source in sources:
        if source.declared.event_time_field not in source.fields:
            continue
        keys = tuple(place[2] for place in numbers if place[:2] == source.order)
        for other in sources if keys else ():
            plan = occurrences_plan(source, other, keys)
            if plan is None:
                continue
            for key, found in snapshot.children(plan).items():
                first = numbers.get((*other.order, found.rows[0].key)) if found.rows else None
                if first is not None:
                    yield numbers[*source.order, key], first


def _once(
    snapshot: ReadSnapshot, read: AuthorizedRead[TimelinePlan], rows: Sequence[PlacedRow]
) -> tuple[list[PlacedRow], Counter[tuple[str, str]]]:
    pairs = tuple(zip(read.sources, read.plan.scopes, strict=True))
    shown, left_out = list(rows), Counter[tuple[str, str]]()
    for parents in pairs:
        for slots in pairs:
            gone, order = _repeated(snapshot, rows, parents, slots), parents[0].order
            if gone:
                shown = [r for r in shown if r.position.place != order or r.row.key not in gone]
                left_out[parents[0].stream, slots[0].stream] += len(gone)
    return shown, left_out


def _repeated(
    snapshot: ReadSnapshot,
    rows: Sequence[PlacedRow],
    parents: tuple[ReadableSource, TimedScope],
    slots: tuple[ReadableSource, TimedScope],
) -> set[str]:
    """The keys of records whose occurrence of the same time meets the same range."""
    (source, timed), (other, of_slots) = parents, slots
    mine = [placed for placed in rows if placed.position.place == source.order]
    plan = occurrences_plan(source, other, tuple(placed.row.key for placed in mine))
    if plan is None or not mine:
        return set()
    found = snapshot.children(plan)
    gone = set[str]()
    for placed in mine:
        first = next(iter(found[placed.row.key].rows), None) if placed.row.key in found else None
        if first is None or not all(holds(each, first.data) for each in of_slots.conditions):
            continue
        if _begins(placed.row.data, timed) == _begins(first.data, of_slots):
            gone.add(placed.row.key)
    return gone


def _begins(data: JsonObject, timed: TimedScope) -> int | None:
    name, kind = timed.order.field, timed.order.kind
    return None if name is None or kind is None else event_instant_ns(data.get(name), kind)


def _told(folded: tuple[tuple[str, str], int]) -> Warning:
    (stream, shown_in), count = folded
    return Warning(
        "shown_as_occurrence",
        f"{count} of '{stream}' left out here, because '{shown_in}' shows the same.",
        detail={"stream": stream, "shown_in": shown_in, "count": count},
    )
