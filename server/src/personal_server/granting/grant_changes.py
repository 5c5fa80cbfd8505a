"""Changes of what was given: a grant or package, and the successor that takes its place.

Rule: a grant stays what it was; a change is a decision like the first one, and its successor has
all that belonged to the one before: tokens, families, codes, subscriptions, limits and what was
read today.  All of it moves in the transaction of the decision, so nobody sees half a change.
Source: docs/contract/authorization-server.md 11.6; docs/decisions.md C35.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
import orjson

from pdpp_kernel.errors import NotFound
from pdpp_kernel.oauth_errors import RequestClosed
from pdpp_kernel.values import NANOSECONDS
from personal_server.consent import lifecycle
from personal_server.consent.credentials import REQUEST, RandomBytes, new_id
from personal_server.consent.selections import Selection
from personal_server.consent.successors import change_selections
from personal_server.granting.audit import Acting, Subject, audit
from personal_server.granting.holdings import Holding, successor_of
from personal_server.storage.authorization_rows import RequestRow, ReviewArtifactRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
)

CHANGE = "change"
"""The flow in which the owner changes an access."""
CHANGE_NS = 3_600 * NANOSECONDS
MOST_NAME_CHARS = 80


class AccessChange(msgspec.Struct, frozen=True):
    """What is changed, and all that may be asked of it."""

    replaced: Holding
    selections: tuple[Selection, ...]


class GrantChanges(msgspec.Struct, frozen=True):
    """Begins changes; they are decided like requests."""

    store: AuthorizationStore
    clock: Callable[[], int]
    random_bytes: RandomBytes

    def begin(self, held_id: str, acting: Acting) -> str:
        """The handle of a new request to change an access.  Raises: NotFound, RequestClosed."""
        now_ns = self.clock()
        with self.store.write() as writer:
            row = change_request(writer, held_id, self.random_bytes, now_ns)
            writer.insert(row)
            subject = Subject(row.client_id)
            audit(
                writer,
                "request.created",
                acting,
                now_ns,
                subject,
                request=row.request_id,
                flow=CHANGE,
            )
        return row.request_id


def change_request(
    reader: AuthorizationReader, held_id: str, random_bytes: RandomBytes, now_ns: int
) -> RequestRow:
    """The request that a change is; it is open from the beginning.

    Raises: NotFound, RequestClosed.
    """
    holding = successor_of(reader, held_id, now_ns)
    if holding is None:
        raise NotFound(
            "There is no such access.", next_step="The page Access lists who has access."
        )
    if _is_over(holding):
        raise _ended()
    agreed = _artifact(reader, holding)
    return RequestRow(
        request_id=new_id(REQUEST, random_bytes),
        flow=CHANGE,
        client_id=holding.client_id,
        origin=str(agreed.get("origin", "")),
        resource=str(agreed.get("resource", "")),
        scope="",
        created_at_ns=now_ns,
        opened_at_ns=now_ns,
        expires_at_ns=now_ns + CHANGE_NS,
        replaces=holding.id,
    )


def change_of(reader: AuthorizationReader, row: RequestRow, now_ns: int) -> AccessChange | None:
    """What a request changes, `None` for that of an app.

    An access that was changed meanwhile is the successor's.  Raises: RequestClosed.
    """
    if row.replaces is None:
        return None
    holding = successor_of(reader, row.replaces, now_ns)
    if holding is None or _is_over(holding):
        raise _ended()
    sources = cast("list[dict[str, Any]]", _artifact(reader, holding).get("sources") or [])
    commitments = {
        str(source["source"]["id"]): tuple(source["client_claims"]["commitments"])
        for source in sources
        if source.get("client_claims")
    }
    return AccessChange(holding, change_selections(holding.living_grants, commitments))


def _is_over(holding: Holding) -> bool:
    return holding.standing not in lifecycle.LIVING


def _ended() -> RequestClosed:
    return RequestClosed(
        "This access has ended. If the app wants access again, the app will ask you."
    )


def _artifact(reader: AuthorizationReader, holding: Holding) -> Mapping[str, object]:
    row = reader.get(ReviewArtifactRow, ReviewArtifactRow.revision.equals(holding.revision))
    return {} if row is None else cast("Mapping[str, object]", orjson.loads(row.artifact))
