"""The stream of persons: declared by the server itself, on a connection that takes no records.

Source: docs/contract/resource-server.md 22.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from pdpp_kernel.operators import RANGE_OPERATORS
from pdpp_kernel.persons import CONNECTOR_KEY, STREAM
from personal_server.collecting.connections import create_connection
from personal_server.collecting.declarations import declare
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.storage.ports.snapshots import Snapshots
from personal_server.storage.ports.whole_store import RecordStore

_TEXT = {"type": ["string", "null"]}
_TEXTS = {"type": "array", "items": {"type": "string"}}
_ABILITIES = {
    "range_filters": {"mention_count": list(RANGE_OPERATORS)},
    "search": {"lexical_fields": ["name", "reachable_at"]},
    "aggregations": {
        "count": True,
        "sum": ["mention_count"],
        "min": ["mention_count"],
        "max": ["mention_count"],
    },
}
DECLARATION: Mapping[str, object] = {
    "protocol_version": "0.1.0",
    "source": {"kind": "connector", "id": f"https://registry.pdpp.dev/connectors/{CONNECTOR_KEY}"},
    "connector_key": CONNECTOR_KEY,
    "declaration_version": "2",
    "publisher": {"id": "https://registry.pdpp.dev"},
    "display": {
        "name": "Persons",
        "detail": "Who is who in your other sources, worked out by this server.",
    },
    "selection_presets": [],
    "streams": [
        {
            "name": STREAM,
            "semantics": "mutable_state",
            "display": {
                "label": "The people in what you share",
                "detail": (
                    "Whose addresses, numbers and names are one person's, worked out from the other"
                    " data in the same access and from nothing else."
                ),
            },
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": False},
            "schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "name": _TEXT
                    | {
                        "description": "Name, as their card or most records say",
                        "x_pdpp_role": "primary-title",
                        "x_pdpp_type": "text",
                        "x_pdpp_caseless": True,
                    },
                    "other_names": _TEXTS | {"description": "Up to 10 other names"},
                    "address": _TEXT
                    | {"description": "First e-mail address", "x_pdpp_caseless": True},
                    "addresses": _TEXTS | {"description": "E-mail addresses, lower case"},
                    "number": _TEXT | {"description": "First telephone number"},
                    "numbers": _TEXTS
                    | {"description": "Telephone numbers: + and digits, or digits as written"},
                    "handles": _TEXTS
                    | {"description": "Names and ids in networks, as network:name"},
                    "reachable_at": _TEXT
                    | {
                        "description": "All addresses, numbers and handles, to search in",
                        "x_pdpp_type": "text",
                    },
                    "mention_count": {
                        "type": "integer",
                        "description": "How often records mention them",
                    },
                    "links": {
                        "type": "array",
                        "description": (
                            "Up to 20 records: those about the person, then for each field that"
                            " mentions them one"
                        ),
                    },
                },
                "required": ["id"],
                "additionalProperties": False,
            },
            "query": _ABILITIES,
        }
    ],
}


def persons_connection(store: Snapshots) -> Connection | None:
    """The connection of persons, if they are on."""
    with store.snapshot() as snapshot:
        candidates = (c for c in snapshot.connections() if c.connector_key == CONNECTOR_KEY)
        return next(candidates, None)


def turn_on(
    store: RecordStore, now_ns: int, random_bytes: Callable[[int], bytes]
) -> tuple[Connection, bool]:
    """The connection of persons, and whether it had to be made."""
    declare(store, DECLARATION, now_ns)
    existing = persons_connection(store)
    if existing is not None and existing.status is not ConnectionStatus.DRAFT:
        return existing, False
    declared = store.declaration(CONNECTOR_KEY, None)
    connection = existing or create_connection(store, declared, "Who is who", now_ns, random_bytes)
    # no record will ever come to turn it active, nor one that an export brought back
    active = store.update_connection(
        connection.connection_id, lambda c: replace(c, status=ConnectionStatus.ACTIVE)
    )
    return active, True
