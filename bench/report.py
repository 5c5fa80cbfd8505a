"""What was measured, as a table for people, a page for the repository, and a plot."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from rich.console import Console
from rich.table import Table

from bench.timing import Timing

DOORS = ("REST", "REST x16", "hosted MCP", "hosted MCP x16", "stdio")


@dataclass(frozen=True, slots=True)
class Figure:
    """One number with its bound; `held` is `None` without a bound."""

    name: str
    value: str
    bound: str = ""
    held: bool | None = None


@dataclass(frozen=True, slots=True)
class ReadRow:
    """One read: its timing per door (missing: not measured there) and its bound for REST."""

    name: str
    timings: dict[str, Timing]
    bound_ms: float | None
    fits: bool = True

    @property
    def held(self) -> bool | None:
        """Whether the median through REST with one caller is within the bound."""
        return None if self.bound_ms is None else self.timings["REST"].p50 < self.bound_ms


@dataclass(frozen=True, slots=True)
class Report:
    """All of one run; `store` names the database, where it is not the file."""

    records: int
    figures: Sequence[Figure]
    rows: Sequence[ReadRow]
    store: str | None = None

    @property
    def broken(self) -> list[str]:
        """The names of bounds that did not hold."""
        rows = [row.name for row in self.rows if row.held is False]
        return [*(figure.name for figure in self.figures if figure.held is False), *rows]

    @property
    def heading(self) -> str:
        """How the section of this size begins."""
        beside = "" if self.store is None else f" in {self.store}"
        return f"## {self.records:,} records{beside}"

    def show(self, console: Console) -> None:
        """Print the tables."""
        table = Table(title=f"{self.records:,} records", show_edge=False)
        for title in ("figure", "value", "bound", ""):
            table.add_column(title)
        for figure in self.figures:
            table.add_row(figure.name, figure.value, figure.bound, _mark(figure.held))
        console.print(table)
        reads = Table(title="p50 / p95 in ms", show_edge=False)
        for title in ("read", *DOORS, "bound", ""):
            reads.add_column(title, justify="right" if title in DOORS else "left")
        for row in self.rows:
            cells = [_cell(row.timings.get(door)) for door in DOORS]
            reads.add_row(row.name, *cells, _bound(row), _mark(row.held))
        console.print(reads)

    def markdown(self) -> str:
        """The same as a section of docs/performance.md."""
        today = datetime.now(UTC).date().isoformat()
        lines = [f"{self.heading}, {today}", "", "| figure | value | bound | held |"]
        lines.append("|---|---|---|---|")
        lines += [f"| {f.name} | {f.value} | {f.bound} | {_mark(f.held)} |" for f in self.figures]
        lines += ["", f"| read, p50 / p95 in ms | {' | '.join(DOORS)} | bound | held |"]
        lines.append("|---" * (len(DOORS) + 3) + "|")
        for row in self.rows:
            cells = " | ".join(_cell(row.timings.get(door)) for door in DOORS)
            lines.append(f"| {row.name} | {cells} | {_bound(row)} | {_mark(row.held)} |")
        return "\n".join(lines) + "\n"


SIZE_BOUND = 1.5
SIZE_READS = (
    "page of 100",
    "page of 100, deep",
    "record",
    "field window",
    "filter on a declared field",
    "search, rare term",
)
AGGREGATE_BOUND_MS = 300
AGGREGATE_READS = ("month buckets", "group by sender")


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether reads cost the same at two sizes (REST, one caller, medians)."""

    small: Report
    large: Report
    heading: ClassVar[str] = "## Sizes compared"

    @property
    def figures(self) -> list[Figure]:
        """Ratios of reads, and aggregates at the larger size."""
        small = {row.name: row.timings["REST"].p50 for row in self.small.rows}
        large = {row.name: row.timings["REST"].p50 for row in self.large.rows}
        ratios = {name: large[name] / small[name] for name in SIZE_READS}
        return [
            *(
                Figure(name, f"{ratio:.2f}", f"{SIZE_BOUND:g}", ratio < SIZE_BOUND)
                for name, ratio in ratios.items()
            ),
            *(
                Figure(
                    f"{name}, at the larger size",
                    f"{large[name]:.0f} ms",
                    f"{AGGREGATE_BOUND_MS} ms",
                    large[name] < AGGREGATE_BOUND_MS,
                )
                for name in AGGREGATE_READS
            ),
        ]

    @property
    def broken(self) -> list[str]:
        """The names of bounds that did not hold."""
        return [figure.name for figure in self.figures if figure.held is False]

    def show(self, console: Console) -> None:
        """Print the table."""
        table = Table(title=self._title, show_edge=False)
        for title in ("read", "ratio", "bound", ""):
            table.add_column(title)
        for figure in self.figures:
            table.add_row(figure.name, figure.value, figure.bound, _mark(figure.held))
        console.print(table)

    def markdown(self) -> str:
        """The same as a section of docs/performance.md."""
        today = datetime.now(UTC).date().isoformat()
        lines = [f"{self.heading}, {today}", "", self._title, "", "| read | value | bound | held |"]
        lines.append("|---|---|---|---|")
        lines += [f"| {f.name} | {f.value} | {f.bound} | {_mark(f.held)} |" for f in self.figures]
        return "\n".join(lines) + "\n"

    @property
    def _title(self) -> str:
        return f"{self.large.records:,} records / {self.small.records:,} records, medians"


def with_section(page: str, heading: str, section: str) -> str:
    """A page with a section in place of the one of that heading, with a date or without.

    In: `## Sizes`, a section that begins so, and a page that has none. Out: the page with the
    section before its last one, which says what misses its bound.
    """
    head, *bodies = page.split("\n## ")
    sections = [f"## {body}".rstrip() for body in bodies]
    titles = [kept.partition("\n")[0] for kept in sections]
    alike = [n for n, title in enumerate(titles) if re.sub(r", \S+$", "", title) == heading]
    place = alike[0] if alike else len(sections) - 1
    sections[place : place + len(alike[:1])] = [section.rstrip()]
    return "\n\n".join([head.rstrip(), *sections]) + "\n"


def _cell(timing: Timing | None) -> str:
    return "" if timing is None else f"{timing.p50:.1f} / {timing.p95:.1f}"


def _bound(row: ReadRow) -> str:
    return "" if row.bound_ms is None else f"{row.bound_ms:g}"


def _mark(held: bool | None) -> str:
    return {None: "", True: "yes", False: "NO"}[held]
