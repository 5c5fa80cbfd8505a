"""The store as commands of the owner use it, beside a running server or without one.

Rule: being able to open it is the authority; what a command changes, a running server sees with
its next request.  Source: AS contract 15.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from personal_server.granting.local_grants import LocalGranting
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.reading.ports import ReadPorts
from personal_server.reading.preview import EvidenceReader
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import Catalogs, KnownDeclarations, StoredCatalogs
from personal_server.storage.ports import DisclosureStore


@dataclass(frozen=True, slots=True)
class OwnerStore:
    """Everything a command may need.  `origin` is the public origin of the server."""

    origin: str
    authorization: AuthorizationStore
    disclosures: DisclosureStore
    reads: ReadPorts
    declarations: KnownDeclarations
    random_bytes: Callable[[int], bytes]

    @property
    def clock(self) -> Callable[[], int]:
        """UTC nanoseconds."""
        return self.reads.clock

    @property
    def catalogs(self) -> Catalogs:
        """What could be granted."""
        return StoredCatalogs(self.reads.store, self.declarations)

    @property
    def granting(self) -> LocalGranting:
        """Grants without a browser."""
        return LocalGranting(self.authorization, self.catalogs, self.clock, self.random_bytes)

    @property
    def evidence(self) -> EvidenceReader:
        """Counts and spans of what would be granted."""
        return EvidenceReader(self.reads, self.declarations)

    @property
    def sign_in(self) -> OwnerSignIn:
        """Links, password and sessions."""
        return OwnerSignIn(self.authorization, self.clock, self.random_bytes)
