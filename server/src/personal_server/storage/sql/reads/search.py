"""Full text: candidates of a search, and how many visible records hold each term.

Rule: everything counted is visible, and so is everything looked at: the lists of words that are
read are those of granted fields, walked where visible records stand.  Where only a few keys are
visible the index, which knows all records, is not asked at all: their texts are read instead.  Ids
stand in the order of time, so that the newest matches are the first of a walk from the end.  How
an index is asked for all terms at once is its database's own (`IndexedPart`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, TypeVar

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.record import FieldChange, JsonObject, StoredRecord
from pdpp_kernel.values import event_instant_ns
from personal_server.domain.search_words import TextWords, Vocabulary
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.rows import Candidate, Matches
from personal_server.enforcement.scopes import Scope
from personal_server.storage.derived import once
from personal_server.storage.row_rules import granted_lexical_fields, holds, holds_term, words_of
from personal_server.storage.sql.compiler import Statement, Where
from personal_server.storage.sql.driver import Line
from personal_server.storage.sql.layout import FORM
from personal_server.storage.sql.reads.word_entries import sought_entries, word_counts
from personal_server.storage.sql.source_tables import Reader, ScopedSource

T = TypeVar("T")

# So much text, in code points, is kept word by word while a search goes on.
KEPT_CHARS = 1 << 22
# So many matches of a source are kept in columns.
PACKED_FROM = 200


def search(reader: Reader, plan: SearchPlan, indexed: type[IndexedPart]) -> Matches:
    """Candidates of every source, and how many visible records hold each term.

    Where nothing was found nothing is ranked, and the terms, which only hidden records may hold,
    are not counted one by one.
    """
    parts = [_part(reader, scoped, plan, indexed) for scoped in reader.places(plan.scopes)]
    parts = [part for part in parts if part.fields]
    answers = [(part, part.within_time(part.finds)) for part in parts]
    by_part = {part: finds for part, finds in answers if finds is not None}
    frequencies = [0] * len(plan.words.terms)
    if any(finds.candidates for finds in by_part.values()):
        for part in tuple(by_part):
            counted = part.told(by_part[part], frequencies)
            if counted is None:
                counted = part.within_time(partial(part.counts, frequencies))
            if counted is None:
                del by_part[part]
            else:
                frequencies = [n + more for n, more in zip(frequencies, counted, strict=True)]
    return Matches(
        _joined([finds.candidates for finds in by_part.values()], len(frequencies)),
        tuple(frequencies),
        frozenset(part.place.name for part, finds in by_part.items() if finds.truncated),
        frozenset(part.place.name for part in parts if part not in by_part),
        sum(finds.pending for finds in by_part.values()),
    )


def count_terms(
    reader: Reader, plan: SearchPlan, indexed: type[IndexedPart]
) -> tuple[int, ...] | None:
    """How many visible records hold each term, in the time that all sources have together."""
    count = partial(_counted, reader, plan, indexed)
    if plan.seconds_each is None:
        return count()
    return reader.session.attempt(plan.seconds_each * max(1, len(plan.scopes)), count)


def _counted(reader: Reader, plan: SearchPlan, indexed: type[IndexedPart]) -> tuple[int, ...]:
    totals = [0] * len(plan.words.terms)
    for scoped in reader.places(plan.scopes):
        counted = _part(reader, scoped, plan, indexed).count_each()
        totals = [n + more for n, more in zip(totals, counted, strict=True)]
    return tuple(min(total, plan.frequency_limit) for total in totals)


def walked_seconds(reader: Reader, scopes: Sequence[Scope]) -> float:
    """As a snapshot does."""
    walked = [scoped for scoped in reader.places(scopes) if not scoped.is_read(reader)]
    seconds_each = reader.session.dialect.looked_at_seconds
    return seconds_each * sum(scoped.source.records for scoped in walked)


class _Finds(NamedTuple):
    """What one source gives to a search; `pending` visible records are not indexed yet."""

    candidates: Sequence[Candidate]
    truncated: bool
    pending: int = 0


class _Part(ABC):
    """The search of one source."""

    def __init__(self, reader: Reader, scoped: ScopedSource, plan: SearchPlan) -> None:
        self.place = scoped
        self._reader = reader
        self._plan = plan
        scope = scoped.scope
        self._conditions = plan.conditions_on(scope)
        self._words = plan.words_in(scope)
        self.fields = granted_lexical_fields(scope)
        self._event = scoped.event

    def within_time(self, read: Callable[[], T]) -> T | None:
        """What the source gives, `None` past half of its time: it is asked twice."""
        seconds = self._plan.seconds_each
        return read() if seconds is None else self._reader.session.attempt(seconds / 2, read)

    @abstractmethod
    def finds(self) -> _Finds:
        """The newest matches."""

    @abstractmethod
    def counts(self, totals: Sequence[int]) -> list[int]:
        """How many visible records hold each term; `totals` are those of other sources so far."""

    def told(self, finds: _Finds, totals: Sequence[int]) -> list[int] | None:
        """The same where what it found tells it: all that hold the only term."""
        words, limit = self._words, self._plan.frequency_limit
        asks_more = self._conditions or words.excluded or words.least is not None
        if asks_more or finds.truncated or len(words.terms) != 1 or not words.terms[0].tokens:
            return None
        return [max(0, min(len(finds.candidates), limit - totals[0]))]

    @abstractmethod
    def count_each(self) -> list[int]:
        """How many visible records hold each term, up to the limit for each."""


class IndexedPart(_Part):
    """By the word index."""

    def __init__(self, reader: Reader, scoped: ScopedSource, plan: SearchPlan) -> None:
        super().__init__(reader, scoped, plan)
        self._number = scoped.source.tables
        layout, scope = scoped.compiler.layout, scoped.scope
        self._places = {f: n for n, f in enumerate(layout.lexical) if f in self.fields}
        self._weighty = scope.stream.weighty_fields
        self._stretch = scoped.compiler.stretch(scope)

    def finds(self) -> _Finds:
        """The newest matches."""
        candidates, truncated = self._candidates() if self._places else ((), False)
        return _Finds(candidates, truncated, self._pending())

    def counts(self, totals: Sequence[int]) -> list[int]:
        """Up to the limit of all sources together."""
        limit = self._plan.frequency_limit if self._places else 0
        counted = zip(self._words.terms, totals, strict=True)
        return [self._frequency(term, limit - total) for term, total in counted]

    @property
    def _seen(self) -> Where:
        """Of the entries `f`, with their lines where these are joined, the visible ones."""
        return self._stretch & self.place.visible()

    @property
    def _entries(self) -> str:
        """The entries of the index, with their lines where something may be hidden."""
        return f"w{self._number} f {self._join if self.place.visible().parts else ''}"

    @property
    def _join(self) -> str:
        """The lines of entries."""
        dialect = self._reader.session.dialect
        return dialect.with_line("f.rowid", self.place.compiler.lines())

    def _told(self, hits: str) -> str:
        """What a candidate is made of: its changes are read where no event dates it."""
        if self._event is None:
            return f"r.k, {hits}, r.wc, NULL, r.cs, r.ce, r.fc"
        event = f"r.{self._event.name}"
        dated = (f"CASE WHEN {event} IS NULL THEN r.{name} END" for name in ("cs", "ce", "fc"))
        return f"r.k, {hits}, r.wc, {self._instant(event)}, {', '.join(dated)}"

    def _instant(self, event: str) -> str:
        """What is read of an event: its number, or the text of an integer."""
        return event

    def _candidates(self) -> tuple[Sequence[Candidate], bool]:
        """The newest matches, and whether there are more."""
        return self.holding_all() if self._plan.words.least is None else self._holding_most()

    @abstractmethod
    def holding_all(self) -> tuple[Sequence[Candidate], bool]:
        """The same where all terms are needed: with how often each is held."""

    def _holding_most(self) -> tuple[Sequence[Candidate], bool]:
        """The same where not all terms are needed: which entries hold each term, put together.

        A record has two bits for each term: held in a weighty field, and in another one.
        """
        plan, words = self._plan, self._words
        weightless = {f: n for f, n in self._places.items() if f not in self._weighty}
        weighty = {f: n for f, n in self._places.items() if f in self._weighty}
        arms: list[Statement] = []
        for number, term in enumerate(words.terms):
            for bit, indexes in ((2 * number, weightless), (2 * number + 1, weighty)):
                if sought_entries(term, indexes):
                    arms.append(self._arm(1 << bit, WordQuery((term,), words.excluded), indexes))
        term_conditions = [f"(held >> {2 * number}) & 3 > 0" for number in range(len(words.terms))]
        count_of_terms = " + ".join(
            f"CASE WHEN {condition} THEN 1 ELSE 0 END" for condition in term_conditions
        )
        needed = [
            f"{count_of_terms} >= {words.needed}",
            *(term_conditions[number] for number in words.quoted),
        ]
        if words.telling:
            needed.append(f"({' OR '.join(term_conditions[number] for number in words.telling)})")
        listed = " UNION ALL ".join(f"SELECT * FROM ({arm.sql}) AS arm" for arm in arms)  # noqa: S608
        counted = (
            "SELECT id AS rowid, CAST(sum(bit) AS bigint) AS held"  # noqa: S608
            f" FROM ({listed}) AS arms GROUP BY id"
        )
        where = self.place.matching(self._conditions)
        where = Where((f"({' AND '.join(needed)})",)) & where
        lines = self._reader.lines(
            self.place.source,
            Statement(
                f"SELECT {self._told('f.held')} FROM ({counted}) f {self._join}"  # noqa: S608
                f"{where.sql} ORDER BY {self._newest()} LIMIT ?",
                (
                    *(param for arm in arms for param in arm.params),
                    *where.params,
                    plan.window + 1,
                ),
            ),
        )
        indexes = range(len(words.terms))
        candidates = [
            (key, " ".join(str(bits >> 2 * number & 3) for number in indexes), *more)
            for key, bits, *more in lines
        ]
        return self._ranked(candidates[: plan.window]), len(lines) > plan.window

    def _arm(self, bit: int, words: WordQuery, indexes: Mapping[str, int]) -> Statement:
        """The newest visible entries of one sort."""
        scope = self.place.scope
        where = self.place.compiler.words(words, indexes, self._places, scope) & self._seen
        return Statement(
            f"SELECT f.rowid AS id, {bit} AS bit FROM {self._entries}{where.sql}"  # noqa: S608
            " ORDER BY f.rowid DESC LIMIT ?",
            (*where.params, self._plan.frequency_limit),
        )

    def _newest(self) -> str:
        """The walk from the end, where ids stand in the order of the event times shown."""
        layout = self.place.compiler.layout
        if self._event is None:
            return "f.rowid DESC" if layout.column(layout.placed) is None else "r.ce DESC"
        if layout.placed == layout.event:
            return "f.rowid DESC"
        event = f"r.{self._event.name}"
        return f"{event} IS NOT NULL DESC, coalesce({event}, r.ce) DESC"

    def _ranked(self, lines: list[Line]) -> Sequence[Candidate]:
        """What ranking needs; nothing is made for each of thousands that needs not be."""
        if not lines:
            return ()
        stream_key, unit_ns = self.place.name, self.place.event_unit_ns
        indexes = tuple(self._places.values())
        keys, hits, counts, events, *_ = zip(*lines, strict=True)
        if None in events:
            events = [
                self.place.dated_ns(FieldChange(created, created_at), changes)
                if event is None
                else int(event) * unit_ns
                for _, _, _, event, created, created_at, changes in lines
            ]
        else:
            events = [event * unit_ns for event in map(int, events)]
        if len(lines) < PACKED_FROM:
            counted = [tuple(map(int, str(each).split())) for each in hits]
            found = zip(keys, counted, word_counts(counts, indexes), events, strict=True)
            return [Candidate(*stream_key, *each) for each in found]
        from personal_server.enforcement.packed_matches import (  # noqa: PLC0415 (numpy takes long)
            PackedCandidates,
            word_totals,
        )

        lengths = word_totals(counts, indexes)
        return PackedCandidates.of_source(stream_key, keys, hits, lengths, events)

    def _frequency(self, term: Term, limit: int) -> int:
        """How many visible records hold a term, up to a limit."""
        if limit <= 0 or not term.tokens:
            return 0
        where = self._matching(WordQuery((term,)), self.place.visible())
        return self._reader.session.value(
            f"SELECT count(*) FROM (SELECT 1 FROM {self._entries}{where.sql} LIMIT ?) AS met",  # noqa: S608
            (*where.params, limit),
        )

    def _matching(self, words: WordQuery, where: Where) -> Where:
        scope = self.place.scope
        return self.place.compiler.words(words, self._places, scope=scope) & self._stretch & where

    def _pending(self) -> int:
        """How many visible records an index that is being made anew does not know whole yet.

        While one is made that knows a further field, or other forms of words, none is known whole.
        """
        compiler = self.place.compiler
        knows_fields = len(self._places) == len(self.fields)
        knows_forms = compiler.layout.form == FORM
        if knows_fields and knows_forms and compiler.is_indexed:
            return 0
        # what an index of before lacks altogether is known line by line
        lacks_lines = knows_fields and not compiler.is_indexed
        where = self.place.visible() & Where(("r.wc IS NULL",) if lacks_lines else ())
        return int(str(self._reader.value(compiler.select("count(*)", where))))


def _joined(parts: Sequence[Sequence[Candidate]], terms: int) -> Sequence[Candidate]:
    """Those of all sources; packed where those of one are."""
    if all(isinstance(part, (list, tuple)) for part in parts):
        return tuple(chain.from_iterable(parts))
    from personal_server.enforcement.packed_matches import (  # noqa: PLC0415 (numpy takes long)
        PackedCandidates,
    )

    return PackedCandidates.joined(parts, terms)


class _ReadTexts:
    """The visible records of a scope with their words, read once for all steps of a search.

    Those behind `KEPT_CHARS` are read again with each step, so that memory is bounded.
    """

    def __init__(self, reader: Reader, scoped: ScopedSource) -> None:
        self._reader = reader
        self._place = scoped
        self._fields = granted_lexical_fields(scoped.scope)
        self._vocabulary = Vocabulary()
        self._kept: dict[int, tuple[StoredRecord, Mapping[str, TextWords]]] = {}
        self._chars_left = KEPT_CHARS
        self._is_whole = False

    def records(self) -> Iterator[tuple[StoredRecord, Mapping[str, TextWords]]]:
        """Each with its words by field."""
        reader, rows = self._reader, tuple(self._kept.values())
        for record in rows:
            reader.session.check()
            yield record
        if self._is_whole:
            return
        numbers = frozenset(self._kept)
        lines = self._place.compiler.rows(self._place.visible())
        for line in reader.each_line(self._place.source, lines):
            reader.session.check()
            row = None if line[0] in numbers else reader.whole(self._place.source, line)
            if row is not None:
                yield self._read(line[0], row)
        self._is_whole = self._chars_left > 0

    def _read(self, number: int, row: StoredRecord) -> tuple[StoredRecord, Mapping[str, TextWords]]:
        words_of_row = (row, words_of(row.data, self._fields, self._vocabulary))
        self._chars_left -= sum(words.chars for words in words_of_row[1].values())
        if self._chars_left > 0:
            self._kept[number] = words_of_row
        return words_of_row


class _ReadPart(_Part):
    """By the texts of the few records that are visible."""

    def __init__(self, reader: Reader, scoped: ScopedSource, plan: SearchPlan) -> None:
        super().__init__(reader, scoped, plan)
        self._frequencies = [0] * len(plan.words.terms)
        # the plans of all steps of a search have the same scopes
        key = ("texts", id(scoped.scope))
        self._texts = once(reader.shared, key, lambda: _ReadTexts(reader, scoped))

    def finds(self) -> _Finds:
        frequencies = [0] * len(self._plan.words.terms)
        ranked: list[tuple[bool, int, Candidate]] = []
        for row, texts in self._texts.records():
            data = row.data
            counts, length = self._counted(texts)
            frequencies = [n + (count > 0) for n, count in zip(frequencies, counts, strict=True)]
            met = {index for index, count in enumerate(counts) if count}
            if self._words.is_met(met) and self._meets(data, texts):
                event = self._own_event_time(data)
                created = row.created
                candidate = self.place.candidate(
                    row.key, event, created, row.field_changes, counts, length
                )
                recency = created.emitted_at_ns if event is None else event
                ranked.append((event is not None, recency, candidate))
        ranked.sort(key=lambda candidate: candidate[:2], reverse=True)
        self._frequencies = frequencies
        window = self._plan.window
        return _Finds([candidate[2] for candidate in ranked[:window]], len(ranked) > window)

    def counts(self, totals: Sequence[int]) -> list[int]:  # noqa: ARG002 (every text was read)
        return self._frequencies

    def count_each(self) -> list[int]:
        """Plain words are looked up among those of a text, and never a text for each of them."""
        terms = self._words.terms
        plain = {term.tokens[0]: n for n, term in enumerate(terms) if term.is_plain}
        families = [(n, term) for n, term in enumerate(terms) if not term.is_plain]
        counts = [0] * len(terms)
        for _, words in self._texts.records():
            plain_words = [
                plain.keys() & words_of_row.counts.keys() for words_of_row in words.values()
            ]
            plain_counts = {plain[word] for plain_of_row in plain_words for word in plain_of_row}
            for n, term in families:
                if holds_term(words, term):
                    plain_counts.add(n)
            for number in plain_counts:
                counts[number] += 1
        return counts

    def _meets(self, data: JsonObject, texts: Mapping[str, TextWords]) -> bool:
        """Whether a record satisfies the conditions, and holds nothing that is excluded."""
        excluded = any(holds_term(texts, term) for term in self._words.excluded)
        return not excluded and all(holds(condition, data) for condition in self._conditions)

    def _own_event_time(self, data: JsonObject) -> int | None:
        event = self._event
        return None if event is None else event_instant_ns(data.get(event.field), event.kind)

    def _counted(self, texts: Mapping[str, TextWords]) -> tuple[tuple[int, ...], int]:
        """How often each term stands in the granted fields, and the words of these."""
        words_sought = self._words
        totals, length = [0] * len(words_sought.terms), 0
        elsewhere, weighty = set[int](), set[int]()
        for name, words in texts.items():
            length += words.length
            weight = 2 if name in self.place.scope.stream.weighty_fields else 1
            for number, term in enumerate(words_sought.terms):
                count = words.occurrences(term, name)
                if words_sought.least is not None:
                    counted = weighty if weight == 2 else elsewhere
                    count = int(count > 0 and number not in counted)
                    counted |= {number} if count else set()
                totals[number] += weight * count
        return tuple(totals), length


def _part(
    reader: Reader, scoped: ScopedSource, plan: SearchPlan, indexed: type[IndexedPart]
) -> _Part:
    return (_ReadPart if scoped.is_read(reader) else indexed)(reader, scoped, plan)
