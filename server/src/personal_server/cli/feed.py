"""`pdpp feed`: places that the server looks at by itself, and what it took from them.

Source: docs/contract/feeds.md 7 and 8.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import cyclopts
import msgspec

from pdpp_kernel.errors import InvalidState
from pdpp_kernel.texts import counted
from pdpp_kernel.values import NANOSECONDS
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, minute, plain, print_facts, words
from personal_server.app.account_sign_ups import NewFeed, forget_feed
from personal_server.app.feed_imports import ImportCommand
from personal_server.app.feed_secrets import FeedSecrets, PasswordPlace
from personal_server.app.feeding import feed_engine, feed_store, jmap_runs, mailbox_runs
from personal_server.app.stores import Stores, open_stores
from personal_server.cli.feed_checks import FeedComparison, check_feed, check_mailbox
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
from personal_server.cli.kept_data import open_kept_stores, settings_of_kept
from personal_server.cli.server_settings import settings_or_exit
from personal_server.cli.store import open_reader
from personal_server.feeds import feed_states
from personal_server.feeds.feed_kinds import DAV_KINDS, FOLDER_KIND, MAIL_KINDS, MAILBOX
from personal_server.feeds.feed_ledger import SETTLED_AFTER_NS, ItemState
from personal_server.feeds.feed_runs import RunResult
from personal_server.feeds.feed_sentences import advice, what_to_do
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.feed_trouble import trouble_of
from personal_server.feeds.watched_folders import FolderLayout, FolderTrouble, layout_of
from personal_server.storage.feed_rows import KEEP, FeedRow, FeedRunRow

UNFINISHED = 65
SHOWN = 20

feed = cyclopts.App(
    name="feed",
    help="Watch folders, mailboxes, calendars and contacts, so that accounts stay current.",
)


@feed.command
def add(
    place: Path,
    /,
    *,
    name: str | None = None,
    connection: str | None = None,
    layout: str | None = None,
    deletions: str | None = None,
    every: str | None = None,
    json: Flag = False,
) -> None:
    """Watch a folder, or fetch a mailbox: what comes is imported while the server runs.

    Parameters
    ----------
    place
        A folder of downloads, a Maildir, a vault of notes, the profile of a browser; or the
        address of a mailbox at a provider that the server knows, as add-mailbox takes it.
    name
        What the feed is called. Default: the name of the folder, or the address.
    connection
        The account to import into, by name. Default: found as `pdpp import` finds it.
    layout
        Of a folder: exports (each file is an export), or maildir, profile or tree (the folder is
        one). Default: by what lies there.
    deletions
        Of a folder of notes (tree): keep records of notes that are deleted or renamed there, or
        follow, to delete them here too. Of a mailbox: what becomes of mails deleted there.
        Default: your answer in a terminal, else keep.
    every
        How often to look, such as 30s, 5m, 1h. Default: 60s.
    json
        Print JSON.
    """
    if _is_address(place):
        from personal_server.cli.account_feeds import MailboxOptions, add_mailbox  # noqa: PLC0415

        options = MailboxOptions(name=name, connection=connection, every=every, json=json)
        add_mailbox(str(place), deletions=deletions, options=options)
        return
    settings = settings_or_exit()
    folder = _folder(place, settings.data_dir)
    try:
        chosen = FolderLayout(layout) if layout else layout_of(folder)
    except ValueError:
        kinds = ", ".join(FolderLayout)
        raise CommandError("usage", "There is no such layout.", f"Choose of {kinds}.") from None
    except FolderTrouble as trouble:
        raise CommandError("usage", what_to_do(trouble.code)) from None
    new = NewFeed(
        name=name or folder.name or str(folder),
        kind=FOLDER_KIND,
        place=str(folder),
        layout=chosen,
        account=connection,
        every_seconds=seconds_of(every),
        deletions=_deletions(deletions, chosen),
    )
    with open_stores(settings, serving=False) as stores:
        row = new.added(stores)
    if json:
        print_json(feed_json(row))
        return
    words().print(plain(f"{row.name}: the server looks at this folder ({row.layout})."))
    words().print(
        "It runs while `pdpp serve` runs; nothing is ever changed in the folder, and what is"
        f" deleted there {_fate(row)}.\nNow: pdpp feed run {spelled(row.name)}",
        markup=False,
    )


_ACCOUNTS = "personal_server.cli.account_feeds"
feed.command(f"{_ACCOUNTS}:add_mailbox", name="add-mailbox")
feed.command(f"{_ACCOUNTS}:add_jmap", name="add-jmap")
feed.command(f"{_ACCOUNTS}:add_calendar", name="add-calendar")
feed.command(f"{_ACCOUNTS}:add_contacts", name="add-contacts")
feed.command(f"{_ACCOUNTS}:password", name="password")
feed.command("personal_server.cli.oauth_sign_ins:sign_in", name="sign-in")


@feed.command(name="list")
def list_(*, json: Flag = False) -> None:
    """List feeds: state, last success, next run, and what failed.

    Parameters
    ----------
    json
        Print JSON.
    """
    with open_kept_stores() as stores:
        rows = feed_store(stores).feeds()
        last = {row.feed_id: feed_store(stores).feed_runs(row.feed_id, 1) for row in rows}
        refused = {row.feed_id: _rejected(stores, row) for row in rows}
        secrets = FeedSecrets.of(stores)
        kept = {row.feed_id: secrets.place_of(row) for row in rows if row.kind != FOLDER_KIND}
    if json:
        shown = [
            feed_json(row, last[row.feed_id]) | {"password_in": kept.get(row.feed_id)}
            for row in rows
        ]
        print_json(shown)
        return
    if not rows:
        console().print("No feeds. Watch a folder: pdpp feed add FOLDER")
    for row in rows:
        console().print(plain(row.name), style="bold", soft_wrap=True)
        facts = _facts(row, last[row.feed_id], refused[row.feed_id], kept.get(row.feed_id))
        print_facts(facts, console(), "  ")


@feed.command
def run(feed: str, /, *, json: Flag = False) -> int:
    """Look at the place of a feed and import what is new, now and in this process.

    Parameters
    ----------
    feed
        The name or id of the feed.
    json
        Print JSON.
    """
    settings = settings_of_kept()
    with open_stores(settings, serving=False) as stores:
        row = feed_named(stores, feed)
        if row.state == FeedState.PAUSED:
            raise InvalidState(
                "This feed is paused.", next_step=f"pdpp feed resume {spelled(row.name)}"
            )
        importer = ImportCommand.of(settings)
        engine = feed_engine(settings, stores, importer)
        if row.state != FeedState.RUNNING:
            feed_store(stores).change_feed(
                row.feed_id, lambda e: feed_states.ask(e, stores.clock())
            )
        result = engine.run(row.feed_id, retries=True)
        if result is not None and result.settling and result.code is None:
            if not json:
                words().print("A file there changed seconds ago; looking again …")
            time.sleep(SETTLED_AFTER_NS / NANOSECONDS)
            result = engine.run(row.feed_id)
        rejected = _rejected(stores, row)
    if json:
        shown = None if result is None else _result_json(result)
        print_json({"feed": row.name, "result": shown, "rejected": dict(rejected)})
    else:
        _print_result(row, result, rejected)
    return UNFINISHED if result is not None and (result.code or result.rejected) else 0


@feed.command
def pause(feed: str, /) -> None:
    """Stop looking until you resume.

    Parameters
    ----------
    feed
        The name or id of the feed.
    """
    with open_kept_stores() as stores:
        row = feed_named(stores, feed)
        feed_store(stores).change_feed(row.feed_id, feed_states.pause)
    words().print(f"Paused. Resume with: pdpp feed resume {spelled(row.name)}", markup=False)


@feed.command
def resume(feed: str, /) -> None:
    """Let a feed go on that is paused, or that needed you.

    Parameters
    ----------
    feed
        The name or id of the feed.
    """
    settings = settings_of_kept()
    with open_stores(settings, serving=False) as stores:
        row = feed_named(stores, feed)
        feed_engine(settings, stores, ImportCommand.of(settings)).resume(row.feed_id)
    words().print("Resumed.")


@feed.command
def check(feed: str, /, *, json: Flag = False) -> int:
    """Compare the place, what was imported from it, and your records; list every difference.

    Parameters
    ----------
    feed
        The name or id of the feed.
    json
        Print JSON.
    """
    settings = settings_of_kept()
    with open_stores(settings, serving=False) as stores, open_reader() as reader:
        row = feed_named(stores, feed)
        zone = settings.time_zone or "UTC"
        if row.kind in MAIL_KINDS:
            fetches = mailbox_runs if row.kind == MAILBOX else jmap_runs
            runs = fetches(settings, stores, ImportCommand.of(settings))
            found = check_mailbox(row, stores, reader, zone, runs)
        elif row.kind in DAV_KINDS:
            from personal_server.cli.dav_checks import check_account  # noqa: PLC0415

            found = check_account(row, settings, stores, reader)
        else:
            found = check_feed(row, stores, reader, zone)
    if json:
        print_json(msgspec.to_builtins(found))
    else:
        _print_check(found)
    return UNFINISHED if found.is_short else 0


@feed.command
def remove(feed: str, /) -> None:
    """Forget a feed. Its records stay.

    Parameters
    ----------
    feed
        The name or id of the feed.
    """
    with open_kept_stores() as stores:
        row = feed_named(stores, feed)
        forget_feed(stores, row)
    words().print("The feed was removed. All records stay.")


def _is_address(path: Path) -> bool:
    """Whether this is meant as the address of a mailbox, and as no folder that is there."""
    return "@" in path.name and path.name == str(path) and not path.exists()


def _folder(folder: Path, data_dir: Path) -> Path:
    """A folder that may be watched.  Raises: CommandError."""
    resolved = folder.resolve()
    if not resolved.is_dir():
        raise CommandError("usage", "This is not a folder.", "Name a folder that exists.")
    ours = data_dir.resolve()
    if resolved == ours or resolved in ours.parents or ours in resolved.parents:
        raise CommandError(
            "usage",
            "This folder holds the data of the server.",
            "Watch a folder apart from the data directory.",
        )
    return resolved


def _deletions(given: str | None, layout: FolderLayout) -> str:
    """What becomes of records of notes that go; of other folders, all stay.  Raises: CommandError.

    A file that is cleared out of Downloads is no reason to lose what it brought.
    """
    if layout is FolderLayout.TREE:
        return deletions_of(given)
    if given not in (None, KEEP):
        raise CommandError(
            "usage",
            "Only of a folder of notes (tree) can deletions be followed.",
            "Leave out --deletions: what is deleted in this folder stays in your records.",
        )
    return KEEP


def _fate(row: FeedRow) -> str:
    return "stays in your records" if row.deletions == KEEP else "is deleted from your records"


def _rejected(stores: Stores, row: FeedRow) -> Sequence[tuple[str, str]]:
    """The items that were not read, each with its code."""
    lines = feed_store(stores).feed_items(row.feed_id)
    return [
        (each.item, each.code) for each in lines if each.state == ItemState.REJECTED and each.code
    ]


def _facts(
    row: FeedRow,
    last: Sequence[FeedRunRow],
    refused: Sequence[tuple[str, str]],
    kept: PasswordPlace | None,
) -> Iterator[tuple[str, object]]:
    yield "place", f"{row.place} ({row.layout})"
    if row.kind in MAIL_KINDS:
        yield "folders", folders_of(row)
    if row.kind != FOLDER_KIND or row.layout == FolderLayout.TREE:
        yield "deleted there", deleted_there(row)
    if row.kind != FOLDER_KIND:
        yield "password", password_place(kept)
        if row.sign_in_ends_ns:
            yield "sign-in ends", minute(row.sign_in_ends_ns)
    yield "state", row.state
    if row.silent_since_ns:
        since = minute(row.silent_since_ns)
        yield "waits", f"the mail server has not answered since {since}; a large mailbox takes time"
    if row.code:
        since = f", since {minute(row.failing_since_ns)}" if row.failing_since_ns else ""
        yield "attention", f"{advice(row)} ({row.code}{since})"
    elif advice(row):
        yield "attention", f"{advice(row)} ({trouble_of(row)})"
    yield "success", minute(row.succeeded_at_ns) if row.succeeded_at_ns else "none yet"
    if row.brought_at_ns:
        yield "newest data", minute(row.brought_at_ns)
    if row.state in (FeedState.WAITING, FeedState.RESTING):
        yield "next run", minute(row.due_at_ns)
    if last:
        yield "last run", f"{counted(last[0].seen, 'item')} seen, {last[0].records_new} new records"
    if refused:
        yield "not read", f"{counted(len(refused), 'item')}: pdpp feed check {spelled(row.name)}"
    yield "id", row.feed_id


def _result_json(result: RunResult) -> dict[str, object]:
    members: dict[str, object] = msgspec.to_builtins(result)
    del members["reached_ns"], members["is_fetched"], members["pause_seconds"]
    return members | {"connection_ids": sorted(result.connection_ids)}


def _print_result(
    feed: FeedRow, result: RunResult | None, rejected: Sequence[tuple[str, str]]
) -> None:
    out = console()
    if result is None:
        out.print(
            "An earlier import of this feed is still under way; the next one starts when it ends."
        )
        return
    if result.code is not None:
        out.print(plain(f"The run failed ({result.code}). {what_to_do(result.code)}"))
    read = result.new + result.changed - result.settling - result.rejected
    taken = counted(max(0, read), "item")
    out.print(
        plain(
            f"{counted(result.seen, 'item')} seen, {taken} imported:"
            f" {counted(result.records_new, 'new record')},"
            f" {counted(result.records_updated, 'updated record')}."
        )
    )
    if result.settling:
        out.print(f"{counted(result.settling, 'item')} still changing; the next run takes them.")
    if result.gone:
        fate = "; their records stay" if feed.deletions == KEEP else ""
        out.print(f"{counted(result.gone, 'item')} gone there{fate}.")
    if result.records_deleted:
        out.print(f"{counted(result.records_deleted, 'record')} deleted here too.")
    for item, code in rejected[:SHOWN]:
        out.print(plain(f"  not read: {item} ({code}). {what_to_do(code)}"), soft_wrap=True)


def _print_check(found: FeedComparison) -> None:
    out = console()
    out.print(f"{counted(found.items, 'item')} there, {counted(found.records, 'record')} in them.")
    if not found.differences:
        out.print("No differences: everything there is in your records.")
    for each in found.differences[:SHOWN]:
        code = f" ({each.code}). {what_to_do(each.code)}" if each.code else ""
        out.print(plain(f"  {each.reason}: {each.item}{code}"), soft_wrap=True)
    beyond = len(found.differences) - SHOWN
    if beyond > 0:
        out.print(f"  and {beyond:,} more: --json lists all.")
