"""Which account of its source a file goes into, where its owner named none and some are there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pdpp_sources.export_files import name_of_parts
from pdpp_sources.file_names import family_name
from pdpp_sources.reader_process import ProcessReading
from personal_server.cli.import_questions import Belongs
from personal_server.collecting.imports import ImportPorts
from personal_server.collecting.whose_file import SeenFile, whose_file
from personal_server.domain.connection import Connection


def account_of(
    ports: ImportPorts,
    accounts: Sequence[Connection],
    reading: ProcessReading,
    ask: Belongs | None,
    *,
    goes_on: bool,
) -> tuple[str | None, str]:
    """The account that a file goes into, and why into a new one; the reader has moved on then.

    Shapes: `goes_on` where it is known as the next file of a table that is stored.
    Raises: AmbiguousConnection, where the owner has to choose.
    """
    name = name_of_parts((reading.path, *reading.wanted.further_parts))
    digest: str | None = reading.facts().get("sha256")
    file = SeenFile(
        reading.connector_key, name, digest, reading.seen.files, reading.items, _family_of
    )
    whose = whose_file(ports.store, accounts, file, continues=goes_on)
    if whose.account is not None:
        return whose.account.connection_id, ""
    if whose.verdict == "several" or (ask is not None and len(accounts) > 1):
        return None, ""  # it is told that there are several
    if ask is not None:
        return ask(accounts[0]) or accounts[0].connection_id, ""
    called = f"{reading.seen.declaration['display']['name']} ({whose.owner or name})"
    if whose.verdict == "other":
        return called, "the file belongs to somebody else than what is stored"
    return called, "nothing in the file tells whether it belongs to an account that is there"


def _family_of(name: str) -> str:
    """The name of a file without what says of when it is, or which copy."""
    path = Path(name)
    return family_name(path.stem) + path.suffix.lower()
