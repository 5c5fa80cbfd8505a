"""The owner's first page: what waits for a decision, and where everything is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.responses import Response

from pdpp_kernel.persons import CONNECTOR_KEY as PERSONS
from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.collecting.sample import bring_sample
from personal_server.console.access_views import alarm_view
from personal_server.console.asked_requests import requests_by_app
from personal_server.console.disclosure_lines import disclosure_lines, searches
from personal_server.console.feed_views import FeedList, feeds_in_trouble
from personal_server.console.notice_lines import BESIDE, lasting, notice_lines
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute
from personal_server.console.static_files import ASKING
from personal_server.delivery.notice_channels import channels, standing_notices
from personal_server.domain.connection import Connection
from personal_server.domain.hosts import first_question, host_connections
from personal_server.domain.stored import Collection
from personal_server.granting.holdings import client_names, uncollected_count
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.reading_alarms import open_alarms
from personal_server.reading.ports import ReadPorts, model_of
from personal_server.storage.catalog import Catalogs
from personal_server.storage.ports.authorization_store import AuthorizationStore, HeldQuery
from personal_server.storage.ports.disclosure_stores import DisclosureQuery, DisclosureStore

WEEK_DAYS = 7
SHOWN_REQUESTS = 10
SHOWN_READS, SHOWN_UPDATES = 5, 4
NEW_NS, OLD_NS = 7 * DAY_NANOSECONDS, 90 * DAY_NANOSECONDS


class BackupStanding(msgspec.Struct, frozen=True):
    """When the newest kept backup was made, and when one was last proven by restoring it."""

    made_at_ns: int | None
    proven_at_ns: int | None
    is_scheduled: bool


class AccountUpdate(msgspec.Struct, frozen=True):
    """When an account was last brought up to date."""

    name: str
    link: str
    at_ns: int


BackupStandings = Callable[[], BackupStanding | None]
SampleDeclarations = Callable[[], Sequence[Mapping[str, Any]]]


class HomePage(msgspec.Struct, frozen=True):
    """`/owner/`."""

    authorization: AuthorizationStore
    disclosures: DisclosureStore
    reads: ReadPorts
    catalogs: Catalogs
    sign_in: OwnerSignIn
    pages: Templates
    clock: Callable[[], int]
    backups: BackupStandings = lambda: None
    sample_declarations: SampleDeclarations = tuple
    has_uploads: bool = False
    feeds: FeedList = tuple
    adds_feeds: bool = False

    def routes(self) -> tuple[PageRoute, ...]:
        """The route of this page: path, methods, and who may open it."""
        return (
            PageRoute("GET", "/owner/", self.show),
            PageRoute("GET", "/owner", self.show),
            PageRoute("POST", "/owner/sample", self.bring_sample),
        )

    def bring_sample(self, visit: PageRequest) -> Response:
        """Store made-up records to look around with.  Raises: InvalidState."""
        bring_sample(
            self.reads.store, self.sample_declarations(), self.clock(), self.reads.random_bytes
        )
        return self.pages.go(visit, "/owner/")

    def show(self, visit: PageRequest) -> Response:
        """The overview."""
        now_ns = self.clock()
        since_ns = now_ns - (WEEK_DAYS - 1) * DAY_NANOSECONDS
        week = self.disclosures.shares("day", DisclosureQuery(WEEK_DAYS, since_ns=since_ns))
        with self.reads.snapshot(None) as snapshot:
            records = sum(stream.record_count for stream in snapshot.stored_streams())
            connections = [c for c in snapshot.connections() if c.connector_key != PERSONS]
            collections = snapshot.collections()
        last = self.disclosures.disclosures(DisclosureQuery(SHOWN_READS))
        details = self.disclosures.asked_details(searches(last))
        updated = _updates(connections, collections)
        with self.authorization.read() as reader:
            active = reader.count_held(HeldQuery(now_ns, lasts=True)) - uncollected_count(reader)
            raised = open_alarms(reader)
            names = client_names(reader, (row.client_id for row in raised))
            alarms = [alarm_view(row, names) for row in raised]
            noticed, channel_count = standing_notices(reader), len(channels(reader))
            readers = client_names(reader, (entry.client_id for _, entry in last))
            waiting = requests_by_app(reader, self.catalogs(), now_ns)
        return self.pages.show(
            visit,
            "home.html",
            {
                "waiting": waiting[:SHOWN_REQUESTS],
                "alarms": alarms,
                "active": active,
                "records": records,
                "connections": len(connections),
                "is_new": not active and records > 0,
                "first_question": first_question(each.connector_key for each in connections),
                "read_week": sum(each.record_count for each in week),
                "sign_ins": len(self.sign_in.sessions()),
                "backups": self.backups(),
                "uploads": self.has_uploads,
                "adds_feeds": self.adds_feeds,
                "feeds": list(feeds_in_trouble(self.feeds())),
                "notices": notice_lines(lasting(noticed, now_ns), BESIDE),
                "told": channel_count,
                "has_meaning": model_of(self.reads) is not None,
                "reads": disclosure_lines(last, readers, details=details),
                "lately": [u for u in updated if u.at_ns > now_ns - NEW_NS][:SHOWN_UPDATES],
                "old": [u for u in updated[::-1] if u.at_ns < now_ns - OLD_NS][:SHOWN_UPDATES],
                "rebuilds": self.reads.store.rebuilds(),
                "hosts": host_connections(visit.origin),
                "csrf": visit.owner().csrf,
            },
            script=ASKING if visit.place else None,
        )


def _updates(
    connections: Iterable[Connection], collections: Mapping[str, Collection]
) -> list[AccountUpdate]:
    """Of every account that records came to, the latest first."""
    found: list[AccountUpdate] = []
    for each in connections:
        at_ns = collections.get(each.connection_id, Collection()).last_succeeded_at_ns
        if at_ns is not None:
            link = f"/owner/sources/{quote(each.connection_id, safe='')}"
            found.append(AccountUpdate(each.display_name or each.connection_id, link, at_ns))
    return sorted(found, key=lambda update: -update.at_ns)
