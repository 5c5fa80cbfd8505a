"""`python -m bench.workers`: one process, and several, asked the same by `wrk`, in turn.

Each round starts the server with each number of workers on the same archive, lets few and many
callers ask, and stops it, so that what else the machine does falls on all; the table has medians.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from rich.console import Console
from rich.table import Table

from bench.clients import RestCaller
from bench.filling import fill
from bench.load import Load, load, lua_of, wrk_path
from bench.operations import Read, reads_of
from bench.site import Running, Site

READS = ("page of 25, two fields",)
Asked = tuple[str, int, int]
"""What was asked, by how many callers, of how many workers."""


def main() -> int:
    """Print the table."""
    options = _options()
    console = Console(highlight=False, width=140)
    found: dict[Asked, list[Load]] = {}
    memory: dict[int, list[int]] = {}
    with tempfile.TemporaryDirectory(prefix="pdpp-workers-") as folder:
        console.print(f"filling an archive of {options.records:,} records …")
        filled = fill(Path(folder) / "data", options.records, Console(stderr=True, quiet=True))
        site = Site(Path(folder))
        chosen = [part for mailbox in filled.mail for part in ("--connection", mailbox)]
        token, _ = site.grant("mail", "--source", "bench_mail", *chosen)
        for number in range(options.rounds):
            for workers in options.workers:
                site.workers = workers
                with site.serving() as running:
                    _ask(site, running, (token, filled.mail[0]), options, workers, found)
                    memory[workers] = [each // 2**20 for each in running.resident_each]
            console.print(f"round {number + 1} of {options.rounds}")
    _show(found, console)
    for workers, each in memory.items():
        console.print(f"{workers} workers, MiB of each process at the end: {each}")
    return 0


def _ask(
    site: Site,
    running: Running,
    archive: tuple[str, str],
    options: argparse.Namespace,
    workers: int,
    found: dict[Asked, list[Load]],
) -> None:
    token, mailbox = archive
    reads = [
        read
        for read in reads_of(mailbox, RestCaller(site.origin, token))
        if read.name in (options.only or READS)
    ]
    for read in reads:
        for is_hosted in (False, True):
            for callers in options.callers:
                name = f"{read.name}, hosted" if is_hosted else read.name
                target, script = _request(site, token, read, is_hosted=is_hosted)
                loaded = load(running, site.origin + target, script, callers, options.seconds)
                found.setdefault((name, callers, workers), []).append(loaded)


def _request(site: Site, token: str, read: Read, *, is_hosted: bool) -> tuple[str, Path]:
    if not is_hosted:
        return f"{read.path}?{urlencode(read.query)}", lua_of(site.folder, token, None)
    params = {"name": read.tool, "arguments": dict(read.arguments)}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return "/mcp", lua_of(site.folder, token, message)


def _show(found: Mapping[Asked, Sequence[Load]], console: Console) -> None:
    table = Table(title="by wrk; processor time of all processes of the server for each request")
    columns = ("read", "callers", "workers", "answers/s", "refused/s", "processor ms", "p99")
    for column in columns:
        table.add_column(column, justify="left" if column == "read" else "right")
    for (name, callers, workers), loads in sorted(found.items()):
        table.add_row(
            name,
            str(callers),
            str(workers),
            f"{median(each.answers_a_second for each in loads):,.0f}",
            f"{median(each.refused / each.seconds for each in loads):,.0f}",
            f"{median(each.processor_ms for each in loads):.2f}",
            loads[len(loads) // 2].p99,
        )
    console.print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.workers", description=__doc__)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--callers", type=int, nargs="*", default=[16, 256])
    parser.add_argument("--seconds", type=int, default=5, help="how long each run of wrk takes")
    parser.add_argument("--only", nargs="*", help="names of reads")
    options = parser.parse_args()
    if wrk_path() is None:
        sys.exit("wrk is not installed; it is a package of Debian")
    return options


if __name__ == "__main__":
    sys.exit(main())
