"""Full text on FTS5: candidates of a search, and how many visible records hold each term.

Rule: the index narrows to granted columns, and everything counted is visible: nothing of hidden
text or hidden records reaches a number.  Ids stand in the order of event times, so that the newest
matches are the first of a walk from the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from personal_server.domain.criteria import Term
from personal_server.domain.record import FieldChange
from personal_server.domain.values import DAY_NANOSECONDS, ValueKind
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.rows import Candidate, Matches
from personal_server.storage.meaning import granted_lexical_fields, latest_change
from personal_server.storage.sql.compiler import Where
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.source_tables import Reader, ScopedSource, parse_changes
from personal_server.storage.sql.written_rows import WIDEST_PROBE, place_in_time


def search(reader: Reader, plan: SearchPlan) -> Matches:
    """Candidates of every source, and how many visible records hold each term."""
    parts = [_Part(reader, found, plan) for found in reader.places(plan.scopes)]
    totals = [0] * len(plan.terms)
    found: list[Candidate] = []
    truncated: set[tuple[str, str]] = set()
    lost: set[tuple[str, str]] = set()
    for part in parts:
        if not part.columns:
            continue
        finds = part.finds(totals)
        if finds is None:
            lost.add(part.name)
            continue
        found += finds.candidates
        totals = [total + more for total, more in zip(totals, finds.frequencies, strict=True)]
        if finds.truncated:
            truncated.add(part.name)
    return Matches(tuple(found), tuple(totals), frozenset(truncated), frozenset(lost))


class _Finds(NamedTuple):
    """What one source gives to a search."""

    candidates: list[Candidate]
    truncated: bool
    frequencies: list[int]


class _Part:
    """The search of one source."""

    def __init__(self, reader: Reader, found: ScopedSource, plan: SearchPlan) -> None:
        self.place = found
        self._reader = reader
        self._plan = plan
        self._number = found.source.tables
        layout, scope = found.compiler.layout, found.scope
        granted = granted_lexical_fields(scope)
        self.columns = tuple(n for n, name in enumerate(layout.lexical) if name in granted)
        title = scope.stream.title_field
        titled = [n for n in self.columns if layout.lexical[n] == title]
        self._title = titled[0] if titled else -1
        self._event = layout.column(layout.event)
        known = self._event is not None and self._event.field in scope.fields
        self._event_shown = self._event if known else None
        is_day = self._event_shown is not None and self._event_shown.kind is ValueKind.DATE
        self._event_unit = DAY_NANOSECONDS if is_day else 1
        self._in_time = self._event is None or known

    @property
    def name(self) -> tuple[str, str]:
        """Connection and stream."""
        return (self.place.source.connection_id, self.place.source.stream)

    def finds(self, totals: Sequence[int]) -> _Finds | None:
        """What the source gives, `None` past its time; `totals` are the frequencies so far."""
        seconds = self._plan.seconds_each
        if seconds is None:
            return self._all(totals)
        return self._reader.session.attempt(seconds, lambda: self._all(totals))

    def _all(self, totals: Sequence[int]) -> _Finds:
        candidates, truncated = self._candidates()
        limit = self._plan.frequency_limit
        counts = zip(self._plan.terms, totals, strict=True)
        frequencies = [self._frequency(term, limit - total) for term, total in counts]
        return _Finds(candidates, truncated, frequencies)

    def _candidates(self) -> tuple[list[Candidate], bool]:
        """The newest matches, and whether there are more."""
        plan, number = self._plan, self._number
        where = self._matching(plan.terms, self.place.matching(plan.conditions))
        event = "NULL" if self._event_shown is None else f"r.{self._event_shown.name}"
        newest = "f.rowid DESC" if self._in_time else "r.ce DESC"
        hits = "pdpp_hits" if len(plan.terms) == 1 else "pdpp_all_hits"
        lines = self._reader.session.rows(
            f"SELECT r.k, {hits}(f{number}, {self._title}), d.sz, {event}, r.cs, r.ce, r.fc"  # noqa: S608
            f" FROM f{number} f CROSS JOIN f{number}_docsize d ON d.id = f.rowid"
            f" CROSS JOIN r{number} r ON r.id = f.rowid{where.sql} ORDER BY {newest} LIMIT ?",
            (*where.params, plan.window + 1),
        )
        return self._ranked(lines[: plan.window]), len(lines) > plan.window

    def _ranked(self, lines: list[Line]) -> list[Candidate]:
        source, columns, event_time = self.place.source, self.columns, self._event_time
        connection_id, stream = source.connection_id, source.stream
        is_single = len(self._plan.terms) == 1
        return [
            Candidate(
                connection_id,
                stream,
                line[0],
                (line[1],) if is_single else tuple(map(int, line[1].split())),
                _length(line[2], columns),
                event_time(line),
            )
            for line in lines
        ]

    def _event_time(self, line: Line) -> int:
        _, _, _, event, created, created_at, changes = line
        if event is None:
            first = FieldChange(created, created_at)
            fields = self.place.scope.fields
            return latest_change(first, parse_changes(changes), fields).emitted_at_ns
        return int(event) * self._event_unit

    def _frequency(self, term: Term, limit: int) -> int:
        """How many visible records hold a term, up to a limit."""
        if limit <= 0:
            return 0
        number, visible = self._number, self.place.visible()
        where = self._matching((term,), visible)
        join = f" CROSS JOIN r{number} r ON r.id = f.rowid" if visible.parts else ""
        return self._reader.session.value(
            f"SELECT count(*) FROM (SELECT 1 FROM f{number} f{join}{where.sql} LIMIT ?)",  # noqa: S608
            (*where.params, limit),
        )

    def _matching(self, terms: Sequence[Term], where: Where) -> Where:
        names = " ".join(f"x{column}" for column in self.columns)
        words = " AND ".join(_phrase(term) for term in terms)
        match = Where((f"f{self._number} MATCH ?",), (f"{{{names}}} : ({words})",))
        return match & self._in_window() & where

    def _in_window(self) -> Where:
        """A stretch of ids that holds the window, where the window is of event times."""
        window, layout = self.place.scope.window, self.place.compiler.layout
        if window is None or window.field != layout.event:
            return Where()
        found = Where()
        if window.since_ns is not None:
            found &= Where(("f.rowid >= ?",), (place_in_time(window.since_ns, 0, layout),))
        if window.until_ns is not None:
            last = place_in_time(window.until_ns, 0, layout) + WIDEST_PROBE
            found &= Where(("f.rowid <= ?",), (min(last, 2**63 - 1),))
        return found


def _length(sizes: bytes, columns: Sequence[int]) -> int:
    """The words of some columns, from the index's own record: a variable-length number each."""
    if max(sizes) < 128:
        return sum([sizes[column] for column in columns])
    numbers: list[int] = []
    number = 0
    for byte in sizes:
        number = number << 7 | byte & 127
        if byte < 128:
            numbers.append(number)
            number = 0
    return sum(numbers[column] for column in columns)


def _phrase(term: Term) -> str:
    """A term in the query language of the index; tokens are letters and digits only."""
    return f'"{" ".join(term.tokens)}"{" *" if term.prefix else ""}'
