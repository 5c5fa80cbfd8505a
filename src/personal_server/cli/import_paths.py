"""Import one path after the other: what fails is said, and the rest goes on.

Rule: a path or a source that cannot be imported never costs another; a store that cannot be written
ends the command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from pathlib import Path

from personal_server.cli.exits import CommandError, Failure, failure_of, print_failure
from personal_server.cli.import_progress import progress
from personal_server.cli.import_report import (
    UNFINISHED,
    Unread,
    print_tally,
    print_unread,
    tally_json,
    unread_of,
)
from personal_server.cli.tables import console, plain, words
from personal_server.collecting.declarations import accept
from personal_server.collecting.imports import ImportPorts, ImportRun, Tally, connection_for, survey
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.source_item import Data
from personal_server.errors import PersonalServerError
from personal_server.sources.common.errors import BadRecord, ExportError
from personal_server.sources.common.export import Export, open_export
from personal_server.sources.common.source import Source
from personal_server.sources.registry import SOURCES, Reading, reading_as, readings, source_named
from personal_server.sources.tables.reader import Guidance

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
            declaration = accept(ports.store, reading.source.declaration, ports.clock())
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
