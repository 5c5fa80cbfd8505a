"""`pdpp import`: exports in, one path after the other, and an honest report of what was read.

Rule: safe to repeat (what is there already does not change) and safe to interrupt (the same command
goes on where it stopped). A path or a source that cannot be imported never costs another; a store
that cannot be written ends the command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from personal_server.cli.exits import (
    CommandError,
    Failure,
    failure_of,
    print_failure,
    print_json,
)
from personal_server.cli.sources import known_source
from personal_server.cli.store import ImportOpener, open_imports
from personal_server.cli.tables import console, indented, plain, table, words
from personal_server.collecting.declarations import declare
from personal_server.collecting.imports import ImportRun, ImportTally, connection_for, survey
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.source_item import Data, Skipped
from personal_server.errors import PersonalServerError
from personal_server.sources.common.errors import BadRecord, ExportError
from personal_server.sources.common.export import Export, open_export
from personal_server.sources.registry import (
    Reading,
    is_readable,
    is_wide,
    reading_as,
    readings,
)
from personal_server.sources.tables.reader import Guidance

ShowPlace = Callable[[int], None]
UNFINISHED = 65  # the exit code of an import that met damage: what could be read is stored
DAMAGE = frozenset(
    {"truncated", "damaged_file", "empty_statement", "too_large", "unreadable_folder"}
)
SHOWN_EXAMPLES = 3


def import_command(open_ports: ImportOpener) -> Callable[..., int]:
    """The command `pdpp import`."""

    def import_exports(
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
        options = ImportOptions(as_, Guidance(key, time, title), _zone(time_zone), connection)
        opener = None if dry_run else open_ports
        done = import_paths(archives_first(paths), options, opener, as_json=json)
        if json:
            print_json(done.as_json())
        return done.exit_code

    return import_exports


def _zone(name: str | None) -> tzinfo:
    try:
        return ZoneInfo(name) if name else UTC
    except (ValueError, KeyError, OSError):
        raise CommandError(
            "usage", "There is no time zone of that name.", "Write it as Europe/Rome."
        ) from None


def archives_first(paths: Sequence[Path]) -> Iterator[Path]:
    """The zips that lie in a folder count as named; so may the parts of a split export."""
    for path in paths:
        packed = sorted(path.expanduser().glob("*.zip")) if path.expanduser().is_dir() else []
        yield from packed
        if not packed or any(each.suffix != ".zip" for each in path.expanduser().iterdir()):
            yield path


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How exports are to be read, and into which account."""

    connector_key: str | None
    guidance: Guidance
    zone: tzinfo
    account: str | None

    def readings(self, export: Export) -> tuple[Reading, ...]:
        """Who reads what.  Raises: ExportError, BadRecord, CommandError."""
        export = replace(export, zone=self.zone)
        if self.connector_key is None:
            return readings(export, self.guidance)
        return (reading_as(export, known_source(self.connector_key), self.guidance),)


def import_paths(
    paths: Iterable[Path], options: ImportOptions, open_ports: ImportOpener | None, *, as_json: bool
) -> ImportReport:
    """Import all paths; without ports, only read and check them.

    Raises: CommandError for options that fit no path; StorageUnavailable.
    """
    done = ImportReport()
    if options.connector_key is not None:
        known_source(options.connector_key)
    for path in paths:
        _Path(path, options, open_ports, done, as_json).run()
    return done


@dataclass(frozen=True, slots=True)
class _Path:
    """The import of one path."""

    path: Path
    options: ImportOptions
    open_ports: ImportOpener | None
    done: ImportReport
    as_json: bool

    def run(self) -> None:
        """Open it, let each source read its part, say what nobody read."""
        try:
            with open_export(self.path.expanduser()) as export:
                chosen = self.options.readings(export)
                for reading in chosen:
                    self._import(reading)
                rest = unread_of(export, [reading.export for reading in chosen])
                if rest.files:
                    self.done.unread.append(rest)
                    print_unread(rest, words())
        except BadRecord as bad:
            sentence = f"{self.path.name}: {bad.reason}."
            self._fail(Failure("usage", sentence, "Name another column."))
        except ExportError as error:
            sentence = f"{self.path.name}: {error.sentence}"
            self._fail(Failure(error.code, sentence, error.next_step))

    def _fail(self, failure: Failure) -> None:
        """Say it now, and remember it for the end."""
        self.done.failures.append((self.path, failure))
        if not self.as_json:
            print_failure(failure, as_json=False, out=sys.stdout, err=sys.stderr)

    def _import(self, reading: Reading) -> None:
        words().print(plain(f"{self.path.name}: {_heading(reading)}"))
        try:
            self.done.reports.append(self._report(reading))
        except PersonalServerError as error:
            if error.status >= 500:
                raise
            self._fail(failure_of(error))

    def _report(self, reading: Reading) -> Data:
        if self.open_ports is None:
            declaration = parse_declaration(reading.source.declaration)
            with progress(reading.export) as show_place:
                tally = survey(reading, declaration, show_place)
            return self._finished(reading, tally, None, {})
        with self.open_ports() as ports:
            declaration = declare(
                ports.store, reading.source.declaration, ports.clock()
            ).declaration
            connection = connection_for(ports, declaration, self.options.account)
            run = ImportRun(ports, reading, connection, declaration)
            tally = _run_through(run, reading.export)
        target = {"connection_id": connection.connection_id, "name": connection.display_name}
        return self._finished(reading, tally, target, run.receipt)

    def _finished(
        self, reading: Reading, tally: ImportTally, target: Data | None, receipt: Data
    ) -> Data:
        refused, stored = reading.export.refused, target is not None
        if not self.as_json:
            print_tally(tally, refused, target, console(), stored=stored)
        facts = {"path": str(reading.export.path), "connector_key": reading.source.connector_key}
        report = facts | {"connection": target} | tally_json(tally, refused, stored=stored)
        return report | ({"receipt": receipt} if receipt else {})


def _heading(reading: Reading) -> str:
    """What is read, and why it is known to be that."""
    title = str(reading.source.declaration["display"]["name"])
    return reading.why if reading.why.startswith(title) else f"{title} ({reading.why})"


def _run_through(run: ImportRun, export: Export) -> ImportTally:
    def percent() -> int:
        return run.place * 100 // max(1, export.total_bytes)

    if run.place:
        words().print(f"  going on where it was interrupted, at {percent()} %")
    try:
        with progress(export, run.place) as show_place:
            return run.run(show_place)
    except KeyboardInterrupt:
        words().print(f"  Interrupted at {percent()} %. What was read is stored.")
        words().print("  The same command goes on from here.")
        raise


@contextmanager
def progress(export: Export, start: int = 0) -> Generator[ShowPlace]:
    """A bar on standard error, and what moves it; nothing is drawn where nobody watches."""
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


@dataclass(frozen=True, slots=True)
class UnreadFiles:
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
        found: Data = {"path": str(self.path)}
        for name in ("unknown", "unreadable", "archives", "wide"):
            names: tuple[str, ...] = getattr(self, name)
            if names:
                found[name] = {"count": len(names), "examples": list(names[:SHOWN_EXAMPLES])}
        return found


@dataclass(slots=True)
class ImportReport:
    """What became of all paths."""

    reports: list[Data] = field(default_factory=list[Data])
    unread: list[UnreadFiles] = field(default_factory=list[UnreadFiles])
    failures: list[tuple[Path, Failure]] = field(default_factory=list[tuple[Path, Failure]])

    @property
    def exit_code(self) -> int:
        """The first failure's own; else whether something was damaged."""
        if self.failures:
            return self.failures[0][1].exit_code
        damaged = any(report["unfinished"] for report in self.reports)
        return UNFINISHED if damaged or any(each.unreadable for each in self.unread) else 0

    def as_json(self) -> Data:
        """For programs; a lone failure looks like that of any command."""
        errors = [_failure_json(path, failure) for path, failure in self.failures]
        if len(errors) == 1 and not self.reports:
            return {"error": {k: v for k, v in errors[0].items() if k != "path"}}
        not_read = [each.as_json() for each in self.unread]
        reports: Data = {"imports": self.reports, "not_read": not_read}
        return reports | ({"errors": errors} if errors else {})


def _failure_json(path: Path, failure: Failure) -> Data:
    facts = {"path": str(path), "code": failure.code, "message": failure.message}
    return facts | ({"next_step": failure.next_step} if failure.next_step else {})


def unread_of(export: Export, readers: Sequence[Export]) -> UnreadFiles:
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
    return UnreadFiles(export.path, **{sort: tuple(names) for sort, names in sorts.items()})


def print_unread(rest: UnreadFiles, out: Console) -> None:
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


def print_tally(
    tally: ImportTally,
    refused: Sequence[Skipped],
    target: Data | None,
    out: Console,
    *,
    stored: bool,
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


def tally_json(tally: ImportTally, refused: Sequence[Skipped], *, stored: bool) -> Data:
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


def _skipped(
    tally: ImportTally, refused: Sequence[Skipped]
) -> list[tuple[str, int, list[Skipped]]]:
    counts = dict(tally.skipped_count)
    for each in refused:
        counts[each.code] = counts.get(each.code, 0) + 1
    known = [*refused, *tally.skipped]
    return [
        (code, count, [each for each in known if each.code == code])
        for code, count in counts.items()
    ]


import_exports = import_command(open_imports)
