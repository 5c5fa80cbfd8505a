"""Grants and packages, printed: as a list, as one, as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from personal_server.cli.reviews import window_words
from personal_server.cli.tables import day, minute, print_facts, table
from personal_server.domain.grant import render_stream_grant
from personal_server.domain.values import instant_text
from personal_server.granting.holdings import Held, HeldGrant

COLUMNS = ("id", "client", "until", "last used", "streams")


def print_held_list(held: Sequence[Held], out: Console) -> None:
    """One line each."""
    if not held:
        out.print("Nobody has access.")
        return
    out.print(table(COLUMNS, (_line(one) for one in held)))


def print_held(held: Held, out: Console) -> None:
    """Everything about one."""
    facts = {
        "id": held.id,
        "client": f"{held.client_name} ({held.client_id})",
        "state": held.status if held.reason is None else f"{held.status} ({held.reason})",
        "access": "once" if held.access_mode == "single_use" else "standing",
        "since": minute(held.issued_at_ns),
        "until": day(held.expires_at_ns),
        "last used": minute(held.last_used_at_ns),
    }
    print_facts(facts.items(), out)
    for grant in held.grants:
        _print_grant(grant, out)


def held_json(held: Held) -> dict[str, object]:
    """One grant or package; no token, no code."""
    return {
        "id": held.id,
        "kind": held.kind,
        "client_id": held.client_id,
        "client_name": held.client_name,
        "status": held.status,
        "access_mode": held.access_mode,
        "issued_at": instant_text(held.issued_at_ns),
        "expires_at": _instant(held.expires_at_ns),
        "revoked_at": _instant(held.revoked_at_ns),
        "reason": held.reason,
        "last_used_at": _instant(held.last_used_at_ns),
        "grants": [_grant_json(grant) for grant in held.grants],
    }


def _line(held: Held) -> tuple[object, ...]:
    streams = [name for grant in held.grants for name in _streams(grant)]
    return (
        held.id,
        held.client_name,
        day(held.expires_at_ns) if held.status == "active" else held.status,
        "–" if held.last_used_at_ns is None else day(held.last_used_at_ns),
        ", ".join(streams),
    )


def _streams(grant: HeldGrant) -> list[str]:
    if grant.grant is None:
        return [f"{grant.connector_key}: unreadable"]
    return [f"{grant.connector_key}/{stream.name}" for stream in grant.grant.streams]


def _print_grant(held: HeldGrant, out: Console) -> None:
    out.print()
    title = f"{held.connector_key}  {held.grant_id}  {held.status}"
    out.print(Text(title, style="bold cyan"))
    for stream in held.grant.streams if held.grant else ():
        out.print(Text.assemble("  ", (stream.name, "bold")))
        facts = {
            "of": ", ".join(stream.instance_ids),
            "fields": ", ".join(stream.fields),
            "when": window_words(stream.time_constraint),
            "only": f"{len(stream.resources)} named records" if stream.resources else "",
        }
        shown = [(label, text) for label, text in facts.items() if text]
        print_facts(shown, out, "    ")


def _grant_json(held: HeldGrant) -> dict[str, object]:
    streams = held.grant.streams if held.grant else ()
    return {
        "grant_id": held.grant_id,
        "connector_key": held.connector_key,
        "status": held.status,
        "streams": [render_stream_grant(stream) for stream in streams],
    }


def _instant(ns: int | None) -> str | None:
    return None if ns is None else instant_text(ns)
