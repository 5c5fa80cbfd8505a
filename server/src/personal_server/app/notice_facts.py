"""What notices are made of, looked up in the stores: nothing here decides what is told.

Source: docs/contract/authorization-server.md 13.8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from zoneinfo import ZoneInfo

from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

from pdpp_kernel.texts import Text, start_of_day
from pdpp_kernel.values import day_number, instant_ns
from personal_server.app.backup_schedule import schedule_of
from personal_server.app.feeding import feed_store
from personal_server.app.stores import Stores, command_origin
from personal_server.console.languages import SOURCE, PageReader, languages
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.notice_channels import ChannelKind, channels, failing, push_key
from personal_server.delivery.notice_senders import DesktopSender, PushSender, WebhookSender
from personal_server.delivery.notice_turns import Notices, NoticeSender
from personal_server.delivery.signatures import SecretBox
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.connection import CLIENT_READABLE
from personal_server.domain.notices import (
    ENDS_WITHIN_NS,
    FAILURES_TOLD,
    HOUR_NS,
    AccessFact,
    AccountFact,
    BackupFacts,
    NamedFact,
    OwnerFacts,
)
from personal_server.feeds.feed_trouble import trouble_of
from personal_server.granting.holdings import client_names
from personal_server.granting.reading_alarms import open_alarms
from personal_server.granting.waiting_requests import waiting_requests
from personal_server.reading.newest_times import newest_time
from personal_server.reading.owner import OwnerReads
from personal_server.settings import Settings, command_environment
from personal_server.storage.authorization_rows import ClientRow, GrantRow, PackageMemberRow
from personal_server.storage.ports.authorization_store import AuthorizationReader
from personal_server.storage.ports.snapshots import READ_DEADLINE_SECONDS, ReadSnapshot

NOTICES_SECONDS = 5.0
MOST_REQUESTS = 50
# A server without a public address has none that a push service could write to.
LOCAL_CONTACT = "mailto:owner@localhost"
# The newest record of every account is looked up so often.
ACCOUNTS_NS = 6 * HOUR_NS


def notices_of(settings: Settings, stores: Stores, callbacks: Callbacks) -> Notices:
    """What tells the owner of this data directory."""
    secrets, origin = SecretBox(stores.records.sealing_keys), command_origin(settings)
    desktop = DesktopSender(settings.notice_command, foreign_environment(settings), origin)
    webhook = WebhookSender(callbacks, secrets, origin)
    push = PushSender(
        callbacks,
        secrets,
        partial(_push_key, stores, secrets),
        origin if origin.startswith("https:") else LOCAL_CONTACT,
        stores.random_bytes,
    )
    senders: dict[str, NoticeSender] = {
        ChannelKind.DESKTOP: desktop,
        ChannelKind.WEBHOOK: webhook,
        ChannelKind.PUSH: push,
    }
    return Notices(
        stores.authorization,
        NoticeFacts(settings, stores),
        senders,
        stores.clock,
        stores.random_bytes,
        lambda: ZoneInfo(stores.locale.zone()),
        partial(owner_text, stores),
    )


def foreign_environment(settings: Settings) -> dict[str, str]:
    """What a program that is not ours inherits: nothing that sets up the server."""
    known = command_environment(settings)
    return {name: value for name, value in known.items() if not name.startswith("PDPP_")}


def _push_key(stores: Stores, secrets: SecretBox) -> EllipticCurvePrivateKey | None:
    with stores.authorization.read() as reader:
        return push_key(reader, secrets)


def owner_text(stores: Stores, text: Text) -> str:
    """A text in the owner's language and zone; English where no language was chosen."""
    locale, known = stores.locale(), languages()
    language = known.get(locale.language or SOURCE, known[SOURCE])
    reader = PageReader(language, ZoneInfo(locale.zone))
    return reader.text(reader.known(text))


@dataclass
class NoticeFacts:
    """Looks them up."""

    settings: Settings
    stores: Stores
    _accounts: tuple[AccountFact, ...] = field(default=(), init=False)
    _accounts_at_ns: int | None = field(default=None, init=False)

    def __call__(self, reader: AuthorizationReader, now_ns: int) -> OwnerFacts:
        """Everything that notices are about, as it is now."""
        raised = open_alarms(reader)
        names = client_names(reader, (row.client_id for row in raised))
        with self.stores.records.snapshot() as snapshot:
            records = sum(each.record_count for each in snapshot.stored_streams())
        return OwnerFacts(
            requests=[
                NamedFact(row.request_id, client.name or client.client_id, row.created_at_ns)
                for row, client in waiting_requests(reader, now_ns, MOST_REQUESTS)
            ],
            alarms=[
                NamedFact(row.alarm_id, names.get(row.client_id or "", "?"), row.at_ns)
                for row in raised
            ],
            feeds=[
                NamedFact(each.feed_id, each.name, each.failing_since_ns or each.created_at_ns)
                for each in feed_store(self.stores).feeds()
                if trouble_of(each)
            ],
            channels=[
                NamedFact(each.channel_id, each.name, each.failing_since_ns or now_ns)
                for each in failing(channels(reader), FAILURES_TOLD)
            ],
            accounts=self._accounts_now(now_ns),
            accesses=list(ending_accesses(reader, now_ns)),
            backups=self._backups(),
            records=records,
        )

    def _backups(self) -> BackupFacts:
        schedule = schedule_of(self.stores, self.settings)
        rows, failure = self.stores.upkeep.backups(), self.stores.upkeep.backup_failure()
        return BackupFacts(
            None if schedule is None else schedule.every_hours * HOUR_NS,
            rows[0].made_at if rows else None,
            None if failure is None else failure.since_ns,
        )

    def _accounts_now(self, now_ns: int) -> tuple[AccountFact, ...]:
        at_ns = self._accounts_at_ns
        if at_ns is None or not 0 <= now_ns - at_ns < ACCOUNTS_NS:
            self._accounts = tuple(self._look_at_accounts(now_ns))
            self._accounts_at_ns = now_ns
        return self._accounts

    def _look_at_accounts(self, now_ns: int) -> Iterator[AccountFact]:
        """Accounts that apps may read and no feed fills, with a time of their newest record."""
        fed = {one for feed in feed_store(self.stores).feeds() for one in feed.connection_ids}
        owner = OwnerReads(self.stores.reads, self.stores.declarations)
        with owner.open(READ_DEADLINE_SECONDS) as (snapshot, authority):
            collections = snapshot.collections()
            for each in snapshot.connections():
                if each.connection_id in fed or each.status not in CLIENT_READABLE:
                    continue
                newest_ns = self._newest(snapshot, authority, each.connection_id)
                collection = collections.get(each.connection_id)
                imported_ns = collection.last_succeeded_at_ns if collection else None
                if newest_ns is not None:
                    name = each.display_name or each.connector_key
                    at_ns = imported_ns or each.created_at_ns
                    yield AccountFact(each.connection_id, name, min(newest_ns, now_ns), at_ns)

    def _newest(
        self, snapshot: ReadSnapshot, authority: ReadAuthority, connection_id: str
    ) -> int | None:
        of_account = [s for s in authority.sources if s.connection_id == connection_id]
        times = (
            time_of(newest_time(self.stores.reads, snapshot, authority, source))
            for source in of_account
        )
        return max((at_ns for at_ns in times if at_ns is not None), default=None)


def time_of(value: object) -> int | None:
    """The instant of a stored time; of a day its end in UTC."""
    if not isinstance(value, str):
        return None
    day = day_number(value)
    if day is not None:
        return start_of_day(day + 1, ZoneInfo("UTC"))
    return instant_ns(value)


def ending_accesses(reader: AuthorizationReader, now_ns: int) -> Iterator[AccessFact]:
    """Access that lasts and has an end before long; the grants of a package as one."""
    rows = reader.rows(
        GrantRow,
        GrantRow.revoked_at_ns.equals(None),
        GrantRow.consumed_at_ns.equals(None),
        GrantRow.expires_at_ns.above(now_ns),
        GrantRow.expires_at_ns.at_most(now_ns + ENDS_WITHIN_NS),
    )
    found: dict[str, AccessFact] = {}
    for row in rows:
        member = reader.get(PackageMemberRow, PackageMemberRow.grant_id.equals(row.grant_id))
        held_id = row.grant_id if member is None else member.package_id
        client = reader.get(ClientRow, ClientRow.client_id.equals(row.client_id))
        name = row.name or (client.name if client is not None else None) or row.client_id
        ends_ns = row.expires_at_ns or now_ns
        if held_id not in found or ends_ns < found[held_id].ends_at_ns:
            found[held_id] = AccessFact(held_id, name, row.issued_at_ns, ends_ns)
    yield from found.values()
