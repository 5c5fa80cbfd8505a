"""JMAP accounts as their owners add them: where one is, and how it signs in.

Source: docs/contract/feeds.md 8, 8.1 and 13.
"""

from __future__ import annotations

from contextlib import closing
from functools import partial
from urllib.parse import urlsplit

from pdpp_kernel.errors import InvalidRequest
from pdpp_sources.account_requests import AccountTrouble
from pdpp_sources.jmap.jmap_messages import AskMailboxes, BeginJmap, MailboxSeen
from pdpp_sources.jmap.jmap_process import jmap_process
from personal_server.app.asked_server import client_of
from personal_server.app.jmap_mailboxes import fetched_of, paths_of
from personal_server.app.jmap_wire import JmapServer
from personal_server.app.mailbox_folders import order_of
from personal_server.app.web_places import WebPlace
from personal_server.feeds.feed_kinds import JMAP
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.mail_providers import mail_providers, provider_of
from personal_server.feeds.wanted_accounts import SeenFolder

LOOK_SECONDS = 10.0
"""In which each request of a look is answered."""


def jmap_place(typed: str, user: str | None = None, *, is_token: bool = False) -> WebPlace:
    """Where an account is: at a URL; of an address where its provider has it, with a token, else at
    its domain.

    In: `ada@example.org`.  Out: `https://example.org/`, of `ada@example.org`.
    Raises: InvalidRequest.
    """
    url = typed
    if "@" in typed and "/" not in typed:
        provider, user = provider_of(typed), user or typed
        named = None if provider is None else provider.jmap
        url = named or f"https://{typed.rpartition('@')[2]}/"
    if not user:
        raise InvalidRequest(
            "The name to sign in with is missing.",
            param="user",
            next_step="Give the name that you sign in with there.",
        )
    try:
        is_token = is_token or _takes_tokens(WebPlace.typed(JMAP, url, user))
        return WebPlace.typed(JMAP, url, user, is_token=is_token)
    except FetchTrouble:
        raise InvalidRequest(
            "This is not an https address.",
            param="url",
            next_step="Give one such as https://jmap.example.org/. Without TLS only a server on"
            " 127.0.0.1 is asked.",
        ) from None


def _takes_tokens(place: WebPlace) -> bool:
    """Whether a place is of a provider in the table, where an API token signs in."""
    jmap = [each.jmap for each in mail_providers().values() if each.jmap is not None]
    return place.host in {urlsplit(each).hostname for each in jmap}


def mailboxes_at(place: WebPlace, password: str) -> list[SeenFolder]:
    """Sign in once and list the mailboxes, those that are fetched first.  Raises: FetchTrouble."""
    server = JmapServer(place, password)
    server.answer_seconds = LOOK_SECONDS
    server.open_client = partial(client_of, LOOK_SECONDS)
    try:
        with closing(server), jmap_process(server) as process:
            for _ in process.ask(BeginJmap(place.url, None)):
                pass
            asked = process.ask(AskMailboxes(None))
            listed = [each for each in asked if isinstance(each, MailboxSeen)]
    except AccountTrouble as trouble:
        raise FetchTrouble(trouble.code) from None
    paths = paths_of(listed)
    usual = fetched_of(listed, paths, ())
    ordered = sorted(
        listed, key=lambda each: (each.mailbox not in usual, order_of(paths[each.mailbox]))
    )
    return [SeenFolder(paths[each.mailbox], each.mails, each.mailbox in usual) for each in ordered]
