"""What an import did and what it left: as tables for people, as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from personal_server.cli.tables import indented, plain, table
from personal_server.collecting.imports import Tally
from personal_server.domain.source_item import Data, Skipped
from personal_server.sources.common.export import Export
from personal_server.sources.registry import is_readable, is_wide

UNFINISHED = 65
"""The exit code of an import that met damage: what could be read is stored."""

DAMAGE = frozenset(
    {"truncated", "damaged_file", "empty_statement", "too_large", "unreadable_folder"}
)
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
    if tally.earliest:
        out.print(f"  from {tally.earliest} to {tally.latest}")
    if not any(each.read for each in tally.streams.values()) and not tally.skipped_count:
        out.print("  Nothing of this kind was found in it.")
    for code, count, examples in _skipped(tally, refused):
        out.print(plain(f"  skipped {count} × {code}"))
        for each in examples[:SHOWN_EXAMPLES]:
            indented(f"{each.where}: {each.reason}", 4, out)


@dataclass(frozen=True, slots=True)
class Unread:
    """The files of a path that nobody read: unknown, unreadable, zips further down, UTF-16."""

    path: Path
    unknown: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    archives: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()

    @property
    def files(self) -> bool:
        """Whether there are any."""
        return bool(self.unknown or self.unreadable or self.archives or self.wide)

    def as_json(self) -> Data:
        """For programs: how many of each, and a few names."""
        told: Data = {"path": str(self.path)}
        for name in ("unknown", "unreadable", "archives", "wide"):
            names: tuple[str, ...] = getattr(self, name)
            if names:
                told[name] = {"count": len(names), "examples": list(names[:SHOWN_EXAMPLES])}
        return told


def unread_of(export: Export, readers: Sequence[Export]) -> Unread:
    """What is left when every reader has its part."""
    named = export.path.is_dir()
    sorts: dict[str, list[str]] = {}
    for member in export.without(readers):
        if not member.size_bytes:
            continue
        if member.suffix == ".zip":
            own_import = named and "/" not in member.name
            sort = "" if own_import else "archives"
        elif not is_readable(member):
            sort = "unreadable"
        else:
            sort = "wide" if is_wide(member) else "unknown"
        sorts.setdefault(sort, []).append(member.name)
    sorts.pop("", None)
    return Unread(export.path, **{sort: tuple(names) for sort, names in sorts.items()})


def print_unread(rest: Unread, out: Console) -> None:
    """A line for each sort of file that was left, with what to do about it."""
    for names, what in (
        (rest.unknown, "that no source knows"),
        (rest.unreadable, "that cannot be read: copy or download it again"),
        (rest.archives, "that is a zip further inside: import it by its name"),
        (rest.wide, "in UTF-16: save it as UTF-8"),
    ):
        if names:
            more = ", …" if len(names) > SHOWN_EXAMPLES else ""
            count = "1 file" if len(names) == 1 else f"{len(names)} files"
            shown = ", ".join(names[:SHOWN_EXAMPLES])
            indented(f"not read: {count} {what} ({shown}{more})", 2, out)


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
    span = {"earliest": tally.earliest, "latest": tally.latest}
    return {"streams": streams, "span": span, "skipped": skipped, "unfinished": unfinished}


def _skipped(tally: Tally, refused: Sequence[Skipped]) -> list[tuple[str, int, list[Skipped]]]:
    counts = dict(tally.skipped_count)
    for each in refused:
        counts[each.code] = counts.get(each.code, 0) + 1
    known = [*refused, *tally.skipped]
    return [
        (code, count, [each for each in known if each.code == code])
        for code, count in counts.items()
    ]
