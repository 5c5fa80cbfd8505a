"""`pdpp import`, `sources`, `receipts`: real exports in, with an honest report of what was read.

Rule: safe to repeat (what is there already does not change) and safe to interrupt (the same command
goes on where it stopped).
"""

from __future__ import annotations

from datetime import UTC, tzinfo
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import cyclopts
from cyclopts import Parameter

from personal_server.cli.exits import CommandError, print_json
from personal_server.cli.import_paths import (
    Opener,
    Wanted,
    archives_first,
    import_paths,
    known_source,
)
from personal_server.cli.receipts import all_receipts, print_receipts
from personal_server.cli.source_pages import print_source, print_sources, source_json
from personal_server.cli.tables import console
from personal_server.sources.registry import SOURCES
from personal_server.sources.tables.reader import Guidance


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
