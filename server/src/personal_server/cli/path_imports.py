"""The import of paths: each is looked at, stored source by source, and reported at once.

Rule: a path or a source that cannot be imported never costs another; a store that cannot be written
ends the command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.source_declaration import OWN_FILE_PREFIX, SourceDeclaration
from pdpp_kernel.source_item import Data
from pdpp_kernel.texts import CatalogueText, message, parse_text, text_of
from pdpp_mcp_server.commands.failures_shown import Failure, failure_of, print_failure
from pdpp_mcp_server.commands.tables import console, indented, plain, words
from pdpp_sources.common.errors import BadRecord, ExportError
from pdpp_sources.export_files import name_of_parts
from pdpp_sources.reader_process import PathContents, ProcessReading, ReaderProcess, Wanted
from personal_server.app.own_export_head import is_own_export
from personal_server.cli.import_questions import Belongs, may_delete
from personal_server.cli.import_report import (
    SHOWN_EXAMPLES,
    ImportReport,
    print_tally,
    tally_json,
)
from personal_server.cli.known_tables import changed_kinds, known_table
from personal_server.cli.store import ImportOpener
from personal_server.cli.table_columns import columns_json, print_columns
from personal_server.cli.unread_files import UnreadFiles, print_unread
from personal_server.collecting.accounts_of_source import accounts_of
from personal_server.collecting.declarations import declare
from personal_server.collecting.empty_accounts import forget_if_empty
from personal_server.collecting.imports import (
    ImportPorts,
    ImportRun,
    ImportTally,
    connection_for,
)
from personal_server.collecting.listed_records import ListedRecords
from personal_server.collecting.survey import survey
from personal_server.collecting.text_readings import readings_here
from personal_server.domain.declaration_document import parse_declaration

ShowPlace = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class PathImports:
    """The import of one path after the other; without ports they are only read and checked.

    Shapes: `is_plain` where nothing was chosen, as own exports need; `names_zone` where the zone
        was; `replaces` where the file is the whole of a table; `yes`: what it lacks goes unasked.
    """

    reader: ReaderProcess
    wanted: Wanted
    account: str | None
    open_ports: ImportOpener | None
    as_json: bool = field(kw_only=True)
    is_plain: bool = field(kw_only=True)
    names_zone: bool = field(kw_only=True)
    replaces: bool = field(kw_only=True)
    yes: bool = field(kw_only=True)
    belongs: Belongs | None = field(kw_only=True)
    lists: Path | None = field(kw_only=True)
    done: ImportReport = field(default_factory=ImportReport, init=False)

    def each(self, exports: Iterable[tuple[Path, ...]]) -> ImportReport:
        """Import all. Raises: CommandError for options that fit none; StorageUnavailable."""
        for path, *further_parts in exports:
            _PathImport(path, tuple(further_parts), self).run()
            while self.reader.faults:
                fault = self.reader.faults.pop()
                words().print(f"  Internal error while reading; please report it: {fault}.")
            while self.reader.package_faults:
                fault = self.reader.package_faults.pop()
                words().print(plain(f"  A reader of another package failed: {fault}."))
        for unusable in self.reader.unusable_recipes:
            words().print(plain(f"  {parse_text(unusable.sentence)}"), soft_wrap=True)
        return self.done


class _PathImport(msgspec.Struct, frozen=True):
    """The import of one path, or of the first with the further parts of its export."""

    path: Path
    further_parts: tuple[Path, ...]
    command: PathImports

    def run(self) -> None:
        """Open it, let each source read its part, say what nobody read."""
        try:
            if is_own_export(self.path, self.command.wanted.within):
                self._restore()
                return
            wanted = replace(self.command.wanted, further_parts=self.further_parts)
            contents, known_as = self._look(wanted)
            done = len(self.command.done.reports)
            for reading in contents.readings:
                self._import(reading, contents)
            reports = self.command.done.reports[done:]
            for report in reports if known_as else ():
                report["known_as"] = known_as
            if contents.could_be_tables and reports:
                self._replace_tables(contents, reports)
            rest = UnreadFiles(self.path, contents.unread)
            if rest.files:
                self.command.done.unread.append(rest)
                print_unread(rest, words())
        except BadRecord as bad:
            sentence = f"{self._name}: {bad.reason}."
            self._fail(Failure("usage", sentence, "Name another column."))
        except ExportError as error:
            self._refuse(error)

    def _look(self, wanted: Wanted) -> tuple[PathContents, list[str]]:
        """What the path holds, and the sources that know it where a table goes on.

        Raises: ExportError.
        """
        reader = self.command.reader
        try:
            found = reader.look(self.path, wanted)
            if not reader.recipes_inside and not found.could_be_tables:
                return found, []
        except ExportError as refusal:
            if not reader.recipes_inside:
                raise
            found = refusal
        # mail and archives of chats need no second look
        from personal_server.cli.second_look import second_look  # noqa: PLC0415

        return second_look(self.command, self.path, wanted, found)

    def _replace_tables(self, contents: PathContents, reports: Sequence[Data]) -> None:
        """Have the records of sources stand for those of tables that the same file was before."""
        from personal_server.cli.replaced_tables import replaced_tables  # noqa: PLC0415

        if self.command.open_ports is not None:
            with self.command.open_ports() as ports:
                tables = replaced_tables(ports, contents, reports)
            for report in reports:
                report |= tables.told

    @property
    def _name(self) -> str:
        return name_of_parts((self.path, *self.further_parts))

    def _named(self, sentence: CatalogueText) -> str:
        return message("%(file)s: %(sentence)s", file=self._name, sentence=sentence)

    def _restore(self) -> None:
        """An export of this program says itself which accounts it holds."""
        if not self.command.is_plain:
            sentence = self._named(
                message("The file is an export of this program, which takes no import options.")
            )
            self._fail(Failure("usage", sentence, "Import the file without options."))
            return
        words().print(plain(f"{self._name}: your own export"))
        # few imports are of one
        from personal_server.cli.own_export_import import import_own_export  # noqa: PLC0415

        try:
            import_own_export(self.path, self.command, progress)
        except PersonalServerError as error:
            if error.status >= 500:
                raise
            self._fail(failure_of(error))

    def _refuse(self, error: ExportError) -> None:
        sentence = self._named(text_of(error.sentence))
        self._fail(Failure(error.code, sentence, error.next_step))

    def _fail(self, failure: Failure) -> None:
        """Say it now, and remember it for the end."""
        self.command.done.failures.append((self.path, failure))
        if not self.command.as_json:
            print_failure(failure, as_json=False, out=sys.stdout, err=sys.stderr)

    def _import(self, reading: ProcessReading, contents: PathContents) -> None:
        if self.command.replaces and not reading.connector_key.startswith(OWN_FILE_PREFIX):
            sentence = f"{self._name}: --replace works only for tables."
            self._fail(Failure("usage", sentence, "Import the file without --replace."))
            return
        words().print(plain(f"{self._name}: {_heading(reading)}"))
        if self.path.name not in reading.seen.files:
            indented(f"reads {_first_of(reading.seen.files)}", 2, words())
        try:
            self.command.done.reports.append(self._report(reading, contents))
        except ExportError as error:
            self._refuse(error)
        except PersonalServerError as error:
            if error.status >= 500:
                raise
            failure, package = failure_of(error), reading.seen.package
            if package is not None and not failure.next_step:
                step = f"What is wrong stands in the package {package}: mend or remove it."
                failure = replace(failure, next_step=step)
            self._fail(failure)

    def _report(self, reading: ProcessReading, contents: PathContents) -> Data:
        opener = self.command.open_ports
        if opener is None:
            declaration = parse_declaration(reading.seen.declaration)
            with progress(reading.seen.begins_at, contents.total_bytes) as show_place:
                tally = survey(reading, declaration, show_place)
            return self._finished(reading, contents, tally, None, {}, {})
        with (
            opener() as ports,
            readings_here(self.command.reader, takes_little=ports.batch_parts > 1) as text_readings,
        ):
            changed, known = dict[tuple[str, str], str](), None
            if reading.seen.full_name and (
                known := known_table(ports.store, reading.seen, reading.facts())
            ):
                reading = reading.looked_again(known)
                changed = changed_kinds(known, reading.seen)
            begun_ns = ports.clock()
            declaration = declared(ports, reading.seen.declaration, begun_ns)
            account, why_new = self.command.account, ""
            accounts = accounts_of(ports.store, declaration.connector_key)
            if account is None and accounts:
                # the first file of a source needs none
                from personal_server.cli.account_of_file import account_of  # noqa: PLC0415

                ask = self.command.belongs
                goes_on = known is not None
                account, why_new = account_of(ports, accounts, reading, ask, goes_on=goes_on)
                reading = reading.looked_again()
            connection = connection_for(ports, declaration, account)
            target: Data | None = {
                "connection_id": connection.connection_id,
                "name": connection.display_name,
            }
            whole, earlier = self.command.replaces, None
            zone = reading.wanted.zone if self.command.names_zone else None
            if accounts:
                from personal_server.cli.repeated_files import earlier_imports  # noqa: PLC0415

                earlier = earlier_imports(ports, connection.connection_id, reading)
                from personal_server.cli.account_zone import in_zone_of_account  # noqa: PLC0415

                reading, zone = in_zone_of_account(ports.store, connection, reading, zone)
            lists = self.command.lists
            listed = ListedRecords(lists, connection.connection_id) if lists else None
            try:
                run = ImportRun(
                    ports,
                    reading,
                    connection,
                    declaration,
                    text_readings,
                    from_start=whole or (earlier is not None and earlier.from_start),
                    replaces=earlier.replaceable if earlier else None,
                    listed=listed,
                )
                tally = _run_through(run, reading.seen.begins_at, contents.total_bytes)
                _read_texts(run)
                agreed = earlier is not None and earlier.are_replaced_by(tally)
                if whole and tally.absent and not agreed:
                    agreed = may_delete(tally, self.command.yes)
                receipt = run.finish(
                    deletes_absent=agreed,
                    time_zone=zone if self.command.reader.used_zone else None,
                )
            except Exception:
                forget_if_empty(
                    ports.store, connection, made_since_ns=begun_ns, now_ns=ports.clock()
                )
                raise
            again = earlier.told(tally) if earlier else {}
            if not tally.holds_any and forget_if_empty(
                ports.store, connection, made_since_ns=begun_ns, now_ns=ports.clock()
            ):
                target, receipt = None, {}
        if why_new and target:
            words().print(f"  A new account, {target['name']}: {why_new}.", markup=False)
            target |= {"is_new": True, "why_new": why_new}
        report = self._finished(reading, contents, tally, target, receipt, changed) | again
        return report if listed is None else report | {"records": listed.as_json()}

    def _finished(
        self,
        reading: ProcessReading,
        contents: PathContents,
        tally: ImportTally,
        target: Data | None,
        receipt: Data,
        changed: Mapping[tuple[str, str], str],
    ) -> Data:
        refused, stored = contents.refused, target is not None
        if not self.command.as_json:
            print_tally(tally, refused, target, console(), stored=stored)
            if reading.seen.columns:
                print_columns(reading.seen.columns, changed, console(), stored=stored)
            if self.command.reader.used_zone:
                # few exports have such times
                from personal_server.cli.account_zone import print_zone  # noqa: PLC0415

                print_zone(reading.wanted.zone, self.command.wanted.zone)
        facts: Data = {"path": str(self.path), "connector_key": reading.connector_key}
        facts |= {"time_zone": reading.wanted.zone, "files": reading.seen.files}
        facts["times_without_zone"] = self.command.reader.used_zone
        if reading.seen.columns:
            facts["columns"] = columns_json(reading.seen.columns, changed)
        report = facts | {"connection": target} | tally_json(tally, refused, stored=stored)
        return report | ({"receipt": receipt} if receipt else {})


def declared(ports: ImportPorts, content: Data, now_ns: int) -> SourceDeclaration:
    """What a feed brings batch by batch is declared once; what is declared anew is vouched for."""
    if current := ports.store.declaration(str(content.get("connector_key")), None):
        declaration = parse_declaration(content)
        if current.digest != declaration.digest:
            from personal_server.cli.vouched_declarations import vouch  # noqa: PLC0415 (few)

            vouch(declaration.connector_key, content)
        elif ports.is_fed:  # a server has laid it out
            return declaration
    return declare(ports.store, content, now_ns).declaration


def _heading(reading: ProcessReading) -> str:
    """What is read, and why it is known to be that."""
    title, why = str(reading.seen.declaration["display"]["name"]), reading.seen.why
    return why if why.startswith(title) else f"{title} ({why})"


def _first_of(names: Sequence[str]) -> str:
    """The first of some files, and how many more there are."""
    beyond = len(names) - SHOWN_EXAMPLES
    more = f" and {beyond:,} more" if beyond > 0 else ""
    return ", ".join(names[:SHOWN_EXAMPLES]) + more


def _run_through(run: ImportRun, first: int, total_bytes: int) -> ImportTally:
    def percent() -> int:
        return run.place * 100 // max(1, total_bytes)

    if run.place:
        words().print(f"  continuing the interrupted import at {percent()} %")
    try:
        with progress(first, total_bytes, run.place) as show_place:
            return run.run(show_place)
    except KeyboardInterrupt:
        words().print(
            f"  The import was interrupted at {percent()} %. The records read so far are stored."
        )
        words().print("  Run the same command again to continue.")
        raise


def _read_texts(run: ImportRun) -> None:
    """Read what the files say that came with the records, and show how many were read."""
    try:
        with _bar() as show_count:
            run.read_texts(show_count)
    except KeyboardInterrupt:
        words().print(
            "  The import was interrupted. All records are stored, some without "
            "the text of their files."
        )
        words().print("  Run the same command again to continue.")
        raise


@contextmanager
def progress(first: int, total_bytes: int, start: int = 0) -> Generator[ShowPlace]:
    """A bar on standard error, and what moves it."""
    with _bar(total_bytes - first, max(0, start - first)) as show_place:
        yield lambda position: show_place(position - first)


def _bar(total: int | None = None, done: int = 0) -> AbstractContextManager[ShowPlace]:
    """That of bytes, or of texts whose number nobody knows; none where nobody watches."""
    if not words().is_terminal:
        return nullcontext(lambda _: None)
    from personal_server.cli.import_bars import import_bar  # noqa: PLC0415 (at a terminal)

    return import_bar(total, done)
