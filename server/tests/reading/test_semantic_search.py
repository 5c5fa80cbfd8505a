"""Whether a search goes by words or by meaning, and what is refused where meaning cannot be had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pdpp_kernel.errors import StorageUnavailable, UnsupportedSearchMode
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.reading.semantic_search import asked_meaning
from tests.oracle.memory import MemoryStore

MODEL = "a model"
VECTOR = b"\x01" * 8


class Embedder:
    """A model that answers with one vector, or not at all."""

    def __init__(self, model: str | None = MODEL, vector: bytes | None = VECTOR) -> None:
        self.model = model
        self._vector = vector
        self.texts: list[str] = []

    def embed_query(self, text: str) -> bytes | None:
        self.texts.append(text)
        return self._vector


def asked(
    text: str, mode: SearchMode, embedder: Embedder | None, *, is_embedded: bool = True
) -> Any:
    store = MemoryStore()
    store.use_embedding_model(MODEL if is_embedded else None)
    with store.snapshot() as snapshot:
        return asked_meaning(embedder, snapshot, SearchQuery(text, mode=mode))


MEANT: Sequence[SearchMode] = [mode for mode in SearchMode if mode not in ("words", "auto")]


def test_words_ask_no_model() -> None:
    embedder = Embedder()
    assert asked("rain at home", SearchMode.WORDS, embedder) is None
    assert embedder.texts == []


@pytest.mark.parametrize(
    ("mode", "found"),
    [(SearchMode.AUTO, SearchMode.HYBRID), *((mode, mode) for mode in MEANT)],
)
def test_plain_words_are_meant(mode: SearchMode, found: SearchMode) -> None:
    embedder = Embedder()
    meaning = asked("rain at home", mode, embedder)
    assert (meaning.vector, meaning.model, meaning.mode) == (VECTOR, MODEL, found)
    assert embedder.texts == ["rain at home"]


def test_what_is_spelled_out_is_looked_for_by_its_words_unless_meaning_is_asked_for() -> None:
    embedder = Embedder()
    assert asked('"heavy rain"', SearchMode.AUTO, embedder) is None
    assert embedder.texts == []
    assert asked('"heavy rain"', MEANT[0], embedder) is not None


@pytest.mark.parametrize(
    ("embedder", "is_embedded"), [(None, True), (Embedder(None), True), (Embedder(), False)]
)
def test_without_a_model_words_decide_or_the_search_is_refused(
    embedder: Embedder | None, *, is_embedded: bool
) -> None:
    assert asked("rain", SearchMode.AUTO, embedder, is_embedded=is_embedded) is None
    for mode in MEANT:
        with pytest.raises(UnsupportedSearchMode) as caught:
            asked("rain", mode, embedder, is_embedded=is_embedded)
        assert caught.value.param == "mode"
        assert caught.value.members["allowed_values"] == ["auto", "words"]


def test_a_model_that_does_not_answer_leaves_words_or_has_to_be_asked_again() -> None:
    silent = Embedder(vector=None)
    assert asked("rain", SearchMode.AUTO, silent) is None
    for mode in MEANT:
        with pytest.raises(StorageUnavailable) as caught:
            asked("rain", mode, silent)
        assert caught.value.members["retry_after_seconds"] == 5
