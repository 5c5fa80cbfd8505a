"""Import one path after the other: what fails is said, and the rest goes on.

Rule: a path or a source that cannot be imported never costs another; a store that cannot be written
ends the command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import cyclopts
from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from personal_server.app.stores import open_stores
from personal_server.cli.exits import (
    CommandError,
    Failure,
    failure_of,
    print_failure,
    print_json,
    settings_or_exit,
)
from personal_server.cli.receipts import all_receipts, print_receipts
from personal_server.cli.sources import print_source, print_sources, source_json
from personal_server.cli.tables import console, indented, plain, table, words
from personal_server.collecting.declarations import declare
from personal_server.collecting.imports import ImportPorts, ImportRun, Tally, connection_for, survey
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.source_item import Data, Skipped
from personal_server.errors import PersonalServerError
from personal_server.sources.common.errors import BadRecord, ExportError
from personal_server.sources.common.export import Export, open_export
from personal_server.sources.common.source import Source
from personal_server.sources.registry import (
    SOURCES,
    Reading,
    is_readable,
    is_wide,
    reading_as,
    readings,
    source_named,
)
from personal_server.sources.tables.reader import Guidance

# The bar of an import: bytes of the export and the time that is left, on standard error.


Moved = Callable[[int], None]


@contextmanager
def progress(export: Export, start: int = 0) -> Generator[Moved]:
    """A bar, and what moves it; nothing is drawn where nobody watches."""
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


# What an import did and what it left: as tables for people, as JSON for programs.


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


Opener = Callable[[], AbstractContextManager[ImportPorts]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """How the owner wants exports to be read, and into which account."""

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


def known_source(key: str) -> Source:
    """The source of that key.  Raises: CommandError."""
    source = source_named(key)
    if source is None:
        keys = ", ".join(each.connector_key for each in SOURCES)
        raise CommandError(
            "usage",
            "There is no source of that name.",
            f"Choose among {keys}; `pdpp sources` says what each is.",
        )
    return source


def archives_first(paths: Sequence[Path]) -> Iterator[Path]:
    """The zips that lie in a folder count as named; so may the parts of a split export."""
    for path in paths:
        packed = sorted(path.expanduser().glob("*.zip")) if path.expanduser().is_dir() else []
        yield from packed
        if not packed or any(each.suffix != ".zip" for each in path.expanduser().iterdir()):
            yield path


@dataclass(slots=True)
class Done:
    """What became of all paths."""

    reports: list[Data] = field(default_factory=list[Data])
    unread: list[Unread] = field(default_factory=list[Unread])
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
        told: Data = {"imports": self.reports, "not_read": [each.as_json() for each in self.unread]}
        return told | ({"errors": errors} if errors else {})


def _failure_json(path: Path, failure: Failure) -> Data:
    facts = {"path": str(path), "code": failure.code, "message": failure.message}
    return facts | ({"next_step": failure.next_step} if failure.next_step else {})


def import_paths(
    paths: Iterable[Path], wanted: Wanted, open_ports: Opener | None, *, as_json: bool
) -> Done:
    """Import all paths; without ports, only read and check them.

    Raises: CommandError for options that fit no path; StorageUnavailable.
    """
    done = Done()
    if wanted.connector_key is not None:
        known_source(wanted.connector_key)
    for path in paths:
        session = _Path(path, wanted, open_ports, done, as_json)
        try:
            session.run()
        except _Failed as failed:
            session.fail(failed.failure)
    return done


class _Failed(Exception):
    """Something that ends the import of one path or of one of its sources."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class _Path:
    """The import of one path."""

    path: Path
    wanted: Wanted
    open_ports: Opener | None
    done: Done
    as_json: bool

    def run(self) -> None:
        """Open it, let each source read its part, say what nobody read.  Raises: _Failed."""
        try:
            with open_export(self.path.expanduser()) as export:
                chosen = self.wanted.readings(export)
                for reading in chosen:
                    self._import(reading)
                rest = unread_of(export, [reading.export for reading in chosen])
                if rest.files:
                    self.done.unread.append(rest)
                    print_unread(rest, words())
        except BadRecord as bad:
            failure = Failure("usage", f"{self.path.name}: {bad.reason}.", "Name another column.")
            raise _Failed(failure) from None
        except ExportError as error:
            sentence = f"{self.path.name}: {error.sentence}"
            raise _Failed(Failure(error.code, sentence, error.next_step)) from None

    def fail(self, failure: Failure) -> None:
        """Say it now, and remember it for the end."""
        self.done.failures.append((self.path, failure))
        if not self.as_json:
            print_failure(failure, as_json=False, out=sys.stdout, err=sys.stderr)

    def _import(self, reading: Reading) -> None:
        words().print(plain(f"{self.path.name}: {heading(reading)}"))
        try:
            self.done.reports.append(self._report(reading))
        except PersonalServerError as error:
            if error.status >= 500:
                raise
            self.fail(failure_of(error))

    def _report(self, reading: Reading) -> Data:
        if self.open_ports is None:
            declaration = parse_declaration(reading.source.declaration)
            with progress(reading.export) as moved:
                tally = survey(reading, declaration, moved)
            return self._told(reading, tally, None, {})
        with self.open_ports() as ports:
            declaration = declare(
                ports.store, reading.source.declaration, ports.clock()
            ).declaration
            connection = connection_for(ports, declaration, self.wanted.account)
            run = ImportRun(ports, reading, connection, declaration)
            tally = _run_through(run, reading.export)
        target = {"connection_id": connection.connection_id, "name": connection.display_name}
        return self._told(reading, tally, target, run.receipt)

    def _told(self, reading: Reading, tally: Tally, target: Data | None, receipt: Data) -> Data:
        refused, stored = reading.export.refused, target is not None
        if not self.as_json:
            print_tally(tally, refused, target, console(), stored=stored)
        facts = {"path": str(reading.export.path), "connector_key": reading.source.connector_key}
        told = facts | {"connection": target} | tally_json(tally, refused, stored=stored)
        return told | ({"receipt": receipt} if receipt else {})


def heading(reading: Reading) -> str:
    """What is read, and why it is known to be that."""
    title = str(reading.source.declaration["display"]["name"])
    return reading.why if reading.why.startswith(title) else f"{title} ({reading.why})"


def _run_through(run: ImportRun, export: Export) -> Tally:
    def percent() -> int:
        return run.place * 100 // max(1, export.total_bytes)

    if run.place:
        words().print(f"  going on where it was interrupted, at {percent()} %")
    try:
        with progress(export, run.place) as moved:
            return run.run(moved)
    except KeyboardInterrupt:
        words().print(f"  Interrupted at {percent()} %. What was read is stored.")
        words().print("  The same command goes on from here.")
        raise


# `pdpp import`, `sources`, `receipts`: real exports in, with an honest report of what was read.
#
# Rule: safe to repeat (what is there already does not change) and safe to interrupt (the same
# command
# goes on where it stopped).


def add_import_commands(app: cyclopts.App, open_ports: Opener) -> None:
    """Put `import`, `sources` and `receipts` on the command line."""

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
        wanted = Wanted(as_, Guidance(key, time, title), _zone(time_zone), connection)
        done = import_paths(
            archives_first(paths), wanted, None if dry_run else open_ports, as_json=json
        )
        if json:
            print_json(done.as_json())
        return done.exit_code

    @app.command
    def sources(
        key: str | None = None, *, json: Annotated[bool, Parameter(negative="")] = False
    ) -> None:
        """List what can be imported, how to get each export, and what it holds.

        Parameters
        ----------
        key
            Show one source with all its fields.
        json
            Print JSON.
        """
        chosen = SOURCES if key is None else (known_source(key),)
        if json:
            print_json([source_json(source, fields=key is not None) for source in chosen])
        elif key is None:
            print_sources(console())
        else:
            print_source(chosen[0], console())

    @app.command
    def receipts(*, json: Annotated[bool, Parameter(negative="")] = False) -> None:
        """List what was imported: file, time, account, span of days, what was new.

        Parameters
        ----------
        json
            Print JSON.
        """
        with open_ports() as ports:
            told = all_receipts(ports.store)
        if json:
            print_json({"receipts": told})
        else:
            print_receipts(told, console())


def _zone(name: str | None) -> tzinfo:
    try:
        return ZoneInfo(name) if name else UTC
    except (ValueError, KeyError, OSError):
        raise CommandError(
            "usage", "There is no time zone of that name.", "Write it as Europe/Rome."
        ) from None


# `pdpp import`, `sources` and `receipts` on the store of this machine; loaded when called.


@contextmanager
def open_imports() -> Generator[ImportPorts, None, None]:
    """The store of this machine, for an import."""
    with open_stores(settings_or_exit(), serving=False) as stores:
        yield ImportPorts(stores.records, stores.clock, stores.random_bytes)


_commands = cyclopts.App()
add_import_commands(_commands, open_imports)
import_command = _commands["import"]
sources_command = _commands["sources"]
receipts_command = _commands["receipts"]
