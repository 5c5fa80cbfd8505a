"""`pdpp feed add-calendar` and `add-contacts`: accounts that speak CalDAV or CardDAV.

Source: docs/contract/feeds.md 8 and 12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlsplit

from cyclopts import Parameter

from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import plain, words
from pdpp_sources.dav.dav_messages import DavTrouble
from personal_server.app.dav_runs import USUAL_EVERY_SECONDS
from personal_server.app.dav_wire import DavPlace
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feeding import feed_store
from personal_server.app.stores import open_stores
from personal_server.cli.feed import feed_json, seconds_of, spelled, typed_password
from personal_server.cli.server_settings import settings_or_exit
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.fetched_batches import ADDRESS_BOOKS, CALENDARS
from personal_server.storage.feed_rows import FeedRow

Flag = Annotated[bool, Parameter(negative="")]


@dataclass(frozen=True, slots=True)
class _NewFeed:
    """What was typed of a feed."""

    kind: str
    url: str
    user: str
    name: str | None
    connection: str | None
    every: str | None
    json: bool


def add_calendar(
    url: str,
    /,
    *,
    user: str,
    name: str | None = None,
    connection: str | None = None,
    every: str | None = None,
    json: Flag = False,
) -> None:
    """Keep calendars current over CalDAV; nothing there is ever changed.

    The password is asked for, or read from standard input. Most providers want an app password.

    Parameters
    ----------
    url
        The address of the provider for CalDAV, such as caldav.example.org, or of one calendar.
    user
        The name to sign in with.
    name
        What the feed is called. Default: the user, and calendars.
    connection
        The account to import into, by name. Default: found as `pdpp import` finds it.
    every
        How often to look, such as 5m, 1h. Default: 5m.
    json
        Print JSON.
    """
    _add(_NewFeed(CALENDARS, url, user, name, connection, every, json))


def add_contacts(
    url: str,
    /,
    *,
    user: str,
    name: str | None = None,
    connection: str | None = None,
    every: str | None = None,
    json: Flag = False,
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
    name
        What the feed is called. Default: the user, and contacts.
    connection
        The account to import into, by name. Default: found as `pdpp import` finds it.
    every
        How often to look, such as 5m, 1h. Default: 5m.
    json
        Print JSON.
    """
    _add(_NewFeed(ADDRESS_BOOKS, url, user, name, connection, every, json))


def _add(new: _NewFeed) -> None:
    try:
        place = DavPlace.spelled(new.kind, new.url, new.user)
    except DavTrouble:
        raise CommandError(
            "usage",
            "This is not the address of a server with TLS.",
            "Give an https address. Without TLS only a server on 127.0.0.1 is asked.",
        ) from None
    password = typed_password()
    with open_stores(settings_or_exit(), serving=False) as stores:
        now_ns = stores.clock()
        row = FeedRow(
            feed_id=f"fee_{stores.random_bytes(12).hex()}",
            name=new.name or f"{new.user} {'calendars' if new.kind == CALENDARS else 'contacts'}",
            kind=new.kind,
            place=place,
            layout=new.kind,
            account=new.connection,
            every_seconds=seconds_of(new.every, USUAL_EVERY_SECONDS),
            state=FeedState.WAITING,
            created_at_ns=now_ns,
            due_at_ns=now_ns,
        )
        feed_store(stores).add_feed(row)
        FeedSecrets.of(stores).keep(row.feed_id, password)
    if new.json:
        print_json(feed_json(row))
        return
    url = DavPlace.of(place).url
    words().print(plain(f"{row.name}: the server fetches what changes from {_host(url)}."))
    if url.startswith("http:"):
        words().print("The password travels without TLS, on this machine only.")
    words().print(f"Now: pdpp feed run {spelled(row.name)}", markup=False)


def _host(url: str) -> str:
    return urlsplit(url).hostname or url
