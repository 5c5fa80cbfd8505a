"""`make bench`: fill an archive, measure every door, say which bounds hold.

Usage: python -m bench [RECORDS …] [--store postgresql] [--write]
`--write` keeps page and plot in docs/; `--store` names another database than the file.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console

from bench.clients import HostedCaller, RestCaller, StdioCaller
from bench.filling import Filled, fill
from bench.operations import Read, fan_in, reads_of
from bench.plot import plot
from bench.report import Comparison, Figure, ReadRow, Report, with_section
from bench.site import STORES, Running, Site, database
from bench.timing import Timing, time_calls

CALLERS = 16
MEBIBYTE = 1024 * 1024
ADAPTER_BOUND_MS = 4.0
BOUNDED_RECORDS = 100_000
DOCS = Path(__file__).resolve().parent.parent / "docs"
REPEATS = 60


def main() -> int:
    """Measure each size; 1 when a bound did not hold."""
    options = _options()
    console = Console(highlight=False)
    reports = [_measured(n, options.store, console) for n in sorted(options.records)]
    broken = [name for report in reports for name in report.broken]
    for report in reports:
        report.show(console)
        if options.write:
            write(report)
    if len(reports) > 1:
        compared = Comparison(reports[0], reports[-1])
        compared.show(console)
        broken += compared.broken
        if options.write:
            replace_section(compared.heading, compared.markdown())
    for name in broken:
        console.print(f"[bold red]bound not held:[/] {name}")
    return 1 if broken else 0


def _measured(records: int, store: str | None, console: Console) -> Report:
    with tempfile.TemporaryDirectory(prefix="pdpp-bench-") as folder, database(store) as url:
        site = Site(Path(folder), database_url=url)
        console.print(f"filling an archive of {records:,} records …")
        filled = fill(site.data_dir, records, Console(stderr=True), url)
        return measure(site, filled, console)


def measure(site: Site, filled: Filled, console: Console) -> Report:
    """Every read through every door."""
    token, cache = site.grant("mail", "--source", "bench_mail", *_each("--connection", filled.mail))
    chat_token, _ = site.grant(
        "chat", "--source", "bench_chat", *_each("--connection", filled.chats)
    )
    with site.serving() as server, ExitStack() as stack:
        rest = [RestCaller(site.origin, token) for _ in range(CALLERS)]
        hosted = [HostedCaller(site.origin, token) for _ in range(CALLERS)]
        stdio = stack.enter_context(
            StdioCaller(site.command("pdpp-mcp-server", "--cache-root", str(cache)))
        )
        rows: list[ReadRow] = []
        for read in reads_of(filled.mail[0], rest[0]):
            console.print(f"  {read.name} …")
            timings = _timings(read, rest, hosted, stdio)
            rows.append(ReadRow(read.name, timings, read.bound_ms, read.fits))
        figures = _figures(site, filled, server, rows)
        chats = RestCaller(site.origin, chat_token)
        one, every = (time_calls([r.over_rest(chats)], REPEATS) for r in fan_in(filled.chats[0]))
        figures.append(_ratio("page over four connections / one", every.p50 / one.p50, 2))
    return Report(filled.records, figures, rows, site.store)


def _timings(
    read: Read, rest: list[RestCaller], hosted: list[HostedCaller], stdio: StdioCaller
) -> dict[str, Timing]:
    for caller in (*rest, *hosted):
        caller.close()  # reconnects with its next call; servers end idle connections
    timings = {
        "REST": time_calls([read.over_rest(rest[0])], REPEATS),
        "REST x16": time_calls([read.over_rest(caller) for caller in rest], REPEATS // 4),
    }
    if read.tool is not None:
        timings["hosted MCP"] = time_calls([read.over_tool(hosted[0])], REPEATS)
        timings["hosted MCP x16"] = time_calls(
            [read.over_tool(caller) for caller in hosted], REPEATS // 6
        )
        timings["stdio"] = time_calls([read.over_tool(stdio)], REPEATS)
    return timings


def _figures(site: Site, filled: Filled, server: Running, rows: list[ReadRow]) -> list[Figure]:
    added = [
        row.timings["hosted MCP"].p50 - row.timings["REST"].p50
        for row in rows
        if "hosted MCP" in row.timings and row.fits
    ]
    memory = server.peak_bytes / MEBIBYTE
    rate = filled.records / filled.seconds
    spent = f"{filled.records / filled.processor_seconds:,.0f} records/s"
    bounded = filled.records <= BOUNDED_RECORDS
    return [
        Figure("ingest, search index on", f"{rate:,.0f} records/s", "5,000", rate >= 5_000),
        Figure("ingest, by processor time of its process", spent),
        Figure("ready to serve", f"{server.ready_seconds:.2f} s", "2 s", server.ready_seconds < 2),
        Figure(
            "memory at its peak",
            f"{memory:.0f} MiB",
            "250 MiB" if bounded else "",
            memory < 250 if bounded else None,
        ),
        Figure("on disk", f"{site.size_bytes / MEBIBYTE:,.0f} MiB"),
        Figure(
            "hosted MCP adds at most (p50, answers that fit)",
            f"{max(added):.1f} ms",
            f"{ADAPTER_BOUND_MS:g} ms" if bounded else "",
            max(added) <= ADAPTER_BOUND_MS if bounded else None,
        ),
    ]


def _ratio(name: str, value: float, bound: float) -> Figure:
    return Figure(name, f"{value:.2f}", f"{bound:g}", value < bound)


def _each(flag: str, values: tuple[str, ...]) -> list[str]:
    return [part for value in values for part in (flag, value)]


def write(report: Report) -> None:
    """Keep the section of this size and its plot."""
    beside = f"-{report.store}" if report.store else ""
    image = f"performance-{report.records}{beside}.svg"
    plot(report, DOCS / image)
    section = f"{report.markdown()}\n![medians per read and door]({image})\n"
    replace_section(report.heading, section)


def replace_section(heading: str, section: str) -> None:
    """Put a section into docs/performance.md, as `with_section` says."""
    page = DOCS / "performance.md"
    page.write_text(with_section(page.read_text(encoding="utf-8"), heading, section), "utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("records", nargs="*", type=int, default=[100_000])
    parser.add_argument("--store", choices=STORES)
    parser.add_argument("--write", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
