"""Entries of the disclosure log as they are shown, page by page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import asdict

from pdpp_kernel.values import render_instant
from pdpp_kernel.wire_objects import Count, Instant, WireObject, Word
from personal_server.domain.disclosure import Channel, DisclosureEntry, Outcome, TokenName
from personal_server.storage.ports.disclosure_stores import (
    DisclosureQuery,
    DisclosureStore,
)

PAGE = 1_000


def every_disclosure(
    store: DisclosureStore, *, with_asked: bool = False
) -> Iterator[ShownDisclosure]:
    """The whole log, newest first, in pages; with what lies beside its lines where it is asked."""
    below: int | None = None
    while page := store.disclosures(DisclosureQuery(PAGE, below=below)):
        beside = store.asked_details([number for number, _ in page] if with_asked else ())
        for number, entry in page:
            shown, detail = render_disclosure(entry), beside.get(number)
            yield (
                shown
                if detail is None
                else AskedDisclosure(**asdict(shown), asked=detail.asked, keys=detail.keys)
            )
        below = page[-1][0]


class ShownDisclosure(WireObject, kw_only=True, tag_field="object", tag="disclosure"):
    """An entry as its owner reads it."""

    disclosure_id: Word
    at: Instant
    request_id: Word
    outcome: Outcome
    error_code: str | None
    token_kind: TokenName
    client_id: str | None
    grant_id: str | None
    grant_package_id: str | None
    channel: Channel
    tool: str | None
    route: Word
    connector_key: str | None
    connection_id: str | None
    stream: str | None
    fields: Sequence[str]
    record_count: Count
    size_bytes: Count = msgspec.field(name="bytes")


class AskedDisclosure(ShownDisclosure, kw_only=True, tag_field="object", tag="disclosure"):
    """The same with what lies beside it, which leaves this machine only where its owner says so."""

    asked: str
    keys: Sequence[str]


def render_disclosure(entry: DisclosureEntry) -> ShownDisclosure:
    """The wire form of an entry."""
    return ShownDisclosure(
        disclosure_id=entry.disclosure_id,
        at=render_instant(entry.at_ns),
        request_id=entry.request_id,
        outcome=entry.outcome,
        error_code=entry.error_code,
        token_kind=entry.token_kind,
        client_id=entry.client_id,
        grant_id=entry.grant_id,
        grant_package_id=entry.package_id,
        channel=entry.channel,
        tool=entry.tool,
        route=entry.route,
        connector_key=entry.connector_key,
        connection_id=entry.connection_id,
        stream=entry.stream,
        fields=entry.fields,
        record_count=entry.record_count,
        size_bytes=entry.size_bytes,
    )
