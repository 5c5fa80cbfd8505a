"""The connection that an own export names: found again, or made anew.

Rule: an export writes to a connection that is here only if this server made the export, or who made
it made the one that this connection came from.  Any other gets connections of its own, called so,
also where none here has their id: an access may still name one that was erased.  Apps know ids of
connections and keys of records, and anybody can write a file of this form.
Source: docs/contract/resource-server.md 14.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256

import msgspec

from pdpp_kernel.persons import CONNECTOR_KEY as PERSONS
from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.collecting.connections import ID_BYTES, checked_name
from personal_server.collecting.receipts import OWN
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.storage.ports.whole_store import RecordStore

CAME_FROM = f"{OWN}{OWN}"
"""Among the bookmarks of a connection: whose export it came from."""
FOREIGN_NAME, MOST_NAME = "{} (from another server)", 80


class ExportMaker(msgspec.Struct, frozen=True):
    """Who made an export: `signer` is the key that signed it, None for nobody."""

    signer: str | None
    is_this_server: bool

    def made(self, store: RecordStore, connection: Connection) -> bool:
        """Whether the connection is theirs to write to."""
        if self.is_this_server:
            return True
        came_from = store.state(connection.connection_id).state.get(CAME_FROM)
        return self.signer is not None and came_from == {"signer": self.signer}

    def own_id(self, connection_id: str) -> str:
        """What a connection of theirs is called here, beside one of that id."""
        named = sha256(f"{self.signer}\n{connection_id}".encode()).hexdigest()
        return f"cin_{named[: 2 * ID_BYTES]}"

    @property
    def mark(self) -> Mapping[str, object]:
        """What is noted of a connection that came from their export."""
        return {CAME_FROM: {"signer": self.signer}}


def made_all(store: RecordStore, maker: ExportMaker) -> bool:
    """Whether all that is here came from them; the list of persons is made here, of the others."""
    with store.snapshot() as snapshot:
        accounts = [c for c in snapshot.connections() if c.connector_key != PERSONS]
    return all(maker.made(store, account) for account in accounts)


def restored_connection(
    store: RecordStore,
    maker: ExportMaker,
    declaration: SourceDeclaration,
    connection_id: str,
    display_name: str | None,
    created_at_ns: int,
    now_ns: int,
    random_bytes: Callable[[int], bytes],
) -> tuple[Connection, bool]:
    """The connection that an export names, and whether it had to be made.

    Where another source has its id, it gets another one, and is known by when it was made; where
    anything here is of others, it is known by who made the export.
    Raises: InvalidRequest (name).
    """
    with store.snapshot() as snapshot:
        by_id = {c.connection_id: c for c in snapshot.connections()}
    same = by_id.get(connection_id)
    is_same = same is not None and same.connector_key == declaration.connector_key
    if same is not None and is_same and maker.made(store, same):
        return same, False
    if same is not None and not is_same:
        for other in by_id.values():
            made = (other.connector_key, other.created_at_ns)
            if made == (declaration.connector_key, created_at_ns) and maker.made(store, other):
                return other, False
    if not made_all(store, maker):
        connection_id = maker.own_id(connection_id)
        beside = by_id.get(connection_id)
        if beside is not None and beside.connector_key == declaration.connector_key:
            return beside, False
        display_name = FOREIGN_NAME.format((display_name or declaration.connector_key)[:MOST_NAME])
    is_taken = connection_id in by_id
    connection = Connection(
        connection_id=f"cin_{random_bytes(ID_BYTES).hex()}" if is_taken else connection_id,
        connector_key=declaration.connector_key,
        source_id=declaration.source_id,
        display_name=checked_name(display_name),
        status=ConnectionStatus.DRAFT,
        created_at_ns=created_at_ns,
        updated_at_ns=now_ns,
    )
    store.add_connection(connection, maker.mark)
    return connection, True
