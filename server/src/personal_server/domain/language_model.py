"""The model that tells languages apart: that of `py3langid`, over sequences of bytes.

It is read when this module is imported, which takes half a second of a processor, 67 MB for good
and 185 MB for that moment: where a text needs it, and not before.  It is read from memory alone:
the package's own way wants a directory for temporary files, which a server on a read-only system
has not.  What is told equals what the package tells, in half the time: of each feature the weights
in all languages lie side by side, and a language with two scripts has its second columns last.
"""

from __future__ import annotations

import io
import lzma
import math
import unicodedata
from array import array
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from py3langid.langid import MODEL_DIR, MODEL_FILE

from personal_server.domain.language_names import STEMLESS, STEMMERS

_ROW_BITS = 8  # a row of the automaton has a place for each byte


class LanguageModel:
    """Naive Bayes over the sequences of bytes that an automaton finds in a text."""

    def __init__(self, content: bytes) -> None:
        """`content` as the package keeps it, unpacked."""
        with np.load(io.BytesIO(content)) as model:
            codes: list[str] = model["classes"].tolist()
            columns, doubled = _columns_of(codes)
            self._codes = [codes[at] for at in columns]
            self._doubled = doubled
            self._weights: NDArray[np.float16] = model["ptc"].take(columns, axis=1)
            self._begins: NDArray[np.float32] = model["pc"].take(columns)
            self._ones = np.ones(len(columns), np.float32)  # sums sooner than a sum
            self._next = array("I")
            self._next.frombytes(model["nextmove"].astype(np.uint32, copy=False).view(np.uint8))
            rows = model["nextmove_row"].astype(np.int64) << _ROW_BITS
            self._row_of: list[int] = rows.tolist()
            self._feature_of: list[int] = model["out_feat"].tolist()

    def classify(self, text: str) -> tuple[str, float]:
        """The ISO 639-1 code of a text's language, and how sure that is, from 0 to 1."""
        content = _content_of(text)
        features = self._features_in(content)
        if not features:
            return self._codes[0], 0.0
        counts = Counter(features)
        found = np.fromiter(counts.keys(), np.intp, len(counts))
        often = np.log1p(np.fromiter(counts.values(), np.float32, len(counts)))
        scores = often @ self._weights.take(found, axis=0) + self._begins
        scores *= 1.0 / math.sqrt(len(content))  # so that long texts are no surer than they are
        scores -= scores[scores.argmax()]
        np.exp(scores, out=scores)
        total = float(scores @ self._ones)
        if self._doubled:
            scores[: self._doubled] += scores[-self._doubled :]
            scores = scores[: -self._doubled]
        best = int(scores.argmax())
        return self._codes[best], float(scores[best]) / total

    def _features_in(self, content: bytes) -> list[int]:
        state, found = 0, list[int]()
        add, next_of = found.append, self._next
        row_of, feature_of = self._row_of, self._feature_of
        for byte in content:
            state = next_of[row_of[state] + byte]
            feature = feature_of[state]
            if feature >= 0:
                add(feature)
        return found


def _columns_of(codes: Sequence[str]) -> tuple[list[int], int]:
    """Those of the languages that are told apart, and how many of them stand twice.

    Those that stand twice come first, in the same order as their second columns, which come last.
    """
    first: dict[str, int] = {}
    second: dict[str, int] = {}
    for at, code in enumerate(codes):
        if code in first:
            second[code] = at
        elif code in {*STEMMERS, *STEMLESS.split()}:
            first[code] = at
    doubled = [first.pop(code) for code in second]
    return [*doubled, *first.values(), *second.values()], len(doubled)


def _content_of(text: str) -> bytes:
    """The bytes of a text as those that the model was made of."""
    text = text.lower() if text.isupper() else text
    return unicodedata.normalize("NFC", text).encode(errors="surrogatepass")


IDENTIFIER = LanguageModel(lzma.decompress((MODEL_DIR / MODEL_FILE).read_bytes()))
