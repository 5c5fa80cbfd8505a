"""`pdpp disclosures`: who read what, when; never what it said.

Source: docs/contract/resource-server.md 14.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Annotated

import cyclopts
from cyclopts import Parameter
from rich.text import Text

from personal_server.cli.exits import print_json
from personal_server.cli.store import StoreOpener, open_store
from personal_server.cli.tables import console, minute, plain, table
from personal_server.domain.disclosure import DENIED, DisclosureEntry
from personal_server.domain.values import render_instant
from personal_server.granting.holdings import client_names
from personal_server.storage.ports import DisclosureQuery

COLUMNS = ("when (UTC)", "who", "how", "stream", "records", "fields", "bytes")
WIDE_CHARS = 120
"""A terminal of this width has room for the names of fields and for bytes."""


def disclosures_command(open_store: StoreOpener) -> Callable[..., None]:
    """The command `pdpp disclosures`."""

    def disclosures(
        *,
        limit: Annotated[
            int, Parameter(validator=cyclopts.validators.Number(gte=1, lte=1000))
        ] = 25,
        grant: str | None = None,
        client: str | None = None,
        stream: str | None = None,
        json: bool = False,
    ) -> None:
        """Show what was read from your records, newest first.

        Parameters
        ----------
        limit
            How many entries.
        grant
            Only of this grant.
        client
            Only of this client id.
        stream
            Only of this stream.
        json
            Print JSON.
        """
        given = {"grant_id": grant, "client_id": client, "stream": stream}
        equal = tuple((name, value) for name, value in given.items() if value is not None)
        with open_store() as store:
            found = store.disclosures.disclosures(DisclosureQuery(limit=limit, equal=equal))
            with store.authorization.read() as reader:
                names = client_names(reader, (entry.client_id for _, entry in found))
        entries = [entry for _, entry in found]
        if json:
            print_json([_json(entry) for entry in entries])
        elif not entries:
            console().print("Nothing has been read yet.")
        else:
            out = console()
            wide = out.width >= WIDE_CHARS
            lines = (_line(entry, names, wide=wide) for entry in entries)
            out.print(table(COLUMNS if wide else COLUMNS[:-1], lines))

    return disclosures


def _line(entry: DisclosureEntry, names: Mapping[str, str], *, wide: bool) -> tuple[object, ...]:
    refused = entry.outcome == DENIED
    who = names.get(entry.client_id or "", entry.client_id or "you")
    how = entry.tool or f"{entry.channel} {entry.route.rsplit('/', 1)[-1]}"
    why = f"refused: {entry.error_code}".replace("_", " ")
    records = Text(why, style="red") if refused else entry.record_count
    return (
        minute(entry.at_ns),
        who,
        how,
        entry.stream or "–",
        records,
        plain(", ".join(entry.fields) if wide else len(entry.fields) or "–"),
        *(("–" if refused else f"{entry.size_bytes:,}",) if wide else ()),
    )


def _json(entry: DisclosureEntry) -> dict[str, object]:
    members: dict[str, object] = asdict(entry)
    members.pop("subject_id")
    members["at"] = render_instant(entry.at_ns)
    del members["at_ns"]
    return members


disclosures = disclosures_command(open_store)
