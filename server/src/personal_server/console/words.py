"""Words for people: foreign text made safe to show, names of purposes, apps and browsers.  Pure.

Rule: foreign text reaches a page only through `domain/hidden_characters.shown`, which takes away
what can mislead the eye; escaping is the template's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlsplit

from pdpp_kernel.texts import CatalogueText, Text, day_of_text, message
from personal_server.domain.hidden_characters import is_hidden, shown

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")

PURPOSES: dict[str, Text] = {
    "https://pdpp.dev/purpose/agent_context": message("To give an AI agent context about you"),
    "https://pdpp.dev/purpose/ai_training": message("To train AI models"),
}

HELD_STATUSES: Mapping[str, Text] = {
    "active": message("active"),
    "waiting": message("waiting"),
    "paused": message("paused"),
    "revoked": message("revoked"),
    "expired": message("expired"),
    "consumed": message("consumed"),
}


def cut(text: str, limit: int) -> str:
    """The beginning of a text of any length in one line, with a mark where it goes on."""
    begun = shown(text[: 4 * limit], limit)
    return begun if len(text) <= 4 * limit or begun.endswith("…") else f"{begun}…"


def said(text: str, limit: int) -> str:
    """The same with its lines, and without a mark."""
    lines = text[:limit].replace("\r\n", "\n").split("\n")
    return "\n".join(
        "".join(
            " " if character.isspace() else character
            for character in line
            if character.isspace() or not is_hidden(character)
        )
        for line in lines
    )


def laid_open(text: str) -> str:
    """JSON text in which characters that could mislead the eye stand as their escapes."""
    return "".join(
        character
        if character == "\n" or not is_hidden(character)
        else json.dumps(character).strip('"')
        for character in text
    )


def purpose_label(code: str) -> Text | None:
    """What a known purpose means, in words; `None` for a URI we do not know."""
    return PURPOSES.get(code)


def monogram(name: str) -> str:
    """One or two capitals that stand for a name."""
    letters = [word[0] for word in shown(name, 80).split() if word[0].isalnum()]
    return "".join(letters[:2]).upper() or "?"


class DeclaredName(CatalogueText):
    """What a declaration calls a source, a kind of records, a view or a field.

    A page says it in its language where the catalogue holds it, as it does those of the sources
    that come with the program, and as it stands otherwise.
    """

    __slots__ = ()


def declared_name(text: str) -> str:
    """A name out of a declaration; an empty one as it is."""
    return DeclaredName(text.replace("%", "%%")) if text else text


def field_words(name: str) -> str:
    """A property name as words: `received_at` → `received at`."""
    return declared_name(shown(name.replace("_", " ").replace(".", " "), 80))


_BROWSERS = (
    ("Edg/", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS", "Mac"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)


def browser_name(user_agent: str | None) -> Text:
    """What a browser says it is, in short: `Chrome on Linux`."""
    agent = user_agent or ""
    browser = next((name for mark, name in _BROWSERS if mark in agent), None)
    system = next((name for mark, name in _SYSTEMS if mark in agent), None)
    if browser is None:
        return shown(agent, 60) or message("An unknown browser")
    if system is None:
        return browser
    return message("%(browser)s on %(system)s", browser=browser, system=system)


def redirect_place(uri: str | None) -> Text:
    """Where a redirect leads, for people.  Source: docs/contract/authorization-server.md 7.1."""
    if uri is None:
        return message("another device")
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https"):
        return message("another app on this computer")
    if parts.hostname in LOOPBACK_NAMES:
        return message("an app on this computer")
    return shown(parts.hostname or "", 255)


def leads_to_host(uri: str | None, host: str) -> bool:
    """Whether a redirect leads to the very domain that says who the app is."""
    parts = urlsplit(uri or "")
    return parts.scheme == "https" and parts.hostname == host


_TRUST: Mapping[str, tuple[str, Text]] = {
    "pre_registered": ("good", message("Set up on this server")),
    "dynamic": ("warn", message("Unverified app")),
    "local": ("good", message("Created on this computer")),
}


def trust_mark(
    registration: str | None, client_id: str, published_on: str | None = None
) -> tuple[str, Text]:
    """How far an app is known: the look of the mark, and its words.

    `published_on` is the day of a document that could not be fetched.
    Source: docs/contract/authorization-server.md 3.
    """
    host = urlsplit(client_id).hostname or ""
    if published_on is not None:
        day = day_of_text(published_on)
        return "warn", message(
            "As %(host)s published on %(day)s; this server did not fetch it", host=host, day=day
        )
    if registration == "client_id_metadata_document":
        return "good", message("Domain %(host)s checked", host=host)
    return _TRUST.get(registration or "", _TRUST["dynamic"])
