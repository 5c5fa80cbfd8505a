"""`python -m bench.verifying`: how long `pdpp verify` takes on the log of a year, 3,000,000 lines.

The last thirtieth of the lines has what was asked beside it, as a server keeps it for a month.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.domain.disclosure import SERVED, AskedDetail, DisclosureEntry
from personal_server.storage.sql.care.stored_logs import SqlLogs
from personal_server.storage.sql.logs.disclosures import SqlDisclosures
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.upkeep.logs import seal_logs, verify_log

OWNER, DAYS, BATCH = "own_bench", 365, 5_000
KEYS = tuple(f"<{number:08}@mail.example>" for number in range(20))
LINE = DisclosureEntry(
    disclosure_id="",
    subject_id=OWNER,
    at_ns=0,
    request_id="",
    outcome=SERVED,
    token_kind="client",  # noqa: S106
    channel="mcp",
    route="GET /v1/streams/{stream}/records",
    client_id="cli_bench",
    grant_id="grt_bench",
    tool="query_records",
    connector_key="mail",
    connection_id="cin_bench",
    stream="messages",
    fields=("id", "subject", "from", "sent_at", "body"),
    record_count=20,
    size_bytes=9_000,
)


def lines(count: int) -> Iterator[DisclosureEntry]:
    """A year of reads, spread evenly."""
    for number in range(count):
        line = replace(
            LINE,
            disclosure_id=f"dis_{number:024x}",
            request_id=f"req_{number:024x}",
            at_ns=number * DAYS * DAY_NANOSECONDS // count,
        )
        if number >= count - count // 12:
            salt = number.to_bytes(32, "big")
            asked = f"/v1/streams/messages/records?limit=20&cursor={number:0200x}"
            line = replace(line, detail=AskedDetail(salt, asked, KEYS))
        yield line


def main() -> None:
    """Fill, verify, and print how long both took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=3_000_000)
    count = parser.parse_args().lines
    with tempfile.TemporaryDirectory() as folder:
        database = SqliteDatabase(Path(folder) / "log.sqlite3")
        log, logs, key = (
            SqlDisclosures(database, OWNER),
            SqlLogs(database, OWNER),
            Ed25519PrivateKey.generate(),
        )
        begun, batch = perf_counter(), list[DisclosureEntry]()
        for line in lines(count):
            batch.append(line)
            if len(batch) == BATCH:
                log.append_disclosures(batch)
                seal_logs(logs, key, line.at_ns)
                batch.clear()
        log.append_disclosures(batch)
        filled, worked = perf_counter(), process_time()
        report = verify_log(logs, "disclosures", key.public_key())
        took, worked = perf_counter() - filled, process_time() - worked
        database.close()
    print(f"{report.lines:,} lines written in {filled - begun:.0f} s")
    print(f"verified in {took:.1f} s ({worked:.1f} s of one core), {len(report.faults)} faults")


if __name__ == "__main__":
    main()
