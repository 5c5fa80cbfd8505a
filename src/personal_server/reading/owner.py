"""The owner's own reads: the authority over everything, in one state of the store.

Rule: the road is that of an owner's token, and nothing else; nobody is given anything by it.
Source: docs/contract/authorization-server.md 13.5.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.grant import Resolved
from personal_server.enforcement.authority import read_authority
from personal_server.reading.ports import ReadPorts
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.ports import ReadSnapshot, once


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


@dataclass(frozen=True, slots=True)
class OwnerReads:
    """Opens states of the store for the signed-in owner."""

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
