"""What an import did, and what can be imported: as tables for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from personal_server.cli.import_run import Tally
from personal_server.cli.tables import plain, table
from personal_server.sources.export import Member
from personal_server.sources.item import Data, Skipped
from personal_server.sources.registry import SOURCES

UNFINISHED = 65
"""The exit code of an import that met damage: what could be read is stored."""

DAMAGE = frozenset({"truncated", "damaged_file", "empty_statement", "too_large"})
SHOWN_EXAMPLES = 3


def print_tally(
    tally: Tally, refused: Sequence[Skipped], target: Data | None, out: Console, *, stored: bool
) -> None:
    """One line per stream, then what was passed over and why."""
    if target is not None:
        label = target["name"] or target["connection_id"]
        out.print(Text.assemble("  into ", (plain(label).plain, "bold")))
    columns = ("  stream", "read", "new", "updated", "unchanged", "rejected")
    rows = [
        (f"  {name}", each.read, each.new, each.updated, each.unchanged, each.rejected)
        for name, each in tally.streams.items()
    ]
    if not stored:
        columns = ("  stream", "would be read", "rejected")
        rows = [(f"  {name}", each.read, each.rejected) for name, each in tally.streams.items()]
    out.print(table(columns, rows))
    for code, count, examples in _skipped(tally, refused):
        out.print(plain(f"  skipped {count} × {code}"))
        for each in examples[:SHOWN_EXAMPLES]:
            out.print(plain(f"    {each.where}: {each.reason}"))


def print_unread(members: Sequence[Member], out: Console) -> None:
    """How many files of an export no source knows, and a few of them."""
    others = [member.name for member in members if member.size_bytes and member.suffix != ".zip"]
    if others:
        more = ", …" if len(others) > SHOWN_EXAMPLES else ""
        named = ", ".join(others[:SHOWN_EXAMPLES])
        out.print(plain(f"  not read: {len(others)} files that no source knows ({named}{more})"))


def tally_json(tally: Tally, refused: Sequence[Skipped], *, stored: bool) -> Data:
    """The same for programs."""
    streams: Data = {}
    for name, each in tally.streams.items():
        outcome = {"new": each.new, "updated": each.updated, "unchanged": each.unchanged}
        streams[name] = {"read": each.read, "rejected": each.rejected} | (outcome if stored else {})
    skipped = [
        {
            "code": code,
            "count": count,
            "examples": [{"where": e.where, "reason": e.reason} for e in examples],
        }
        for code, count, examples in _skipped(tally, refused)
    ]
    unfinished = bool(DAMAGE & tally.skipped_count.keys())
    return {"streams": streams, "skipped": skipped, "unfinished": unfinished}


def _skipped(tally: Tally, refused: Sequence[Skipped]) -> list[tuple[str, int, list[Skipped]]]:
    counts = dict(tally.skipped_count)
    for each in refused:
        counts[each.code] = counts.get(each.code, 0) + 1
    known = [*refused, *tally.skipped]
    return [
        (code, count, [each for each in known if each.code == code])
        for code, count in counts.items()
    ]


def print_sources(out: Console) -> None:
    """Each source with its streams and the way to its export."""
    for source in SOURCES:
        declared = source.declaration
        out.print(Text.assemble((source.connector_key, "bold"), "  ", declared["display"]["name"]))
        out.print(f"  {declared['display']['detail']}")
        names = ", ".join(stream["name"] for stream in declared["streams"])
        out.print(f"  Streams: {names or 'made from your columns'}")
        out.print(f"  How to get it: {source.how_to_export}\n")


def sources_json() -> list[Data]:
    """The same for programs."""
    return [
        {
            "connector_key": source.connector_key,
            "name": source.declaration["display"]["name"],
            "detail": source.declaration["display"]["detail"],
            "how_to_export": source.how_to_export,
            "streams": [
                {"name": stream["name"], "label": stream["display"]["label"]}
                for stream in source.declaration["streams"]
            ],
        }
        for source in SOURCES
    ]
