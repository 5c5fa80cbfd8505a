"""Matches in columns: thousands of them in their order, with an object only for those shown.

Rule: nothing imports this module before a search finds many, since numpy takes long to import.
The order is that of `ranking` to the last digit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from pdpp_kernel.record import RecordPlace
from personal_server.enforcement.ranking import K1, MEAN_LENGTH, SCORE_DECIMALS, B, Ranked
from personal_server.enforcement.rows import Candidate

Integers = NDArray[np.int64]
_SCALE = 10**SCORE_DECIMALS
# So near to a half of the last digit, a product does not tell to which side a score is rounded.
_UNSURE = 1e-3


class PackedCandidates(Sequence[Candidate]):
    """Candidates of several sources.

    Shapes: `places` are the (connection, stream) of the sources, `source_of` says of each
        candidate which of them it is in; `occurrences` has a row for each candidate and a column
        for each term; `events_ns` are Python integers where they do not fit into 64 bits.
    """

    def __init__(
        self,
        places: Sequence[tuple[str, str]],
        source_of: Integers,
        keys: Sequence[str],
        occurrences: Integers,
        lengths: Integers,
        events_ns: NDArray[Any],
    ) -> None:
        self.places = places
        self.source_of = source_of
        self.keys = keys
        self.occurrences = occurrences
        self.lengths = lengths
        self.events_ns = events_ns

    @classmethod
    def of_source(
        cls,
        place: tuple[str, str],
        keys: Sequence[str],
        hits: Sequence[object],
        lengths: Integers,
        events_ns: Sequence[int],
    ) -> PackedCandidates:
        """Those of one source; `hits` are as an index tells them, those of one with blanks between.

        Shapes: all sequences have one element for each candidate.
        """
        ints = np.fromstring(" ".join(map(str, hits)), dtype=np.int64, sep=" ")
        source_of = np.zeros(len(keys), dtype=np.int64)
        return cls([place], source_of, keys, ints.reshape(len(keys), -1), lengths, whole(events_ns))

    @classmethod
    def of(cls, candidates: Sequence[Candidate], terms: int) -> PackedCandidates:
        """The same of candidates that are objects."""
        if isinstance(candidates, PackedCandidates):
            return candidates
        places = list(dict.fromkeys((each.connection_id, each.stream) for each in candidates))
        number = {place: at for at, place in enumerate(places)}
        counts = chain.from_iterable(each.occurrences for each in candidates)
        return cls(
            places,
            whole([number[each.connection_id, each.stream] for each in candidates]),
            [each.key for each in candidates],
            whole(list(counts)).reshape(len(candidates), terms),
            whole([each.length_tokens for each in candidates]),
            whole([each.event_time_ns for each in candidates]),
        )

    @classmethod
    def joined(cls, parts: Sequence[Sequence[Candidate]], terms: int) -> PackedCandidates:
        """Those of all parts, of which each has sources of its own."""
        packed = [cls.of(part, terms) for part in parts if part]
        numbers: list[Integers] = []
        count = 0
        for part in packed:
            numbers.append(part.source_of + count)
            count += len(part.places)
        return cls(
            [place for part in packed for place in part.places],
            np.concatenate(numbers),
            list(chain.from_iterable(part.keys for part in packed)),
            np.concatenate([part.occurrences for part in packed]),
            np.concatenate([part.lengths for part in packed]),
            np.concatenate([part.events_ns for part in packed]),
        )

    def __len__(self) -> int:
        """How many there are."""
        return len(self.keys)

    @overload
    def __getitem__(self, at: int) -> Candidate: ...
    @overload
    def __getitem__(self, at: slice) -> list[Candidate]: ...
    def __getitem__(self, at: int | slice) -> Candidate | list[Candidate]:
        """One of them, or some."""
        numbers = np.arange(len(self))
        return self.at(numbers[at]) if isinstance(at, slice) else self.at(numbers[[at]])[0]

    def __iter__(self) -> Iterator[Candidate]:
        """All of them, as objects."""
        return iter(self[:])

    def at(self, numbers: NDArray[np.intp]) -> list[Candidate]:
        """Those with these numbers, as objects."""
        keys, places = self.keys, self.places
        return [
            Candidate(*places[int(source)], keys[int(number)], tuple(counts), length, event_ns)
            for number, source, counts, length, event_ns in zip(
                numbers.tolist(),
                self.source_of[numbers].tolist(),
                self.occurrences[numbers].tolist(),
                self.lengths[numbers].tolist(),
                self.events_ns[numbers].tolist(),
                strict=True,
            )
        ]

    def ranked(self, weights: Sequence[float]) -> PackedRanking:
        """Best first; `weights` are those of the terms."""
        norms = K1 * (1 - B + B * self.lengths / MEAN_LENGTH)
        totals = np.zeros(len(self))
        for weight, counts in zip(weights, self.occurrences.T, strict=True):
            totals += weight * counts * (K1 + 1) / (counts + norms)
        scores = -_rounded(totals)
        order = self._sorted(scores)
        return PackedRanking(self, order, scores[order])

    def _sorted(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """The numbers of all, as `ranking.rank` sorts: score, newer, connection, stream, key."""
        source = np.argsort(sorted(range(len(self.places)), key=self.places.__getitem__))
        newest = -_ordinals(self.events_ns)
        ties = [source[self.source_of], newest, scores]
        order = np.lexsort(ties)
        sorted_ties = [each[order] for each in ties]
        same = np.logical_and.reduce([each[1:] == each[:-1] for each in sorted_ties])
        if not same.any():
            return order
        alike = np.zeros(len(self), dtype=bool)
        alike[:-1] |= same
        alike[1:] |= same
        by_key = sorted(order[alike].tolist(), key=self.keys.__getitem__)
        keys = np.zeros(len(self), dtype=np.intp)
        keys[by_key] = np.arange(len(by_key))
        return np.lexsort([keys, *ties])


class PackedRanking(Sequence[Ranked]):
    """Candidates in their order.

    Shapes: `order` holds their numbers, best first, `scores` has one for each of these.
    """

    def __init__(
        self,
        candidates: PackedCandidates,
        order: NDArray[np.intp],
        scores: NDArray[np.float64],
        question: int = 0,
    ) -> None:
        self._candidates = candidates
        self._order = order
        self._scores = scores
        self._question = question

    def __len__(self) -> int:
        """How many there are."""
        return len(self._order)

    @overload
    def __getitem__(self, at: int) -> Ranked: ...
    @overload
    def __getitem__(self, at: slice) -> list[Ranked]: ...
    def __getitem__(self, at: int | slice) -> Ranked | list[Ranked]:
        """One of them, or some."""
        places = np.arange(len(self))
        return self._at(places[at]) if isinstance(at, slice) else self._at(places[[at]])[0]

    def __iter__(self) -> Iterator[Ranked]:
        """All of them, as objects."""
        return iter(self[:])

    def _at(self, places: NDArray[np.intp]) -> list[Ranked]:
        candidates = self._candidates.at(self._order[places])
        scores = self._scores[places].tolist()
        return [
            Ranked(candidate, score, None, self._question)
            for candidate, score in zip(candidates, scores, strict=True)
        ]

    def answering(self, question: int) -> PackedRanking:
        """The same for another question."""
        return PackedRanking(self._candidates, self._order, self._scores, question)

    def places_of(self, wanted: Collection[RecordPlace]) -> list[int]:
        """Where in the order some records are, of those that are here."""
        candidates = self._candidates
        keys = {key for *_, key in wanted}
        numbers = [
            number
            for number, key in enumerate(candidates.keys)
            if key in keys and (*candidates.places[candidates.source_of[number]], key) in wanted
        ]
        return np.flatnonzero(np.isin(self._order, numbers)).tolist()

    def without(self, places: Sequence[int]) -> PackedRanking:
        """The others."""
        order, scores = np.delete(self._order, places), np.delete(self._scores, places)
        return PackedRanking(self._candidates, order, scores, self._question)

    def unpacked(self, most: int) -> list[Ranked]:
        """The best as objects."""
        return self.best_of(most)[:]

    def best_of(self, most: int) -> PackedRanking:
        """The best, and behind them the first of each connection among the others."""
        if most >= len(self):
            return self
        candidates = self._candidates
        connections = [connection_id for connection_id, _ in candidates.places]
        number = {each: at for at, each in enumerate(connections)}
        of_source = np.array([number[each] for each in connections])
        rest = of_source[candidates.source_of[self._order[most:]]]
        firsts = np.sort(np.unique(rest, return_index=True)[1]) + most
        places = np.concatenate([np.arange(most), firsts])
        return PackedRanking(candidates, self._order[places], self._scores[places], self._question)

    def placed(self) -> Iterator[tuple[RecordPlace, int]]:
        """Where each is, and what all terms weigh in it together."""
        candidates, order = self._candidates, self._order
        places, keys = candidates.places, candidates.keys
        weights = candidates.occurrences.sum(axis=1)[order].tolist()
        sources = candidates.source_of[order].tolist()
        for number, source, weight in zip(order.tolist(), sources, weights, strict=True):
            yield (*places[int(source)], keys[int(number)]), weight


def whole(numbers: Sequence[int]) -> NDArray[Any]:
    """Integers as a column."""
    try:
        return np.array(numbers, dtype=np.int64)
    except OverflowError:
        return np.array(numbers, dtype=np.object_)


def word_totals(counts: Sequence[bytes], indexes: Sequence[int]) -> Integers:
    """As `word_entries.word_counts`."""
    fields = np.frombuffer(b"".join(counts), dtype=">u4").reshape(len(counts), -1)
    return fields[:, list(indexes)].sum(axis=1, dtype=np.int64)


def _ordinals(numbers: NDArray[Any]) -> Integers:
    """What sorts as they do, and can be negated."""
    return np.unique(numbers, return_inverse=True)[1]


def _rounded(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    """As `round` does, which looks at all digits."""
    scaled = totals * _SCALE
    near = np.rint(scaled)
    rounded = near / _SCALE
    for at in np.flatnonzero(np.abs(np.abs(scaled - near) - 0.5) < _UNSURE).tolist():
        rounded[at] = round(float(totals[at]), SCORE_DECIMALS)
    return rounded
