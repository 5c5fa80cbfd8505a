"""The change feed: one walk over numbers, deciding each change by its neighbours.

A living record appears at its last relevant change, which its own line tells.  A departure appears
if nothing relevant followed it up to the horizon and the record was visible where the feed began,
which the chain of changes of its key tells.

Changes are walked in stretches: one statement reads those of a stretch, one the lines of their
records, and one the texts of those that are shown, once the feeds of all sources are laid together.
Source: docs/contract/resource-server.md 8.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from msgspec.structs import replace

from pdpp_kernel.record import FieldChange, StoredRecord, TombstoneRow
from pdpp_kernel.values import bound
from personal_server.domain.authority import TimeConstraint
from personal_server.enforcement.plans import ChangesPlan
from personal_server.enforcement.rows import Change, Feed
from personal_server.enforcement.scopes import Scope
from personal_server.storage.checksums import is_line_of, line_sum
from personal_server.storage.record_changes import latest_change
from personal_server.storage.row_rules import holds
from personal_server.storage.sql.compiler import KEYS, Statement, Where
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.fixed_tables import ChangeRow
from personal_server.storage.sql.source_tables import Reader, ScopedSource, parse_changes
from personal_server.storage.sql.statements import listed, select
from personal_server.storage.tables import ColumnKind

# Changes walked at once: first those that fill a page, shared by the sources, then more.
WALKED_AT_ONCE, WALKED_FIRST = 200, 20
# So many visible records that do not satisfy the conditions end a page: hidden ones do not count.
MOST_PASSED_OVER = 2_000
_COLUMNS = (
    ChangeRow.sequence,
    ChangeRow.key,
    ChangeRow.was,
    ChangeRow.was_at,
    ChangeRow.now,
    ChangeRow.now_at,
    ChangeRow.fields,
    ChangeRow.emitted_at,
    ChangeRow.written_at,
    ChangeRow.prev,
    ChangeRow.next,
    ChangeRow.was_held,
)
_LOAD = select(ChangeRow, ChangeRow.source, ChangeRow.sequence, columns=_COLUMNS)
_WALK = f"SELECT {listed(_COLUMNS)} FROM {ChangeRow.table}"  # noqa: S608


_FIRST_FROM = (
    f"SELECT {listed((ChangeRow.sequence, ChangeRow.written_at))} FROM {ChangeRow.table}"  # noqa: S608
    f" WHERE {ChangeRow.source} = ? AND {ChangeRow.sequence} >= ?"
    f" ORDER BY {ChangeRow.sequence} LIMIT 1"
)
_LAST_NUMBER = (
    f"SELECT max({ChangeRow.sequence}) FROM {ChangeRow.table}"  # noqa: S608
    f" WHERE {ChangeRow.source} = ?"
)


class _PassedOver(NamedTuple):
    """A visible record that the conditions leave out, at its last relevant change."""

    sequence: int


class Noted(NamedTuple):
    """A line of `_COLUMNS`: a change as it is stored."""

    sequence: int
    key: str
    was: int
    was_at: Any
    now: int
    now_at: Any
    fields: str | None
    emitted_at_ns: int
    written_at_ns: int
    prev: int | None
    next: int | None
    was_held: str | None


class _FeedItem(NamedTuple):
    """A change that is told of: with the tombstone, or of a visible record that is still unread."""

    noted: Noted
    feed: _SourceFeed
    departed: Change | None


def changes(reader: Reader, plan: ChangesPlan) -> Feed:
    """Items after `plan.after`, in order of their number, of all sources together."""
    feeds = [_SourceFeed(reader, scoped, plan) for scoped in reader.places(plan.scopes)]
    first = max(WALKED_FIRST, -(-(plan.limit + 1) // max(1, len(feeds))))
    found = heapq.merge(
        *(feed.found(first) for feed in feeds), key=lambda each: each.noted.sequence
    )
    changes: list[Change] = []
    passed_over = 0
    for item in _read(found, plan.limit + 1):
        if isinstance(item, Change):
            changes.append(item)
        else:
            passed_over += 1
        if len(changes) > plan.limit:
            return Feed(tuple(changes[: plan.limit]), True)
        if passed_over == MOST_PASSED_OVER:
            return Feed(tuple(changes), True, item.sequence)
    return Feed(tuple(changes), False)


def _read(found: Iterator[_FeedItem], at_once: int) -> Iterator[Change | _PassedOver]:
    """The items of what was found, whose texts are read so many at once."""
    while some := list(itertools.islice(found, at_once)):
        keys: dict[_SourceFeed, list[str]] = defaultdict(list)
        for noted, feed, departed in some:
            if departed is None:
                keys[feed].append(noted.key)
        rows = {feed: feed.whole(of_feed) for feed, of_feed in keys.items()}
        for noted, feed, departed in some:
            if departed is not None:
                yield departed
            elif (row := rows[feed].get(noted.key)) is not None:
                yield feed.matching(noted, row)


def first_change_after(reader: Reader, scopes: Sequence[Scope], instant_ns: int) -> int | None:
    """By halving the numbers of each stream, which grow with the time at which they were given."""
    sequences = [_first_after(reader, scoped, instant_ns) for scoped in reader.places(scopes)]
    return min((number for number in sequences if number is not None), default=None)


def _first_after(reader: Reader, scoped: ScopedSource, instant_ns: int) -> int | None:
    source, first = scoped.source.source, None
    low, high = 1, reader.session.value(_LAST_NUMBER, (source,)) or 0
    while low <= high:
        middle = (low + high) // 2
        line = reader.session.first(_FIRST_FROM, (source, middle))
        if line is None or line[1] > instant_ns:
            first, high = first if line is None else line[0], middle - 1
        else:
            low = line[0] + 1
    return first


class _SourceFeed:
    """The feed of one source.

    A constraint on another field than today's consent-time field cannot be judged for the past;
    such a scope gets living records and no tombstones.  What a record held after a change, of what
    the scope is limited by, says the change that followed, or the record as it stands.
    """

    def __init__(self, reader: Reader, scoped: ScopedSource, plan: ChangesPlan) -> None:
        self._reader = reader
        self._session = reader.session
        self._place = scoped
        self._scope = scoped.scope
        self._plan = plan
        window = scoped.scope.window
        self._fields = frozenset(scoped.scope.fields)
        self._dated = self._fields | ({window.field} if window else set[str]())
        self._only = {
            condition.field: scoped.compiler.held_digests(condition)
            for condition in scoped.scope.only
        }
        # what lets a record appear without being told of
        self._unseen = frozenset(self._only) - self._dated
        self._window = None if window is None else _as_stored(window)
        self._knows_past = window is None or window.field == scoped.compiler.layout.consent
        self._touching = self._touching_scope()
        where = scoped.compiler.with_keys([]) & scoped.visible()
        # the checksum alone: a text is read once it is known to be shown
        number = scoped.source.tables
        summed = f"(SELECT h.sum FROM h{number} h WHERE h.id = r.id)"  # noqa: S608
        self._line = scoped.compiler.select(f"r.k, r.id, r.cs, r.ce, r.fc, {summed}", where)
        self._whole = scoped.compiler.rows(where)

    def found(self, first: int) -> Iterator[_FeedItem]:
        """All changes that are told of, lazily; `first` are walked before others are."""
        since = self._plan.since
        for stretch in self._walk(first):
            lines = self._lines_of(stretch)
            for noted in stretch:
                line = lines.get(noted.key)
                if self._is_visible_after(noted, line):
                    if line is not None and self._is_shown_by(noted, line):
                        yield _FeedItem(noted, self, None)
                elif since is not None and self._was_visible_before(noted):
                    departed = self._departed(noted, line, since)
                    if departed is not None:
                        yield _FeedItem(noted, self, departed)

    def whole(self, keys: Sequence[str]) -> dict[str, StoredRecord]:
        """The visible records with these keys; those that are damaged are noted."""
        source = self._place.source
        rows = self._reader.whole_by_id(source, self._of_keys(keys, self._whole))
        return {row.key: row for row in rows.values()}

    def _touching_scope(self) -> Where:
        """Changes that can matter: of keys that exist for the scope, inside its window."""
        number = ChangeRow.sequence
        touching = Where((f"{ChangeRow.source} = ?", f"{number} > ?", f"{number} <= ?"), (0, 0, 0))
        if self._scope.resources is not None:
            keys = orjson.dumps(sorted(self._scope.resources)).decode()
            listed = self._session.dialect.values("?", ColumnKind.TEXT)
            touching &= Where((f"{ChangeRow.key} IN {listed}",), (keys,))
        if self._only:
            touching &= self._touching_content()
        if self._window is None or not self._knows_past:
            return touching
        low = -math.inf if self._window.since_ns is None else self._window.since_ns
        high = math.inf if self._window.until_ns is None else self._window.until_ns
        was_at, now_at = ChangeRow.was_at, ChangeRow.now_at
        inside = f"{was_at} >= ? AND {was_at} < ? OR {now_at} >= ? AND {now_at} < ?"
        return touching & Where((f"({inside})",), (low, high, low, high))

    def _touching_content(self) -> Where:
        """Changes of records that are visible now, or were before the change by what they held."""
        compiler, dialect = self._place.compiler, self._session.dialect
        same = Where((f"r.k = {ChangeRow.table}.{ChangeRow.key}",), (), KEYS)
        now = compiler.select("1", same & self._place.visible())
        either, params = f"EXISTS ({now.sql})", now.params
        if self._plan.since is not None:
            texts = [dialect.string_at(str(ChangeRow.was_held), name) for name in self._only]
            among = f"IN {dialect.values('?', ColumnKind.TEXT)}"
            condition = " AND ".join(f"{text} {among}" for text in texts)
            either = f"({either} OR {condition})"
            params += tuple(
                orjson.dumps(sorted(digests)).decode() for digests in self._only.values()
            )
        return Where((either,), params)

    def _walk(self, at_once: int) -> Iterator[list[Noted]]:
        after = max(self._plan.since or 0, self._plan.after)
        source, where = self._place.source.source, self._touching
        while True:
            at_once = min(at_once, WALKED_AT_ONCE)
            lines = self._session.rows(
                f"{_WALK}{where.sql} ORDER BY {ChangeRow.sequence} LIMIT ?",
                (source, after, self._plan.horizon, *where.params[3:], at_once),
            )
            if lines:
                yield list(map(Noted._make, lines))
            if len(lines) < at_once:
                return
            after, at_once = lines[-1][0], at_once * 2

    def _lines_of(self, stretch: Sequence[Noted]) -> dict[str, Line]:
        """The lines of those records of a stretch that are visible now, without their texts."""
        keys = {noted.key for noted in stretch}
        return {line[0]: line for line in self._of_keys(keys, self._line)}

    def _is_shown_by(self, noted: Noted, line: Line) -> bool:
        """Whether this is the last relevant change of a record that is visible now."""
        key, number, created, created_at, changes, stored_sum = line
        own = line_sum(key, created, created_at, changes)
        if stored_sum is not None and not is_line_of(own, stored_sum):
            self._reader.note(self._place.source, number)
            return False
        dated = parse_changes(changes)
        latest = latest_change(FieldChange(created, created_at), dated, self._dated).sequence
        if self._unseen:
            last = max((created, *(change.sequence for change in dated.values())))
            latest = self._appeared(last, latest)
        return latest == noted.sequence

    def _appeared(self, last: int, first_told: int) -> int:
        """Which change after `told` let a record appear that is visible now; else `told`.

        Where one of them was forgotten, so was what came before the feed.
        """
        number: int | None = last
        while number is not None and number > first_told:
            noted = self._find(number)
            if noted is None:
                return first_told
            if not self._was_visible_before(noted):
                return number
            number = noted.prev
        return first_told

    def matching(self, noted: Noted, row: StoredRecord) -> Change | _PassedOver:
        """The record if it satisfies the conditions; else that it left, if it may have before."""
        conditions, since = self._plan.conditions, self._plan.since
        if all(holds(condition, row.data) for condition in conditions):
            return Change(noted.sequence, row)
        if since is None or not self._was_there(noted, since):
            return _PassedOver(noted.sequence)
        named = (name for condition in conditions for name in condition.fields)
        dates = [row.created, *map(row.field_changes.get, named)]
        if all(date is None or date.sequence <= since for date in dates):
            return _PassedOver(noted.sequence)
        return Change(noted.sequence, self._tombstone(noted, is_filtered=True))

    def _of_keys(self, keys: Iterable[str], page: Statement) -> list[Line]:
        """What a statement by keys finds for records."""
        asked = self._place.compiler.with_keys(keys)
        statement = Statement(page.sql, (*asked.params, *page.params[len(asked.params) :]))
        return self._reader.lines(self._place.source, statement)

    def _departed(self, noted: Noted, line: Line | None, since: int) -> Change | None:
        """A tombstone, if the record stayed away and was there when the feed began."""
        if not self._knows_past or self._came_back(noted, line):
            return None
        if not self._was_there(noted, since):
            return None
        return Change(noted.sequence, self._tombstone(noted))

    def _tombstone(self, noted: Noted, *, is_filtered: bool = False) -> TombstoneRow:
        source = self._place.source
        times = (noted.written_at_ns, noted.emitted_at_ns)
        return TombstoneRow(
            source.connection_id, source.stream, noted.key, *times, is_filtered=is_filtered
        )

    def _came_back(self, noted: Noted, line: Line | None) -> bool:
        """Whether another relevant change followed up to the horizon."""
        later = noted
        while later.next is not None and later.next <= self._plan.horizon:
            later = self._load(later.next)
            if self._is_relevant(later, line):
                return True
        return False

    def _was_there(self, noted: Noted, since: int) -> bool:
        """Whether the record was visible after change `since`."""
        first = noted
        while first.prev is not None and first.prev > since:
            first = self._load(first.prev)
        return self._was_visible_before(first)

    def _is_relevant(self, noted: Noted, line: Line | None) -> bool:
        before, after = self._was_visible_before(noted), self._is_visible_after(noted, line)
        if before != after:
            return True
        changed: list[str] = orjson.loads(noted.fields or "[]")
        return before and not self._fields.isdisjoint(changed)

    def _was_visible_before(self, noted: Noted) -> bool:
        return self._visible(noted.was, noted.was_at, noted.key) and self._held(noted)

    def _is_visible_after(self, noted: Noted, line: Line | None) -> bool:
        """Whether the record was there and visible; `line` is its own, if it is now."""
        if not self._visible(noted.now, noted.now_at, noted.key):
            return False
        if not self._only or self._plan.since is None:
            return True  # without a beginning whoever looks for the living one sees what it holds
        if noted.next is None:
            return line is not None
        return self._held(self._load(noted.next))

    def _visible(self, exists: int, at: Any, key: str) -> bool:
        """By key and time."""
        scope = self._scope
        if not exists or (scope.resources is not None and key not in scope.resources):
            return False
        return self._window is None or not self._knows_past or self._window.holds(at)

    def _held(self, noted: Noted) -> bool:
        """Whether what the record held before the change is what the scope is limited to."""
        if not self._only:
            return True
        before: Mapping[str, str] = orjson.loads(noted.was_held or "{}")
        return all(before.get(name) in digests for name, digests in self._only.items())

    def _load(self, sequence: int) -> Noted:
        lines = self._find(sequence)
        assert lines is not None  # noqa: S101  # neighbours of retained changes are retained
        return lines

    def _find(self, sequence: int) -> Noted | None:
        line = self._session.first(_LOAD, (self._place.source.source, sequence))
        return None if line is None else Noted(*line)


def _as_stored(window: TimeConstraint) -> TimeConstraint:
    """The bounds as stored instants compare: far ones are doubles."""
    since: Any = bound(window.since_ns)
    until: Any = bound(window.until_ns)
    return replace(window, since_ns=since, until_ns=until)
