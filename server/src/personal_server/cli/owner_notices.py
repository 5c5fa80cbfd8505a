"""`pdpp notices`: what the server tells its owner, where, and how that went.

Source: docs/contract/authorization-server.md 13.8.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import cyclopts
import msgspec
from cyclopts import Parameter

from pdpp_kernel.values import instant_text
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console, minute, plain, print_facts, words
from personal_server.app.owner_store import OwnerStore
from personal_server.app.v1 import callbacks_of
from personal_server.cli.kept_data import open_store
from personal_server.cli.server_settings import settings_or_exit
from personal_server.cli.store import StoreOpener, local_acting, make_store
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.notice_channels import (
    ChannelKind,
    add_channel,
    ask_for_tests,
    change_settings,
    channels,
    desktop,
    notice_settings,
    parse_hours,
    quiet_hours,
    remove_channel,
    render_hours,
    standing_notices,
    webhook,
    with_hours,
)
from personal_server.delivery.notice_senders import desktop_program
from personal_server.delivery.signatures import SecretBox, shown_secret
from personal_server.domain.notice_texts import sentence_of
from personal_server.domain.notices import KINDS, Cause, Notice, NoticeKind, StandingNotice
from personal_server.storage.notice_rows import NoticeChannelRow, NoticeSettingsRow

Flag = Annotated[bool, Parameter(negative="")]
DESKTOP = "desktop"


def notices_app(
    open_store: StoreOpener,
    make_store: StoreOpener,
    callbacks: Callable[[], Callbacks],
    notice_command: Callable[[], Path | None],
) -> cyclopts.App:
    """The command group `pdpp notices`."""
    app = cyclopts.App(name="notices", help="What needs you, and where the server tells you.")

    @app.default
    def show(*, json: Flag = False) -> None:
        """Show what needs you, and let the server tell you on your desktop or by a URL.

        Parameters
        ----------
        json
            Print JSON.
        """
        with open_store() as store, store.authorization.read() as reader:
            found = _NoticesShown(
                standing_notices(reader), channels(reader), notice_settings(reader)
            )
        if json:
            print_json(found.as_json())
        else:
            found.print()

    @app.command
    def to(where: str, /) -> None:
        """Tell me there, too: on the desktop of the server's machine, or by a call of a URL.

        Parameters
        ----------
        where
            `desktop`, or an https URL. What the server sends there is signed as Standard Webhooks
            are; the secret is shown once.
        """
        is_desktop = where == DESKTOP
        if is_desktop:
            _require_program(notice_command())
        else:
            callbacks().check(where)
        with make_store() as store, store.authorization.write() as writer:
            channel = desktop() if is_desktop else webhook(where, store.random_bytes)
            made, now_ns = _secrets(store), store.clock()
            add_channel(writer, channel, made, store.random_bytes, local_acting(), now_ns)
        words().print("The running server tells you there. Try it: pdpp notices test")
        _tell_secret(channel.secret)

    @app.command
    def test() -> None:
        """Have the running server send a test to each place."""
        with open_store() as store, store.authorization.write() as writer:
            count = ask_for_tests(writer)
        if not count:
            raise CommandError(
                "not_found", "Notices are sent nowhere.", "Begin: pdpp notices to desktop"
            )
        words().print(
            "The running server sends a test within seconds. `pdpp notices` shows what came of it."
        )

    @app.command
    def quiet(hours: str, /) -> None:
        """Tell me nothing in these hours of my day; what is new then is told afterwards.

        Parameters
        ----------
        hours
            `22:00-07:00`, in your time zone; `none` ends them.
        """
        chosen = None if hours == "none" else parse_hours(hours)
        with make_store() as store, store.authorization.write() as writer:
            change_settings(writer, with_hours(notice_settings(writer), chosen))
        words().print("Done.")

    @app.command
    def off(where: str | None = None, /) -> None:
        """Tell me nothing there any more, or nowhere.

        Parameters
        ----------
        where
            `desktop`, the URL, or an id as `pdpp notices` shows it. Default: everywhere.
        """
        with open_store() as store, store.authorization.write() as writer:
            names = [row.channel_id for row in channels(writer)] if where is None else [where]
            for name in names:
                remove_channel(writer, name, local_acting(), store.clock())
        words().print("Done.")

    return app


class _NoticesShown(msgspec.Struct, frozen=True):
    """What `pdpp notices` shows."""

    standing: list[StandingNotice]
    rows: list[NoticeChannelRow]
    settings: NoticeSettingsRow

    @property
    def quiet(self) -> str | None:
        """The quiet hours, as the command takes them."""
        hours = quiet_hours(self.settings)
        return None if hours is None else render_hours(hours)

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "notices": [_notice_json(each) for each in _in_order(self.standing)],
            "channels": [_channel_json(row) for row in self.rows],
            "quiet": self.quiet,
            "off": list(self.settings.kinds_off),
        }

    def print(self) -> None:
        """For people."""
        _print_standing(self.standing)
        for row in self.rows:
            console().print(plain(f"{row.name} ({row.channel_id})"), soft_wrap=True)
            print_facts(_facts(row), console(), "  ")
        if not self.rows:
            words().print(
                "Notices are sent nowhere. To get them on this desktop: pdpp notices to desktop"
            )
        if self.quiet is not None:
            words().print(plain(f"Quiet hours: {self.quiet}, in your time zone."))
        if self.settings.kinds_off:
            words().print(plain(f"Switched off: {', '.join(self.settings.kinds_off)}"))


def _require_program(named: Path | None) -> None:
    """Raises: CommandError (`not_found`)."""
    if desktop_program(named) is None:
        raise CommandError(
            "not_found",
            "There is no program here that shows notices.",
            "Install notify-send (package libnotify-bin), or name a program: PDPP_NOTICE_COMMAND",
        )


def _tell_secret(secret: bytes | None) -> None:
    if secret is not None:
        words().print(
            "The server signs what it sends there with this secret, which is shown this once:"
        )
        console().print(plain(shown_secret(secret)), soft_wrap=True)


def _secrets(store: OwnerStore) -> SecretBox:
    return SecretBox(store.reads.store.sealing_keys)


def _in_order(standing: list[StandingNotice]) -> list[StandingNotice]:
    """The most urgent kind first."""
    kinds = list(KINDS)
    return sorted(standing, key=lambda each: (kinds.index(each.cause.kind), each.noticed_at_ns))


def _print_standing(standing: list[StandingNotice]) -> None:
    folded: dict[NoticeKind, list[Cause]] = {}
    for each in _in_order(standing):
        folded.setdefault(each.cause.kind, []).append(each.cause)
    for kind, found in folded.items():
        console().print(plain(str(sentence_of(Notice(kind, tuple(found))))), soft_wrap=True)
    if not folded:
        words().print("Nothing needs you now.")


def _facts(row: NoticeChannelRow) -> list[tuple[str, object]]:
    """Each on a line of its own, so that addresses stay whole in any terminal."""
    result = "nothing sent yet"
    if row.tried_at_ns is not None:
        result = f"{minute(row.tried_at_ns)} {row.outcome or ''}".strip()
    facts: list[tuple[str, object]] = [("last result", result)]
    if row.kind == ChannelKind.WEBHOOK:
        facts.insert(0, ("address", row.address))
    if row.failing_since_ns is not None:
        facts.append(("failing since", f"{minute(row.failing_since_ns)}, {row.failures} times"))
    return facts


def _notice_json(notice: StandingNotice) -> dict[str, object]:
    cause = notice.cause
    return {
        "kind": cause.kind.value,
        "about": cause.about,
        "name": cause.name,
        "since": instant_text(notice.noticed_at_ns),
        "told": {channel: instant_text(at_ns) for channel, at_ns in notice.told.items()},
    }


def _channel_json(row: NoticeChannelRow) -> dict[str, object]:
    tried, since = row.tried_at_ns, row.failing_since_ns
    return {
        "channel_id": row.channel_id,
        "kind": row.kind,
        "name": row.name,
        "address": row.address if row.kind == ChannelKind.WEBHOOK else None,
        "outcome": row.outcome,
        "tried_at": None if tried is None else instant_text(tried),
        "failures": row.failures,
        "failing_since": None if since is None else instant_text(since),
    }


notices = notices_app(
    open_store,
    make_store,
    lambda: callbacks_of(settings_or_exit()),
    lambda: settings_or_exit().notice_command,
)
