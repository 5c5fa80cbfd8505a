"""`pdpp import` of an export of this program, which says itself which accounts it holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pdpp_mcp_server.commands.tables import console, plain
from personal_server.app.own_exports import OwnExport, open_own_export
from personal_server.app.restored_exports import (
    RestoredConnection,
    restore_own_export,
    survey_own_export,
)
from personal_server.cli.import_command import (
    ImportReport,
    ShowPlace,
    print_tally,
    progress,
    tally_json,
)
from personal_server.cli.store import ImportOpener
from personal_server.cli.unread_files import print_not_revived


def import_own_export(
    path: Path,
    within: Path | None,
    opener: ImportOpener | None,
    done: ImportReport,
    *,
    as_json: bool,
) -> None:
    """Read it into the accounts that it names; without an opener only check it.

    Raises: PersonalServerError.
    """
    total_bytes = path.stat().st_size
    with open_own_export(path, within) as export:
        with progress(0, total_bytes) as show_place:
            results = _restored(opener, export, show_place)
        _tell_restored(path, export, results, done, as_json=as_json)


def _restored(
    opener: ImportOpener | None, export: OwnExport, show_place: ShowPlace
) -> list[RestoredConnection]:
    if opener is None:
        return survey_own_export(export, show_place)
    with opener() as ports:
        return restore_own_export(ports, export, show_place)


def _tell_restored(
    path: Path,
    export: OwnExport,
    results: Sequence[RestoredConnection],
    done: ImportReport,
    *,
    as_json: bool,
) -> None:
    for each in results:
        held = each.connection
        target = held and {"connection_id": held.connection_id, "name": held.display_name}
        stored = target is not None
        if not as_json:
            if target is None:
                console().print(plain(f"  from {each.exported.display_name or '–'}"))
            print_tally(each.tally, (), target, console(), stored=stored)
        facts = {"path": str(path), "connector_key": each.exported.connector_key}
        report = facts | {"connection": target} | tally_json(each.tally, (), stored=stored)
        report["unfinished"] = each.is_unfinished
        done.reports.append(report)
    done.not_revived += export.grants
    if not as_json:
        print_not_revived(export, console())
