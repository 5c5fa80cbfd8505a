"""Identifying: from a bearer token to the read authority it stands for now.

Rule: token, grants, connections and declarations are looked at on every request, so that an end
bites with the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.enforcement.authority import read_authority
from personal_server.errors import (
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    InvalidToken,
    PersonalServerError,
)
from personal_server.operations.resolving import TokenResolver, judge, resolved
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.ports import Snapshots


@dataclass(frozen=True, slots=True)
class Identified:
    """What a token stands for; `refusal` says why its grant or package cannot be read at all.

    A refusal is one of GrantRevoked, GrantExpired, GrantInvalid.  Source: RS contract 3.
    """

    authority: ReadAuthority
    refusal: PersonalServerError | None = None


class Identifier:
    """Asks the authorization store and the catalog of records, each time.

    `accepts_resource` says whether a token issued for that resource reaches `/v1` here.
    """

    def __init__(
        self,
        resolver: TokenResolver,
        authorization: AuthorizationStore,
        records: Snapshots,
        declarations: KnownDeclarations,
        accepts_resource: Callable[[str], bool],
    ) -> None:
        self._resolver = resolver
        self._authorization = authorization
        self._records = records
        self._declarations = declarations
        self._accepts_resource = accepts_resource

    def __call__(self, token: str) -> Identified:
        """The read authority of a token.

        Source: RS contract 3 and 4.2.
        Raises: InvalidToken, StorageUnavailable.
        """
        try:
            found = self._resolver.resolve(token)
        except (GrantRevoked, GrantExpired, GrantInvalid) as refusal:
            return Identified(self._refused(token), refusal)
        if found.kind not in _KINDS or not self._accepts_resource(found.resource):
            raise InvalidToken("The access token is for another resource. Authorize again.")
        with self._records.snapshot() as snapshot:
            connections = snapshot.connections()
            declarations = self._declarations.current(snapshot.declarations())
        return Identified(read_authority(found, connections, declarations))

    def _refused(self, token: str) -> ReadAuthority:
        """Whose refusal it is: an authority that can read nothing."""
        with self._authorization.read() as reader:
            judged = judge(reader, token, 0)
        if judged is None:
            raise InvalidToken("The access token is not valid.")
        return read_authority(resolved(self._authorization.subject_id, judged), (), {})


_KINDS = frozenset(kind.value for kind in TokenKind)
