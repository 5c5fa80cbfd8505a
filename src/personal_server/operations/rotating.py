"""Refreshing: one refresh token for the next pair, and what its second use means.

Rule: the conditional update of the presented token decides; a superseded token that comes again
ends the family, its tokens and the grant, whoever brought it.  Source: AS contract 9.2; C29.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field

from personal_server.consent.credentials import RandomBytes, secret_hash
from personal_server.domain.values import NANOSECONDS
from personal_server.errors import InvalidClient, InvalidGrantCode, InvalidTarget, OAuthRefusal
from personal_server.operations.auditing import Acting, Subject, audit
from personal_server.operations.minting import Issued, mint_next
from personal_server.operations.redeeming import details_of, held_rows
from personal_server.operations.revoking import end_family
from personal_server.storage.authorization import (
    AuthorizationStore,
    AuthorizationWriter,
    ClientRow,
    FamilyRow,
    RefreshTokenRow,
)


@dataclass(frozen=True, slots=True)
class Refresh:
    """A client with a refresh token; `auth_method` is how it proved itself just now."""

    client_id: str
    refresh_token: str = field(repr=False)
    auth_method: str
    resource: str | None = None


class Rotating:
    """Turns refresh tokens into the next pair.

    Units: `overlap_seconds`, 0 to 30: how long the token just superseded may come once more.
    """

    def __init__(
        self,
        store: AuthorizationStore,
        clock: Callable[[], int],
        random_bytes: RandomBytes,
        overlap_seconds: int = 0,
    ) -> None:
        self._store = store
        self._clock = clock
        self._random_bytes = random_bytes
        self._overlap_ns = overlap_seconds * NANOSECONDS

    def rotate(self, asked: Refresh, acting: Acting) -> Issued:
        """The next pair.  Raises: InvalidGrantCode, InvalidClient, InvalidTarget."""
        with self._store.write() as writer:
            answer = self._rotate(writer, asked, acting, self._clock())
        if isinstance(answer, OAuthRefusal):
            raise answer
        return answer

    def _rotate(
        self, writer: AuthorizationWriter, asked: Refresh, acting: Acting, now_ns: int
    ) -> Issued | OAuthRefusal:
        refused = InvalidGrantCode("The refresh token is not valid. Authorize again.")
        token_hash = secret_hash(asked.refresh_token)
        row = writer.get(RefreshTokenRow, token_hash=token_hash)
        family = row and writer.get(FamilyRow, family_id=row.family_id)
        if row is None or family is None:
            return refused
        subject = Subject(family.client_id, family.grant_id, family.package_id)
        if family.client_id != asked.client_id:
            audit(writer, "refresh.wrong_client", acting, now_ns, subject)
            return refused
        if family.auth_floor != "none" and asked.auth_method != family.auth_floor:
            return InvalidClient("This client refreshes with an assertion.")
        again = row.superseded_at_ns is not None
        if again and not self._overlaps(row, family, now_ns):
            end_family(writer, family, "refresh_reuse", acting, now_ns)
            audit(writer, "refresh.reused", acting, now_ns, subject)
            return InvalidGrantCode(
                "The refresh token was used before, so its access was ended. Authorize again.",
                fresh_authorization_required=True,
            )
        ended = self._ended(writer, family, acting, now_ns)
        if ended or asked.resource not in (None, family.resource):
            wrong = InvalidTarget("The token is for another resource.", param="resource")
            return refused if ended else wrong
        rows = held_rows(writer, family.grant_id, family.package_id, now_ns)
        if family.kind != "owner" and not rows:
            return refused
        column = "overlap_used_at_ns" if again else "superseded_at_ns"
        if not writer.change(
            RefreshTokenRow, {column: now_ns}, **{"token_hash": token_hash, column: None}
        ):
            return refused
        issued = mint_next(writer, family, self._random_bytes, now_ns)
        writer.change(ClientRow, {"last_used_at_ns": now_ns}, client_id=family.client_id)
        event = "refresh.overlap" if again else "refresh.rotated"
        audit(writer, event, acting, now_ns, subject, generation=family.generation + 1)
        return dataclasses.replace(
            issued, grant_ids=tuple(row.grant_id for row in rows), details=details_of(rows)
        )

    def _overlaps(self, row: RefreshTokenRow, family: FamilyRow, now_ns: int) -> bool:
        return (
            row.superseded_at_ns is not None
            and row.overlap_used_at_ns is None
            and row.generation == family.generation - 1
            and now_ns <= row.superseded_at_ns + self._overlap_ns
            and self._overlap_ns > 0
        )

    def _ended(
        self, writer: AuthorizationWriter, family: FamilyRow, acting: Acting, now_ns: int
    ) -> bool:
        if family.revoked_at_ns is not None:
            return True
        if family.absolute_end_ns is not None and family.absolute_end_ns <= now_ns:
            return True
        if family.idle_end_ns <= now_ns:
            end_family(writer, family, "idle", acting, now_ns)
            return True
        return False
