"""A tiny embedder: each word has a direction of its own, some share one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from pdpp_kernel.vectors import shortened
from personal_server.domain.search_words import tokens

SIZE = 64
ALIKE = {"dog": "puppy", "rain": "weather", "wet": "weather", "pupp": "puppy", "mail": "letter"}


class TinyEmbedder:
    """Words that are alike have one direction; a text is the sum of its words."""

    def __init__(self, model: str = "tiny") -> None:
        self.model = model
        self.calls: list[list[str]] = []
        self.is_closed = False

    def embed(self, texts: Sequence[str], *, is_query: bool) -> list[bytes]:
        self.calls.append(list(texts))
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> bytes | None:
        return vector_of(text)

    def close(self) -> None:
        self.is_closed = True


def vector_of(text: str) -> bytes:
    total = [0.0] * SIZE
    for word in tokens(text):
        for place, number in enumerate(_direction(ALIKE.get(word, word))):
            total[place] += number
    return shortened(total)


def _direction(word: str) -> list[int]:
    content = hashlib.shake_128(word.encode()).digest(SIZE)
    return [value - 128 for value in content]
