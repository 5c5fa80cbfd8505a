"""`pdpp status` where the server is installed: the server of this machine, then what is connected.

Source: docs/contract/authorization-server.md 14.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

from pdpp_kernel.texts import counted
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from pdpp_mcp_server.commands.connect import CacheRoot, CommandContext
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.status import show_access
from pdpp_mcp_server.commands.tables import console, minute, print_facts
from pdpp_mcp_server.rs_client.discovery import ProviderExchange
from personal_server.app.backup_schedule import schedule_of
from personal_server.app.feeding import feed_store
from personal_server.app.stores import Stores, command_origin, open_stores
from personal_server.cli.findings import GOOD, WRONG
from personal_server.cli.health_findings import REACHABLE, server_findings
from personal_server.cli.kept_data import keeps_data
from personal_server.cli.server_settings import settings_or_exit
from personal_server.delivery.notice_channels import channels
from personal_server.feeds.feed_sentences import advice
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.feed_trouble import trouble_of
from personal_server.semantics.chosen import read_choice
from personal_server.semantics.index import percent_embedded
from personal_server.settings import Settings
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.ports.authorization_store import HeldQuery


def status_command(around: CommandContext) -> Callable[..., int]:
    """The command `pdpp status`."""

    def status(url: str | None = None, *, cache_root: CacheRoot = None, json: bool = False) -> int:
        """Show this machine's server, the servers connected here, and what you may read.

        Parameters
        ----------
        url
            Only this connected server.
        cache_root
            The folder with the saved credentials.
        json
            Print what is connected as JSON.
        """
        settings = settings_or_exit()
        if json or url is not None or not keeps_data(settings):
            return show_access(around, url, cache_root, as_json=json)
        print_server(around.exchange(), settings, console())
        try:
            return show_access(around, url, cache_root, as_json=False)
        except CommandError as error:
            if error.failure.code != "not_connected":
                raise
            console().print("No app was connected to a server from this folder.")
            return 0

    return status


def print_server(exchange: ProviderExchange, settings: Settings, out: Console) -> None:
    """What a server keeps, who may read it, and what needs attention."""
    out.print(f"{settings.server_name}, in {settings.data_dir}", style="bold", markup=False)
    with open_stores(settings, serving=False) as stores:
        print_facts(_facts(stores, settings), out, "  ")
    findings = list(server_findings(exchange, settings))
    if any(found.code == REACHABLE[0] and found.state == GOOD for found in findings):
        print_facts([("server", f"runs at {command_origin(settings)}")], out, "  ")
    wrong = [found for found in findings if found.state == WRONG]
    print_facts([("attention", f"{found.detail}. {found.mend}") for found in wrong], out, "  ")
    out.print()


def _facts(stores: Stores, settings: Settings) -> Iterator[tuple[str, str]]:
    with stores.records.snapshot() as snapshot:
        records = sum(stored.record_count for stored in snapshot.stored_streams())
        accounts = len(snapshot.connections())
    yield "records", f"{counted(records, 'record')} in {counted(accounts, 'account')}"
    with stores.authorization.read() as reader:
        lasting = reader.count_held(HeldQuery(stores.clock(), lasts=True))
    if lasting:
        yield "access", f"{counted(lasting, 'app')} may read some of them: pdpp grant list"
    else:
        yield "access", "no app may read any of them: pdpp serve says how to connect one"
    with stores.authorization.read() as reader:
        channel_count = len(channels(reader))
    where = f"told in {counted(channel_count, 'place')}: pdpp notices"
    yield "notices", where if channel_count else "sent nowhere: pdpp notices to desktop"
    yield from _feed_facts(feed_store(stores).feeds(), stores.clock())
    made = [row.made_at for row in stores.upkeep.backups()]
    if made:
        yield "backup", f"the newest is of {minute(made[0])}"
    elif schedule_of(stores, settings) is None:
        yield "backup", "none, and none is scheduled: pdpp backup FOLDER --every 1d"
    if read_choice(settings.data_dir) is None:
        yield "search", "finds words; to find by meaning, too: pdpp semantic install"
    elif progress := stores.records.embedding_progress():
        yield "search", f"by words and meaning; {percent_embedded(progress)} % embedded"


def _feed_facts(feeds: Sequence[FeedRow], now_ns: int) -> Iterator[tuple[str, str]]:
    """How current each feed is, and what to do about those that are stale."""
    for each in feeds:
        parts = [f"{each.state}, no success yet"]
        if each.succeeded_at_ns is not None:
            lag = lag_text(now_ns - each.succeeded_at_ns)
            parts = [f"{each.state}, last success {minute(each.succeeded_at_ns)} ({lag} ago)"]
        if each.state in (FeedState.WAITING, FeedState.RESTING):
            parts.append(f"next run {minute(each.due_at_ns)}")
        if each.silent_since_ns is not None:
            parts.append(f"its server has not answered since {minute(each.silent_since_ns)}")
        if each.failing_since_ns is not None:
            parts.append(f"failing since {minute(each.failing_since_ns)}")
        yield "feed", f"{each.name}: {', '.join(parts)}"
        if trouble_of(each):
            yield "stale feed", f"{each.name}: {advice(each)}"


def lag_text(lag_ns: int) -> str:
    """A time that passed, in the largest unit that fits.

    >>> lag_text(90 * 10**9), lag_text(7_300 * 10**9), lag_text(3 * 86_400 * 10**9)
    ('1 min', '2 h', '3 d')
    """
    seconds = max(0, lag_ns // NANOSECONDS)
    for unit, length in (("d", DAY_NANOSECONDS // NANOSECONDS), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


status = status_command(CommandContext())
