"""`pdpp feed add-mailbox`, `add-calendar`, `add-contacts` and `password`: feeds that sign in.

Source: docs/contract/feeds.md 8, 10 and 12.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from getpass import getpass
from typing import Annotated

from cyclopts import Parameter

from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import plain, words
from pdpp_sources.dav.dav_messages import DavTrouble
from personal_server.app.dav_runs import USUAL_EVERY_SECONDS as USUAL_DAV_SECONDS
from personal_server.app.dav_wire import DavPlace
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feeding import feed_store
from personal_server.app.mailbox_runs import KIND as MAILBOX
from personal_server.app.mailbox_runs import MailPlace
from personal_server.app.stores import open_stores
from personal_server.cli.feed import (
    Flag,
    NewFeed,
    deleted_there,
    feed_json,
    feed_named,
    folders_of,
    seconds_of,
    spelled,
)
from personal_server.cli.kept_data import open_kept_stores
from personal_server.cli.server_settings import settings_or_exit
from personal_server.feeds import feed_states
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.fetched_batches import (
    ADDRESS_BOOKS,
    CALENDARS,
    FOLLOW,
    KEEP,
    FetchTrouble,
)

_CALLED = {CALENDARS: "calendars", ADDRESS_BOOKS: "contacts"}
"""How a feed is called after its user."""


@dataclass(frozen=True)
class AccountOptions:
    """How the feed of an account is called, what it fills and when it runs.

    Parameters
    ----------
    name
        What the feed is called. Default: the address, or the user and what is fetched.
    connection
        The account to import into, by name. Default: found as `pdpp import` finds it.
    every
        How often to look, such as 30s, 5m, 1h. Default: 60s for mail, else 5m.
    json
        Print JSON.
    """

    name: str | None = None
    connection: str | None = None
    every: str | None = None
    json: Flag = False


Options = Annotated[AccountOptions | None, Parameter(name="*")]


def add_mailbox(
    address: str,
    /,
    *,
    host: str,
    user: str | None = None,
    port: int | None = None,
    starttls: Flag = False,
    folder: list[str] | None = None,
    deletions: str | None = None,
    options: Options = None,
) -> None:
    """Keep a mailbox current over IMAP; nothing there is ever changed.

    The password is asked for, or read from standard input. Most providers want an app password.

    Parameters
    ----------
    address
        The address of the mailbox.
    host
        The IMAP server of the provider, such as imap.example.org.
    user
        The name to sign in with. Default: the address.
    port
        The port. Default: 993, with TLS. A server on 127.0.0.1 is asked without TLS, at 143.
    starttls
        Begin TLS after the greeting (STARTTLS), at port 143 unless you name one: for servers
        without the port 993.
    folder
        A folder to fetch; give it several times for several. Default: all but junk and trash.
    deletions
        keep (records of mails that are deleted there stay here) or follow (they are deleted here
        too). Default: asked at a terminal, else keep.
    """
    try:
        place = MailPlace.spelled(host, user or address, port, starttls=starttls)
    except FetchTrouble:
        raise CommandError(
            "usage",
            "This is not the address of a mail server.",
            "Name the server alone: --host imap.example.org.",
        ) from None
    options = options or AccountOptions()
    feed = NewFeed(
        name=options.name or address,
        kind=MAILBOX,
        place=place,
        layout=MAILBOX,
        account=options.connection,
        every_seconds=seconds_of(options.every),
        deletions=_deletions(deletions),
        chosen=tuple(folder or ()),
    )
    hint = f"Folders: {folders_of(feed)}. Deleted there: {deleted_there(feed)}."
    _add(feed, host, hint, as_json=options.json)


def add_calendar(
    url: str, /, *, user: str, deletions: str | None = None, options: Options = None
) -> None:
    """Keep calendars current over CalDAV; nothing there is ever changed.

    The password is asked for, or read from standard input. Most providers want an app password.

    Parameters
    ----------
    url
        The address of the provider for CalDAV, such as caldav.example.org, or of one calendar.
    user
        The name to sign in with.
    deletions
        keep (records of what is deleted there stay here) or follow (they are deleted here too).
        Default: asked at a terminal, else keep.
    """
    _add_dav(CALENDARS, url, user, deletions, options or AccountOptions())


def add_contacts(
    url: str, /, *, user: str, deletions: str | None = None, options: Options = None
) -> None:
    """Keep address books current over CardDAV; nothing there is ever changed.

    The password is asked for, or read from standard input. Most providers want an app password.

    Parameters
    ----------
    url
        The address of the provider for CardDAV, such as carddav.example.org, or of one address
        book.
    user
        The name to sign in with.
    deletions
        keep (records of what is deleted there stay here) or follow (they are deleted here too).
        Default: asked at a terminal, else keep.
    """
    _add_dav(ADDRESS_BOOKS, url, user, deletions, options or AccountOptions())


def password(feed: str, /) -> None:
    """Give a new password for an account, and let its feed go on.

    Parameters
    ----------
    feed
        The name or id of the feed.
    """
    with open_kept_stores() as stores:
        row = feed_named(stores, feed)
        FeedSecrets.of(stores).keep(row.feed_id, _typed_password())
        if row.state in (FeedState.NEEDS_YOU, FeedState.RESTING):
            now_ns = stores.clock()
            feed_store(stores).change_feed(row.feed_id, lambda e: feed_states.resume(e, now_ns))
    words().print("The password was saved, sealed, on this machine.")


def _add_dav(
    kind: str, url: str, user: str, deletions: str | None, options: AccountOptions
) -> None:
    """Raises: CommandError, before anything is asked."""
    try:
        place = DavPlace.spelled(kind, url, user)
    except DavTrouble:
        raise CommandError(
            "usage",
            "This is not an https address.",
            "Give one such as https://dav.example.org/. Without TLS only a server on 127.0.0.1 is"
            " asked.",
        ) from None
    feed = NewFeed(
        name=options.name or f"{user} {_CALLED[kind]}",
        kind=kind,
        place=place,
        layout=kind,
        account=options.connection,
        every_seconds=seconds_of(options.every, USUAL_DAV_SECONDS),
        deletions=_deletions(deletions),
    )
    found = DavPlace.of(place)
    hint = f"Deleted there: {deleted_there(feed)}."
    if found.is_plain:
        hint += " The password travels without TLS, on this machine only."
    _add(feed, found.host, hint, as_json=options.json)


def _add(feed: NewFeed, host: str, hint: str, *, as_json: bool) -> None:
    """Keep a feed with its password, and say so.  Raises: CommandError, InvalidState."""
    settings, typed = settings_or_exit(), _typed_password()
    with open_stores(settings, serving=False) as stores:
        row = feed.added(stores)
        FeedSecrets.of(stores).keep(row.feed_id, typed)
    if as_json:
        print_json(feed_json(row))
        return
    words().print(plain(f"{row.name}: the server fetches what is new from {host}."))
    words().print(hint, markup=False)
    words().print(f"Now: pdpp feed run {spelled(row.name)}", markup=False)


def _deletions(given: str | None) -> str:
    """What becomes of records of what is deleted in the account.  Raises: CommandError."""
    if given is None and sys.stdin.isatty():
        words().print("What you delete there: should it be deleted here too? [y/N]")
        given = FOLLOW if input().strip().lower() in ("y", "yes") else KEEP
    if given not in (None, KEEP, FOLLOW):
        raise CommandError("usage", "Deletions are kept or followed.", "--deletions keep|follow")
    return given or KEEP


def _typed_password() -> str:
    """Asked for at a terminal, else the first line of standard input.  Raises: CommandError."""
    typed = getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not typed:
        raise CommandError("usage", "No password was given.", "Give it on standard input.")
    return typed
