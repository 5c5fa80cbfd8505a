"""The model that tells languages apart: that of `py3langid`, over sequences of bytes.

It is read when this module is imported, which takes much longer where it is not kept yet
(`language_model_file`): where a text needs it, and not before.  What is told equals what the
package tells, in less time, and without its arrays in memory: of each feature the weights in all
languages lie side by side in a file, and rows that texts needed lately are kept.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from functools import lru_cache

from personal_server.domain.language_model_file import STEPS, KeptModel, read_model

_MOST_STATES, _MOST_WEIGHTS = 2_048, 4_096
"""How many rows are kept: 1 KiB each of the automaton, 336 bytes each of the weights."""


class LanguageModel:
    """Naive Bayes over the sequences of bytes that an automaton finds in a text."""

    def __init__(self, kept: KeptModel) -> None:
        self._codes = kept.codes
        # of a language with two scripts there is a column at the beginning, another at the end
        self._doubled = len(self._codes) - len({*self._codes})
        self._begins = kept.begins
        self._row_of, self._feature_of = kept.rows, kept.features
        self._following = lru_cache(_MOST_STATES)(kept.following)
        self._weights = lru_cache(_MOST_WEIGHTS)(kept.weights)
        self._columns_of = kept.columns_of

    def classify(self, text: str) -> tuple[str, float]:
        """The ISO 639-1 code of a text's language, and how sure that is, from 0 to 1."""
        content = _content_of(text)
        counts = self._features_in(content)
        if not counts:
            return self._codes[0], 0.0
        by_count = defaultdict[int, list[int]](list)
        for feature, count in counts.items():
            by_count[count].append(self._weights(feature))
        scores = list(self._begins)
        for count, rows in by_count.items():
            often = math.log1p(count) / STEPS
            sums = self._columns_of(sum(rows))
            scores = [score + often * each for score, each in zip(scores, sums, strict=True)]
        # divided so that long texts are no surer than they are
        most, length = max(scores), math.sqrt(len(content))
        odds = [math.exp((score - most) / length) for score in scores]
        total = sum(odds)
        if self._doubled:
            for at, other in enumerate(odds[-self._doubled :]):
                odds[at] += other
            odds = odds[: -self._doubled]
        best = max(odds)
        return self._codes[odds.index(best)], best / total

    def _features_in(self, content: bytes) -> Counter[int]:
        """How often each occurs."""
        state, found = 0, list[int]()
        row_of, following, feature_of = self._row_of, self._following, self._feature_of
        for byte in content:
            state = following(row_of[state])[byte]
            feature = feature_of[state]
            if feature >= 0:
                found.append(feature)
        return Counter(found)


def _content_of(text: str) -> bytes:
    """The bytes of a text as those that the model was made of."""
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).encode(errors="surrogatepass")


IDENTIFIER = LanguageModel(read_model())
