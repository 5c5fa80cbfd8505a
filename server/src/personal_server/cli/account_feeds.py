"""Feeds that sign in: `pdpp feed add-mailbox`, `add-jmap`, `add-calendar`, `add-contacts` and
`password`.

Source: docs/contract/feeds.md 8, 8.1, 10 and 12.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from getpass import getpass
from typing import Annotated

from cyclopts import Parameter
from msgspec.structs import replace

from pdpp_kernel.errors import InvalidRequest
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import plain, words
from personal_server.app.account_sign_ups import (
    NewFeed,
    dav_place,
    mailbox_place,
    new_dav,
    new_mailbox,
)
from personal_server.app.dav_runs import USUAL_EVERY_SECONDS as USUAL_DAV_SECONDS
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feed_sign_ins import new_password, require_password
from personal_server.app.stores import open_stores
from personal_server.cli.feed_lines import (
    Flag,
    deleted_there,
    deletions_of,
    feed_json,
    feed_named,
    folders_of,
    password_place,
    seconds_of,
    spelled,
)
from personal_server.cli.kept_data import open_kept_stores
from personal_server.cli.oauth_sign_ins import OAuthOptions, ends_hint, signed_in
from personal_server.cli.server_settings import settings_or_exit
from personal_server.feeds.feed_kinds import ADDRESS_BOOKS, CALENDARS


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


@dataclass(frozen=True)
class MailboxOptions(AccountOptions):
    """What a mailbox has beside.

    Parameters
    ----------
    sign_in
        Without a password.
    """

    sign_in: Annotated[OAuthOptions | None, Parameter(name="*")] = None


def add_mailbox(
    address: str,
    /,
    *,
    host: str | None = None,
    user: str | None = None,
    port: int | None = None,
    starttls: Flag = False,
    folder: list[str] | None = None,
    deletions: str | None = None,
    options: Annotated[MailboxOptions | None, Parameter(name="*")] = None,
) -> None:
    """Keep a mailbox current over IMAP; nothing there is ever changed.

    The password is asked for, or read from standard input. Most providers want an app password;
    with --oauth you sign in at the provider instead, with a client that you registered there.

    Parameters
    ----------
    address
        The address of the mailbox.
    host
        The IMAP server of the provider, such as imap.example.org. Default: that of a large
        provider, by the address.
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
    options = options or MailboxOptions()
    oauth = options.sign_in if options.sign_in and options.sign_in.is_wanted() else None
    client = oauth.client() if oauth is not None else None
    if client is not None:
        host, user = host or client.provider.imap, user or address
    try:
        place = mailbox_place(address, host=host, user=user, port=port, starttls=starttls)
    except InvalidRequest as error:
        raise _usage(error, "--host imap.example.org") from None
    feed = new_mailbox(
        address,
        place,
        name=options.name,
        account=options.connection,
        every_seconds=seconds_of(options.every),
        deletions=deletions_of(deletions),
        chosen=tuple(folder or ()),
    )
    hint = f"Folders: {folders_of(feed)}. Deleted there: {deleted_there(feed)}."
    if client is None or oauth is None:
        _add(feed, place.host, hint, as_json=options.json)
        return
    text, ends_ns = signed_in(client, place.user, time.time_ns(), with_browser=oauth.browser)
    feed = replace(feed, sign_in_ends_ns=ends_ns)
    _add(feed, place.host, hint + ends_hint(ends_ns), text, as_json=options.json)


def add_jmap(
    account: str,
    /,
    *,
    user: str | None = None,
    token: Flag = False,
    folder: list[str] | None = None,
    deletions: str | None = None,
    options: Options = None,
) -> None:
    """Keep a mailbox current over JMAP; nothing there is ever changed.

    The password or API token is asked for, or read from standard input. New mail comes with the
    next look (--every), not at once as it does over IMAP.

    Parameters
    ----------
    account
        Your mail address, or the address of the provider for JMAP, such as
        https://jmap.example.org/.
    user
        The name to sign in with. Default: the mail address.
    token
        The password is an API token; at Fastmail it always is, also without --token.
    folder
        A folder to fetch, such as Work/Bills; give it several times for several. Default: all but
        junk and trash.
    deletions
        keep (records of mails that are deleted there stay here) or follow (they are deleted here
        too). Default: asked at a terminal, else keep.
    """
    from personal_server.app.jmap_sign_ups import jmap_place  # noqa: PLC0415 (few do)

    options = options or AccountOptions()
    try:
        place = jmap_place(account, user, is_token=token)
    except InvalidRequest as error:
        raise _usage(error, "--user ada@example.org") from None
    feed = new_mailbox(
        place.user,
        place,
        name=options.name,
        account=options.connection,
        every_seconds=seconds_of(options.every),
        deletions=deletions_of(deletions),
        chosen=tuple(folder or ()),
    )
    hint = f"Folders: {folders_of(feed)}. Deleted there: {deleted_there(feed)}."
    _add(feed, place.host, hint, as_json=options.json)


def add_calendar(
    url: str, /, *, user: str | None = None, deletions: str | None = None, options: Options = None
) -> None:
    """Keep calendars current over CalDAV; nothing there is ever changed.

    The password is asked for, or read from standard input. Most providers want an app password.

    Parameters
    ----------
    url
        The address of the provider for CalDAV, such as caldav.example.org, or of one calendar; or
        your mail address at a provider that the server knows.
    user
        The name to sign in with. Default: the mail address.
    deletions
        keep (records of what is deleted there stay here) or follow (they are deleted here too).
        Default: asked at a terminal, else keep.
    """
    _add_dav(CALENDARS, url, user, deletions, options or AccountOptions())


def add_contacts(
    url: str, /, *, user: str | None = None, deletions: str | None = None, options: Options = None
) -> None:
    """Keep address books current over CardDAV; nothing there is ever changed.

    The password is asked for, or read from standard input. Most providers want an app password.

    Parameters
    ----------
    url
        The address of the provider for CardDAV, such as carddav.example.org, or of one address
        book; or your mail address at a provider that the server knows.
    user
        The name to sign in with. Default: the mail address.
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
        require_password(stores, row)
        words().print(plain(f"The password is for {row.place}"), soft_wrap=True)
        new_password(stores, row, _typed_password())
        kept = FeedSecrets.of(stores).place_of(row)
    words().print(f"The password was saved: {password_place(kept)}.")


def _add_dav(
    kind: str, url: str, user: str | None, deletions: str | None, options: AccountOptions
) -> None:
    """Raises: CommandError, before anything is asked."""
    try:
        place = dav_place(kind, url, user)
    except InvalidRequest as error:
        raise _usage(error, "--user ada@example.org") from None
    feed = new_dav(
        place,
        name=options.name,
        account=options.connection,
        every_seconds=seconds_of(options.every, USUAL_DAV_SECONDS),
        deletions=deletions_of(deletions),
    )
    hint = f"Deleted there: {deleted_there(feed)}."
    if place.is_plain:
        hint += " The password travels without TLS, on this machine only."
    _add(feed, place.host, hint, as_json=options.json)


def _usage(error: InvalidRequest, example: str) -> CommandError:
    """A refusal as a command says it; what is missing is named as it is typed."""
    step = str(error.members.get("next_step") or "")
    if error.param in ("host", "user") and "export" not in step:
        step = f"{step} For example: {example}"
    return CommandError("usage", error.message, step)


def _add(
    feed: NewFeed, host: str, hint: str, password: str | None = None, *, as_json: bool
) -> None:
    """Keep a feed with its password, and say so.  Raises: CommandError, InvalidState."""
    settings, typed = settings_or_exit(), password or _typed_password()
    with open_stores(settings, serving=False) as stores:
        row = feed.added(stores, typed)
    if as_json:
        print_json(feed_json(row))
        return
    words().print(plain(f"{row.name}: the server fetches what is new from {host}."))
    words().print(hint, markup=False)
    words().print(f"Now: pdpp feed run {spelled(row.name)}", markup=False)


def _typed_password() -> str:
    """Asked for at a terminal, else the first line of standard input.  Raises: CommandError."""
    typed = getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not typed:
        raise CommandError("usage", "No password was given.", "Give it on standard input.")
    return typed
