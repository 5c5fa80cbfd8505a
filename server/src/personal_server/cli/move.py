"""`pdpp move`: the same server on another database.

Source: docs/postgresql.md.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from pdpp_kernel.texts import counted
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import words
from pdpp_mcp_server.settings import InvalidSetting
from personal_server.app.moves import move
from personal_server.cli.server_settings import settings_or_exit
from personal_server.settings import Settings, from_env
from personal_server.storage.sql.care.whole_copy import Tell


def move_command(*, to: str, schema: str | None = None, json: bool = False) -> None:
    """Move everything to PostgreSQL, or back into a data directory, while no server runs.

    Accounts, records, grants, tokens, bookmarks and logs all move. You can interrupt the command
    and run it again. The old copy stays as it is; archive or delete it afterwards.

    Parameters
    ----------
    to
        The target: the `postgresql://…` address of a database, or a data directory.
    schema
        The schema of the target database. Default: PDPP_DATABASE_SCHEMA.
    json
        Print the digest of each table as JSON.
    """
    settings = settings_or_exit()
    target = target_of(settings, to, schema)
    with _progress() as tell:
        moved = move(settings, target, tell)
    if json:
        print_json({"tables": dict(moved.digests), "blobs": moved.blobs})
        return
    say = words().print
    say(f"Moved {counted(len(moved.digests), 'table')}; the copy was checked and is identical.")
    if target.database_url is None:
        say(f"Start the server with PDPP_DATA_DIR={target.data_dir}, and unset PDPP_DATABASE_URL.")
    else:
        say(
            "Set PDPP_DATABASE_URL to the address of that database, and "
            "PDPP_DATABASE_SCHEMA to that schema."
        )
    say("Archive or delete the old copy. If both copies are used, their histories diverge.")


def target_of(settings: Settings, to: str, schema: str | None) -> Settings:
    """The settings of a server that works there.  Raises: CommandError."""
    if not to.startswith(("postgresql://", "postgres://")):
        directory = Path(to).expanduser().absolute()
        return replace(settings, data_dir=directory, database_url=None, database_listen_url=None)
    variables = {
        "PDPP_DATABASE_URL": to,
        "PDPP_DATABASE_SCHEMA": schema or settings.database_schema,
    }
    try:
        target = from_env(variables)
    except InvalidSetting as error:
        raise CommandError("config", str(error), "Correct --to or --schema.") from None
    return replace(
        settings, database_url=target.database_url, database_schema=target.database_schema
    )


@contextmanager
def _progress() -> Generator[Tell, None, None]:
    """A bar for each table with many lines; a line when it is done where nobody watches."""
    bar = Progress(
        TextColumn("  {task.description}"), BarColumn(), MofNCompleteColumn(), console=words()
    )
    tasks: dict[str, TaskID] = {}

    def tell(name: str, copied: int, count: int) -> None:
        if name not in tasks:
            tasks[name] = bar.add_task(name, total=count)
        bar.update(tasks[name], completed=copied)
        if copied == count and not words().is_terminal:
            words().print(f"  {name}: {count:,}")

    with bar:
        yield tell
