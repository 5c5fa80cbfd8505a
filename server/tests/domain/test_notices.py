"""The table of kinds: when a notice begins, is due, folds and is over; what its sentence holds."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import DAY_NANOSECONDS as DAY
from personal_server.domain.notice_texts import sentence_of, title_of
from personal_server.domain.notices import (
    HOUR_NS,
    KINDS,
    MINUTE_NS,
    MOST_NAME_CHARS,
    AccessFact,
    AccountFact,
    BackupFacts,
    Cause,
    NamedFact,
    Notice,
    NoticeKind,
    OwnerFacts,
    QuietHours,
    StandingNotice,
    causes,
    due_notices,
)

NOW = 20_000 * DAY
FACT = NamedFact("id_1", "Notes app", NOW)
K = NoticeKind


def kinds(facts: OwnerFacts, now_ns: int = NOW) -> list[NoticeKind]:
    return [cause.kind for cause in causes(facts, now_ns)]


def test_every_kind_has_a_rule_a_title_and_a_sentence() -> None:
    assert set(KINDS) == set(NoticeKind)
    for kind in NoticeKind:
        cause = Cause(kind, "id_1", "Notes app", NOW)
        assert title_of(kind)
        assert sentence_of(Notice(kind, (cause,)))
        assert sentence_of(Notice(kind, (cause, replace(cause, name="Other"))))


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        (OwnerFacts(requests=[FACT]), K.REQUEST),
        (OwnerFacts(alarms=[FACT]), K.UNUSUAL),
        (OwnerFacts(feeds=[FACT]), K.FEED),
        (OwnerFacts(channels=[FACT]), K.CHANNEL),
        (OwnerFacts(backups=BackupFacts(DAY, NOW, NOW - 1)), K.BACKUP_FAILS),
        (OwnerFacts(backups=BackupFacts(DAY, NOW - 3 * DAY - 1)), K.BACKUP_MISSING),
        (OwnerFacts(records=1), K.NO_BACKUP),
        (OwnerFacts(accounts=[AccountFact("c", "W", NOW - 1_461 * DAY, 0)]), K.OLD_SOURCE),
        (OwnerFacts(accesses=[AccessFact("g", "A", NOW - 30 * DAY, NOW + 7 * DAY)]), K.ACCESS_ENDS),
    ],
)
def test_what_stands_begins_a_notice(facts: OwnerFacts, kind: NoticeKind) -> None:
    assert kinds(facts) == [kind]


@pytest.mark.parametrize(
    "facts",
    [
        OwnerFacts(),
        # made in time, although one interval is over; a schedule that made none yet; a failure
        # of a schedule that ended
        OwnerFacts(backups=BackupFacts(DAY, NOW - 3 * DAY), records=1),
        OwnerFacts(backups=BackupFacts(DAY), records=1),
        OwnerFacts(backups=BackupFacts(None, NOW - 900 * DAY, NOW), records=1),
        # old as it is, it was imported last week; a year is not old
        OwnerFacts(accounts=[AccountFact("c", "W", NOW - 900 * DAY, NOW - 7 * DAY)]),
        OwnerFacts(accounts=[AccountFact("c", "W", NOW - 365 * DAY, 0)]),
        # given for a week; ends in eight days; has ended
        OwnerFacts(accesses=[AccessFact("g", "A", NOW, NOW + 7 * DAY)]),
        OwnerFacts(accesses=[AccessFact("g", "A", NOW - 30 * DAY, NOW + 7 * DAY + 1)]),
        OwnerFacts(accesses=[AccessFact("g", "A", NOW - 30 * DAY, NOW)]),
    ],
)
def test_what_is_as_it_should_be_begins_none(facts: OwnerFacts) -> None:
    assert kinds(facts) == []


def test_a_name_is_cut_and_cleaned() -> None:
    told = "Not\u202ees\u200b\n<b>" + "x" * 500
    (cause,) = causes(OwnerFacts(requests=[replace(FACT, name=told)]), NOW)
    assert cause.name.startswith("Notes <b>x")
    assert len(cause.name) == MOST_NAME_CHARS


def standing(kind: NoticeKind, *abouts: str, noticed_ns: int = NOW) -> list[StandingNotice]:
    return [StandingNotice(Cause(kind, about, about, NOW), noticed_ns) for about in abouts]


def due(notices: list[StandingNotice], now_ns: int, told: dict[str, int], *off: str) -> list[int]:
    return [len(n.causes) for n in due_notices(notices, "noc_1", told, off, now_ns)]


def test_each_kind_waits_and_folds_as_long_as_its_owner_was_told() -> None:
    # docs/contract/authorization-server.md 13.8
    minute, hour = MINUTE_NS, HOUR_NS
    assert {kind.value: (rule.after_ns, rule.folds_ns) for kind, rule in KINDS.items()} == {
        "unusual_reading": (0, 10 * minute),
        "request_waits": (minute, 10 * minute),
        "backup_fails": (0, DAY),
        "backup_missing": (0, DAY),
        "no_backup": (7 * DAY, 30 * DAY),
        "feed_stale": (0, 6 * hour),
        "source_old": (0, 7 * DAY),
        "access_ends": (0, DAY),
        "channel_fails": (0, DAY),
    }


@pytest.mark.parametrize(
    ("fact", "stands"),
    [
        (AccountFact("c", "W", NOW - 365 * DAY - 1, NOW - 30 * DAY - 1), True),
        (AccountFact("c", "W", NOW - 365 * DAY, NOW - 30 * DAY - 1), False),
        (AccountFact("c", "W", NOW - 365 * DAY - 1, NOW - 30 * DAY), False),
        (AccessFact("g", "A", NOW - 7 * DAY - 1, NOW + 7 * DAY), True),
        (AccessFact("g", "A", NOW - 7 * DAY, NOW + 7 * DAY), False),
    ],
)
def test_an_account_is_old_and_an_access_was_long_from_a_day_on(
    fact: AccountFact | AccessFact, *, stands: bool
) -> None:
    is_account = isinstance(fact, AccountFact)
    facts = OwnerFacts(accounts=[fact]) if is_account else OwnerFacts(accesses=[fact])
    assert bool(kinds(facts)) is stands


@pytest.mark.parametrize("kind", NoticeKind)
def test_each_kind_is_due_once_it_stood_and_folds_what_comes_meanwhile(kind: NoticeKind) -> None:
    rule = KINDS[kind]
    three = standing(kind, "a", "b", "c")
    assert not rule.after_ns or due(three, NOW + rule.after_ns - 1, {}) == []
    assert due(three, NOW + rule.after_ns, {}) == [3]
    begun = NOW + rule.after_ns
    assert due(three, begun + rule.folds_ns - 1, {kind: begun}) == []
    assert due(three, begun + rule.folds_ns, {kind: begun}) == [3]
    assert due(three, begun, {}, kind) == []
    told = [replace(each, told={"noc_1": begun}) for each in three]
    assert due(told, begun + 400 * DAY, {}) == []
    assert due([*told[:2], three[2]], begun, {}) == [1]


def test_a_clock_that_was_set_back_silences_nothing() -> None:
    noticed = standing(K.REQUEST, "a", noticed_ns=NOW)
    assert due(noticed, NOW - 900 * DAY, {K.REQUEST: NOW}) == [1]


def test_one_that_is_not_due_yet_is_told_with_one_that_is() -> None:
    late = standing(K.REQUEST, "b", noticed_ns=NOW + MINUTE_NS - 1)
    assert due([*standing(K.REQUEST, "a"), *late], NOW + MINUTE_NS, {}) == [2]


def test_a_channel_is_told_nothing_of_itself_and_the_most_urgent_first() -> None:
    found = [*standing(K.CHANNEL, "noc_1", "noc_2"), *standing(K.UNUSUAL, "a")]
    notices = due_notices(found, "noc_1", {}, (), NOW)
    assert [(n.kind, [c.about for c in n.causes]) for n in notices] == [
        (K.UNUSUAL, ["a"]),
        (K.CHANNEL, ["noc_2"]),
    ]


@pytest.mark.parametrize(
    ("hours", "zone", "hour", "is_quiet"),
    [
        (QuietHours(22 * 60, 7 * 60), "UTC", 21, False),
        (QuietHours(22 * 60, 7 * 60), "UTC", 22, True),
        (QuietHours(22 * 60, 7 * 60), "UTC", 6, True),
        (QuietHours(22 * 60, 7 * 60), "UTC", 7, False),
        (QuietHours(12 * 60, 14 * 60), "UTC", 13, True),
        (QuietHours(12 * 60, 14 * 60), "UTC", 14, False),
        (QuietHours(22 * 60, 7 * 60), "Asia/Tokyo", 13, True),
        (QuietHours(22 * 60, 7 * 60), "Asia/Tokyo", 22, False),
        (QuietHours(18 * 60 + 45, 19 * 60), "Asia/Kathmandu", 13, True),
        (QuietHours(18 * 60, 18 * 60 + 45), "Asia/Kathmandu", 13, False),
    ],
)
def test_quiet_hours_are_of_the_owners_clock(
    hours: QuietHours, zone: str, hour: int, is_quiet: bool
) -> None:
    assert hours.covers(NOW + hour * HOUR_NS, ZoneInfo(zone)) is is_quiet


def test_a_cause_is_dated_by_what_it_names() -> None:
    never = OwnerFacts(records=1)
    assert causes(never, NOW) == (Cause(K.NO_BACKUP, "backup", "", 0),)
    failing = OwnerFacts(backups=BackupFacts(DAY, NOW, NOW - 5))
    assert causes(failing, NOW) == (Cause(K.BACKUP_FAILS, "backup", "", NOW - 5),)
    missing = OwnerFacts(backups=BackupFacts(DAY, NOW - 4 * DAY))
    assert causes(missing, NOW) == (Cause(K.BACKUP_MISSING, "backup", "", NOW - 4 * DAY),)
    told = OwnerFacts(requests=[FACT], feeds=[FACT], channels=[FACT], alarms=[FACT])
    assert {each.at_ns for each in causes(told, NOW)} == {NOW}
    assert len(causes(told, NOW)) == 4
