"""What the owner looks at: their own records, or what somebody else would read of them.

Rule: the road is that of a token's read, under the authority that such a token has, and nothing
else; nobody is given anything by it, and nothing is recorded as read.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

import msgspec

from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.grant import Resolved
from personal_server.enforcement.authority import read_authority
from personal_server.reading.identification import Identifier, OpenState
from personal_server.reading.ports import ReadPorts
from personal_server.reading.tokens import TokenHolder
from personal_server.storage.derived import once
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import ReadSnapshot


class AuthorityReads(Protocol):
    """Opens states of the store under one authority."""

    @property
    def ports(self) -> ReadPorts:
        """What every read needs."""
        ...

    def open(self, seconds: float) -> AbstractContextManager[tuple[ReadSnapshot, ReadAuthority]]:
        """One state of the store, and what may be read of it.  Raises: QueryTimeout."""
        ...


def owner_of(subject_id: str) -> Resolved:
    """What an owner's token would stand for, for the owner at the own machine."""
    return Resolved(
        kind=TokenKind.OWNER,
        subject_id=subject_id,
        client_id="",
        token_reference="",
        resource="",
        expires_at_ns=0,
    )


class OwnerReads(msgspec.Struct, frozen=True):
    """Everything, as the signed-in owner."""

    ports: ReadPorts
    declarations: KnownDeclarations

    @contextmanager
    def open(self, seconds: float) -> Generator[tuple[ReadSnapshot, ReadAuthority], None, None]:
        """One state of the store, and what the owner may read of it.  Raises: QueryTimeout."""
        with self.ports.snapshot(seconds) as snapshot:
            yield snapshot, once(snapshot.derived, "owner", lambda: self._authority(snapshot))

    def _authority(self, snapshot: ReadSnapshot) -> ReadAuthority:
        owner = owner_of(self.ports.store.subject_id)
        declared = self.declarations.current(snapshot.declarations())
        return read_authority(owner, snapshot.connections(), declared)


class HolderReads(msgspec.Struct, frozen=True):
    """What a token of a grant or package reads; nothing once that has ended or is paused."""

    ports: ReadPorts
    identify: Identifier
    open_state: OpenState
    holder: TokenHolder

    @contextmanager
    def open(self, seconds: float) -> Generator[tuple[ReadSnapshot, ReadAuthority], None, None]:
        """One state of the store, and what a good token may read of it.  Raises: QueryTimeout."""
        with self.open_state(seconds) as (reader, snapshot):
            yield snapshot, self.identify.holder(self.holder, reader, snapshot).authority


class ProspectiveReads(msgspec.Struct, frozen=True):
    """What a token of a grant that is not given yet would read."""

    ports: ReadPorts
    declarations: KnownDeclarations
    prospective: Resolved

    @contextmanager
    def open(self, seconds: float) -> Generator[tuple[ReadSnapshot, ReadAuthority], None, None]:
        """One state of the store, and what such a token could read.  Raises: QueryTimeout."""
        with self.ports.snapshot(seconds) as snapshot:
            declared = self.declarations.current(snapshot.declarations())
            yield snapshot, read_authority(self.prospective, snapshot.connections(), declared)
