"""`pdpp receipts`: which files were imported, when, into which account, and what they brought."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.tables import console, table
from personal_server.cli.store import ImportOpener, open_imports
from personal_server.collecting.receipts import receipts_of
from personal_server.storage.ports.whole_store import RecordStore

MINUTE_CHARS = len("2026-11-21T14:05")
COLUMNS = ("imported", "into", "file", "from", "to", "new", "updated")


def receipts_command(open_ports: ImportOpener) -> Callable[..., None]:
    """The command `pdpp receipts`."""

    def receipts(*, json: Annotated[bool, Parameter(negative="")] = False) -> None:
        """List past imports: file, time, account, first and last day, number of new records.

        Parameters
        ----------
        json
            Print JSON.
        """
        with open_ports() as ports:
            found = _all_receipts(ports.store)
        if json:
            print_json({"receipts": found})
        else:
            _print_receipts(found, console())

    return receipts


def _all_receipts(store: RecordStore) -> list[Data]:
    """The receipts of all connections, oldest first, each with its connection."""
    with store.snapshot() as snapshot:
        connections = snapshot.connections()
    found: list[Data] = []
    for each in connections:
        named = {"connection_id": each.connection_id, "name": each.display_name}
        receipts = receipts_of(store, each.connection_id)
        found += [{"connection": named, **receipt} for receipt in receipts]
    return sorted(found, key=lambda receipt: str(receipt["imported_at"]))


def _print_receipts(receipts: list[Data], out: Console) -> None:
    if not receipts:
        out.print("No imports yet. Run `pdpp import PATH`, see `pdpp sources`.")
        return
    out.print(table(COLUMNS, [_row(receipt) for receipt in receipts]))
    out.print("--json also shows size, SHA-256, the counts of each stream, and what was skipped.")


def _row(receipt: Data) -> tuple[object, ...]:
    streams: list[Data] = list(receipt["streams"].values())
    named: Data = receipt["connection"]
    return (
        str(receipt["imported_at"])[:MINUTE_CHARS].replace("T", " "),
        named["name"] or named["connection_id"],
        receipt["name"],
        receipt["earliest"] or "–",
        receipt["latest"] or "–",
        sum(each["new"] for each in streams),
        sum(each["updated"] for each in streams),
    )


receipts = receipts_command(open_imports)
