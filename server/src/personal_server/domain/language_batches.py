"""The languages of many texts at once, by the same model in less time a text.

It is imported where a batch has so many texts to ask about that reading numpy is worth it.  What
`classify` of `language_model.py` computes of one text is computed here of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from personal_server.domain.language_model_file import STEPS, KeptModel

# So many texts are looked at side by side.
_AT_ONCE = 512
# What no feature holds: behind it the automaton is where it began.
APART = b"\xff"
# So often at the most a feature counts; the texts that are asked for have fewer bytes.
_MOST_BYTES = 1 << 10
_SLOT_BITS = 18
_SPREAD = np.uint32(2_654_435_769)

_Numbers = NDArray[np.uint32]


class LanguageBatches:
    """Naive Bayes as in `language_model`, side by side."""

    def __init__(self, kept: KeptModel) -> None:
        self._codes, self._doubled = kept.codes, kept.doubled
        self._begins = np.array(kept.begins)
        self._features = np.frombuffer(kept.features, np.uint32).astype(np.intp)
        self._weights = _weights_in(kept)
        self._often = np.log1p(np.arange(_MOST_BYTES)) / STEPS
        self._trie = _Trie(kept)

    def classify(self, contents: Sequence[bytes]) -> Iterator[tuple[str, float]]:
        """The ISO 639-1 code of each text's language, and how sure that is, from 0 to 1."""
        for start in range(0, len(contents), _AT_ONCE):
            yield from self._answers(contents[start : start + _AT_ONCE])

    # In:    the texts `abbb` and `b`, and the automaton in the example of `language_model_file.py`,
    #        whose feature 1 is `ab` and 2 is `b`.  Of two languages the first knows feature 1, the
    #        second feature 2, each by 9; usual are 3 and 4.
    # Found: text_of   0 0 1
    #        features  1 2 2
    #        counts    1 2 1
    # Out:   of the first text begins + often[1] * (9, 4) + often[2] * (3, 9), before it is made as
    #        sure as its length allows.
    def _answers(self, contents: Sequence[bytes]) -> Iterator[tuple[str, float]]:
        text_of, features, counts = self._found(contents)
        often = self._often.take(counts, mode="clip")
        begins = np.searchsorted(text_of, np.arange(len(contents) + 1)).tolist()
        scores = np.array(
            [
                often[begin:end] @ self._weights.take(features[begin:end], 0)
                for begin, end in pairwise(begins)
            ]
        )
        scores += self._begins
        # so that long texts are no surer than they are
        scores /= np.sqrt([[len(content) or 1] for content in contents])
        scores -= scores.max(1, keepdims=True)
        np.exp(scores, scores)
        totals = scores.sum(1).tolist()
        if self._doubled:
            scores[:, : self._doubled] += scores[:, -self._doubled :]
            scores = scores[:, : -self._doubled]
        found = np.diff(begins).tolist()
        best, sure = scores.argmax(1).tolist(), scores.max(1).tolist()
        for column, odds, total, some in zip(best, sure, totals, found, strict=True):
            yield self._codes[column if some else 0], odds / total if some else 0.0

    def _found(
        self, contents: Sequence[bytes]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
        """Each text with each of its features, and how often that occurs in it."""
        joined = APART.join([*contents, b""])
        states = self._trie.states_in(np.frombuffer(joined, np.uint8).astype(np.uint32))
        features = self._features.take(states)
        places = np.flatnonzero(features)
        text_of = np.repeat(np.arange(len(contents)), [len(content) + 1 for content in contents])
        size = len(self._weights)
        keys = np.sort(text_of.take(places) * size + features.take(places))
        is_first = np.ones(len(keys), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
        first = np.flatnonzero(is_first)
        keys, counts = keys.take(first), np.diff(first, append=len(keys))
        text_of = keys // size
        return text_of, keys - text_of * size, counts


def _weights_in(kept: KeptModel) -> NDArray[np.uint16]:
    """Of each feature its weight in each column; most languages know most of those that occur."""
    spans = np.frombuffer(kept.spans, np.uint32)
    count, width = len(spans) - 1, len(kept.codes)
    weights = np.tile(np.frombuffer(kept.usual, np.uint32).astype(np.uint16), count)
    cells = np.repeat(np.arange(count) * width, np.diff(spans))
    cells += np.frombuffer(kept.columns, np.uint8)
    weights[cells] = np.frombuffer(kept.values, np.uint16)
    return weights.reshape(count, width)


class _Trie:
    """The trie of the automaton: children by state and byte, in a table of hashes."""

    def __init__(self, kept: KeptModel) -> None:
        firsts = np.frombuffer(kept.firsts, np.uint32)
        labels = np.frombuffer(kept.labels, np.uint8).astype(np.uint32)
        parents = np.repeat(np.arange(len(firsts) - 1, dtype=np.uint32), np.diff(firsts))
        self._keys = np.concatenate([[0], parents << 8 | labels]).astype(np.uint32)
        self._first = np.zeros(1 << 8, np.uint32)
        self._first[labels[: firsts[1]]] = np.arange(1, firsts[1] + 1)
        self._table = np.zeros((1 << _SLOT_BITS) + 256, np.uint32)
        waiting = np.arange(1, len(self._keys), dtype=np.uint32)
        slots = self._slots(self._keys[1:])
        while len(waiting):
            is_free = self._table.take(slots) == 0
            self._table[slots[is_free]] = waiting[is_free]
            is_left = self._table.take(slots) != waiting
            waiting, slots = waiting[is_left], slots[is_left] + 1

    def states_in(self, read: _Numbers) -> _Numbers:
        """The state behind each byte: the longest text of the trie that ends with it."""
        states = self._first.take(read)
        at = np.flatnonzero(states)
        deepest = states.take(at)
        while len(at):
            # the byte behind each, which is not the last one, may lead one level deeper
            children = self._child(deepest << np.uint32(8) | read.take(at + 1))
            is_child = np.flatnonzero(children)
            at, deepest = at.take(is_child) + 1, children.take(is_child)
            states[at] = deepest
        return states

    def _child(self, keys: _Numbers) -> _Numbers:
        slots = self._slots(keys)
        children = self._table.take(slots)
        waiting = np.flatnonzero((self._keys.take(children) != keys) & (children != 0))
        slots = slots.take(waiting)
        while len(waiting):
            slots += 1
            found = self._table.take(slots)
            children[waiting] = found
            is_left = (self._keys.take(found) != keys.take(waiting)) & (found != 0)
            waiting, slots = waiting[is_left], slots[is_left]
        return children

    def _slots(self, keys: _Numbers) -> NDArray[np.intp]:
        return (keys * _SPREAD >> np.uint32(32 - _SLOT_BITS)).astype(np.intp)
