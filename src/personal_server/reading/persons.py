"""Persons as their owner sees them: all of them, by the road of every read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from personal_server.domain.authority import TokenKind
from personal_server.domain.grant import Resolved
from personal_server.domain.persons import CONNECTOR_KEY, STREAM
from personal_server.domain.record import JsonObject
from personal_server.enforcement.authority import read_authority
from personal_server.enforcement.authorize import authorize_records
from personal_server.enforcement.disclose import discloser
from personal_server.enforcement.queries import MAX_LIMIT, RecordsQuery, Selectors
from personal_server.storage.catalog import KnownDeclarations
from personal_server.storage.ports import Snapshots


def every_person(store: Snapshots, declarations: KnownDeclarations) -> Iterator[JsonObject]:
    """Those that records mention most come first.

    Raises: NotFound while persons are off.
    """
    owner = Resolved(TokenKind.OWNER, store.subject_id, "", "", "", 0)
    with store.snapshot(None) as snapshot:
        current = declarations.current(snapshot.declarations())
        authority = read_authority(owner, snapshot.connections(), current)
        query = RecordsQuery(
            STREAM,
            Selectors(connector_id=CONNECTOR_KEY),
            limit=MAX_LIMIT,
            sort="-mention_count",
        )
        read = authorize_records(authority, query)
        (source,) = read.sources
        disclose = discloser(authority, source, source.fields)
        plan = read.plan
        while True:
            page = snapshot.page(plan)
            for placed in page.rows:
                shown = msgspec.json.encode(disclose(placed.row).data)
                yield msgspec.json.decode(shown)
            if not page.more:
                return
            plan = replace(plan, after=page.rows[-1].position)
