"""How a feed signs in: by a password, or at its provider by tokens, and what gives it new ones.

Source: docs/contract/feeds.md 8 and 10.
"""

from __future__ import annotations

import shlex
from dataclasses import replace

from pdpp_kernel.errors import InvalidState
from pdpp_kernel.texts import message
from personal_server.app.feed_secrets import TOKENS_BEGIN, FeedSecrets
from personal_server.app.feeding import feed_store
from personal_server.app.stores import Stores
from personal_server.feeds import feed_states
from personal_server.storage.feed_rows import FeedRow


def new_password(stores: Stores, feed: FeedRow, password: str, ends_ns: int | None = None) -> None:
    """Keep a new password, and let a feed go on that failed; what signs in may have an end.

    Raises: NotFound.
    """
    FeedSecrets.of(stores).keep(feed, password)
    now_ns = stores.clock()
    feed_store(stores).change_feed(
        feed.feed_id,
        lambda each: replace(
            feed_states.trust(each, now_ns),
            sign_in_ends_ns=ends_ns,
            provider=provider_of_tokens(password),
        ),
    )


def sign_in_command(stores: Stores, feed: FeedRow) -> str | None:
    """What signs in again, behind the name of the program; nothing where a password does.

    Where the tokens are lost, as after a restore, so is the client: it is named anew.
    """
    kept = FeedSecrets.of(stores).password(feed)
    provider = provider_of_tokens(kept)
    words = ["feed", "sign-in", feed.name]
    if provider is None and feed.provider is not None:
        words += ["--oauth", feed.provider, "--client-id", "ID"]
    return shlex.join(words) if provider or feed.provider else None


def require_password(stores: Stores, feed: FeedRow) -> None:
    """Raises: InvalidState for a feed that signs in by tokens, which a password would replace."""
    command = sign_in_command(stores, feed)
    if command is not None:
        raise InvalidState(
            "This feed signs in at the provider, without a password.",
            next_step=message("Sign in again with `pdpp %(command)s`.", command=command),
        )


def provider_of_tokens(kept: str | None) -> str | None:
    """The provider, where tokens are kept in the place of a password."""
    if kept is None or not kept.startswith(TOKENS_BEGIN):
        return None
    from personal_server.app.oauth_access import access_of  # noqa: PLC0415 (few do)

    access = access_of(kept)
    return None if access is None else access.provider
