"""`pdpp disclosures`: who read what, when, and what was asked; never what it said.

Source: docs/contract/resource-server.md 14.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import cyclopts
import msgspec
from cyclopts import Parameter
from msgspec.structs import replace
from rich.text import Text

from pdpp_kernel.texts import counted
from pdpp_kernel.values import render_instant
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, minute, plain, print_facts, table
from personal_server.cli.kept_data import open_store
from personal_server.cli.store import StoreOpener
from personal_server.domain.disclosure import DENIED, DisclosureEntry
from personal_server.granting.holdings import client_names
from personal_server.storage.ports.disclosure_stores import DisclosureQuery

COLUMNS = ("line", "when (UTC)", "who", "how", "stream", "records", "fields", "bytes")
LOOKED_AT = 100_000
"""How many answers are looked through for a record."""
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
        line: Annotated[int | None, Parameter(validator=cyclopts.validators.Number(gte=1))] = None,
        record: str | None = None,
        json: bool = False,
    ) -> None:
        """Show what apps read from your records, newest first.

        Parameters
        ----------
        limit
            How many entries to show.
        grant
            Only reads under this grant.
        client
            Only reads by the app with this client id.
        stream
            Only reads of this stream.
        asked
            Also show each request (search words, filters) and the keys of the records that were
            read, as long as the log keeps them (PDPP_ASKED_DETAIL_DAYS).
        line
            Only the log line with this number, with what the app asked for and the keys of the
            records.
        record
            Only reads that returned this record: CONNECTION/STREAM/KEY, as long as the log keeps
            the keys.
        json
            Print JSON.
        """
        filters = {"grant_id": grant, "client_id": client, "stream": stream}
        equal = tuple((name, value) for name, value in filters.items() if value is not None)
        query = DisclosureQuery(limit=limit, equal=equal)
        if line is not None:
            query = DisclosureQuery(limit=1, below=line + 1)
        with open_store() as store:
            if record is None:
                entries = store.disclosures.disclosures(query)
            else:
                entries = store.disclosures.disclosures_of(*_place(record), LOOKED_AT)[:limit]
            if line is not None and [number for number, _ in entries] != [line]:
                raise CommandError(
                    "not_found",
                    "The read log has no line with this number (any more).",
                    "Run `pdpp disclosures` to list the lines.",
                )
            with store.authorization.read() as reader:
                names = client_names(reader, (entry.client_id for _, entry in entries))
            if asked or line is not None:
                details = store.disclosures.asked_details([number for number, _ in entries])
                entries = tuple((n, replace(entry, detail=details.get(n))) for n, entry in entries)
        if json:
            print_json([_json(number, entry) for number, entry in entries])
        elif line is not None:
            _print_line(*entries[0], names)
        elif not entries:
            never = "No app has read anything yet."
            console().print(
                never if record is None else "The log says that nobody has read this record."
            )
        else:
            out = console()
            wide = out.width >= WIDE_CHARS
            lines = (_line(number, entry, names, wide=wide) for number, entry in entries)
            out.print(table(COLUMNS if wide else COLUMNS[:-1], lines))
            for number, entry in entries if asked else ():
                out.print(_asked(number, entry))

    return disclosures


def _place(record: str) -> tuple[str, str, str]:
    """Raises: CommandError."""
    connection_id, _, rest = record.partition("/")
    stream, _, key = rest.partition("/")
    if not (connection_id and stream and key):
        raise CommandError(
            "usage",
            "This does not name a record: a connection, a stream and a key are needed.",
            "Write the record as --record CONNECTION/STREAM/KEY",
        )
    return connection_id, stream, key


def _print_line(number: int, entry: DisclosureEntry, names: Mapping[str, str]) -> None:
    out, detail = console(), entry.detail
    refused = f"refused: {entry.error_code}".replace("_", " ")
    figures = f"{counted(entry.record_count, 'record')}, {counted(entry.size_bytes, 'byte')}"
    facts: list[tuple[str, object]] = [
        ("line", f"{number} ({entry.disclosure_id})"),
        ("when", f"{minute(entry.at_ns)} UTC"),
        ("who", names.get(entry.client_id or "", entry.client_id or "you")),
        ("access", entry.package_id or entry.grant_id or "–"),
        ("how", f"{entry.tool or entry.channel}, {entry.route}"),
        ("stream", "/".join(filter(None, (entry.connection_id, entry.stream))) or "–"),
        ("got", refused if entry.outcome == DENIED else figures),
        ("fields", ", ".join(entry.fields) or "–"),
    ]
    print_facts(facts, out)
    if detail is None:
        print_facts([("asked", "not logged, or deleted since")], out)
        return
    print_facts([("asked", "")] if detail.facts else [("asked", "without conditions")], out)
    for name, text in detail.facts:
        print_facts([(name, text)], out, "  ")
    print_facts([("records", "" if detail.keys else "none")], out)
    for key in detail.keys:
        out.print(plain(f"  {key}"), soft_wrap=True)


def _line(
    number: int, entry: DisclosureEntry, names: Mapping[str, str], *, wide: bool
) -> tuple[object, ...]:
    refused = entry.outcome == DENIED
    client = names.get(entry.client_id or "", entry.client_id or "you")
    call = entry.tool or f"{entry.channel} {entry.route.rsplit('/', 1)[-1]}"
    refusal = f"refused: {entry.error_code}".replace("_", " ")
    records = Text(refusal, style="red") if refused else entry.record_count
    return (
        number,
        minute(entry.at_ns),
        client,
        call,
        entry.stream or "–",
        records,
        plain(", ".join(entry.fields) if wide else len(entry.fields) or "–"),
        *(("–" if refused else f"{entry.size_bytes:,}",) if wide else ()),
    )


def _asked(number: int, entry: DisclosureEntry) -> Text:
    """One line on what was asked, and the keys of what was given."""
    detail = entry.detail
    request = "details deleted since" if detail is None else detail.asked
    keys = "" if detail is None or not detail.keys else f" → {', '.join(detail.keys)}"
    return Text.assemble((f"{number}  ", "dim"), plain(request), plain(keys))


def _json(number: int, entry: DisclosureEntry) -> dict[str, object]:
    members: dict[str, object] = {"number": number, **msgspec.to_builtins(entry)}
    members.pop("subject_id")
    members.pop("detail")
    if entry.detail is not None:
        members |= {"asked": entry.detail.asked, "keys": list(entry.detail.keys)}
    members["at"] = render_instant(entry.at_ns)
    del members["at_ns"]
    return members


disclosures = disclosures_command(open_store)
