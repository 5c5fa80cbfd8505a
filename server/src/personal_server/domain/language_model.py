"""The model that tells languages apart: that of `py3langid`, over sequences of bytes.

It is read when this module is imported, which takes a tenth of a second of a processor, most of it
numpy, and much longer where its arrays are not kept yet (`language_model_file`): where a text needs
it, and not before.  What is told equals what the package tells, in less time: of each feature the
weights in all languages lie side by side.
"""

from __future__ import annotations

import math
import unicodedata

import numpy as np

from personal_server.domain.language_model_file import ModelArrays, read_model

# So often at the most a feature counts; the texts that are asked for have fewer bytes.
_MOST_BYTES = 1 << 10


class LanguageModel:
    """Naive Bayes over the sequences of bytes that an automaton finds in a text."""

    def __init__(self, arrays: ModelArrays) -> None:
        self._codes = [code.decode() for code in arrays.codes.tolist()]
        # of a language with two scripts there is a column at the beginning, another at the end
        self._doubled = len(self._codes) - len({*self._codes})
        self._weights, self._begins = arrays.weights, arrays.begins
        self._ones = np.ones(len(self._codes), np.float32)  # sums sooner than a sum
        self._often = np.log1p(np.arange(_MOST_BYTES, dtype=np.float32))
        self._next = arrays.following.data  # whose items are read sooner than an array's
        self._row_of: list[int] = arrays.rows.tolist()
        self._feature_of: list[int] = arrays.features.tolist()

    def classify(self, text: str) -> tuple[str, float]:
        """The ISO 639-1 code of a text's language, and how sure that is, from 0 to 1."""
        content = _content_of(text)
        counts = self._features_in(content)
        if not counts:
            return self._codes[0], 0.0
        found = np.fromiter(counts, np.intp, len(counts))
        often = self._often.take(np.fromiter(counts.values(), np.intp, len(counts)), mode="clip")
        scores = often @ self._weights.take(found, axis=0)
        scores += self._begins
        scores *= 1.0 / math.sqrt(len(content))  # so that long texts are no surer than they are
        scores -= scores[scores.argmax()]
        np.exp(scores, scores)
        total = float(scores @ self._ones)
        if self._doubled:
            scores[: self._doubled] += scores[-self._doubled :]
            scores = scores[: -self._doubled]
        best = int(scores.argmax())
        return self._codes[best], float(scores[best]) / total

    def _features_in(self, content: bytes) -> dict[int, int]:
        """How often each occurs, in the order in which they do."""
        state, counts = 0, dict[int, int]()
        next_of, row_of, feature_of, count = self._next, self._row_of, self._feature_of, counts.get
        for byte in content:
            state = next_of[row_of[state] + byte]
            feature = feature_of[state]
            if feature >= 0:
                counts[feature] = count(feature, 0) + 1
        return counts


def _content_of(text: str) -> bytes:
    """The bytes of a text as those that the model was made of."""
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).encode(errors="surrogatepass")


IDENTIFIER = LanguageModel(read_model())
