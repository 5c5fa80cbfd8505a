"""`pdpp disclosures`: who read what, when; never what it said.

Source: docs/contract/resource-server.md 14.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
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
        asked: Annotated[bool, Parameter(negative="")] = False,
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
        asked
            What was asked and which records were given, as long as that is kept
            (PDPP_ASKED_DETAIL_DAYS).
        json
            Print JSON.
        """
        given = {"grant_id": grant, "client_id": client, "stream": stream}
        equal = tuple((name, value) for name, value in given.items() if value is not None)
        with open_store() as store:
            found = store.disclosures.disclosures(DisclosureQuery(limit=limit, equal=equal))
            with store.authorization.read() as reader:
                names = client_names(reader, (entry.client_id for _, entry in found))
            if asked:
                details = store.disclosures.asked_details([number for number, _ in found])
                found = tuple((n, replace(each, detail=details.get(n))) for n, each in found)
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
            for entry in entries if asked else ():
                out.print(_asked(entry))

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


def _asked(entry: DisclosureEntry) -> Text:
    """One line on what was asked, and the keys of what was given."""
    detail = entry.detail
    said = "no longer kept" if detail is None else detail.asked
    keys = "" if detail is None or not detail.keys else f" → {', '.join(detail.keys)}"
    return Text.assemble((f"{minute(entry.at_ns)}  ", "dim"), plain(said), plain(keys))


def _json(entry: DisclosureEntry) -> dict[str, object]:
    members: dict[str, object] = asdict(entry)
    members.pop("subject_id")
    members.pop("detail")
    if entry.detail is not None:
        members |= {"asked": entry.detail.asked, "keys": list(entry.detail.keys)}
    members["at"] = render_instant(entry.at_ns)
    del members["at_ns"]
    return members


disclosures = disclosures_command(open_store)
