"""`pdpp canary`: records that the owner plants, and whom they were given to.

Source: docs/contract/resource-server.md 14.6.
"""

from __future__ import annotations

from typing import Annotated

import cyclopts
from cyclopts import Parameter

from pdpp_kernel.values import instant_text
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, minute, table, words
from personal_server.app.owner_store import OwnerStore
from personal_server.cli.kept_data import open_store
from personal_server.cli.store import StoreOpener, local_acting
from personal_server.collecting.canaries import PlantedPlace, plant
from personal_server.granting.canaries import forget_canary, note_canary
from personal_server.storage.authorization_rows import CanaryRow

Flag = Annotated[bool, Parameter(negative="")]
COLUMNS = ("stream", "key", "connection", "added", "last read by", "when")


def canary_app(open_store: StoreOpener) -> cyclopts.App:
    """The command group `pdpp canary`."""
    app = cyclopts.App(
        name="canary",
        help="Manage bait records: fake records that alert you when an app reads one.",
    )

    @app.command
    def add(stream: str, /, *, connection: str | None = None, json: Flag = False) -> None:
        """Add a bait record (a fake record that alerts you when an app reads it) to a stream.

        A bait record looks like a real record and counts as one. Exports do not contain bait
        records.

        Parameters
        ----------
        stream
            The stream that gets the bait record.
        connection
            The account's connection id, if several accounts have that stream.
        json
            Print JSON.
        """
        with open_store() as store:
            planted = _planted(store, stream, connection)
        if json:
            print_json(
                {"connection_id": planted.connection_id, "stream": stream, "key": planted.key}
            )
        else:
            words().print(
                f"Added a bait record to {stream} of {planted.connection_id}, with the key"
            )
            console().print(planted.key, soft_wrap=True, markup=False)

    @app.command(name="list")
    def list_(*, json: Flag = False) -> None:
        """List the bait records, and which app read each of them last.

        Parameters
        ----------
        json
            Print JSON.
        """
        with open_store() as store, store.authorization.read() as reader:
            rows = reader.rows(CanaryRow)
        if json:
            print_json([_json(row) for row in rows])
        elif rows:
            console().print(table(COLUMNS, [_line(row) for row in rows]))
        else:
            console().print("No bait records. Add one with `pdpp canary add STREAM`.")

    @app.command
    def remove(key: str, /) -> None:
        """Remove a bait record.

        Parameters
        ----------
        key
            The key of the bait record, as `pdpp canary list` shows it.
        """
        with open_store() as store:
            with store.authorization.write() as writer:
                rows = writer.rows(CanaryRow, CanaryRow.key.equals(key))
                for row in rows:
                    row_key = (row.connection_id, row.stream, row.key)
                    forget_canary(writer, *row_key, local_acting(), store.clock())
            if not rows:
                raise CommandError("not_found", "No bait record has this key.")
            for row in rows:
                store.reads.store.delete_record(
                    row.connection_id, row.stream, row.key, store.clock()
                )
        words().print("The bait record was removed.")

    return app


def _planted(store: OwnerStore, stream: str, connection: str | None) -> PlantedPlace:
    def note(place: PlantedPlace) -> None:
        with store.authorization.write() as writer:
            row_key = (place.connection_id, place.stream, place.key)
            note_canary(writer, *row_key, local_acting(), store.clock())

    def forget(place: PlantedPlace) -> None:
        with store.authorization.write() as writer:
            row_key = (place.connection_id, place.stream, place.key)
            forget_canary(writer, *row_key, local_acting(), store.clock())

    records, catalog = store.reads.store, store.catalogs()
    chance, now_ns = store.random_bytes, store.clock()
    return plant(records, catalog, stream, connection, note, forget, chance, now_ns)


def _line(row: CanaryRow) -> tuple[object, ...]:
    disclosed = "–" if row.disclosed_at_ns is None else minute(row.disclosed_at_ns)
    planted = minute(row.planted_at_ns)
    return (
        row.stream,
        row.key,
        row.connection_id,
        planted,
        row.disclosed_to or "no app",
        disclosed,
    )


def _json(row: CanaryRow) -> dict[str, object]:
    disclosed_at_ns = row.disclosed_at_ns
    return {
        "connection_id": row.connection_id,
        "stream": row.stream,
        "key": row.key,
        "planted_at": instant_text(row.planted_at_ns),
        "disclosed_at": None if disclosed_at_ns is None else instant_text(disclosed_at_ns),
        "disclosed_to": row.disclosed_to,
    }


canary = canary_app(open_store)
