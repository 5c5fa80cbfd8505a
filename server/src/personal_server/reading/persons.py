"""Persons as their owner sees them, and which planted records those that were given are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import cast

import msgspec
from msgspec.structs import replace

from pdpp_kernel.person_fields import (
    Identity,
    IdentityKind,
)
from pdpp_kernel.persons import (
    CONNECTOR_KEY,
    STREAM,
)
from pdpp_kernel.record import JsonObject, StoredRecord
from personal_server.domain.authority import ReadableSource, TokenKind
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.grant import Resolved
from personal_server.enforcement.authority import read_authority
from personal_server.enforcement.authorize import authorize_records
from personal_server.enforcement.authorized_reads import hit_plan
from personal_server.enforcement.disclose import discloser
from personal_server.enforcement.queries import MAX_LIMIT, RecordsQuery, Selectors
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.snapshots import ReadSnapshot, Snapshots


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


def planted_behind(
    snapshot: ReadSnapshot,
    disclosed: Iterable[Disclosed],
    planted: Iterable[tuple[str, str, str]],
) -> list[Disclosed]:
    """The planted records that alone tell of a person who was given, as told without a record.

    Whom other records mention too (the owner, to whom planted mail is addressed) gives none away.

    Work: a look for each planted record that tells of persons, and for each person given.
    Source: docs/contract/resource-server.md 22.4.
    """
    found = dict[tuple[str, str, str], Disclosed]()
    places = sorted(planted)
    for part in disclosed:
        telling = {(s.connection_id, s.stream): s for s in part.source.made_of or ()}
        identities_of = {
            row_key: (source, _identities_told(snapshot, source, row_key[2]))
            for row_key in places
            if (source := telling.get(row_key[:2])) is not None
        }
        mentioned = Counter[Identity]()
        for _, identities in identities_of.values():
            mentioned.update(identities)
        if not mentioned:
            continue
        given = {
            identity
            for row in snapshot.records([hit_plan(part.source, part.keys)]).values()
            if cast("int", row.data["mention_count"])
            <= sum(mentioned[each] for each in _identities_of(row))
            for identity in _identities_of(row)
        }
        for row_key, (source, identities) in identities_of.items():
            if not given.isdisjoint(identities):
                found[row_key] = Disclosed(source, _telling_fields(source), 0, row_key[2:])
    return list(found.values())


def _telling_fields(source: ReadableSource) -> tuple[str, ...]:
    told_by = {each.field for each in source.declared.person_fields}
    return tuple(name for name in source.fields if name in told_by)


def _identities_told(snapshot: ReadSnapshot, source: ReadableSource, key: str) -> list[Identity]:
    """What a visible record says of persons, once for each granted field."""
    return [
        identity
        for row in snapshot.records([hit_plan(source, [key])]).values()
        for each in source.declared.person_fields
        if each.field in source.fields
        for identity in {identity for identity, _ in each.read(row.data)}
    ]


def _identities_of(row: StoredRecord) -> Iterator[Identity]:
    """Those of a person."""
    kinds = (
        (IdentityKind.ADDRESS, "addresses"),
        (IdentityKind.NUMBER, "numbers"),
        (IdentityKind.HANDLE, "handles"),
    )
    for kind, name in kinds:
        for value in cast("list[object]", row.data[name]):
            yield Identity(kind, str(value))
