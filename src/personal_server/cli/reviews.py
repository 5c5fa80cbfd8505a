"""A review in words for the terminal: what the consent page would show.  Source: AS contract 15."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rich.console import Console
from rich.text import Text

from personal_server.cli.tables import day, plain
from personal_server.consent.terms import EntryTerms
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import StreamGrant
from personal_server.granting.reviews import Review
from personal_server.reading.preview import Evidence, Place


def print_review(review: Review, evidence: Mapping[Place, Evidence], out: Console) -> None:
    """Say what would be granted."""
    terms = review.terms
    name = review.asked.display.get("name", review.asked.client.client_id)
    out.print(Text.assemble(("For    ", "bold"), plain(name)))
    mode = "once" if terms.access_mode == "single_use" else "standing"
    out.print(Text.assemble(("Access ", "bold"), f"{mode}, until {day(terms.expires_at_ns)}"))
    for entry in terms.entries:
        _print_entry(entry, evidence, out)


def count_words(found: Iterable[Evidence]) -> str:
    """`412 records, 2002-09-01 to 2002-10-31`."""
    each = list(found)
    count = sum(evidence.count for evidence in each)
    bound = "at least " if any(evidence.at_least for evidence in each) else ""
    words = f"{bound}{count:,} {'record' if count == 1 else 'records'}"
    earliest = min((e.earliest for e in each if e.earliest), default=None)
    latest = max((e.latest for e in each if e.latest), default=None)
    return (
        words
        if earliest is None or latest is None
        else f"{words}, {earliest[:10]} to {latest[:10]}"
    )


def window_words(window: TimeConstraint | None) -> str:
    """The time window in words of its field; empty without one."""
    if window is None:
        return ""
    since = f" from {window.since}" if window.since else ""
    until = f" before {window.until}" if window.until else ""
    return f"{window.field}{since}{until}"


def _print_entry(entry: EntryTerms, evidence: Mapping[Place, Evidence], out: Console) -> None:
    offer = entry.offer
    names = {c.connection_id: c.display_name or c.connection_id for c in offer.connections}
    out.print()
    out.print(Text.assemble((f"{offer.declaration.display_name}", "bold cyan")))
    for stream in entry.streams:
        _print_stream(stream, names, evidence, out)


def _print_stream(
    stream: StreamGrant,
    names: Mapping[str, str],
    evidence: Mapping[Place, Evidence],
    out: Console,
) -> None:
    places = [(connection, stream.name) for connection in stream.instance_ids]
    found = [evidence[place] for place in places if place in evidence]
    lines = {
        "of": ", ".join(names.get(connection, connection) for connection in stream.instance_ids),
        "fields": ", ".join(stream.fields),
        "when": window_words(stream.time_constraint),
        "only": f"{len(stream.resources)} named records" if stream.resources else "",
    }
    out.print(Text.assemble("  ", (stream.name, "bold"), f"  {count_words(found)}"))
    for label, text in lines.items():
        if text:
            out.print(Text.assemble(f"    {label:<7}", plain(text)))
