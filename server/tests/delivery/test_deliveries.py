"""Attempts: when they are made, what ends them, and what a receiver can do to others."""

from __future__ import annotations

import email.utils
import itertools
from itertools import pairwise
from typing import Any

import anyio
import httpx2
import pytest

from pdpp_kernel.values import NANOSECONDS
from personal_server.delivery import callbacks, deliveries
from personal_server.delivery.events import MOST_WAITING
from personal_server.delivery.subscribers import Changes
from personal_server.delivery.subscription_scopes import EVERYTHING
from personal_server.granting.audit import SERVER
from personal_server.granting.pauses import pause_access, resume_access
from personal_server.reading.tokens import TokenHolder
from personal_server.storage.authorization_rows import AuditRow, EventRow, SubscriptionRow
from server.tests.delivery.notes import A, B, grant_of, write
from server.tests.delivery.post_office import (
    ACTING,
    PostOffice,
    Received,
    answering,
    echo,
    saying,
)

PAST = "Thu, 01 Jan 1970 00:00:00 GMT"

pytestmark = pytest.mark.anyio


async def one_event(office: PostOffice, app: TokenHolder) -> Any:
    made = await office.subscribe(app)
    write(office, "n1")
    return made


async def attempts_at(office: PostOffice, steps: int = 8) -> list[int]:
    """The seconds between attempts, each looked for at its latest time."""
    begin = office.now_ns
    for wait in (5, *deliveries.WAITS_SECONDS, 86_400)[:steps]:
        await office.pass_time(wait * 1.2 + 1)
    return [(each.at_ns - begin) // NANOSECONDS for each in office.received[1:]]


# Verification ---------------------------------------------------------------------------------
async def test_an_address_that_answers_its_challenge_becomes_active(
    office: PostOffice, app: TokenHolder
) -> None:
    made = await office.subscribe(app)
    (asked,) = office.received
    assert asked.type == "subscription.verify"
    assert len(bytes.fromhex(asked.data["challenge"])) == 32
    assert office.row(made).status == "active"
    assert office.row(made).verified_at_ns == office.now_ns


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"garbage",
        b'{"challenge": "other"}',
        b'{"challenge": 1}',
        b"[]",
        b"\xff\xfe",
        b'{"challenge": "\\ud800"}',
        b'{"pad": "' + b"x" * 5_000 + b'", "challenge": "CHALLENGE"}',
        b'{"challenge": "CHALLENGE"}' + b" " * 10 * 2**20,
    ],
    ids=range(9),
)
async def test_an_address_that_does_not_is_told_nothing_else(
    office: PostOffice, app: TokenHolder, answer: bytes
) -> None:
    def behave(received: Received) -> httpx2.Response:
        challenge = received.data.get("challenge", "").encode()
        padded = b'{"challenge": "CHALLENGE"}' not in answer or len(answer) < 5_000
        return saying(answer.replace(b"CHALLENGE", challenge if padded else b"other"))

    office.behave = behave
    made = await office.subscribe(app)
    write(office, "n1")
    for _ in range(8):
        await office.pass_time(600)
    assert {each.type for each in office.received} == {"subscription.verify"}
    assert office.row(made).status == "disabled_failure"
    assert office.row(made).disabled_reason in ("not_verified", "challenge_not_answered")


async def test_what_changed_before_it_was_verified_is_told_then(
    office: PostOffice, app: TokenHolder
) -> None:
    office.behave = lambda _: httpx2.Response(500)
    made = await office.subscribe(app)
    write(office, "n1")
    await office.told()
    office.behave = echo
    assert [each.type for each in await office.pass_time(40)] == ["subscription.verify"]
    assert office.row(made).status == "active"
    assert [each.type for each in await office.pass_time(30)] == ["records.changed"]


# Attempts -------------------------------------------------------------------------------------
async def test_seven_attempts_are_made_and_then_none(office: PostOffice, app: TokenHolder) -> None:
    made = await one_event(office, app)
    office.behave = answering(500)
    times = await attempts_at(office)
    assert len(times) == deliveries.MOST_ATTEMPTS == 7
    assert len({each.headers["webhook-id"] for each in office.received[1:]}) == 1
    assert len({each.body for each in office.received[1:]}) == 1
    assert len({each.headers["webhook-timestamp"] for each in office.received[1:]}) == 7
    row = office.row(made)
    assert (row.status, row.disabled_reason) == ("disabled_failure", "refused")
    assert row.last_delivery_status == "refused"
    with office.authorization.read() as reader:
        assert reader.rows(AuditRow)[-1].event == "subscription.failed"


async def test_waits_are_within_a_fifth_of_the_schedule(
    office: PostOffice, app: TokenHolder
) -> None:
    await one_event(office, app)
    office.behave = answering(500)
    await office.told()
    for wait in deliveries.WAITS_SECONDS[:3]:
        (event,) = office.queued()
        due = ((event.due_at_ns or 0) - office.now_ns) / NANOSECONDS
        assert 0.8 * wait <= due <= 1.2 * wait
        assert await office.pass_time(0.8 * wait - 1) == []
        await office.pass_time(0.4 * wait + 2)


async def test_what_was_not_told_is_told_when_it_is_active_again(
    office: PostOffice, app: TokenHolder
) -> None:
    made = await one_event(office, app)
    office.behave = answering(410)
    await office.told()
    assert office.row(made).status == "disabled_failure"
    write(office, "n2")
    office.behave = echo
    authority = office.authority(app)
    subscription_id = made.row.subscription_id
    enabled = Changes(enabled=True)
    office.subscriptions.change(authority, subscription_id, enabled, ACTING, office.now_ns)
    before = len(office.received)
    for _ in range(3):
        await office.pass_time(30)
    types = [each.type for each in office.received[before:]]
    assert types == ["subscription.verify", "records.changed", "records.changed"]
    told = office.received[before + 1]
    assert told.data["change_count_hint"] == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400, 404, 500])
async def test_other_answers_are_failures_and_redirects_are_not_followed(
    office: PostOffice, app: TokenHolder, status: int
) -> None:
    made = await one_event(office, app)
    office.behave = answering(status, location="https://other.example/")
    (event,) = await office.told()
    assert event.url == "https://app.example/hooks"
    assert office.row(made).last_delivery_status == "refused"
    (queued,) = office.queued()
    assert queued.attempts == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize("as_date", [False, True])
async def test_who_asks_to_be_left_alone_is_without_using_an_attempt(
    office: PostOffice, app: TokenHolder, status: int, as_date: bool
) -> None:
    await one_event(office, app)
    at = (office.now_ns + 5_000 * NANOSECONDS) // NANOSECONDS
    after = email.utils.formatdate(at, usegmt=True) if as_date else "4995"
    office.behave = answering(status, retry_after=after)
    await office.told()
    (queued,) = office.queued()
    assert queued.attempts == 0
    assert queued.due_at_ns == at * NANOSECONDS
    office.behave = echo
    assert await office.pass_time(4_900) == []
    assert len(await office.pass_time(100)) == 1


@pytest.mark.parametrize(
    "after",
    [
        "",
        "0",
        "-1",
        "86401",
        "soon",
        "1e3",
        "Wed, 99 Foo 2026",
        "9" * 400,
        "Thu, 01 Jan 1970 00:00:00 GMT",
    ],
)
async def test_other_wishes_are_not_heard(office: PostOffice, app: TokenHolder, after: str) -> None:
    await one_event(office, app)
    office.behave = answering(429, retry_after=after)
    await office.told()
    (queued,) = office.queued()
    assert queued.attempts == 1
    assert queued.outcome == "refused"


async def test_postponing_ends_after_three_days(office: PostOffice, app: TokenHolder) -> None:
    made = await one_event(office, app)
    office.behave = answering(503, retry_after="86400")
    await office.told()
    for _ in range(3):
        await office.pass_time(86_400)
        assert office.row(made).status == "active"
    for wait in deliveries.WAITS_SECONDS:
        await office.pass_time(wait * 1.2)
    assert office.row(made).status == "disabled_failure"


async def test_one_that_is_gone_is_given_up_at_once(office: PostOffice, app: TokenHolder) -> None:
    made = await one_event(office, app)
    office.behave = answering(410)
    await office.told()
    row = office.row(made)
    assert (row.status, row.disabled_reason) == ("disabled_failure", "gone")


async def test_what_breaks_on_the_way_is_tried_again(office: PostOffice, app: TokenHolder) -> None:
    made = await one_event(office, app)

    def broken(_: Received) -> httpx2.Response:
        raise httpx2.RemoteProtocolError("garbage")

    office.behave = broken
    await office.told()
    assert office.row(made).last_delivery_status == "unreachable"
    office.behave = echo
    assert len(await office.pass_time(40)) == 1
    assert office.row(made).last_delivery_status == "delivered"


async def test_a_name_that_leads_elsewhere_later_is_not_called(
    office: PostOffice, app: TokenHolder
) -> None:
    made = await one_event(office, app)
    office.hosts["app.example"] = ("93.184.215.14", "169.254.169.254")
    assert await office.told() == []
    assert office.row(made).last_delivery_status == "unsafe_address"
    office.hosts["app.example"] = ("93.184.215.15",)
    assert len(await office.pass_time(40)) == 1


async def test_a_receiver_that_never_answers_holds_up_nobody_else(
    office: PostOffice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "TIMEOUT_SECONDS", 3.0)
    slow = office.grant(grant_of("grt_slow", B))
    quick = office.grant(grant_of("grt_quick", A))
    await office.subscribe(slow, "https://slow.example/")
    await office.subscribe(quick, "https://quick.example/")
    ended = list[str]()

    async def behave(received: Received) -> httpx2.Response:
        try:
            if "slow" in received.url:
                await anyio.sleep_forever()
        finally:
            ended.append(received.url)
        return echo(received)

    office.behave = behave
    write(office, "n1", connection=B)
    write(office, "n1", connection=A)
    await office.told()
    assert ended == ["https://quick.example/", "https://slow.example/"]
    with office.authorization.read() as reader:
        outcomes = {row.outcome for row in reader.rows(EventRow, EventRow.attempts.above(0))}
    assert outcomes == {"delivered", "timed_out"}


# Secrets --------------------------------------------------------------------------------------
async def test_a_secret_that_is_rotated_signs_for_a_day_more(
    office: PostOffice, app: TokenHolder
) -> None:
    made = await office.subscribe(app)
    assert made.secret is not None
    write(office, "n1")
    (event,) = await office.told()
    assert event.is_signed_by(made.secret)
    rotated = office.subscriptions.change(
        office.authority(app),
        made.row.subscription_id,
        Changes(rotate_secret=True),
        ACTING,
        office.now_ns,
    )
    assert rotated.secret is not None
    write(office, "n2")
    (event,) = await office.told()
    assert event.is_signed_by(made.secret)
    assert event.is_signed_by(rotated.secret)
    assert len(event.headers["webhook-signature"].split()) == 2
    await office.pass_time(86_400)
    write(office, "n3")
    (event,) = await office.told()
    assert not event.is_signed_by(made.secret)
    assert event.is_signed_by(rotated.secret)


async def test_a_secret_rotated_between_two_attempts_signs_the_second(
    office: PostOffice, app: TokenHolder
) -> None:
    made = await one_event(office, app)
    office.behave = answering(500)
    await office.told()
    changes = Changes(rotate_secret=True)
    reads = office.authority(app)
    rotated = office.subscriptions.change(
        reads, made.row.subscription_id, changes, ACTING, office.now_ns
    )
    office.behave = echo
    (event,) = await office.pass_time(40)
    assert rotated.secret is not None
    assert event.is_signed_by(rotated.secret)


# Bounds, ends of processes, clocks ------------------------------------------------------------
async def test_the_queue_of_one_that_fails_is_bounded(office: PostOffice, app: TokenHolder) -> None:
    made = await office.subscribe(app)
    with office.authorization.write() as writer:
        for number in range(MOST_WAITING):
            writer.insert(
                EventRow(
                    event_id=f"evt_{number}",
                    subscription_id=made.row.subscription_id,
                    type="pdpp.records.changed",
                    connection_id=A,
                    stream="notes",
                    since=number % 7 and made.row.seen,
                    created_at_ns=office.now_ns,
                    attempts=1,
                    outcome="refused",
                    due_at_ns=2**62,
                )
            )
    write(office, "n1")
    (event,) = await office.told()
    assert event.data["change_count_hint"] == 1
    assert office.queued() == []


async def test_what_was_being_sent_when_a_process_ended_is_sent_again(
    office: PostOffice, app: TokenHolder
) -> None:
    await one_event(office, app)
    await office.pass_time(0)
    office.now_ns += 5 * NANOSECONDS
    office.deliveries.turn()
    assert [event.outcome for event in office.queued()] == ["sending"]
    office.deliveries = office.new_process()
    assert [each.type for each in await office.pass_time(1)] == ["records.changed"]


async def test_after_a_start_the_older_bookmark_is_sent_first(
    office: PostOffice, app: TokenHolder
) -> None:
    await one_event(office, app)
    await office.pass_time(0)
    office.now_ns += 5 * NANOSECONDS
    office.deliveries.turn()
    (older,) = office.queued()
    office.now_ns += 1
    write(office, "n2")
    office.deliveries = office.new_process()
    told = [*await office.pass_time(1), *await office.pass_time(5)]
    assert [each.event["id"] == older.event_id for each in told] == [True, False]


async def test_a_clock_that_is_set_back_delays_nothing(
    office: PostOffice, app: TokenHolder
) -> None:
    await one_event(office, app)
    office.behave = answering(500)
    await office.told()
    office.behave = echo
    office.set_back_ns = 86_400 * NANOSECONDS
    office.now_ns -= 86_400 * NANOSECONDS
    assert len(await office.pass_time(1)) == 1


async def test_a_clock_in_doubt_ends_no_challenge(office: PostOffice, app: TokenHolder) -> None:
    office.behave = lambda _: httpx2.Response(500)
    made = await office.subscribe(app)
    office.deliveries.may_end = lambda: False
    for _ in range(4):
        await office.pass_time(86_400)
    assert office.row(made).status == "pending_verification"


async def test_what_waits_to_be_sent_outlasts_a_pause(office: PostOffice, app: TokenHolder) -> None:
    await one_event(office, app)
    await office.pass_time(0)
    office.now_ns += 5 * NANOSECONDS
    office.events.gather(office.now_ns, ends=True)
    with office.authorization.write() as writer:
        pause_access(writer, "grt_app", SERVER, office.now_ns)
    assert await office.pass_time(1) == []
    with office.authorization.write() as writer:
        resume_access(writer, "grt_app", SERVER, office.now_ns)
    assert len(await office.pass_time(61)) == 1


async def test_what_is_costly_to_tell_is_told_less_often(
    office: PostOffice, app: TokenHolder
) -> None:
    passed = itertools.count()
    office.deliveries.monotonic = lambda: office.now_ns / NANOSECONDS + next(passed) / 10
    await office.subscribe(app)
    arrived: list[Received] = []
    for turn in range(60):
        write(office, f"n{turn}")
        arrived += await office.pass_time(1)
    times = [each.at_ns // NANOSECONDS for each in arrived]
    pauses = [after - before for before, after in pairwise(times)]
    assert pauses
    assert min(pauses) >= 0.1 / deliveries.TELLING_SHARE
    assert max(pauses) <= deliveries.LOOKED_SECONDS


async def test_one_event_that_cannot_be_made_takes_none_of_the_others_with_it(
    office: PostOffice,
) -> None:
    holders = [office.grant(grant_of(f"grt_{name}")) for name in "abc"]
    made = [await office.subscribe(holder) for holder in holders]
    unsealed = SubscriptionRow.secret.to(b"sealed by another server" * 2)
    for each in made[1:2]:
        of_it = SubscriptionRow.subscription_id.equals(each.row.subscription_id)
        with office.authorization.write() as writer:
            writer.change(SubscriptionRow, [unsealed], of_it)
    write(office, "n1")
    told = {each.data["subscription_id"] for each in await office.told()}
    assert told == {each.row.subscription_id for each in (made[0], made[2])}
    assert office.row(made[1]).last_delivery_status == "not_made"


async def test_a_thousand_subscriptions_are_told_each_once(office: PostOffice) -> None:
    holders = [office.grant(grant_of(f"grt_{number}")) for number in range(office.many)]
    for number, holder in enumerate(holders):
        authority = office.authority(holder)
        for part in range(10):
            url = f"https://app{number}.example/{part}"
            office.subscriptions.create(authority, url, EVERYTHING, None, ACTING, office.now_ns)
    await office.deliveries.work()
    write(office, "n1")
    await office.pass_time(0)
    before = len(office.received)
    for _ in range(4):
        await office.pass_time(5)
    told = office.received[before:]
    assert len(told) == len({each.url for each in told}) == 10 * office.many
