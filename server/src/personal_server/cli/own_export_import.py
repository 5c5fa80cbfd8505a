"""`pdpp import` of an export of this program, which says itself which accounts it holds.

Rule: the command loads this where it meets such an export, and gives what shows how far it came.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from pdpp_kernel.source_item import Data
from pdpp_mcp_server.commands.tables import console, plain
from pdpp_sources.reader_process import Wanted
from personal_server.app.own_exports import OwnExport, open_own_export
from personal_server.app.restored_exports import (
    RestoredConnection,
    ShowPlace,
    restore_own_export,
    survey_own_export,
)
from personal_server.cli.import_report import ImportReport, print_tally, tally_json
from personal_server.cli.store import ImportOpener
from personal_server.cli.unread_files import print_not_revived


class RestoreCommand(Protocol):
    """What was asked for; without an opener the export is only checked."""

    @property
    def open_ports(self) -> ImportOpener | None:
        """What opens the store."""
        ...

    @property
    def wanted(self) -> Wanted:
        """What was chosen of the path."""
        ...

    @property
    def done(self) -> ImportReport:
        """What the report is added to."""
        ...

    @property
    def as_json(self) -> bool:
        """Whether programs read the report."""
        ...


def import_own_export(
    path: Path,
    command: RestoreCommand,
    progress: Callable[[int, int], AbstractContextManager[ShowPlace]],
) -> None:
    """Read it into the accounts that it names; without an opener only check it.

    Raises: PersonalServerError.
    """
    total_bytes = path.stat().st_size
    with open_own_export(path, command.wanted.within) as export:
        with progress(0, total_bytes) as show_place:
            results = _restored(command.open_ports, export, show_place)
        if not command.as_json:
            _print_restored(results)
        for each in results:
            facts = {"path": str(path), "connector_key": each.exported.connector_key}
            target = _target(each)
            tally = tally_json(each.tally, (), stored=target is not None)
            report = facts | {"connection": target} | tally
            report["unfinished"] = each.is_unfinished
            command.done.reports.append(report)
        command.done.not_revived += export.grants
        if not command.as_json:
            print_not_revived(export, console())


def _restored(
    opener: ImportOpener | None, export: OwnExport, show_place: ShowPlace
) -> list[RestoredConnection]:
    if opener is None:
        return survey_own_export(export, show_place)
    with opener() as ports:
        return restore_own_export(ports, export, show_place)


def _target(restored: RestoredConnection) -> Data | None:
    target = restored.connection
    return target and {"connection_id": target.connection_id, "name": target.display_name}


def _print_restored(results: Sequence[RestoredConnection]) -> None:
    for each in results:
        target = _target(each)
        if target is None:
            console().print(plain(f"  from {each.exported.display_name or '–'}"))
        print_tally(each.tally, (), target, console(), stored=target is not None)
