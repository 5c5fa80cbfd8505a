"""Measurements as pictures."""

# pyright: reportUnknownMemberType=false
# (matplotlib's own annotations are partial)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib import colormaps
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from bench.report import Report

SHOWN = ("REST", "hosted MCP", "stdio")


def plot(report: Report, path: Path) -> None:
    """Write medians per read and door, on a logarithmic scale, with the bounds, as SVG."""
    figure = Figure(figsize=(9, 0.55 * len(report.rows) + 1.5), layout="tight")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    for index, door in enumerate(SHOWN):
        points = [
            (row.timings[door].p50, place + 0.25 * (index - 1))
            for place, row in enumerate(report.rows)
            if door in row.timings
        ]
        axes.barh([place for _, place in points], [value for value, _ in points], 0.22, label=door)
    for place, row in enumerate(report.rows):
        if row.bound_ms is not None:
            axes.plot([row.bound_ms] * 2, [place - 0.4, place + 0.4], "k:", linewidth=1.5)
    axes.set_yticks(range(len(report.rows)), [row.name for row in report.rows])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlabel(f"median in ms, one caller, {report.records:,} records (dotted: bound)")
    axes.legend()
    figure.savefig(path)


def plot_courses(courses: Mapping[str, Sequence[tuple[int, float]]], path: Path) -> None:
    """Memory over calls: (calls, MiB) of each process, as SVG."""
    figure = Figure(figsize=(7, 3), layout="tight")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    for name, points in courses.items():
        axes.plot([calls for calls, _ in points], [mib for _, mib in points], "o-", label=name)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("tool calls, half of them at /mcp and half over stdio")
    axes.set_ylabel("memory in MiB")
    axes.legend()
    figure.savefig(path)


def plot_shares(
    names: Sequence[str], shares: Mapping[str, Sequence[float]], label: str, path: Path
) -> None:
    """A group of bars for each name, one bar for each of what is compared, from 0 to 1, as SVG."""
    figure = Figure(figsize=(9, 3.2), layout="tight")
    FigureCanvasSVG(figure)
    axes = figure.subplots()
    width = 0.8 / len(shares)
    for index, (title, values) in enumerate(shares.items()):
        places = [place + width * (index - (len(shares) - 1) / 2) for place in range(len(names))]
        axes.bar(places, values, width * 0.92, label=title)
    axes.set_xticks(range(len(names)), list(names))
    axes.set_ylim(0, 1)
    axes.set_ylabel(label)
    axes.legend(loc="lower left")
    figure.savefig(path)


def plot_parts(
    panels: Sequence[tuple[str, str, Mapping[str, Mapping[str, float]]]],
    parts: Sequence[str],
    columns: int,
    path: Path,
) -> None:
    """Bars that are put together from parts, as SVG: a panel is a title, a unit, and bars by name.

    In: `[("query", "ms", {"before": {"JSON": 2.0}, "here": {"JSON": 1.0}})]`, row by row.
    """
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(9, 1.15 * rows + 1.4), layout="constrained")
    FigureCanvasSVG(figure)
    colours = [colormaps["tab20"](place) for place in range(len(parts))]
    axes_of = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (title, unit, bars) in zip(axes_of, panels, strict=True):
        left = [0.0] * len(bars)
        for part, colour in zip(parts, colours, strict=True):
            widths = [bar.get(part, 0.0) for bar in bars.values()]
            axes.barh(range(len(bars)), widths, 0.7, left, label=part, color=colour)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        axes.set_yticks(range(len(bars)), list(bars))
        axes.invert_yaxis()
        axes.set_title(f"{title}, {unit}", fontsize="small", loc="left")
        axes.tick_params(labelsize="small")
    shown, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(shown, names, loc="outside lower center", ncols=4, fontsize="small")
    figure.savefig(path)
