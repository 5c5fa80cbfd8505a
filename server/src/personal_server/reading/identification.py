"""Identifying: from a bearer token to the read authority it stands for now.

Rule: token, grants, connections and declarations are those of the state that the request reads,
so that an end bites with the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager

import msgspec

from pdpp_kernel.errors import InvalidToken, PersonalServerError
from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.grant import Resolved
from personal_server.domain.possession import PresentedToken
from personal_server.enforcement.authority import read_authority
from personal_server.reading.tokens import TokenHolder, TokenResolver, TokenState
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.authorization_store import AuthorizationReader
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS, PastBudget, ReadSnapshot


class Identified(msgspec.Struct, frozen=True):
    """The authority of a caller; with a `refusal` (of `TokenState`) it can read nothing."""

    authority: ReadAuthority
    refusal: PersonalServerError | None = None


OneState = tuple[AuthorizationReader, ReadSnapshot]
"""One state of the database, as both stores see it."""

OpenState = Callable[[float | None], AbstractContextManager[OneState]]
"""Opens one whose reads together may take that many seconds (`None`: as long as they take)."""

OpenBriefly = Callable[[], AbstractContextManager[OneState]]
"""Opens one for who must not wait.  Raises: PastBudget where more is asked than takes a moment."""


class Identifier:
    """Asks the authorization store and the catalog of records, each time, in one state of both.

    `accepts_resource` says whether a token issued for that resource reaches `/v1` here.
    """

    def __init__(
        self,
        resolver: TokenResolver,
        open_state: OpenState,
        declarations: KnownDeclarations,
        accepts_resource: Callable[[str], bool],
        open_briefly: OpenBriefly | None = None,
    ) -> None:
        self._resolver = resolver
        self._open_state = open_state
        self._open_briefly = open_briefly
        self._declarations = declarations
        self._accepts_resource = accepts_resource

    @contextmanager
    def __call__(
        self, bearer: PresentedToken | TokenState
    ) -> Generator[tuple[Identified, ReadSnapshot], None, None]:
        """Who calls, and the state that says so; it lasts as long as the block.

        Shapes: `bearer` is a token, or what was found out about it where it was looked up before.
        Raises: InvalidToken, StorageUnavailable.
        """
        with self._open_state(READ_DEADLINE_SECONDS) as state:
            yield self._identified(bearer, *state)

    @contextmanager
    def briefly(
        self, bearer: PresentedToken | TokenState
    ) -> Generator[tuple[Identified, ReadSnapshot], None, None]:
        """The same for who must not wait.  Raises: PastBudget too."""
        if self._open_briefly is None:
            raise PastBudget
        with self._open_briefly() as state:
            yield self._identified(bearer, *state)

    def _identified(
        self,
        bearer: PresentedToken | TokenState,
        reader: AuthorizationReader,
        snapshot: ReadSnapshot,
    ) -> tuple[Identified, ReadSnapshot]:
        known = isinstance(bearer, TokenState)
        state = bearer if known else self._resolver.state(reader, bearer)
        return self.identify(state, snapshot), snapshot

    def identify(self, state: TokenState, snapshot: ReadSnapshot) -> Identified:
        """The authority of a token.

        Source: docs/contract/resource-server.md 3 and 4.2.
        Raises: InvalidToken.
        """
        found = state.resolved
        if state.refusal is not None:
            return _refused(state)
        if found.kind not in _KINDS or not self._accepts_resource(found.resource):
            raise InvalidToken(
                "The access token belongs to another server or resource. Authorize again."
            )
        return Identified(self._authority(found, snapshot))

    def holder(
        self, holder: TokenHolder, reader: AuthorizationReader, snapshot: ReadSnapshot
    ) -> Identified:
        """The authority that a good token of a holder would have."""
        state = self._resolver.state_of_holder(reader, holder)
        if state.refusal is not None:
            return _refused(state)
        return Identified(self._authority(state.resolved, snapshot))

    def _authority(self, found: Resolved, snapshot: ReadSnapshot) -> ReadAuthority:
        key = ("authority", found.token_reference)
        known, authority = snapshot.derived.get(key, (None, None))
        # what a token stands for changes with the time, too, and may be of an earlier state
        if authority is None or known != found:
            declarations = self._declarations.current(snapshot.declarations())
            authority = read_authority(found, snapshot.connections(), declarations)
            snapshot.derived[key] = (found, authority)
        return authority


def _refused(state: TokenState) -> Identified:
    return Identified(read_authority(state.resolved, (), {}), state.refusal)


_KINDS = frozenset(kind.value for kind in TokenKind)
