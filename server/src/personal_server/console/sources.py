"""Sources and connections with what they hold.  Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class StreamCount:
    """One stream of a connection."""

    name: str
    label: str
    count: int


@dataclass(frozen=True, slots=True)
class AccountView:
    """One account as its page and the list of sources show it."""

    connection: Connection
    source: str
    status_kind: str
    status: Text
    streams: tuple[StreamCount, ...]
    collected_at_ns: int | None
    last_run: CollectionRun | None
    readers: tuple[str, ...]

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


@dataclass(frozen=True, slots=True)
class SourceCountView:
    """One source with its accounts, and how its declaration was adapted."""

    name: str
    detail: str | None
    accounts: tuple[AccountView, ...]
    adapted: tuple[Adaptation, ...]
    kept: tuple[str, ...]


def source_views(
    catalog: Catalog,
    stored: Sequence[StoredStream],
    collections: Mapping[str, Collection],
    holdings: Sequence[Holding],
) -> list[SourceCountView]:
    """Every source that has a connection, by name."""
    views: list[SourceCountView] = []
    for declaration in catalog.declarations.values():
        accounts = [c for c in catalog.connections if c.source_id == declaration.source_id]
        if accounts:
            account_views = tuple(
                _account(c, declaration, stored, collections, holdings) for c in accounts
            )
            views.append(
                SourceCountView(
                    name=declared_name(declaration.display_name),
                    detail=declaration.display_detail,
                    accounts=account_views,
                    adapted=declaration.adapted,
                    kept=declaration.kept,
                )
            )
    return sorted(views, key=lambda view: view.name)


def account_view(
    connection: Connection,
    catalog: Catalog,
    stored: Sequence[StoredStream],
    collections: Mapping[str, Collection],
    holdings: Sequence[Holding],
) -> AccountView:
    """One connection of the catalog."""
    declaration = catalog.declarations.get(connection.source_id)
    return _account(connection, declaration, stored, collections, holdings)


def _account(
    connection: Connection,
    declaration: SourceDeclaration | None,
    stored: Sequence[StoredStream],
    collections: Mapping[str, Collection],
    holdings: Sequence[Holding],
) -> AccountView:
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
        readers=tuple(
            dict.fromkeys(
                holding.client_name
                for holding in holdings
                if _reads(holding, connection.connection_id)
            )
        ),
    )


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
