"""Grants as a terminal shows them, and as JSON: those there are, and one under review.

Source: docs/contract/authorization-server.md 15.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
from rich.console import Console
from rich.text import Text

from pdpp_kernel.result_size import RESULT_CHARS
from pdpp_kernel.texts import Joined, counted
from pdpp_kernel.values import instant_text
from pdpp_mcp_server.commands.tables import day, minute, plain, print_facts, table
from personal_server.consent.terms import EntryTerms
from personal_server.consent.unusual_reading import said_of
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import ContentLimit, StreamGrant, render_stream_grant
from personal_server.granting.holdings import (
    HeldGrant,
    Holding,
)
from personal_server.granting.reading_alarms import (
    ReadingFigures,
    limit_words,
)
from personal_server.granting.reviews import Review
from personal_server.reading.preview import Evidence, StreamKey

# Values of a limit that a line names.
SHOWN_VALUES = 12
COLUMNS = ("id", "client", "until", "last used", "streams")


def print_review(review: Review, evidence: Mapping[StreamKey, Evidence], out: Console) -> None:
    """What would be granted, as the consent page would show it."""
    terms = review.terms
    name = review.asked.display.get("name", review.asked.client.client_id)
    out.print(Text.assemble(("For    ", "bold"), plain(name)))
    mode = "one-time" if terms.access_mode == "single_use" else "ongoing"
    out.print(Text.assemble(("Access ", "bold"), f"{mode}, until {day(terms.expires_at_ns)}"))
    for entry in terms.entries:
        _print_entry(entry, evidence, out)


def _print_entry(entry: EntryTerms, evidence: Mapping[StreamKey, Evidence], out: Console) -> None:
    offer = entry.offer
    names = {c.connection_id: c.display_name or c.connection_id for c in offer.connections}
    out.print()
    out.print(Text.assemble((f"{offer.declaration.display_name}", "bold cyan")))
    for stream in entry.streams:
        _print_stream(stream, names, evidence, out)


def _print_stream(
    stream: StreamGrant,
    names: Mapping[str, str],
    evidence: Mapping[StreamKey, Evidence],
    out: Console,
) -> None:
    stream_keys = [(connection, stream.name) for connection in stream.instance_ids]
    evidences = [evidence[key] for key in stream_keys if key in evidence]
    out.print(Text.assemble("  ", (stream.name, "bold"), f"  {_count_words(evidences)}"))
    for label, text in stream_facts(stream, names):
        out.print(Text.assemble(f"    {label:<7}", plain(text)))


def stream_facts(stream: StreamGrant, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is granted of a stream, its connections by their names; what is empty is left out."""
    facts = {
        "of": ", ".join(names.get(connection, connection) for connection in stream.instance_ids),
        "fields": ", ".join(stream.fields),
        "when": _window_words(stream.time_constraint),
        "only": counted(len(stream.resources), "named record") if stream.resources else "",
    }
    limits = [("only", only_words(limit)) for limit in stream.only]
    return [*((label, text) for label, text in facts.items() if text), *limits]


def only_words(limit: ContentLimit) -> str:
    """A limit by content, as far as it fits a line."""
    texts = [str(text) for text in limit.values[:SHOWN_VALUES]]
    more = len(limit.values) - len(texts)
    return f"{limit.field}: {', '.join(texts)}{f' and {more} more' if more else ''}"


def _count_words(evidences: Iterable[Evidence]) -> str:
    """`412 records, 2002-09-01 to 2002-10-31`."""
    items = list(evidences)
    count = sum(evidence.count for evidence in items)
    bound = "at least " if any(evidence.at_least for evidence in items) else ""
    counted = f"{bound}{count:,} {'record' if count == 1 else 'records'}"
    earliest = min((e.earliest for e in items if e.earliest), default=None)
    latest = max((e.latest for e in items if e.latest), default=None)
    if earliest is None or latest is None:
        return counted
    return f"{counted}, {earliest[:10]} to {latest[:10]}"


def _window_words(window: TimeConstraint | None) -> str:
    """The time window in words of its field; empty without one."""
    if window is None:
        return ""
    since = f" from {window.since}" if window.since else ""
    until = f" before {window.until}" if window.until else ""
    return f"{window.field}{since}{until}"


def print_held_list(holdings: Sequence[Holding], alarms: Collection[str], out: Console) -> None:
    """One line each, and which of them read something unusual."""
    if not holdings:
        out.print("No app has access.")
        return
    out.print(table(COLUMNS, (_line(holding) for holding in holdings)))
    for holding in holdings:
        if holding.id in alarms:
            out.print(f"Unusual reading noticed: pdpp grant show {holding.id}", style="red")


def _line(holding: Holding) -> tuple[object, ...]:
    streams = [name for grant in holding.grants for name in _streams(grant)]
    return (
        holding.id,
        holding.title,
        day(holding.expires_at_ns) if holding.status == "active" else holding.status,
        "–" if holding.last_used_at_ns is None else day(holding.last_used_at_ns),
        ", ".join(streams),
    )


def _streams(grant: HeldGrant) -> list[str]:
    if grant.grant is None:
        return [f"{grant.connector_key}: unreadable"]
    return [f"{grant.connector_key}/{stream.name}" for stream in grant.grant.streams]


_BINDINGS = {
    "key": "token bound to the app's key",
    "bearer": "ordinary bearer token",
    None: "no token issued yet",
}


def print_held(
    holding: Holding, binding: str | None, figures: ReadingFigures, out: Console
) -> None:
    """Everything about one."""
    facts = {
        "id": holding.id,
        **({} if holding.name is None else {"name": holding.name}),
        "client": f"{holding.client_name} ({holding.client_id})",
        "state": holding.status
        if holding.reason is None
        else f"{holding.status} ({holding.reason})",
        "access": "once" if holding.access_mode == "single_use" else "standing",
        "since": minute(holding.issued_at_ns),
        "until": day(holding.expires_at_ns),
        "last used": minute(holding.last_used_at_ns),
        "token": _BINDINGS[binding],
        **({} if holding.replaces is None else {"changed from": holding.replaces}),
        "read today": str(
            Joined(
                (
                    counted(figures.today.records, "record"),
                    counted(figures.today.requests, "request"),
                )
            )
        ),
        "a day": limit_words(figures.limits),
    }
    print_facts(facts.items(), out)
    for alarm in figures.alarms:
        words_of_alarm = said_of(alarm.rule, alarm.detail)
        out.print(Text(f"Unusual, {minute(alarm.at_ns)}: {words_of_alarm}.", style="red"))
    if figures.alarms:
        out.print(f"Dismiss the alarm with: pdpp grant dismiss {holding.id}")
    for grant in holding.grants:
        _print_grant(grant, out)


def _print_grant(held_grant: HeldGrant, out: Console) -> None:
    out.print()
    title = f"{held_grant.connector_key}  {held_grant.grant_id}  {held_grant.status}"
    out.print(Text(title, style="bold cyan"))
    for stream in held_grant.grant.streams if held_grant.grant else ():
        out.print(Text.assemble("  ", (stream.name, "bold")))
        print_facts(stream_facts(stream, {}), out, "    ")


def held_json(holding: Holding) -> dict[str, object]:
    """One grant or package; no token, no code."""
    return {
        "id": holding.id,
        "kind": holding.kind,
        "client_id": holding.client_id,
        "client_name": holding.client_name,
        "name": holding.name,
        "replaces": holding.replaces,
        "status": holding.status,
        "access_mode": holding.access_mode,
        "issued_at": instant_text(holding.issued_at_ns),
        "expires_at": _instant(holding.expires_at_ns),
        "revoked_at": _instant(holding.revoked_at_ns),
        "reason": holding.reason,
        "last_used_at": _instant(holding.last_used_at_ns),
        "grants": [_grant_json(grant) for grant in holding.grants],
    }


def figures_json(figures: ReadingFigures) -> dict[str, object]:
    """What was read, what may be, and what was unusual."""
    limits = figures.limits
    return {
        "read_today": msgspec.to_builtins(figures.today),
        "limits_per_day": {
            "records": limits.records_per_day,
            "bytes": limits.bytes_per_day,
            "requests": limits.requests_per_day,
        },
        "pauses_on_alarm": limits.pauses,
        "result_chars": limits.result_chars or RESULT_CHARS,
        "events": limits.events is True,
        "alarms": [
            {"rule": alarm.rule, "at": instant_text(alarm.at_ns), "paused": alarm.paused}
            | {"said": said_of(alarm.rule, alarm.detail)}
            for alarm in figures.alarms
        ],
    }


def _grant_json(held_grant: HeldGrant) -> dict[str, object]:
    streams = held_grant.grant.streams if held_grant.grant else ()
    return {
        "grant_id": held_grant.grant_id,
        "connector_key": held_grant.connector_key,
        "status": held_grant.status,
        "streams": [render_stream_grant(stream) for stream in streams],
    }


def _instant(ns: int | None) -> str | None:
    return None if ns is None else instant_text(ns)
