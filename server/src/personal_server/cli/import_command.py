"""`pdpp import`: exports in, one path after the other, and an honest report of what was read.

Rule: safe to repeat (what is there already does not change) and safe to interrupt (the same command
goes on where it stopped). A path or a source that cannot be imported never costs another; a store
that cannot be written ends the command.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import words
from pdpp_sources.export_files import ARCHIVES
from pdpp_sources.reader_process import ReaderProcess, Wanted
from personal_server.cli.import_questions import asking, check_replace
from personal_server.cli.owner_zone import ConfiguredZone, OwnerZone, zone_for
from personal_server.cli.path_imports import PathImports
from personal_server.cli.store import ImportOpener, ReaderOpener, open_imports, open_reader
from personal_server.cli.table_columns import kinds_said
from personal_server.collecting.imports import ImportPorts

# Google names all parts of an export by the second in which it was asked for.
_TAKEOUT_PART = re.compile(r"(takeout-\d{8}T\d{6}Z)(?:-\d+)*-\d{3}\.(?:zip|tgz)", re.IGNORECASE)
FIRST_STEPS = """
Done. Your records stay on this machine. List them: pdpp records
Browse them, or connect an AI agent: pdpp serve"""


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramOptions:
    """Options of programs that import.

    Parameters
    ----------
    within
        Read only files in this folder, even if links lead out of it.
    ask
        Ask where nothing tells which account of its source a file belongs to; without a
        terminal, stop instead of making a new account. Default: at a terminal.
    fed
        A feed runs this import, and says itself how fresh the account is.
    lists
        Read whole what was begun, and name every record in the report and in this file.
    """

    within: Path | None = None
    ask: Annotated[bool | None, Parameter(negative="--no-ask")] = None
    fed: Annotated[bool, Parameter(negative="", show=False)] = False
    lists: Annotated[Path | None, Parameter(show=False)] = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """What the files are.

    Parameters
    ----------
    as_
        Read the file as an export of this source (see `pdpp sources`).
    recipe
        Read by this recipe: a file that says what the export holds (docs/recipes.md).
    """

    as_: Annotated[str | None, Parameter(name="--as")] = None
    recipe: Path | None = None


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Options for tables.

    Parameters
    ----------
    key
        For a table: the column whose value identifies a row.
    time
        For a table: the column with the date or time of a row.
    title
        For a table: the column to show first.
    column
        For a table: what a column holds, as NAME=text, number, day, month-first (days of
        the United States), instant or code (digits that are no number). Repeatable.
    replace
        For a table: this file is complete; delete stored rows that are not in it.
    yes
        Delete records without a question.
    """

    key: str | None = None
    time: str | None = None
    title: str | None = None
    column: tuple[str, ...] = ()
    replace: Annotated[bool, Parameter(negative="")] = False
    yes: Annotated[bool, Parameter(negative="")] = False

    @property
    def columns(self) -> tuple[str | None, str | None, str | None]:
        """The column names that the options gave, by what each is used for."""
        return (self.key, self.time, self.title)

    @property
    def kinds(self) -> dict[str, str]:
        """What is said of columns, by their names. Raises: CommandError (`usage`)."""
        return kinds_said(self.column) if self.column else {}


def import_command(
    open_ports: ImportOpener, open_reader: ReaderOpener, owner_zone: OwnerZone
) -> Callable[..., int]:
    """The command `pdpp import`."""

    def import_exports(
        *paths: Path,
        connection: str | None = None,
        form: FormatOptions | None = None,
        table: TableOptions | None = None,
        zone: str | None = None,
        program: ProgramOptions | None = None,
        dry_run: Annotated[bool, Parameter(negative="")] = False,
        json: Annotated[bool, Parameter(negative="")] = False,
    ) -> int:
        """Import exports: files, folders or archives as you downloaded them, or your own export.

        Parameters
        ----------
        paths
            What to import. The format is recognized by content.
        connection
            The account to import into, by name; a new name makes a new account.
        zone
            The time zone of times without a zone, such as Europe/Rome, here and in later imports
            of this account. Default: that of the account, else yours. The first import with such
            times saves yours: this zone, your answer in a terminal, or that of this machine.
        dry_run
            Read and check everything, but store nothing.
        json
            Print the report as JSON.
        """
        if not paths:
            raise CommandError(
                "usage",
                "Name a file or folder to import.",
                "Run `pdpp import PATH`. `pdpp sources` lists what can be imported.",
            )
        form = form or FormatOptions()
        if form.recipe and form.as_ == "table":
            raise CommandError(
                "recipe_not_alone",
                "A source and a recipe were named; only one of them can read.",
                "Leave out --as or --recipe.",
            )
        options, program = table or TableOptions(), program or ProgramOptions()
        within, ask, is_fed = program.within, program.ask, program.fed
        if options.replace:
            check_replace(yes=options.yes, dry_run=dry_run)
        chosen, is_answer = zone_for(zone, owner_zone, may_ask=not (json or dry_run))
        # a feed names the very folder: a link that took its place meanwhile is not followed
        root = within and (within.absolute() if is_fed else within.resolve())
        wanted = Wanted(
            form.as_, options.columns, chosen, within=root, kinds=options.kinds, recipe=form.recipe
        )
        is_plain = (connection, zone) == (None,) * 2 and options == TableOptions()
        is_plain = is_plain and form == FormatOptions()
        were_empty = list[bool]()
        opener = None if dry_run else _noting(were_empty, open_ports, is_fed)
        with open_reader() as reader:
            _check_reader(reader, None if form.recipe else form.as_)
            at_terminal = sys.stdin.isatty() and not json
            asks = at_terminal if ask is None else ask
            belongs = asking(at_terminal=at_terminal) if asks else None
            run = PathImports(
                reader,
                wanted,
                connection,
                opener,
                as_json=json,
                is_plain=is_plain,
                names_zone=zone is not None,
                replaces=options.replace,
                yes=options.yes,
                belongs=belongs,
                lists=program.lists,
            )
            try:
                done = run.each(whole_exports(archives_first(paths)))
            finally:  # an import that was interrupted goes on in the zone that was answered
                # reports of own exports name no zone: their times are whole
                zones = {r["time_zone"] for r in run.done.reports if r.get("times_without_zone")}
                if (is_answer or chosen in zones) and not dry_run and owner_zone.known() is None:
                    owner_zone.keep(chosen)
                    if owner_zone.known() == chosen:
                        words().print(f"  {chosen} is now your time zone, also for later imports.")
        if json:
            report = done.as_json()
            if ask:
                # the pages ask so
                from personal_server.cli.report_texts import with_texts  # noqa: PLC0415

                report = with_texts(report)
            print_json(report)
        elif were_empty[:1] == [True] and any(report["connection"] for report in done.reports):
            words().print(FIRST_STEPS)
        return done.exit_code

    return import_exports


def _noting(were_empty: list[bool], open_ports: ImportOpener, is_fed: bool) -> ImportOpener:
    """Opens the store, and notes each time whether it has no account."""

    @contextmanager
    def opened() -> Generator[ImportPorts]:
        with open_ports() as ports:
            with ports.store.snapshot() as snapshot:
                were_empty.append(not list(snapshot.connections()))
            yield replace(ports, is_fed=is_fed)

    return opened


def _check_reader(reader: ReaderProcess, connector_key: str | None) -> None:
    """Say what the system could not take from it. Raises: CommandError (`usage`)."""
    facts = reader.facts()
    if facts.beyond_limits or connector_key not in (None, *facts.connector_keys):
        # where all is well nothing is said
        from personal_server.cli.reader_checks import check_reader  # noqa: PLC0415

        check_reader(reader, facts, connector_key)


def archives_first(paths: Sequence[Path]) -> Iterator[Path]:
    """The archives that lie in a folder count as named."""
    for path in paths:
        inside = sorted(path.iterdir()) if path.is_dir() else []
        packed = [each for each in inside if each.name.lower().endswith(ARCHIVES)]
        yield from packed
        if not packed or len(packed) < len(inside):
            yield path


def whole_exports(paths: Iterable[Path]) -> list[tuple[Path, ...]]:
    """Each path by itself, and the parts of one Takeout together, in the order of their numbers."""
    exports: dict[str, list[Path]] = {}
    for path in paths:
        part = _TAKEOUT_PART.fullmatch(path.name)
        known = exports.setdefault(part[1].lower() if part else f"/{path}", [])
        if path not in known:
            known.append(path)
    return [tuple(sorted(each, key=lambda path: path.name)) for each in exports.values()]


import_exports = import_command(open_imports, open_reader, ConfiguredZone())
