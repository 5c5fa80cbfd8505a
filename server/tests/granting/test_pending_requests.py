"""Requests wait under names that only those who need them know, and make room for others."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import NotFound, RateLimitExceeded
from pdpp_kernel.oauth_errors import (
    ApprovalConflict,
    InvalidRequestUri,
    InvalidUserCode,
    RequestClosed,
)
from personal_server.consent.authorization_requests import CodeRequest, RequestedAccess
from personal_server.consent.credentials import secret_hash
from personal_server.granting.audit import Acting
from personal_server.granting.pending_requests import (
    MAX_PENDING,
    OWNER_DEVICE,
    Asking,
    DeviceCodes,
    Requesting,
)
from personal_server.storage.authorization_rows import AuditRow, ClientRow, RequestRow
from server.tests.granting.conftest import SECONDS, Bench, entry

CLIENT = Acting("client", address="203.0.113.7", user_agent="A device")
MCP = "https://me.example/mcp"
BACK = "https://app.example/cb"
MINUTE = 60 * SECONDS


class Door:
    """Requests over a bench; its randomness has every byte, so that user codes can be drawn."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        numbers = itertools.count(1)
        self.requesting = Requesting(
            bench.store,
            bench.clock,
            lambda size: bytes((next(numbers) + at) % 240 for at in range(size)),
        )
        self.asking = Asking(bench.rows(ClientRow)[0], "https://me.example", "none")

    def request(self, **over: Any) -> CodeRequest:
        wanted = self.access(**over)
        return CodeRequest(wanted, state="xyz", code_challenge="c" * 43, jkt="key")

    @staticmethod
    def access(**over: Any) -> RequestedAccess:
        asked = RequestedAccess(MCP, "pdpp:read", [entry()], {"name": "App"})
        return replace(asked, **over)

    def ask(self) -> str:
        return self.requesting.ask_for_code(self.asking, self.request(), BACK, CLIENT)

    def push(self) -> str:
        return self.requesting.push(self.asking, self.request(), BACK, CLIENT)

    def device(self, **over: Any) -> DeviceCodes:
        return self.requesting.ask_for_device(self.asking, self.access(**over), CLIENT)


@pytest.fixture
def door(memory: Bench) -> Door:
    return Door(memory)


def test_a_request_waits_fifteen_minutes_with_all_that_was_asked(door: Door) -> None:
    request_id = door.ask()
    (row,) = door.bench.rows(RequestRow)
    assert (row.request_id, row.flow, row.status, row.picker) == (
        request_id,
        "code",
        "pending",
        False,
    )
    assert row.expires_at_ns - row.created_at_ns == 15 * MINUTE
    assert (row.redirect_uri, row.state, row.code_challenge) == (BACK, "xyz", "c" * 43)
    assert (row.client_id, row.origin, row.resource) == ("cli_1", "https://me.example", MCP)
    assert (row.jkt, row.display, row.details) == ("key", {"name": "App"}, [entry()])
    assert door.bench.events()[-1] == ("request.created", "cli_1", None, None)
    detail = door.bench.rows(AuditRow)[-1].detail
    assert detail == {"request": request_id, "flow": "code"}


def test_who_names_nothing_lets_the_owner_pick(door: Door) -> None:
    door.requesting.ask_for_code(door.asking, door.request(details=None), BACK, CLIENT)
    door.device(details=None)
    door.device(details=None, scope="pdpp:owner")
    picked = {row.flow: row.picker for row in door.bench.rows(RequestRow)}
    assert picked == {"code": True, "device": True, OWNER_DEVICE: False}


def test_a_pushed_request_is_opened_by_its_uri_alone(door: Door) -> None:
    uri = door.push()
    (row,) = door.bench.rows(RequestRow)
    assert row.request_uri_hash == secret_hash(uri)
    assert row.expires_at_ns - row.created_at_ns == 5 * MINUTE
    assert door.requesting.open_pushed("cli_1", uri) == row.request_id
    for client_id, named in (("cli_2", uri), ("cli_1", row.request_id)):
        with pytest.raises(InvalidRequestUri):
            door.requesting.open_pushed(client_id, named)


def test_a_pushed_request_has_fifteen_minutes_from_its_first_opening(door: Door) -> None:
    uri = door.push()
    door.bench.now_ns += 5 * MINUTE - 1
    opened_ns = door.bench.now_ns
    door.requesting.open_pushed("cli_1", uri)
    door.bench.now_ns += 15 * MINUTE - 1
    door.requesting.open_pushed("cli_1", uri)
    assert door.bench.rows(RequestRow)[0].expires_at_ns == opened_ns + 15 * MINUTE
    door.bench.now_ns += 1
    with pytest.raises(RequestClosed):
        door.requesting.open_pushed("cli_1", uri)


def test_a_pushed_request_that_nobody_opened_is_unknown_after_five_minutes(door: Door) -> None:
    uri = door.push()
    door.bench.now_ns += 5 * MINUTE
    with pytest.raises(InvalidRequestUri):
        door.requesting.open_pushed("cli_1", uri)


def test_a_pushed_request_that_was_decided_is_closed(door: Door) -> None:
    uri = door.push()
    with door.bench.store.write() as writer:
        writer.change(RequestRow, [RequestRow.status.to("denied")])
    with pytest.raises(RequestClosed):
        door.requesting.open_pushed("cli_1", uri)


def test_a_device_is_told_two_codes_and_the_store_keeps_neither(door: Door) -> None:
    codes = door.device()
    (row,) = door.bench.rows(RequestRow)
    assert (codes.expires_in_seconds, codes.interval_seconds) == (600, 5)
    assert row.device_code_hash == secret_hash(codes.device_code)
    assert row.user_code_hash == secret_hash(codes.user_code.replace("-", ""))
    assert row.expires_at_ns - row.created_at_ns == 10 * MINUTE
    assert (row.address, row.user_agent, row.flow) == ("203.0.113.7", "A device", "device")
    assert door.bench.events()[-1] == ("device.created", "cli_1", None, None)


def test_a_user_code_is_found_however_it_is_typed(door: Door) -> None:
    code = door.device().user_code
    for typed in (code, code.lower(), f" {code.replace('-', ' ')} "):
        assert door.requesting.find_device(typed, CLIENT).flow == "device"
    assert door.bench.events()[-1][0] == "device.created"


def test_a_wrong_or_late_user_code_is_counted(door: Door) -> None:
    code = door.device().user_code
    with pytest.raises(InvalidUserCode):
        door.requesting.find_device("BBBB-BBBB", CLIENT)
    door.bench.now_ns += 10 * MINUTE - 1
    assert door.requesting.find_device(code, CLIENT)
    door.bench.now_ns += 1
    with pytest.raises(InvalidUserCode):
        door.requesting.find_device(code, CLIENT)
    assert [event for event, *_ in door.bench.events()].count("device.wrong_code") == 2


def test_a_user_code_of_a_decided_request_is_not_valid(door: Door) -> None:
    code = door.device().user_code
    with door.bench.store.write() as writer:
        writer.change(RequestRow, [RequestRow.status.to("approved")])
    with pytest.raises(InvalidUserCode):
        door.requesting.find_device(code, CLIENT)


@pytest.mark.parametrize("left", [60, 200])
def test_a_device_of_the_owner_is_approved_once(door: Door, left: int) -> None:
    door.device(scope="pdpp:owner")
    (row,) = door.bench.rows(RequestRow)
    door.bench.now_ns = row.expires_at_ns - left * SECONDS
    door.requesting.approve_owner_device(row.request_id, CLIENT)
    (approved,) = door.bench.rows(RequestRow)
    assert (approved.status, approved.decided_at_ns) == ("approved", door.bench.now_ns)
    # two minutes to collect, or what was left of its ten
    assert approved.collect_until_ns == door.bench.now_ns + max(left, 120) * SECONDS
    assert door.bench.events()[-1] == ("request.approved", "cli_1", None, None)
    assert door.bench.rows(AuditRow)[-1].detail == {"request": row.request_id}
    with pytest.raises(ApprovalConflict):
        door.requesting.approve_owner_device(row.request_id, CLIENT)


def test_no_other_request_makes_an_owner_and_none_that_is_too_old(door: Door) -> None:
    door.device()
    (row,) = door.bench.rows(RequestRow)
    for named in (row.request_id, "ar_none"):
        with pytest.raises(NotFound):
            door.requesting.approve_owner_device(named, CLIENT)
    door.device(scope="pdpp:owner")
    owner = next(row for row in door.bench.rows(RequestRow) if row.flow == OWNER_DEVICE)
    door.bench.now_ns = owner.expires_at_ns
    with pytest.raises(RequestClosed):
        door.requesting.approve_owner_device(owner.request_id, CLIENT)


def fill(bench: Bench, count: int, *, opened: bool) -> None:
    for number in range(count):
        bench.ask(
            None,
            f"ar_old{number:03}",
            created_at_ns=bench.now_ns + number,
            opened_at_ns=bench.now_ns if opened else None,
        )


def test_the_oldest_that_nobody_opened_gives_way(door: Door) -> None:
    fill(door.bench, MAX_PENDING - 1, opened=False)
    door.ask()
    pending = RequestRow.status.equals("pending")
    with door.bench.store.read() as reader:
        assert reader.count(RequestRow, pending) == MAX_PENDING
    door.ask()
    with door.bench.store.read() as reader:
        assert reader.count(RequestRow, pending) == MAX_PENDING
        expired = reader.rows(RequestRow, RequestRow.status.equals("expired"))
    assert [row.request_id for row in expired] == ["ar_old000"]
    event = next(row for row in door.bench.rows(AuditRow) if row.event == "request.expired")
    assert (event.actor, event.client_id) == ("server", "cli_1")
    assert event.detail == {"request": "ar_old000"}


def test_requests_that_were_opened_do_not_give_way(door: Door) -> None:
    fill(door.bench, MAX_PENDING, opened=True)
    door.bench.now_ns += 1
    with pytest.raises(RateLimitExceeded) as caught:
        door.ask()
    assert caught.value.members["retry_after_seconds"] == 15 * 60
    door.bench.now_ns += 15 * MINUTE
    assert door.ask()
