"""Requests that wait for their owner: of browsers, and of devices whose code was entered here."""

from __future__ import annotations

from personal_server.granting.grant_changes import CHANGE
from personal_server.storage.authorization_rows import ClientRow, RequestRow
from personal_server.storage.ports.authorization_store import AuthorizationReader


def waiting_requests(
    reader: AuthorizationReader, now_ns: int, limit: int
) -> list[tuple[RequestRow, ClientRow]]:
    """The newest first, of so many at most those whose app is not blocked."""
    rows = reader.rows(
        RequestRow,
        RequestRow.status.equals("pending"),
        RequestRow.expires_at_ns.above(now_ns),
        order=RequestRow.created_at_ns,
        descending=True,
    )
    opened = [row for row in rows if row.flow == "code" or row.opened_at_ns is not None]
    found = [row for row in opened if row.flow != CHANGE][:limit]
    clients = (reader.get(ClientRow, ClientRow.client_id.equals(row.client_id)) for row in found)
    return [
        (row, client)
        for row, client in zip(found, clients, strict=True)
        if client is not None and client.blocked_at_ns is None
    ]
