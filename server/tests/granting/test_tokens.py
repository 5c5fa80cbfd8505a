"""Refresh families: an answer that was lost is given again, and nothing else is."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.oauth_errors import InvalidClient, InvalidGrantCode, InvalidTarget
from personal_server.consent.credentials import secret_hash
from personal_server.consent.unusual_reading import said_of
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.granting.reading_alarms import dismiss_alarms
from personal_server.granting.retention import sweep
from personal_server.granting.tokens import (
    Issued,
    Refresh,
    Rotating,
    details_of,
    held_rows,
    network_near,
)
from personal_server.reading.tokens import TokenUses
from personal_server.storage.authorization_rows import (
    AuditRow,
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    ReadingAlarmRow,
    RefreshTokenRow,
    TokenRow,
)
from server.tests.granting.conftest import NOTES, Bench, entry

CLIENT = Acting("client")
SECOND = 10**9
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND


@pytest.fixture
def first(bench: Any, make_entry: Any) -> Issued:
    code = bench.allow(bench.ask([make_entry()]))
    return bench.redeeming.redeem_code(Redemption("cli_1", code, "none", verifier="v" * 43), CLIENT)


@pytest.fixture
def uses(bench: Any) -> TokenUses:
    return TokenUses(bench.store)


@pytest.fixture
def rotate(bench: Any, uses: TokenUses) -> Any:
    rotating = Rotating(bench.store, bench.clock, bench.random, uses.flush)

    def once(token: str | None, client_id: str = "cli_1", address: str = "") -> Issued:
        acting = replace(CLIENT, address=address)
        return rotating.rotate(Refresh(client_id, token or "", "none"), acting)

    return once


def pair(issued: Issued) -> tuple[str, str | None]:
    return issued.access_token, issued.refresh_token


def lasting(bench: Any) -> None:
    """Let the grant outlive what the test waits for."""
    with bench.store.write() as writer:
        writer.change(GrantRow, [GrantRow.expires_at_ns.to(None)])
        writer.change(FamilyRow, [FamilyRow.absolute_end_ns.to(None)])


@pytest.mark.parametrize("wait", [0, MINUTE, 10 * MINUTE - 1])
def test_a_lost_answer_is_given_again_as_often_as_it_is_lost(
    bench: Any, first: Issued, rotate: Any, wait: int
) -> None:
    second = rotate(first.refresh_token)
    for _ in range(3):
        bench.now_ns += wait // 3
        again = rotate(first.refresh_token)
        assert pair(again) == pair(second)
        assert (again.grant_ids, again.details) == (second.grant_ids, second.details)
        assert again.expires_at_ns == second.expires_at_ns
    assert len(bench.rows(TokenRow)) == len(bench.rows(RefreshTokenRow)) == 2
    assert bench.rows(FamilyRow)[0].generation == 2
    events = [row.event for row in bench.rows(AuditRow)]
    assert events.count("refresh.repeated") == 3
    assert rotate(second.refresh_token).refresh_token not in pair(second)


@pytest.mark.parametrize("wait", [10 * MINUTE + 1, 20 * DAY])
def test_after_ten_minutes_a_spent_token_ends_its_access(
    bench: Any, first: Issued, rotate: Any, wait: int
) -> None:
    lasting(bench)
    rotate(first.refresh_token)
    bench.now_ns += wait
    with pytest.raises(InvalidGrantCode):
        rotate(first.refresh_token)
    assert bench.rows(FamilyRow)[0].reason == "refresh_reuse"


@pytest.mark.parametrize(
    ("other", "is_near"),
    [
        ("203.0.113.200", True),
        ("203.0.114.7", False),
        ("2001:db8::1", False),
    ],
)
def test_after_a_minute_only_the_network_of_before_is_answered_again(
    bench: Any, first: Issued, rotate: Any, other: str, *, is_near: bool
) -> None:
    second = rotate(first.refresh_token, address="203.0.113.7")
    assert pair(rotate(first.refresh_token, address=other)) == pair(second)
    bench.now_ns += MINUTE + 1
    if is_near:
        assert pair(rotate(first.refresh_token, address=other)) == pair(second)
        return
    with pytest.raises(InvalidGrantCode):
        rotate(first.refresh_token, address=other)
    assert bench.rows(FamilyRow)[0].reason == "refresh_reuse"


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.7", "203.0.113.0/24"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("a pipe", "a pipe"),
        ("", None),
        (None, None),
    ],
)
def test_a_network_is_that_of_a_household(address: str | None, network: str | None) -> None:
    assert network_near(address) == network


def test_whoever_asks_a_third_time_is_told_to_the_owner_once(
    bench: Any, first: Issued, rotate: Any
) -> None:
    rotate(first.refresh_token)
    for repeats in range(1, 6):
        rotate(first.refresh_token)
        assert len(bench.rows(ReadingAlarmRow)) == (repeats >= 3)
    (alarm,) = bench.rows(ReadingAlarmRow)
    assert alarm.held_id == bench.rows(FamilyRow)[0].grant_id
    assert (alarm.rule, alarm.detail, alarm.paused) == ("refresh_repeated", {"repeats": 3}, False)
    assert "3" in said_of(alarm.rule, alarm.detail)
    unusual = [row for row in bench.rows(AuditRow) if row.event == "reading.unusual"]
    assert [row.detail for row in unusual] == [{"rule": "refresh_repeated", "repeats": 3}]


def test_who_asks_once_after_each_renewal_is_told_to_the_owner(
    bench: Any, first: Issued, rotate: Any
) -> None:
    lasting(bench)
    token = first.refresh_token
    told: list[int] = []
    for _ in range(7):
        answer = rotate(token)
        bench.now_ns += MINUTE
        assert pair(rotate(token)) == pair(answer)
        token = answer.refresh_token
        told.append(len(bench.rows(ReadingAlarmRow)))
        bench.now_ns += 12 * HOUR
    # a day apart at the least, and each after three more
    assert told == [0, 0, 1, 1, 1, 2, 2]
    assert {alarm.detail["repeats"] for alarm in bench.rows(ReadingAlarmRow)} == {3}


def test_what_the_owner_dismissed_is_not_told_again_with_the_next_lost_answer(
    bench: Any, first: Issued, rotate: Any
) -> None:
    lasting(bench)
    second = rotate(first.refresh_token)
    for _ in range(3):
        rotate(first.refresh_token)
    (alarm,) = bench.rows(ReadingAlarmRow)
    with bench.store.write() as writer:
        dismiss_alarms(writer, alarm.held_id, CLIENT, bench.now_ns)
    bench.now_ns += 40 * DAY
    sweep(bench.store, bench.now_ns)
    rotate(second.refresh_token)
    rotate(second.refresh_token)
    assert [each.alarm_id for each in bench.rows(ReadingAlarmRow)] == [alarm.alarm_id]


def row_of(bench: Any, issued: Issued) -> TokenRow:
    """The row of an access token."""
    known = secret_hash(issued.access_token)
    return next(row for row in bench.rows(TokenRow) if row.token_hash == known)


def test_within_a_minute_two_sessions_share_one_answer_though_one_used_it(
    bench: Any, first: Issued, rotate: Any, uses: TokenUses
) -> None:
    second = rotate(first.refresh_token)
    uses.note(row_of(bench, second), bench.now_ns)
    third = rotate(second.refresh_token)
    bench.now_ns += MINUTE
    assert pair(rotate(first.refresh_token)) == pair(second)
    assert pair(rotate(second.refresh_token)) == pair(third)
    assert bench.rows(FamilyRow)[0].revoked_at_ns is None


@pytest.mark.parametrize("used", ["access", "refresh", "given back"])
def test_once_the_answer_was_used_the_token_before_it_ends_the_family(
    bench: Any, first: Issued, rotate: Any, uses: TokenUses, used: str
) -> None:
    second = rotate(first.refresh_token)
    is_second = TokenRow.token_hash.equals(secret_hash(second.access_token))
    if used == "access":
        uses.note(row_of(bench, second), bench.now_ns)
    elif used == "refresh":
        rotate(second.refresh_token)
    else:
        with bench.store.write() as writer:
            writer.change(TokenRow, [TokenRow.revoked_at_ns.to(bench.now_ns)], is_second)
    bench.now_ns += MINUTE + 1
    with pytest.raises(InvalidGrantCode) as caught:
        rotate(first.refresh_token)
    assert caught.value.members["fresh_authorization_required"] is True
    assert bench.rows(FamilyRow)[0].reason == "refresh_reuse"
    assert bench.rows(GrantRow)[0].reason == "refresh_reuse"


def test_a_token_superseded_before_answers_were_derived_ends_the_family(
    bench: Any, first: Issued, rotate: Any
) -> None:
    rotate(first.refresh_token)
    with bench.store.write() as writer:
        writer.change(RefreshTokenRow, [RefreshTokenRow.salt.to(None)])
    with pytest.raises(InvalidGrantCode):
        rotate(first.refresh_token)
    assert bench.rows(GrantRow)[0].reason == "refresh_reuse"


def test_no_answer_is_given_again_to_another_client_or_after_the_end(
    bench: Any, first: Issued, rotate: Any
) -> None:
    rotate(first.refresh_token)
    with pytest.raises(InvalidGrantCode):
        rotate(first.refresh_token, "cli_2")
    assert bench.rows(GrantRow)[0].reason is None
    with bench.store.write() as writer:
        ended = [GrantRow.revoked_at_ns.to(bench.now_ns), GrantRow.reason.to("owner")]
        writer.change(GrantRow, ended)
    with pytest.raises(InvalidGrantCode):
        rotate(first.refresh_token)
    assert bench.rows(GrantRow)[0].reason == "owner"


def test_the_store_alone_cannot_make_the_answer_again(
    bench: Any, first: Issued, rotate: Any
) -> None:
    second = rotate(first.refresh_token)
    kept = repr([*bench.rows(RefreshTokenRow), *bench.rows(TokenRow), *bench.rows(FamilyRow)])
    for secret in (*pair(first), *pair(second)):
        assert secret
        assert secret not in kept


def test_an_access_token_never_outlives_its_grant(bench: Any, first: Issued, rotate: Any) -> None:
    bench.now_ns = bench.rows(GrantRow)[0].expires_at_ns - 60 * SECOND
    with bench.store.write() as writer:
        writer.change(FamilyRow, [FamilyRow.idle_end_ns.to(bench.now_ns * 2)])
    issued = rotate(first.refresh_token)
    assert issued.expires_in_seconds == 60
    bench.now_ns += 60 * SECOND
    with pytest.raises(InvalidGrantCode):
        rotate(issued.refresh_token)
    assert bench.rows(GrantRow)[0].reason is None


def refresh(memory: Bench, issued: Issued, **over: Any) -> Issued:
    rotating = Rotating(memory.store, memory.clock, memory.random, lambda: None)
    asked = replace(Refresh("cli_1", issued.refresh_token or "", "none"), **over)
    return rotating.rotate(asked, CLIENT)


def test_an_unknown_token_leaves_no_line_and_that_of_another_client_one(memory: Bench) -> None:
    issued = memory.connect(entry())
    before = memory.events()
    with pytest.raises(InvalidGrantCode):
        refresh(memory, issued, refresh_token="pdpp_rt_unknown")
    assert memory.events() == before
    with pytest.raises(InvalidGrantCode):
        refresh(memory, issued, client_id="cli_2")
    grant_id = issued.grant_ids[0]
    assert memory.events()[len(before) :] == [("refresh.wrong_client", "cli_1", grant_id, None)]
    assert refresh(memory, issued).refresh_token


def test_a_renewal_is_noted_and_counts_as_use(memory: Bench) -> None:
    issued = memory.connect(entry(), entry(NOTES))
    memory.now_ns += HOUR
    second = refresh(memory, issued)
    assert memory.events()[-1] == ("refresh.rotated", "cli_1", None, issued.package_id)
    assert memory.rows(AuditRow)[-1].detail == {"generation": 2}
    (family,) = memory.rows(FamilyRow)
    assert (family.generation, family.last_used_at_ns) == (2, memory.now_ns)
    assert memory.rows(ClientRow)[0].last_used_at_ns == memory.now_ns
    assert (second.grant_ids, len(second.details)) == (issued.grant_ids, 2)
    assert second.expires_in_seconds == 3_600


def test_a_token_for_another_resource_is_refused_and_stays_good(memory: Bench) -> None:
    issued = memory.connect(entry())
    with pytest.raises(InvalidTarget) as caught:
        refresh(memory, issued, resource="https://me.example/v1")
    assert caught.value.param == "resource"
    assert refresh(memory, issued, resource="https://me.example/mcp")


def test_who_proved_itself_once_has_to_prove_itself_again(memory: Bench) -> None:
    issued = memory.connect(entry())
    with memory.store.write() as writer:
        writer.change(FamilyRow, [FamilyRow.auth_floor.to("private_key_jwt")])
    with pytest.raises(InvalidClient):
        refresh(memory, issued)
    assert refresh(memory, issued, auth_method="private_key_jwt").refresh_token


@pytest.mark.parametrize(
    ("bound_to", "floor", "sent", "is_good"),
    [
        (None, "none", "key", True),
        ("key", "none", "key", True),
        ("key", "none", "other", False),
        ("key", "none", None, False),
        ("key", "private_key_jwt", "other", True),
        ("key", "private_key_jwt", None, False),
    ],
)
def test_a_family_stays_with_its_key_unless_its_client_proves_itself_otherwise(
    memory: Bench, bound_to: str | None, floor: str, sent: str | None, *, is_good: bool
) -> None:
    issued = memory.connect(entry())
    with memory.store.write() as writer:
        writer.change(FamilyRow, [FamilyRow.jkt.to(bound_to), FamilyRow.auth_floor.to(floor)])
    if is_good:
        refresh(memory, issued, jkt=sent, auth_method=floor)
        assert memory.rows(TokenRow)[-1].jkt in (sent, None)
        assert sent in {row.jkt for row in memory.rows(TokenRow)}
        return
    with pytest.raises(InvalidGrantCode):
        refresh(memory, issued, jkt=sent, auth_method=floor)
    assert memory.events()[-1][0] == "refresh.wrong_key"


@pytest.mark.parametrize(("again", "is_good"), [("key", True), ("other", False), (None, False)])
def test_what_was_given_once_is_given_again_to_the_same_key_only(
    memory: Bench, again: str | None, *, is_good: bool
) -> None:
    issued = memory.connect(entry())
    with memory.store.write() as writer:
        writer.change(FamilyRow, [FamilyRow.auth_floor.to("private_key_jwt")])
    proven = {"auth_method": "private_key_jwt"}
    first = refresh(memory, issued, jkt="key", **proven)
    if is_good:
        assert refresh(memory, issued, jkt=again, **proven).access_token == first.access_token
        return
    with pytest.raises(InvalidGrantCode):
        refresh(memory, issued, jkt=again, **proven)
    assert memory.events()[-1][0] == "refresh.wrong_key"
    # the one that follows may come with another key, as its client proves itself otherwise
    if again is not None:
        following = refresh(memory, first, jkt=again, **proven)
        assert following.access_token != first.access_token


@pytest.mark.parametrize("end", [FamilyRow.idle_end_ns, FamilyRow.absolute_end_ns])
@pytest.mark.parametrize(("early_ns", "is_good"), [(1, True), (0, False)])
def test_a_family_ends_at_its_instant(
    memory: Bench, end: Any, early_ns: int, *, is_good: bool
) -> None:
    issued = memory.connect(entry())
    with memory.store.write() as writer:
        writer.change(FamilyRow, [end.to(memory.now_ns + early_ns)])
    if is_good:
        assert refresh(memory, issued)
        return
    with pytest.raises(InvalidGrantCode):
        refresh(memory, issued)


@pytest.mark.parametrize("entries", [1, 2])
def test_what_was_ended_is_not_renewed_and_what_is_paused_is(memory: Bench, entries: int) -> None:
    issued = memory.connect(*[entry(), entry(NOTES)][:entries])
    with memory.store.write() as writer:
        writer.change(GrantRow, [GrantRow.hold.to("owner")])
    issued = refresh(memory, issued)
    table: Any = PackageRow if entries == 2 else GrantRow
    with memory.store.write() as writer:
        writer.change(table, [table.revoked_at_ns.to(1), table.reason.to("owner")])
    with pytest.raises(InvalidGrantCode):
        refresh(memory, issued)


def test_details_leave_out_what_cannot_be_read(memory: Bench) -> None:
    memory.connect(entry(), entry(NOTES))
    first, second = memory.rows(GrantRow)
    broken = dataclasses.replace(first, grant=b"{}")
    assert details_of([broken, second]) == details_of([second])
    assert len(details_of([first, second])) == 2


def test_nothing_stands_behind_what_is_unknown_or_has_ended(memory: Bench) -> None:
    single = memory.connect(entry()).grant_ids[0]
    package_id = memory.connect(entry(), entry(NOTES), request_id="ar_2").package_id

    def behind(grant_id: str | None, package_id: str | None = None) -> list[str]:
        with memory.store.read() as reader:
            found = held_rows(reader, grant_id, package_id, memory.now_ns)
        return [row.grant_id for row in found]

    assert behind(single) == [single]
    assert len(behind(None, package_id)) == 2
    assert behind(None) == behind("none") == behind(None, "none") == []
    with memory.store.write() as writer:
        tables: list[Any] = [GrantRow, PackageRow]
        for table in tables:
            writer.change(table, [table.revoked_at_ns.to(1), table.reason.to("owner")])
    assert behind(single) == behind(None, package_id) == []


@pytest.mark.parametrize("gone", [TokenRow, RefreshTokenRow])
def test_an_answer_of_which_a_half_is_gone_is_not_given_again(memory: Bench, gone: Any) -> None:
    issued = memory.connect(entry())
    second = refresh(memory, issued)
    secret = second.access_token if gone is TokenRow else second.refresh_token
    with memory.store.write() as writer:
        assert writer.delete(gone, gone.token_hash.equals(secret_hash(secret or "")))
    memory.now_ns += MINUTE + 1
    with pytest.raises(InvalidGrantCode):
        refresh(memory, issued)
    assert memory.rows(FamilyRow)[0].reason == "refresh_reuse"


def test_a_device_of_the_owner_is_answered_again_and_no_alarm_goes_off(memory: Bench) -> None:
    issued = memory.connect(entry())
    with memory.store.write() as writer:
        writer.change(FamilyRow, [FamilyRow.kind.to("owner"), FamilyRow.grant_id.to(None)])
    second = refresh(memory, issued)
    for _ in range(4):
        assert refresh(memory, issued).access_token == second.access_token
    assert (second.kind, second.grant_ids) == ("owner", ())
    assert memory.rows(ReadingAlarmRow) == []
    assert max(row.repeats for row in memory.rows(RefreshTokenRow)) == 4
