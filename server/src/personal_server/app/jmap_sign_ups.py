"""JMAP accounts as their owners add them: where one is, and how it signs in.

Source: docs/contract/feeds.md 8, 8.1 and 13.
"""

from __future__ import annotations

from pdpp_kernel.errors import InvalidRequest
from personal_server.app.account_sign_ups import NewFeed
from personal_server.app.jmap_wire import JmapPlace
from personal_server.feeds.feed_kinds import JMAP
from personal_server.feeds.feed_schedule import USUAL_EVERY_SECONDS
from personal_server.feeds.fetched_batches import FetchTrouble
from personal_server.feeds.mail_providers import provider_of
from personal_server.storage.feed_rows import KEEP


def jmap_place(typed: str, user: str | None = None, *, is_token: bool = False) -> JmapPlace:
    """Where an account is: at a URL; of an address where its provider has it, with a token, else at
    its domain.

    In: `ada@example.org`.  Out: `https://example.org/`, of `ada@example.org`.
    Raises: InvalidRequest.
    """
    url = typed
    if "@" in typed and "/" not in typed:
        provider, user = provider_of(typed), user or typed
        named = None if provider is None else provider.jmap
        url, is_token = named or f"https://{typed.rpartition('@')[2]}/", is_token or bool(named)
    if not user:
        raise InvalidRequest(
            "The name to sign in with is missing.",
            param="user",
            next_step="Give the name that you sign in with there.",
        )
    try:
        return JmapPlace.of(JmapPlace.spelled(url, user, is_token=is_token))
    except FetchTrouble:
        raise InvalidRequest(
            "This is not an https address.",
            param="url",
            next_step="Give one such as https://jmap.example.org/. Without TLS only a server on"
            " 127.0.0.1 is asked.",
        ) from None


def new_jmap(
    place: JmapPlace,
    *,
    name: str | None = None,
    account: str | None = None,
    every_seconds: int = USUAL_EVERY_SECONDS,
    deletions: str = KEEP,
    chosen: tuple[str, ...] = (),
) -> NewFeed:
    """The feed of an account, called after its user."""
    return NewFeed(
        name=name or place.user,
        kind=JMAP,
        place=place.text,
        layout=JMAP,
        account=account,
        every_seconds=every_seconds,
        deletions=deletions,
        chosen=chosen,
    )
