"""What a search means: whether it goes by words, by meaning or by both, and its vector.

Rule: only the text of a query is embedded, on the owner's machine unless the owner chose otherwise.
Source: docs/contract/resource-server.md 11.6.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from msgspec.structs import replace

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.errors import StorageUnavailable, UnsupportedSearchMode
from personal_server.domain.search_words import text_without
from personal_server.enforcement.plans import MeaningPlan
from personal_server.enforcement.queries import SearchMode, SearchQuery
from personal_server.enforcement.search import checked_words
from personal_server.enforcement.semantic_queries import AskedMeaning, is_plain, meant_text
from personal_server.storage.ports.snapshots import ReadSnapshot

HOW_TO_GET_IT = (
    "This server cannot search by meaning. Its owner can turn this on: make "
    "semantic (or pip install 'pdpp-personal-server[semantic]'), then pdpp "
    "semantic install. Until then, search by words."
)


class QueryEmbedder(Protocol):
    """Whoever turns the text of a query into a vector."""

    @property
    def model(self) -> str | None:
        """What tells this model from others; `None` while there is none."""
        ...

    def embed_query(self, text: str) -> bytes | None:
        """The vector (`pdpp_kernel.vectors.shortened`); `None` when none can be had now."""
        ...


def asked_meaning(
    embedder: QueryEmbedder | None, snapshot: ReadSnapshot, query: SearchQuery
) -> AskedMeaning | None:
    """What is to be found by meaning; `None` where words decide.

    Raises: UnsupportedSearchMode, StorageUnavailable where meaning was asked for and cannot be had.
    """
    mode = query.mode
    if mode is SearchMode.WORDS:
        return None
    is_wanted = mode is not SearchMode.AUTO
    model = None if embedder is None else embedder.model
    if embedder is None or model is None or snapshot.embedding_model() != model:
        if is_wanted:
            raise UnsupportedSearchMode(
                HOW_TO_GET_IT, param="mode", allowed_values=[SearchMode.AUTO, SearchMode.WORDS]
            )
        return None
    words = checked_words(query.text)
    if not is_wanted and not is_plain(words):
        return None
    vector = embedder.embed_query(meant_text(query.text, words))
    if vector is None:
        if is_wanted:
            raise StorageUnavailable(
                (
                    "The model for search by meaning does not answer now. Try again "
                    "later, or search by words."
                ),
                retry_after_seconds=5,
            )
        return None
    return AskedMeaning(vector, model, mode if is_wanted else SearchMode.HYBRID)


def without_authors(
    embedder: QueryEmbedder, plan: MeaningPlan, text: str, words: WordQuery, authors: Iterable[Term]
) -> MeaningPlan:
    """What a query means without the names of those who wrote, as it was where that is nothing.

    People seldom write their own names, so a name draws in greetings by others.

        "When did Ada buy the cello?", Ada writes there  →  "When did buy the cello?"
    """
    whole = meant_text(text, words)
    left = text_without(whole, frozenset(authors))
    # nothing stood apart by blanks: names in a text that is written without them stay
    vector = embedder.embed_query(left) if left and left != " ".join(whole.split()) else None
    return plan if vector is None else replace(plan, vector=vector)
