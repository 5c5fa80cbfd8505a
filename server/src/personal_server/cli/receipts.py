"""`pdpp receipts`: which files were imported, when, into which account, and what they brought."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.tables import console, plain, table, words
from personal_server.cli.kept_data import open_kept_stores
from personal_server.cli.store import ImportOpener
from personal_server.collecting.imports import ImportPorts
from personal_server.collecting.receipts import has_unfinished, receipts_of
from personal_server.storage.ports.whole_store import RecordStore

MINUTE_CHARS = len("2026-11-21T14:05")
UNFINISHED = (
    "An import into {} has not ended. What it read so far is stored. If no import is running now, "
    "repeat the same import: it goes on from there."
)
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
            all_receipts = _all_receipts(ports.store)
            unfinished = _unfinished(ports.store)
        if json:
            print_json({"receipts": all_receipts, "unfinished": unfinished})
            return
        if all_receipts or not unfinished:
            _print_receipts(all_receipts, console())
        for account in unfinished:
            words().print(plain(UNFINISHED.format(account["name"] or account["connection_id"])))

    return receipts


def _all_receipts(store: RecordStore) -> list[Data]:
    """The receipts of all connections, oldest first, each with its connection."""
    with store.snapshot() as snapshot:
        connections = snapshot.connections()
    all_receipts: list[Data] = []
    for connection in connections:
        account = {"connection_id": connection.connection_id, "name": connection.display_name}
        receipts = receipts_of(store, connection.connection_id)
        all_receipts += [{"connection": account, **receipt} for receipt in receipts]
    return sorted(all_receipts, key=lambda receipt: str(receipt["imported_at"]))


def _unfinished(store: RecordStore) -> list[Data]:
    """The accounts into which an import began that has no receipt yet."""
    with store.snapshot() as snapshot:
        connections = snapshot.connections()
    return [
        {"connection_id": each.connection_id, "name": each.display_name}
        for each in connections
        if has_unfinished(store, each.connection_id)
    ]


def _print_receipts(receipts: list[Data], out: Console) -> None:
    if not receipts:
        out.print("No imports yet. Run `pdpp import PATH`, see `pdpp sources`.")
        return
    out.print(table(COLUMNS, [_row(receipt) for receipt in receipts]))
    out.print("--json also shows size, SHA-256, the counts of each stream, and what was skipped.")


def _row(receipt: Data) -> tuple[object, ...]:
    streams: list[Data] = list(receipt["streams"].values())
    account: Data = receipt["connection"]
    return (
        str(receipt["imported_at"])[:MINUTE_CHARS].replace("T", " "),
        account["name"] or account["connection_id"],
        receipt["name"],
        receipt.get("earliest") or "–",
        receipt.get("latest") or "–",
        sum(stream["new"] for stream in streams),
        sum(stream["updated"] for stream in streams),
    )


@contextmanager
def _open_kept() -> Generator[ImportPorts, None, None]:
    with open_kept_stores() as stores:
        yield ImportPorts(stores.records, stores.clock, stores.random_bytes)


receipts = receipts_command(_open_kept)
