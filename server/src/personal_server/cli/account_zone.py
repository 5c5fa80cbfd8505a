"""The time zone that an account goes on in: the one that was named for an import of it before."""

from __future__ import annotations

from msgspec.structs import replace

from pdpp_mcp_server.commands.tables import console
from pdpp_sources.reader_process import ProcessReading
from personal_server.cli.owner_zone import zone_meant
from personal_server.collecting.receipts import receipts_of
from personal_server.domain.connection import Connection
from personal_server.storage.ports.whole_store import RecordStore

EXAMPLE_ZONE = "Europe/Berlin"


def in_zone_of_account(
    store: RecordStore, connection: Connection, reading: ProcessReading, named: str | None
) -> tuple[ProcessReading, str | None]:
    """A reading in the zone that was named for its account, and that zone, if there is one.

    In: `named`, the zone that was named for this import; without it that of the newest receipt
    which has one counts.
    Raises: ExportError.
    """
    if named is not None:
        return reading, named
    receipts = receipts_of(store, connection.connection_id)
    zones = [str(each["time_zone"]) for each in receipts if "time_zone" in each]
    zone = zone_meant(zones[-1]) if zones else None
    if zone in (None, reading.wanted.zone):
        return reading, zone
    return replace(reading, wanted=replace(reading.wanted, zone=zone)).looked_again(), zone


def print_zone(zone: str, asked: str) -> None:
    """Say in which zone times were read, and how to read them in another.

    In: `asked`, the zone of the import, where its account has none of its own.
    """
    before = "" if zone == asked else ", as before in this account"
    change = "" if zone == EXAMPLE_ZONE else f" (change: --zone {EXAMPLE_ZONE})"
    console().print(f"  Times without a time zone were read as {zone}{before}{change}")
