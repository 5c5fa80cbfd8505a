"""Which event subscriptions are a caller's, and what they may name.

Source: docs/contract/resource-server.md 15.
"""

from __future__ import annotations

import msgspec

from pdpp_kernel.errors import NotFound
from personal_server.domain.authority import ReadableSource, ReadAuthority, TokenKind
from personal_server.enforcement.ambiguity import ambiguous, connection_count
from personal_server.enforcement.queries import Selectors
from personal_server.enforcement.source_selection import select_any, select_everywhere
from personal_server.granting.audit import Subject
from personal_server.storage.authorization_rows import SubscriptionRow
from personal_server.storage.ports.authorization_store import AuthorizationReader
from personal_server.storage.tables import ColumnCondition


class Filters(msgspec.Struct, frozen=True):
    """What a subscription is narrowed to; empty is all that its access reads."""

    streams: tuple[str, ...] = ()
    connection_ids: tuple[str, ...] = ()


EVERYTHING = Filters()


def is_of(row: SubscriptionRow, authority: ReadAuthority) -> bool:
    """Whether a subscription is its caller's: of the same client, and of its grant."""
    if row.client_id != (authority.client_id or ""):
        return False
    if authority.kind is TokenKind.OWNER:
        return row.grant_id is None
    return row.grant_id in authority.grant_ids and row.package_id == authority.package_id


def subscription_of_caller(
    reader: AuthorizationReader, authority: ReadAuthority, subscription_id: str
) -> SubscriptionRow:
    """One of the caller's.  Raises: NotFound."""
    row = reader.get(SubscriptionRow, has_id(subscription_id))
    if row is None or not is_of(row, authority):
        raise NotFound("There is no such event subscription.")
    return row


def of_same_holder(reader: AuthorizationReader, row: SubscriptionRow) -> list[SubscriptionRow]:
    """Every subscription of the same client and grant."""
    rows = reader.rows(SubscriptionRow, SubscriptionRow.grant_id.equals(row.grant_id))
    return [each for each in rows if each.client_id == row.client_id]


def member_of(authority: ReadAuthority, connection_id: str | None) -> str | None:
    """The grant that a subscription of this caller belongs to.

    Raises: AmbiguousConnection, ConnectionNotFound.
    """
    if authority.kind is TokenKind.OWNER:
        return None
    selected = select_any(authority, Selectors(connection_id))
    if authority.kind is not TokenKind.PACKAGE:
        return authority.grant_ids[0]
    if not selected:
        raise NotFound("This access can read nothing now.")
    if connection_id is None and connection_count(selected) > 1:
        raise ambiguous(authority, selected, None)
    return selected[0].grant_id


def check_filters(authority: ReadAuthority, filters: Filters) -> None:
    """Whether everything named can be read.

    Raises: ConnectionNotFound, GrantStreamNotAllowed, NotFound.
    """
    for connection_id in filters.connection_ids:
        select_any(authority, Selectors(connection_id))
    for stream in filters.streams:
        select_everywhere(authority, Selectors(), stream)


def sources_of(row: SubscriptionRow, authority: ReadAuthority) -> list[ReadableSource]:
    """The readable sources that a subscription is about."""
    return [
        source
        for source in authority.sources
        if source.grant_id == row.grant_id
        and source.made_of is None
        and (not row.streams or source.stream in row.streams)
        and (not row.connection_ids or source.connection_id in row.connection_ids)
    ]


def subject_of(row: SubscriptionRow) -> Subject:
    """What an audit event about a subscription is about."""
    return Subject(row.client_id, row.grant_id)


def has_id(subscription_id: str) -> ColumnCondition[SubscriptionRow]:
    """The condition that a row is of this subscription."""
    return SubscriptionRow.subscription_id.equals(subscription_id)
