"""An account with what it holds, and who may read it.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from pdpp_kernel.source_declaration import (
    Adaptation,
    SourceDeclaration,
)
from pdpp_kernel.texts import Text, message
from personal_server.console.words import declared_name
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.stored import Collection, CollectionRun, StoredStream
from personal_server.granting.holdings import Holding
from personal_server.storage.catalog import Catalog
from personal_server.storage.feed_rows import FEED_ID

STATUS_WORDS = {
    ConnectionStatus.DRAFT: ("", message("no records yet")),
    ConnectionStatus.ACTIVE: ("good", message("active")),
    ConnectionStatus.PAUSED: ("warn", message("paused")),
    ConnectionStatus.REVOKED: ("bad", message("blocked for apps")),
}


class StreamCount(msgspec.Struct, frozen=True):
    """One stream of a connection."""

    name: str
    label: str
    count: int


class AccountView(msgspec.Struct, frozen=True):
    """One account as its page shows it, and what of its declaration was adapted or is ignored."""

    connection: Connection
    source: str
    status_kind: str
    status: Text
    streams: tuple[StreamCount, ...]
    collected_at_ns: int | None
    last_run: CollectionRun | None
    readers: tuple[str, ...]
    adapted: tuple[Adaptation, ...]
    kept: tuple[str, ...]

    @property
    def name(self) -> str:
        """As its owner calls it."""
        return self.connection.display_name or self.connection.connection_id

    @property
    def import_state(self) -> str | None:
        """How the last import stands, if it was no feed's: a feed says so itself."""
        run = self.last_run
        return None if run is None or run.run_id.startswith(FEED_ID) else str(run.status)

    @property
    def total(self) -> int:
        """All records of it."""
        return sum(stream.count for stream in self.streams)


def account_view(
    connection: Connection,
    catalog: Catalog,
    stored: Sequence[StoredStream],
    collections: Mapping[str, Collection],
    holdings: Sequence[Holding],
) -> AccountView:
    """One connection of the catalog."""
    declaration = catalog.declarations.get(connection.source_id)
    kind, status = STATUS_WORDS[connection.status]
    collection = collections.get(connection.connection_id, Collection())
    streams = [s for s in stored if s.connection_id == connection.connection_id]
    return AccountView(
        connection=connection,
        source=declared_name(
            connection.connector_key if declaration is None else declaration.display_name
        ),
        status_kind=kind,
        status=status,
        streams=tuple(
            StreamCount(s.stream, _label(declaration, s.stream), s.record_count)
            for s in sorted(streams, key=lambda s: -s.record_count)
        ),
        collected_at_ns=collection.last_succeeded_at_ns,
        last_run=collection.last_run,
        readers=readers_of(holdings, connection.connection_id),
        adapted=() if declaration is None else declaration.adapted,
        kept=() if declaration is None else declaration.kept,
    )


def readers_of(holdings: Sequence[Holding], connection_id: str) -> tuple[str, ...]:
    """The apps that may read an account, each once."""
    readers = (each.client_name for each in holdings if _reads(each, connection_id))
    return tuple(dict.fromkeys(readers))


def _label(declaration: SourceDeclaration | None, name: str) -> str:
    stream = None if declaration is None else declaration.streams.get(name)
    return name if stream is None else declared_name(stream.label)


def _reads(holding: Holding, connection_id: str) -> bool:
    return holding.status == "active" and any(
        connection_id in stream.instance_ids
        for grant in holding.grants
        if grant.grant is not None and grant.status == "active"
        for stream in grant.grant.streams
    )
