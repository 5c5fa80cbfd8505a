"""What search by meaning asks of a store: passages that wait for a vector, and their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pdpp_kernel.vectors import Passage
from personal_server.domain.stored import EmbeddingProgress, Unembedded


class PassageStore(Protocol):
    """Passages of texts as vectors (`pdpp_kernel.vectors`), for whoever embeds."""

    def embedding_model(self) -> str | None:
        """The model whose vectors are kept."""
        ...

    def use_embedding_model(self, identity: str | None) -> bool:
        """Keep vectors of that model only; whether others are left, for another call."""
        ...

    def unembedded(
        self, connection_id: str, stream: str, fields: Sequence[str], limit: int
    ) -> Unembedded | None:
        """Some records whose fields have no passages; `None` when there are no more."""
        ...

    def put_passages(
        self, work: Unembedded, passages: Mapping[tuple[int, str], Sequence[Passage]]
    ) -> None:
        """Keep what was made of records (by id and field), and that they are done with."""
        ...

    def pack_passages(self) -> bool:
        """Have some passages compared sooner; whether there was anything to do."""
        ...

    def embedding_progress(self) -> tuple[EmbeddingProgress, ...]:
        """How far it is, by (connection, stream)."""
        ...
