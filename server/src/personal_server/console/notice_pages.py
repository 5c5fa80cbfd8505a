"""What the server tells its owner unasked, and where: the list, switches, a test.

Rule: a URL is added by the command alone, since its secret is shown once and no page shows one.
Source: docs/contract/authorization-server.md 13.8.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, InvalidState, StorageReadOnly
from pdpp_kernel.texts import Text, message
from personal_server.consent.credentials import base64url
from personal_server.console.assets import MANIFEST_PATH, WORKER_PATH
from personal_server.console.notice_lines import notice_lines
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.console.static_files import NOTICES
from personal_server.console.words import browser_name
from personal_server.delivery.notice_channels import (
    ChannelKind,
    NewChannel,
    add_channel,
    ask_for_tests,
    change_settings,
    channels,
    desktop,
    make_push_key,
    notice_settings,
    parse_hours,
    push,
    push_key,
    quiet_hours,
    remove_channel,
    render_hours,
    standing_notices,
    with_hours,
    with_kinds_off,
)
from personal_server.delivery.signatures import SecretBox
from personal_server.delivery.web_push import parse_keys, point_of
from personal_server.domain.notice_texts import title_of
from personal_server.domain.notices import KINDS, NoticeKind, QuietHours
from personal_server.reading.ports import ReadPorts
from personal_server.storage.notice_rows import NoticeChannelRow
from personal_server.storage.ports.authorization_store import AuthorizationStore

PATH = "/owner/notices"
DesktopFinder = Callable[[], bool]
"""Whether a program of this machine shows notices."""
UrlCheck = Callable[[str], None]
"""Whether the server may call a URL.  Raises: InvalidCallback."""


def no_url(url: str) -> None:
    """A server that calls nobody.  Raises: InvalidState."""
    del url
    raise InvalidState("This server sends no notices to addresses.")


CHANNEL_WORDS: dict[str, Text] = {
    ChannelKind.DESKTOP: message("on the desktop of the server's machine"),
    ChannelKind.WEBHOOK: message("by a request to this address"),
    ChannelKind.PUSH: message("in this browser"),
}
OUTCOME_WORDS: dict[str, Text] = {
    "delivered": message("arrived"),
    "refused": message("refused"),
    "unreachable": message("not reachable"),
    "timed_out": message("no answer in time"),
    "unsafe_address": message("leads to an address that the server may not call"),
    "gone": message("gone: remove it, and add it again"),
    "not_made": message("not sent"),
}


class ChannelView(msgspec.Struct, frozen=True):
    """A channel as the page shows it."""

    row: NoticeChannelRow
    place: str
    how: Text
    outcome: Text | None


class KindView(msgspec.Struct, frozen=True):
    """A kind of notices, and whether it is told."""

    kind: NoticeKind
    title: Text
    is_told: bool


class NoticePages(msgspec.Struct, frozen=True):
    """`/owner/notices`."""

    authorization: AuthorizationStore
    reads: ReadPorts
    pages: Templates
    clock: Callable[[], int]
    has_desktop: DesktopFinder
    check_url: UrlCheck

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", PATH, self.show),
            PageRoute("POST", f"{PATH}/desktop", self.add_desktop),
            PageRoute("POST", f"{PATH}/browser", self.add_browser),
            PageRoute("POST", f"{PATH}/test", self.test),
            PageRoute("POST", f"{PATH}/settings", self.keep),
            PageRoute("POST", f"{PATH}/channels/{{channel_id}}/remove", self.remove),
        )

    def show(self, visit: PageRequest) -> Response:
        """What stands, where it is told, and when not."""
        with self.authorization.read() as reader:
            standing, rows = standing_notices(reader), channels(reader)
            settings = notice_settings(reader)
        kinds = {row.kind for row in rows}
        hours = quiet_hours(settings)
        begin, _, end = ("--" if hours is None else render_hours(hours)).partition("-")
        values = {
            "notices": notice_lines(standing),
            "channels": [_view(row) for row in rows],
            "offers_desktop": ChannelKind.DESKTOP not in kinds and self.has_desktop(),
            "kinds": [
                KindView(kind, title_of(kind), kind not in settings.kinds_off) for kind in KINDS
            ],
            "quiet_from": begin if hours else "",
            "quiet_until": end if hours else "",
            "push_key": self._push_key(),
            "worker": WORKER_PATH,
            "manifest": MANIFEST_PATH,
            "csrf": visit.owner().csrf,
        }
        return self.pages.show(visit, "notices.html", values, script=NOTICES)

    def _push_key(self) -> str | None:
        """What browsers know this server by, made when it is first shown; none where nothing can
        be written.
        """
        secrets = SecretBox(self.reads.store.sealing_keys)
        with self.authorization.read() as reader:
            key = push_key(reader, secrets)
        if key is None:
            try:
                with self.authorization.write() as writer:
                    key = make_push_key(writer, secrets, self.reads.random_bytes)
            except StorageReadOnly:
                return None
        return base64url(point_of(key.public_key()))

    def add_desktop(self, visit: PageRequest) -> Response:
        """Tell the owner on the desktop, too.  Raises: InvalidState."""
        if not self.has_desktop():
            raise InvalidState("There is no program on the server's machine that shows notices.")
        return self._add(visit, desktop())

    def add_browser(self, visit: PageRequest) -> Response:
        """Tell the owner in a browser, too.  Raises: InvalidRequest, InvalidCallback."""
        endpoint = visit.value("endpoint") or ""
        keys = parse_keys(visit.value("p256dh") or "", visit.value("auth") or "")
        self.check_url(endpoint)
        return self._add(visit, push(endpoint, str(browser_name(visit.visitor.user_agent)), keys))

    def _add(self, visit: PageRequest, channel: NewChannel) -> Response:
        secrets = SecretBox(self.reads.store.sealing_keys)
        random_bytes, now_ns = self.reads.random_bytes, self.clock()
        with self.authorization.write() as writer:
            add_channel(writer, channel, secrets, random_bytes, acting(visit), now_ns)
        return self.pages.go(visit, PATH)

    def remove(self, visit: PageRequest) -> Response:
        """Tell the owner nothing there any more.  Raises: NotFound."""
        with self.authorization.write() as writer:
            remove_channel(writer, visit.path["channel_id"], acting(visit), self.clock())
        return self.pages.go(visit, PATH)

    def test(self, visit: PageRequest) -> Response:
        """Have a test sent to every channel."""
        with self.authorization.write() as writer:
            ask_for_tests(writer)
        return self.pages.go(visit, PATH)

    def keep(self, visit: PageRequest) -> Response:
        """Keep the quiet hours and the kinds that are told.  Raises: InvalidRequest."""
        wanted = {value for name, value in visit.form if name == "told"}
        if not wanted <= set(NoticeKind):
            raise InvalidRequest("There is no such kind of notices.", param="told")
        hours = _hours(visit)
        with self.authorization.write() as writer:
            row = with_hours(notice_settings(writer), hours)
            off = [kind for kind in NoticeKind if kind not in wanted]
            change_settings(writer, with_kinds_off(row, off))
        return self.pages.go(visit, PATH)


def _hours(visit: PageRequest) -> QuietHours | None:
    """None where both are left empty.  Raises: InvalidRequest."""
    begin, end = visit.value("quiet_from") or "", visit.value("quiet_until") or ""
    return parse_hours(f"{begin}-{end}") if begin or end else None


def _view(row: NoticeChannelRow) -> ChannelView:
    outcome = None if row.outcome is None else OUTCOME_WORDS.get(row.outcome, row.outcome)
    address = row.address if row.kind == ChannelKind.WEBHOOK else row.name
    return ChannelView(row, address, CHANNEL_WORDS.get(row.kind, row.kind), outcome)
