"""Planting: a record that the owner makes up goes into a stream like any other.

Rule: it comes in by the road of every record, so nothing in the store of records tells it; where it
stands is noted before it is there, so that no disclosure of it is missed.
Source: docs/contract/resource-server.md 14.6.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import islice

import msgspec
from msgspec.structs import replace

from pdpp_kernel.declaration import Semantics, Stream
from pdpp_kernel.errors import InvalidState, NotFound
from pdpp_kernel.record import canonical_key
from pdpp_kernel.values import instant_text
from personal_server.collecting.canary_shapes import disguised
from personal_server.collecting.ingest import ingest
from personal_server.domain.connection import ConnectionStatus
from personal_server.storage.catalog import Catalog
from personal_server.storage.ports.whole_store import RecordStore

LOOKED_AT = 2_000
SAMPLES, TRIES = 300, 8


class PlantedPlace(msgspec.Struct, frozen=True):
    """Where a canary stands."""

    connection_id: str
    stream: str
    key: str


def plant(
    store: RecordStore,
    catalog: Catalog,
    stream: str,
    connection_id: str | None,
    note: Callable[[PlantedPlace], None],
    forget: Callable[[PlantedPlace], None],
    random_bytes: Callable[[int], bytes],
    now_ns: int,
) -> PlantedPlace:
    """Make up a record of a stream and store it.

    Raises: NotFound without records to model it on, InvalidState where the stream takes none.
    """
    chance = random.Random(random_bytes(16))  # noqa: S311 (its seed is drawn well)
    connection_id, declared, samples = _samples(store, catalog, stream, connection_id, chance)
    # A made-up key may be that of a record; such a record is never written over.
    declared = replace(declared, semantics=Semantics.APPEND_ONLY)
    for donor in chance.sample(samples, min(TRIES, len(samples))):
        data = disguised(donor, samples, declared, chance)
        key = canonical_key([data.get(name) for name in declared.primary_key])
        planted = PlantedPlace(connection_id, stream, key)
        note(planted)
        line = {"data": data, "emitted_at": instant_text(now_ns)}
        result = ingest(
            store,
            connection_id,
            declared,
            [line],
            now_ns=now_ns,
            new_receipt_id=lambda: f"rr_{random_bytes(9).hex()}",
        )
        if result.records_changed:
            return planted
        forget(planted)
    raise InvalidState(
        "The server could not make a convincing bait record for this kind of "
        "records. Choose another kind."
    )


def _samples(
    store: RecordStore,
    catalog: Catalog,
    stream: str,
    connection_id: str | None,
    chance: random.Random,
) -> tuple[str, Stream, list[Mapping[str, object]]]:
    """The connection with records of that stream, its declaration and some of the records."""
    for connection in catalog.connections:
        if connection_id not in (None, connection.connection_id):
            continue
        declaration = catalog.declarations.get(connection.source_id)
        declared = declaration.streams.get(stream) if declaration else None
        if declared is None or connection.status is ConnectionStatus.REVOKED:
            continue
        with store.snapshot(None) as snapshot:
            rows = [
                row.data
                for row in islice(snapshot.export(connection.connection_id, stream), LOOKED_AT)
            ]
        if rows:
            samples = chance.sample(rows, min(SAMPLES, len(rows)))
            return connection.connection_id, declared, samples
    raise NotFound(
        "No account has records of that kind that a bait record could imitate.", param="stream"
    )
