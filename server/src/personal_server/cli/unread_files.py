"""Files that an import did not read, by reason, as it lists them at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from pdpp_kernel.source_item import Data
from pdpp_kernel.texts import counted
from pdpp_mcp_server.commands.tables import indented
from personal_server.app.own_exports import OwnExport

SHOWN_UNREAD = 20


class UnreadFiles(msgspec.Struct, frozen=True):
    """The files of a path that nobody read, by what they are (`sources.registry.unread_of`)."""

    path: Path
    files: Mapping[str, Sequence[str]]

    def as_json(self) -> Data:
        """For programs: how many of each, and all their names."""
        found: Data = {"path": str(self.path)}
        for sort, names in self.files.items():
            found[sort] = {"count": len(names), "files": list(names)}
        return found


_UNREAD = {
    "unknown": "of unknown format (`pdpp sources` lists what can be imported)",
    "unreadable": "unreadable: copy or download the file again",
    "costly": "that would take too much time or memory to check",
    "archives": "in a nested archive: unpack the archive, and import the content",
    "wide": "in UTF-16: save the file as UTF-8",
    "views": "with a view of a Notion database that the export also contains in full",
    "tables": (
        "that looks like a table: to import the table, too, name the file alone, with `--as table`"
    ),
    "recipes": (
        "that is a recipe: a recipe in an export is used only if you read it and name it with "
        "`--recipe`"
    ),
    "empty": "that is empty",
    "hidden": "or folder that is hidden (the name begins with a dot)",
    "links": "that is a link or a special file: import its target instead",
}


def print_unread(rest: UnreadFiles, out: Console) -> None:
    """A line for each sort of file that was left, with what to do about it."""
    for sort, names in rest.files.items():
        key = sort.removeprefix("as_")
        alike = f"that looks like `{key}`, with an unusual start or name: use `--as {key}`"
        indented(f"not read: {len(names):,} × file {_UNREAD.get(sort, alike)}", 2, out)
        for name in names[:SHOWN_UNREAD]:
            indented(name, 4, out)
        print_beyond(len(names) - SHOWN_UNREAD, out)


def print_beyond(count: int, out: Console) -> None:
    """How many more there are than were shown."""
    if count > 0:
        indented(f"and {count:,} more", 4, out)


def print_not_revived(export: OwnExport, out: Console) -> None:
    """Grants are a promise of the server that made them: they are listed, never brought back."""
    count = len(export.grants)
    if count:
        out.print(f"  {counted(count, 'grant')} not restored. Reconnect the apps:")
    for each in export.grants:
        ended = " (ended)" if each.get("revoked_at") else ""
        label = f"{each.get('client_id')} reads {each.get('connector_key')}"
        indented(f"{label}, since {each.get('issued_at')}{ended}", 4, out)
    if export.disclosure_count:
        lines = counted(export.disclosure_count, "line")
        out.print(f"  {lines} of the read log not imported; the file keeps them.")
