"""`pdpp import` and `pdpp sources`: real exports in, with an honest report of what was read.

Rule: safe to repeat (what is there already does not change) and safe to interrupt (the same command
goes on where it stopped).
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import cyclopts
from cyclopts import Parameter
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from personal_server.cli.exits import CommandError, print_json
from personal_server.cli.import_report import (
    UNFINISHED,
    print_sources,
    print_tally,
    print_unread,
    sources_json,
    tally_json,
)
from personal_server.cli.import_run import ImportPorts, ImportRun, Tally, survey
from personal_server.cli.import_target import connection_for
from personal_server.cli.tables import console, plain, words
from personal_server.domain.declaration_parsing import parse_declaration
from personal_server.operations.declaring import accept
from personal_server.sources.errors import BadRecord, ExportError
from personal_server.sources.export import Export, open_export
from personal_server.sources.item import Data
from personal_server.sources.registry import Reading, reading_as, readings, source_named
from personal_server.sources.tables import Guidance

Opener = Callable[[], AbstractContextManager[ImportPorts]]
Moved = Callable[[int], None]


def add_import_commands(app: cyclopts.App, open_ports: Opener) -> None:
    """Put `import` and `sources` on the command line."""

    @app.command(name="import")
    def import_(
        *paths: Path,
        connection: str | None = None,
        as_: Annotated[str | None, Parameter(name="--as")] = None,
        key: str | None = None,
        time: str | None = None,
        title: str | None = None,
        time_zone: str | None = None,
        dry_run: Annotated[bool, Parameter(negative="")] = False,
        json: Annotated[bool, Parameter(negative="")] = False,
    ) -> int:
        """Import exports: files, folders or zips as they were downloaded.

        Parameters
        ----------
        paths
            What to import. The format is recognized by content.
        connection
            Name of the account it belongs to; made when it is new.
        as_
            Read it as this source (see `pdpp sources`).
        key
            Of a table: the column that names a row.
        time
            Of a table: the column that dates a row.
        title
            Of a table: the column that is shown first.
        time_zone
            Where times that name no zone were written, as Europe/Rome; UTC unless set.
        dry_run
            Read and check everything, store nothing.
        json
            Print the report as JSON.
        """
        if not paths:
            raise CommandError(
                "usage",
                "Nothing to import was named.",
                "Run `pdpp import PATH`, see `pdpp sources`.",
            )
        wanted = _Wanted(as_, Guidance(key, time, title), _zone(time_zone))
        reports = [
            report
            for path in _archives_first(paths)
            for report in _import_path(
                path, wanted, connection, None if dry_run else open_ports, as_json=json
            )
        ]
        if json:
            print_json({"imports": reports})
        return UNFINISHED if any(report["unfinished"] for report in reports) else 0

    @app.command
    def sources(*, json: Annotated[bool, Parameter(negative="")] = False) -> None:
        """List what can be imported, how to get each export, and what it holds.

        Parameters
        ----------
        json
            Print JSON.
        """
        if json:
            print_json(sources_json())
        else:
            print_sources(console())


def _zone(name: str | None) -> tzinfo:
    try:
        return ZoneInfo(name) if name else UTC
    except (ValueError, KeyError, OSError):
        raise CommandError(
            "usage", "There is no time zone of that name.", "Write it as Europe/Rome."
        ) from None


def _archives_first(paths: Sequence[Path]) -> Iterator[Path]:
    """The zips that lie in a folder count as named; so may the parts of a split export."""
    for path in paths:
        packed = sorted(path.expanduser().glob("*.zip")) if path.expanduser().is_dir() else []
        yield from packed
        if not packed or any(each.suffix != ".zip" for each in path.expanduser().iterdir()):
            yield path


@dataclass(frozen=True, slots=True)
class _Wanted:
    """How the owner wants an export to be read."""

    connector_key: str | None
    guidance: Guidance
    zone: tzinfo

    def readings(self, export: Export) -> tuple[Reading, ...]:
        """Who reads what. Raises: ExportError, CommandError."""
        export = replace(export, zone=self.zone)
        if self.connector_key is None:
            return readings(export, self.guidance)
        source = source_named(self.connector_key)
        if source is None:
            raise CommandError("usage", "There is no source of that name.", "See `pdpp sources`.")
        return (reading_as(export, source, self.guidance),)


def _import_path(
    path: Path, wanted: _Wanted, name: str | None, open_ports: Opener | None, *, as_json: bool
) -> Iterator[Data]:
    """Import one path; the report of each source that read a part of it."""
    try:
        with open_export(path.expanduser()) as export:
            chosen = wanted.readings(export)
            for reading in chosen:
                yield _import_reading(reading, name, open_ports, as_json=as_json)
            print_unread(export.without(reading.export for reading in chosen), words())
    except BadRecord as bad:
        raise CommandError(
            "usage", f"{path.name}: {bad.reason}.", "See `pdpp import --help`."
        ) from None
    except ExportError as error:
        raise CommandError(error.code, f"{path.name}: {error.sentence}", error.next_step) from None


def _import_reading(
    reading: Reading, name: str | None, open_ports: Opener | None, *, as_json: bool
) -> Data:
    title = reading.source.declaration["display"]["name"]
    words().print(plain(f"{reading.export.path.name}: {title} ({reading.why})"))
    if open_ports is None:
        declaration = parse_declaration(reading.source.declaration)
        with _progress(reading.export) as moved:
            tally = survey(reading, declaration, moved)
        return _report(reading, tally, None, stored=False, as_json=as_json)
    with open_ports() as ports:
        declaration = accept(ports.store, reading.source.declaration, ports.clock())
        connection = connection_for(ports, declaration, name)
        run = ImportRun(ports, reading, connection, declaration)
        if run.start:
            share = run.start * 100 // max(1, reading.export.total_bytes)
            words().print(f"  going on where it was interrupted, at {share} %")
        with _progress(reading.export, run.start) as moved:
            tally = _run_through(run, moved)
    target = {"connection_id": connection.connection_id, "name": connection.display_name}
    return _report(reading, tally, target, stored=True, as_json=as_json)


def _run_through(run: ImportRun, moved: Moved) -> Tally:
    try:
        return run.run(moved)
    except KeyboardInterrupt:
        words().print("Interrupted. What was read is stored; the same command goes on from here.")
        raise


def _report(
    reading: Reading, tally: Tally, target: Data | None, *, stored: bool, as_json: bool
) -> Data:
    if not as_json:
        print_tally(tally, reading.export.refused, target, console(), stored=stored)
    facts = {"path": str(reading.export.path), "connector_key": reading.source.connector_key}
    return facts | {"connection": target} | tally_json(tally, reading.export.refused, stored=stored)


@contextmanager
def _progress(export: Export, start: int = 0) -> Generator[Moved]:
    """A bar on standard error, by bytes of the export; nothing where nobody watches."""
    first = export.members[0].offset if export.members else 0
    bar = Progress(
        TextColumn("  "),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=words(),
        transient=True,
        disable=not words().is_terminal,
    )
    with bar:
        task = bar.add_task("", total=export.total_bytes - first, completed=max(0, start - first))
        yield lambda place: bar.update(task, completed=place - first)
