"""Where the owner is told, and when not: channels, quiet hours, kinds that are switched off.

Rule: a channel is the owner's own; what is sent to it, and never what it is, is in no log.  Adding
and removing one is audited with its kind.
Source: docs/contract/authorization-server.md 13.8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from pdpp_kernel.errors import InvalidRequest, InvalidState, NotFound
from pdpp_kernel.texts import message
from personal_server.consent.credentials import RandomBytes, new_id
from personal_server.delivery.signatures import SECRET_BYTES, SecretBox
from personal_server.delivery.web_push import KEY_BYTES, BrowserKeys, new_key
from personal_server.domain.notices import (
    Cause,
    NoticeKind,
    QuietHours,
    StandingNotice,
)
from personal_server.granting.audit import Acting, audit
from personal_server.storage.notice_rows import NoticeChannelRow, NoticeRow, NoticeSettingsRow
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationWriter,
)

CHANNEL = "noc_"
PUSH_KEY = "push_key"
"""What the key of web push is sealed for."""
MOST_CHANNELS = 20
_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*[-–]\s*([01]?\d|2[0-3]):([0-5]\d)")


class ChannelKind(StrEnum):
    """How a channel tells its owner."""

    DESKTOP = "desktop"
    WEBHOOK = "webhook"
    PUSH = "push"


class NewChannel(msgspec.Struct, frozen=True):
    """A channel to add.  Shapes: `secret` is in clear, and sealed when it is kept."""

    kind: ChannelKind
    name: str
    address: str = ""
    secret: bytes | None = None


def desktop() -> NewChannel:
    """The desktop of the machine that runs the server."""
    return NewChannel(ChannelKind.DESKTOP, "desktop")


def webhook(url: str, random_bytes: RandomBytes) -> NewChannel:
    """A URL, which `Callbacks.check` has passed, with a fresh secret."""
    host = urlsplit(url).hostname or ""
    return NewChannel(ChannelKind.WEBHOOK, host, url, random_bytes(SECRET_BYTES))


def push(endpoint: str, name: str, keys: BrowserKeys) -> NewChannel:
    """A browser, whose push service `Callbacks.check` has passed."""
    return NewChannel(ChannelKind.PUSH, name, endpoint, keys.packed())


def push_key(reader: AuthorizationReader, secrets: SecretBox) -> EllipticCurvePrivateKey | None:
    """The key that browsers know this server by, if one was made.  Raises: StorageUnavailable."""
    sealed = notice_settings(reader).push_key
    return None if sealed is None else new_key(secrets.open(sealed, PUSH_KEY))


def make_push_key(
    writer: AuthorizationWriter, secrets: SecretBox, random_bytes: RandomBytes
) -> EllipticCurvePrivateKey:
    """The same, made where there is none yet."""
    row = notice_settings(writer)
    if row.push_key is None:
        sealed = secrets.seal(random_bytes(KEY_BYTES), PUSH_KEY)
        change_settings(writer, replace(row, push_key=sealed))
    key = push_key(writer, secrets)
    assert key is not None  # noqa: S101  # it was made
    return key


def channels(reader: AuthorizationReader) -> list[NoticeChannelRow]:
    """All of them, the oldest first."""
    return reader.rows(NoticeChannelRow, order=NoticeChannelRow.created_at_ns)


def add_channel(
    writer: AuthorizationWriter,
    channel: NewChannel,
    secrets: SecretBox,
    random_bytes: RandomBytes,
    acting: Acting,
    now_ns: int,
) -> NoticeChannelRow:
    """Tell the owner there, too.  Raises: InvalidState where it is told already."""
    known = channels(writer)
    if any((each.kind, each.address) == (channel.kind, channel.address) for each in known):
        raise InvalidState("Notices go there already.", next_step="Remove it first: pdpp notices")
    if len(known) >= MOST_CHANNELS:
        raise InvalidState(message("There can be at most %(most)s channels.", most=MOST_CHANNELS))
    channel_id = new_id(CHANNEL, random_bytes)
    row = NoticeChannelRow(
        channel_id=channel_id,
        kind=channel.kind,
        name=channel.name,
        address=channel.address,
        secret=None if channel.secret is None else secrets.seal(channel.secret, channel_id),
        created_at_ns=now_ns,
    )
    writer.insert(row)
    audit(writer, "notice_channel.added", acting, now_ns, kind=channel.kind.value)
    return row


def remove_channel(
    writer: AuthorizationWriter, channel_id: str, acting: Acting, now_ns: int
) -> NoticeChannelRow:
    """Tell the owner nothing there any more.  Raises: NotFound."""
    row = find_channel(writer, channel_id)
    writer.delete(NoticeChannelRow, NoticeChannelRow.channel_id.equals(row.channel_id))
    audit(writer, "notice_channel.removed", acting, now_ns, kind=row.kind)
    return row


def find_channel(reader: AuthorizationReader, name: str) -> NoticeChannelRow:
    """A channel by its id or address, that of the desktop by `desktop`; others share names.

    Raises: NotFound.
    """
    for each in channels(reader):
        if name in (each.channel_id, each.address or each.kind):
            return each
    raise NotFound("No notices go there.", next_step="`pdpp notices` lists where they go.")


def ask_for_tests(writer: AuthorizationWriter) -> int:
    """Have the running server send a test to every channel; how many there are."""
    return writer.change(
        NoticeChannelRow,
        [NoticeChannelRow.test_asked.to(True), NoticeChannelRow.due_at_ns.to(0)],
    )


def notice_settings(reader: AuthorizationReader) -> NoticeSettingsRow:
    """When and of what the owner is told; the owner may have said nothing."""
    return reader.get(NoticeSettingsRow) or NoticeSettingsRow()


def change_settings(writer: AuthorizationWriter, row: NoticeSettingsRow) -> None:
    """Tell the owner by these from now on."""
    writer.delete(NoticeSettingsRow)
    writer.insert(row)


def with_hours(row: NoticeSettingsRow, hours: QuietHours | None) -> NoticeSettingsRow:
    """The settings with other quiet hours."""
    if hours is None:
        return replace(row, quiet_from=None, quiet_until=None)
    return replace(row, quiet_from=hours.from_minute, quiet_until=hours.until_minute)


def with_kinds_off(row: NoticeSettingsRow, kinds: Iterable[NoticeKind]) -> NoticeSettingsRow:
    """The settings with these kinds switched off, and no other."""
    return replace(row, kinds_off=tuple(sorted(kinds)))


def quiet_hours(row: NoticeSettingsRow) -> QuietHours | None:
    """The quiet hours of settings."""
    if row.quiet_from is None or row.quiet_until is None:
        return None
    return QuietHours(row.quiet_from, row.quiet_until)


def parse_hours(text: str) -> QuietHours:
    """`22:00-07:00`.  Raises: InvalidRequest."""
    match = _HOURS.fullmatch(text.strip())
    if match is None:
        raise InvalidRequest(
            "Quiet hours have the form 22:00-07:00.", param="quiet", next_step="22:00-07:00"
        )
    begin, end = (int(match[n]) * 60 + int(match[n + 1]) for n in (1, 3))
    if begin == end:
        raise InvalidRequest("Quiet hours need two different times.", param="quiet")
    return QuietHours(begin, end)


def render_hours(hours: QuietHours) -> str:
    """The inverse of `parse_hours`."""
    return "-".join(
        f"{minute // 60:02}:{minute % 60:02}" for minute in (hours.from_minute, hours.until_minute)
    )


def standing_notices(reader: AuthorizationReader) -> list[StandingNotice]:
    """What stands, as the server that runs noticed it last; kinds of later versions left out."""
    known = set(NoticeKind)
    return [notice_of(row) for row in reader.rows(NoticeRow) if row.kind in known]


def notice_of(row: NoticeRow) -> StandingNotice:
    """A row as the rules take it."""
    cause = Cause(NoticeKind(row.kind), row.about, row.name, row.at_ns)
    return StandingNotice(cause, row.noticed_at_ns, row.told)


def row_of(notice: StandingNotice) -> NoticeRow:
    """The inverse of `notice_of`."""
    cause = notice.cause
    return NoticeRow(
        kind=cause.kind,
        about=cause.about,
        name=cause.name,
        at_ns=cause.at_ns,
        noticed_at_ns=notice.noticed_at_ns,
        told=dict(notice.told),
    )


def failing(rows: Sequence[NoticeChannelRow], most: int) -> list[NoticeChannelRow]:
    """Channels that failed so often in a row."""
    return [row for row in rows if row.failures >= most]
