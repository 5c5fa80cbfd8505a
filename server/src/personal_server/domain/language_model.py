"""The model that tells languages apart: that of `py3langid`, over sequences of bytes.

It is read when this module is imported, which takes much longer where it is not kept yet
(`language_model_file`): where a text needs it, and not before.  What is told equals what the
package tells, in less time, and without its arrays in memory: steps of the automaton and weights
that texts needed lately are kept as they are needed.

`language_batches.py` computes the same with arrays, for many texts: what changes in `classify`
changes there; `test_many_texts_side_by_side_are_told_as_each_alone` compares the two.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, repeat
from operator import add, attrgetter, getitem, mul, sub
from typing import TYPE_CHECKING

from personal_server.domain.language_model_file import STEPS, KeptModel, read_model

if TYPE_CHECKING:
    from personal_server.domain.language_batches import LanguageBatches

_MOST_STATES, _MOST_WEIGHTS = 8_192, 8_192
"""How many are kept: some 300 bytes each."""
_SEVERAL = 64
"""Looking at texts side by side takes a third of the time, where there are several."""
_ONCE = math.log1p(1) / STEPS


class _State(dict[int, "_State"]):
    """A state of the automaton: the next states by the next byte, which are found on demand."""

    __slots__ = ("feature", "number", "states")

    states: _States
    number: int
    feature: int

    def __missing__(self, byte: int) -> _State:
        states = self.states
        following = self[byte] = states[states.following(self.number, byte)]
        return following


class _States(dict[int, _State]):
    """States by their numbers, made on demand."""

    def __init__(self, model: KeptModel) -> None:
        super().__init__()
        self.following, self._features = model.following, model.features

    def __missing__(self, number: int) -> _State:
        if len(self) >= _MOST_STATES:
            for state in list(self.values()):
                state.clear()
            self.clear()
        state = _State()
        state.states, state.number = self, number
        state.feature = self._features[number]
        self[number] = state  # whole, since searches of other threads look here
        return state


class LanguageModel:
    """Naive Bayes over the sequences of bytes that an automaton finds in a text."""

    def __init__(self, kept: KeptModel) -> None:
        self._codes, self._doubled = kept.codes, kept.doubled
        self._begins = [begin / _ONCE for begin in kept.begins]
        self._kept, self._states = kept, _States(kept)
        self._asked = 0
        self._batches: LanguageBatches | None = None
        self._weights = lru_cache(_MOST_WEIGHTS)(kept.weights)
        self._columns_of = kept.columns_of

    def classify_all(self, texts: Sequence[str], many: int) -> Iterable[tuple[str, float]]:
        """The same of several texts, in less time once `many` were asked about.

        What that needs takes as long to read as asking about some thousand one by one.
        """
        self._asked += len(texts)
        if len(texts) < _SEVERAL or self._asked < many:
            return map(self.classify, texts)
        if self._batches is None:
            from personal_server.domain.language_batches import (  # noqa: PLC0415 (reads numpy)
                LanguageBatches,
            )

            self._batches = LanguageBatches(self._kept)
        return self._batches.classify([*map(content_of, texts)])

    def classify(self, text: str) -> tuple[str, float]:
        """The ISO 639-1 code of a text's language, and how sure that is, from 0 to 1."""
        content = content_of(text)
        states = accumulate(content, getitem, initial=self._states[0])
        features = [*filter(None, map(_FEATURE, states))]
        if not features:
            return self._codes[0], 0.0
        found = {*features}
        # in units of what a step of a feature adds that occurs once
        sums = self._columns_of(sum(map(self._weights, found)))
        scores = [*map(add, self._begins, sums)]
        if len(found) < len(features):
            scores = self._with_repeated(scores, Counter(features))
        unit = _ONCE / math.sqrt(len(content))  # so that long texts are no surer than they are
        below = map(sub, scores, repeat(max(scores)))
        odds = [*map(math.exp, map(mul, below, repeat(unit)))]
        total = sum(odds)
        if self._doubled:
            for at, other in enumerate(odds[-self._doubled :]):
                odds[at] += other
            odds = odds[: -self._doubled]
        best = max(odds)
        return self._codes[odds.index(best)], best / total

    def _with_repeated(self, scores: list[float], counts: Counter[int]) -> list[float]:
        """What features add that occur more than once."""
        by_count = dict[int, list[int]]()
        for feature, count in counts.items():
            if count > 1:
                by_count.setdefault(count, []).append(self._weights(feature))
        for count, rows in by_count.items():
            often = math.log1p(count) / math.log1p(1) - 1
            sums = self._columns_of(sum(rows))
            scores = [score + often * each for score, each in zip(scores, sums, strict=True)]
        return scores


_FEATURE = attrgetter("feature")


def content_of(text: str) -> bytes:
    """The bytes of a text as those that the model was made of."""
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).encode(errors="surrogatepass")


IDENTIFIER = LanguageModel(read_model())
