"""What a search found, as a person reads it at the terminal: when, who and where, then the text.

    Wed 2024-03-13 22:05 · Ada · Telegram · messages 7.2
      The recipe (https://example.org/r)

What stands behind the last dot is what `fetch` takes, or `pdpp show`.
Source: docs/contract/authorization-server.md 14.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from rich.text import Text

from pdpp_mcp_server.commands.quiet_texts import quiet_line, quiet_text
from pdpp_mcp_server.commands.record_rows import utc_minute
from pdpp_mcp_server.commands.tables import console, indented
from pdpp_mcp_server.rs_client.json_values import Json, as_object, as_text, objects_in

_BETWEEN = " · "


class HitPlace(msgspec.Struct, frozen=True):
    """Where a hit is: its account, empty where `handle` names it, and what a command takes."""

    account: str
    handle: str


def print_hits(hits: Iterable[Json], placed: Callable[[Json], HitPlace] | None = None) -> None:
    """Two lines a hit, three where its title does not say what was found."""
    for hit in hits:
        console().print(_heading(hit, (placed or _account_and_key)(hit)), soft_wrap=True)
        for line in _said_once(_title(hit), _excerpt(hit)):
            indented(line, 2, console())


def _heading(hit: Json, hit_place: HitPlace) -> Text:
    when = as_text(hit.get("when")) or utc_minute(as_text(hit.get("authored_at")) or "")
    parts = (when, as_text(hit.get("author")), hit_place.account)
    before = "".join(f"{quiet_text(part)}{_BETWEEN}" for part in parts if part)
    return Text.assemble(before, (quiet_text(hit_place.handle), "bold"))


def _account_and_key(hit: Json) -> HitPlace:
    return HitPlace(str(hit.get("display_name")), f"{hit.get('stream')} {hit.get('id')}")


def _title(hit: Json) -> str:
    return quiet_line(as_text(hit.get("title")) or "")


def _excerpt(hit: Json) -> str:
    previews = (as_text(e.get("preview_text")) for e in objects_in(hit.get("evidence_excerpts")))
    snippet = as_text(as_object(hit.get("snippet")).get("text"))
    return quiet_line(next(previews, None) or snippet or "")


def _said_once(title: str, excerpt: str) -> list[str]:
    """Both, but one alone where it holds the other: a chat's title is the start of its text."""
    found = excerpt.strip("…. ").casefold()
    named = title.strip("…. ").casefold()
    if not found or found in named:
        return [title or excerpt] if title or excerpt else []
    return [excerpt] if not named or named in found else [title, excerpt]
