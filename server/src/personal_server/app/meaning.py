"""Search by meaning, put together: the model that the owner chose, for queries and for passages.

Rule: a choice is looked at again while the server runs; without the extra `semantic`, or without a
choice, there is no model, and everything else works.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from personal_server.app.stores import Stores
from personal_server.semantics.chosen import (
    ChosenModel,
    missing_packages,
    needed_by,
    read_choice,
    semantic_folder,
)
from personal_server.semantics.embedder import (
    BATCH_SECONDS,
    LOWEST_PRIORITY,
    QUERY_SECONDS,
    Embedder,
    EmbedderFailed,
    ModelProcess,
)
from personal_server.semantics.endpoint import EndpointEmbedder
from personal_server.semantics.index import PassageIndex

MakeEmbedder = Callable[[ChosenModel, bool], Embedder]
"""For a choice: for queries, or else for passages."""


class Meaning:
    """The query embedder of a server, and the work that embeds its records."""

    def __init__(
        self, stores: Stores, data_dir: Path, make_embedder: MakeEmbedder | None = None
    ) -> None:
        self._stores = stores
        self._data_dir = data_dir
        self._make = make_embedder or self._made
        self._lock = threading.Lock()
        self._chosen: ChosenModel | None = None
        self._queries: Embedder | None = None
        self._passages: Embedder | None = None
        self.index = PassageIndex(stores.records, stores.declarations, lambda: self._passages)
        self.choose()

    @property
    def model(self) -> str | None:
        """What tells the chosen model from others."""
        chosen = self._chosen
        return None if chosen is None else chosen.identity

    def embed_query(self, text: str) -> bytes | None:
        """The vector of a query; `None` when none can be had now."""
        embedder = self._queries
        if embedder is None:
            return None
        try:
            (vector,) = embedder.embed([text], is_query=True)
        except EmbedderFailed:
            return None
        return vector

    def work(self) -> None:
        """Look at the choice, then embed for a while.  Raises: EmbedderFailed."""
        self.choose()
        self.index()

    def choose(self) -> None:
        """Use what is chosen now."""
        chosen = read_choice(self._data_dir)
        if chosen is not None and set(missing_packages()) & set(needed_by(chosen)):
            chosen = None
        with self._lock:
            if chosen == self._chosen:
                return
            self._let_go()
            self._chosen = chosen
            if chosen is not None:
                self._queries, self._passages = self._make(chosen, True), self._make(chosen, False)

    def stop(self) -> None:
        """Have the work end soon."""
        self.index.stop()
        passages = self._passages
        if passages is not None:
            passages.close()

    def close(self) -> None:
        """Stop the processes that embed queries and passages."""
        with self._lock:
            self._let_go()

    def _let_go(self) -> None:
        for embedder in (self._queries, self._passages):
            if embedder is not None:
                embedder.close()
        self._queries = self._passages = self._chosen = None

    def _made(self, chosen: ChosenModel, is_for_queries: bool) -> Embedder:
        return embedder_of(self._data_dir, chosen, is_for_queries=is_for_queries)


def embedder_of(data_dir: Path, chosen: ChosenModel, *, is_for_queries: bool) -> Embedder:
    """The embedder of a choice: for queries, which wait for it, or for passages, which do not."""
    seconds = QUERY_SECONDS if is_for_queries else BATCH_SECONDS
    if chosen.kind == "endpoint":
        return EndpointEmbedder(chosen.place, chosen.name, chosen.identity, seconds)
    return ModelProcess(
        semantic_folder(data_dir) / chosen.place,
        chosen.identity,
        niceness=0 if is_for_queries else LOWEST_PRIORITY,
        seconds=seconds,
    )
