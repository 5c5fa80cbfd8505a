"""What notices are made of, over a whole server: the same facts that pages and commands show."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from pdpp_kernel.values import DAY_NANOSECONDS as DAY
from personal_server.app.feeding import feed_store
from personal_server.app.notice_facts import NoticeFacts, notices_of, time_of
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.notice_channels import standing_notices
from personal_server.domain.notices import HOUR_NS, Cause, NoticeKind, causes
from personal_server.domain.stored import BackupFailure, BackupSchedule
from personal_server.granting.audit import SERVER
from personal_server.granting.reading_alarms import dismiss_alarms
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import GrantRow, ReadingAlarmRow
from server.tests.app.whole import Whole, whole
from server.tests.console.household import mail_request
from server.tests.feeds.test_feed_states import a_feed

K = NoticeKind


@pytest.fixture
def site(tmp_path: Path) -> Generator[Whole]:
    with whole(tmp_path) as made:
        yield made


def looked(site: Whole, facts: NoticeFacts | None = None) -> dict[NoticeKind, list[Cause]]:
    """What stands now, but for the backup that this server never had."""
    stores = site.server.stores
    facts = facts or NoticeFacts(Settings(data_dir=stores.data_dir), stores)
    found: dict[NoticeKind, list[Cause]] = {}
    with stores.authorization.read() as reader:
        for cause in causes(facts(reader, site.clock()), site.clock()):
            found.setdefault(cause.kind, []).append(cause)
    return found


def test_a_request_stands_until_it_is_decided_and_an_access_that_ends_soon_after_it(
    site: Whole,
) -> None:
    assert set(looked(site)) == {K.NO_BACKUP}
    site.ask(mail_request())
    (request,) = looked(site)[K.REQUEST]
    assert request.about.startswith("ar_")
    site.clock.now_ns += DAY
    assert set(looked(site)) == {K.NO_BACKUP}
    site.sign_in()
    grant_id = site.connect(mail_request())["grant_id"]
    ends_ns = site.clock() + 30 * DAY
    with site.server.stores.authorization.write() as writer:
        which = GrantRow.grant_id.equals(grant_id)
        writer.change(GrantRow, [GrantRow.expires_at_ns.to(ends_ns)], which)
    site.clock.now_ns += 22 * DAY
    assert K.ACCESS_ENDS not in looked(site)
    site.clock.now_ns += DAY
    (access,) = looked(site)[K.ACCESS_ENDS]
    assert (access.about, access.at_ns) == (grant_id, ends_ns)
    site.clock.now_ns += 7 * DAY
    assert K.ACCESS_ENDS not in looked(site)


def test_an_alarm_stands_until_it_is_dismissed(site: Whole) -> None:
    alarm = ReadingAlarmRow(
        alarm_id="ral_1",
        held_id="grt_1",
        client_id="pdpp-cli",
        rule="canary",
        at_ns=site.clock(),
        detail={},
        paused=False,
    )
    store = site.server.stores.authorization
    with store.write() as writer:
        writer.insert(alarm)
    assert [cause.about for cause in looked(site)[K.UNUSUAL]] == ["ral_1"]
    with store.write() as writer:
        dismiss_alarms(writer, "grt_1", SERVER, site.clock())
    assert K.UNUSUAL not in looked(site)


def test_backups_fail_or_are_missing_by_their_schedule(site: Whole) -> None:
    upkeep = site.server.stores.upkeep
    upkeep.keep_backup_schedule(BackupSchedule("/backups", 24, 7))
    assert looked(site) == {}
    upkeep.keep_backup_failure(BackupFailure(site.clock(), "The disk is full."))
    (cause,) = looked(site)[K.BACKUP_FAILS]
    assert (cause.name, cause.at_ns) == ("", site.clock())


def test_a_stale_feed_and_accounts_that_nothing_came_to_for_a_year(site: Whole) -> None:
    stores = site.server.stores
    facts = NoticeFacts(Settings(data_dir=stores.data_dir), stores)
    assert K.OLD_SOURCE not in looked(site, facts)
    site.clock.now_ns += 400 * DAY
    old = looked(site, facts)[K.OLD_SOURCE]
    assert len(old) == 3
    feed = replace(a_feed(state="needs_you"), connection_ids=(old[0].about,), due_at_ns=2**62)
    feed_store(stores).add_feed(feed)
    site.clock.now_ns += 6 * HOUR_NS
    found = looked(site, facts)
    assert [cause.about for cause in found[K.FEED]] == [feed.feed_id]
    assert [cause.about for cause in found[K.OLD_SOURCE]] == [cause.about for cause in old[1:]]


def test_the_server_writes_down_what_stands(site: Whole) -> None:
    stores = site.server.stores
    notices = notices_of(Settings(data_dir=stores.data_dir), stores, Callbacks())
    assert "notices" in {task.name for task in site.server.background.tasks}
    assert notices.turn() == ()
    with stores.authorization.read() as reader:
        assert [each.cause.kind for each in standing_notices(reader)] == [K.NO_BACKUP]


@pytest.mark.parametrize(
    ("value", "at_ns"),
    [("1970-01-01", DAY), ("1970-01-01T01:00:00Z", HOUR_NS), ("soon", None), (7, None)],
)
def test_a_day_counts_until_it_ends(value: object, at_ns: int | None) -> None:
    assert time_of(value) == at_ns
