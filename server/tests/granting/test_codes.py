"""A code becomes tokens once; who polls too early, too late or with another's code gets none."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.oauth_errors import (
    AccessDenied,
    AuthorizationPending,
    ExpiredToken,
    InvalidGrantCode,
    InvalidTarget,
    SlowDown,
)
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption, challenge_of, consume
from personal_server.granting.pending_requests import OWNER_DEVICE
from personal_server.storage.authorization_rows import (
    AuditRow,
    ClientRow,
    CodeRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.ports.authorization_store import R
from personal_server.storage.tables import Assignment
from server.tests.granting.conftest import NOTES, SECONDS, VERIFIER, Bench, entry

CLIENT, OWNER = Acting("client"), Acting("owner")
MCP = "https://me.example/mcp"
DEVICE_CODE = "pdpp_dc_1"


def put(bench: Bench, table: type[R], *to: Assignment[R]) -> None:
    with bench.store.write() as writer:
        assert writer.change(table, to)


def redeem(bench: Bench, code: str, **over: Any) -> Any:
    asked: dict[str, Any] = {"client_id": "cli_1", "auth_method": "none", "verifier": VERIFIER}
    return bench.redeeming.redeem_code(Redemption(code=code, **{**asked, **over}), CLIENT)


def poll(bench: Bench, **over: Any) -> Any:
    asked: dict[str, Any] = {"client_id": "cli_1", "code": DEVICE_CODE, "auth_method": "none"}
    return bench.redeeming.redeem_device_code(Redemption(**{**asked, **over}), CLIENT)


def test_a_challenge_is_that_of_the_standard() -> None:
    """Source: RFC 7636, appendix B."""
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    assert challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_a_code_gives_tokens_of_what_was_allowed(memory: Bench) -> None:
    code = memory.allow(memory.ask([entry()]))
    memory.now_ns += SECONDS
    issued = redeem(memory, code, resource=MCP, redirect_uri="https://app.example/cb")
    (grant,), (row,) = memory.rows(GrantRow), memory.rows(CodeRow)
    assert (issued.grant_ids, len(issued.details)) == ((grant.grant_id,), 1)
    assert (row.redeemed_at_ns, row.family_id) == (memory.now_ns, issued.family_id)
    assert memory.rows(RequestRow)[0].status == "redeemed"
    assert memory.rows(ClientRow)[0].last_used_at_ns == memory.now_ns
    (token,) = memory.rows(TokenRow)
    assert (token.kind, token.resource, token.scope) == ("client", MCP, "pdpp:read")
    assert memory.events()[-2:] == [
        ("token.issued", "cli_1", grant.grant_id, None),
        ("code.redeemed", "cli_1", grant.grant_id, None),
    ]


def test_what_the_client_proved_binds_its_family(memory: Bench) -> None:
    code = memory.allow(memory.ask([entry()]))
    redeem(memory, code, auth_method="private_key_jwt", jkt="key")
    (family,) = memory.rows(FamilyRow)
    assert (family.auth_floor, family.jkt) == ("private_key_jwt", "key")


def test_a_package_gives_one_token_for_all(memory: Bench) -> None:
    issued = memory.connect(entry(), entry(NOTES))
    (package,), (token,) = memory.rows(PackageRow), memory.rows(TokenRow)
    assert (token.kind, token.package_id) == ("mcp_package", package.package_id)
    assert (issued.package_id, token.grant_id) == (package.package_id, None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"client_id": "cli_2"},
        {"redirect_uri": "https://app.example/other"},
        {"verifier": "w" * 43},
        {"verifier": ""},
    ],
)
def test_who_cannot_be_its_client_burns_the_code(memory: Bench, wrong: dict[str, str]) -> None:
    code = memory.allow(memory.ask([entry()]))
    with pytest.raises(InvalidGrantCode):
        redeem(memory, code, **wrong)
    assert memory.rows(CodeRow)[0].status == "burned"
    assert memory.rows(GrantRow)[0].reason == "not_collected"
    assert memory.events()[-1] == ("code.burned", "cli_1", None, None)
    with pytest.raises(InvalidGrantCode):
        redeem(memory, code)
    assert memory.rows(TokenRow) == []


@pytest.mark.parametrize(("jkt", "is_right"), [("key", True), ("other", False), (None, False)])
def test_a_code_for_a_key_is_for_that_key(memory: Bench, jkt: str, *, is_right: bool) -> None:
    code = memory.allow(memory.ask([entry()]))
    put(memory, CodeRow, CodeRow.jkt.to("key"))
    if is_right:
        assert redeem(memory, code, jkt=jkt).grant_ids
        return
    with pytest.raises(InvalidGrantCode):
        redeem(memory, code, jkt=jkt)
    assert memory.rows(CodeRow)[0].status == "burned"


def test_an_unknown_code_changes_nothing(memory: Bench) -> None:
    memory.allow(memory.ask([entry()]))
    before = memory.events()
    with pytest.raises(InvalidGrantCode):
        redeem(memory, "pdpp_ac_unknown")
    assert (memory.events(), memory.rows(CodeRow)[0].status) == (before, "issued")


@pytest.mark.parametrize(("early_ns", "is_good"), [(1, True), (0, False)])
def test_a_code_ends_at_its_instant(memory: Bench, early_ns: int, *, is_good: bool) -> None:
    code = memory.allow(memory.ask([entry()]))
    memory.now_ns = memory.rows(CodeRow)[0].expires_at_ns - early_ns
    if is_good:
        assert redeem(memory, code)
        return
    with pytest.raises(InvalidGrantCode):
        redeem(memory, code)


def test_another_resource_is_refused_and_the_code_stays_good(memory: Bench) -> None:
    code = memory.allow(memory.ask([entry()]))
    with pytest.raises(InvalidTarget) as caught:
        redeem(memory, code, resource="https://me.example/v1")
    assert caught.value.param == "resource"
    assert redeem(memory, code)


def test_a_code_of_an_ended_grant_gives_nothing(memory: Bench) -> None:
    code = memory.allow(memory.ask([entry()]))
    put(memory, GrantRow, GrantRow.revoked_at_ns.to(1), GrantRow.reason.to("owner"))
    with pytest.raises(InvalidGrantCode):
        redeem(memory, code)
    assert memory.rows(TokenRow) == []


def test_a_single_use_that_was_used_gives_nothing(memory: Bench) -> None:
    code = memory.allow(memory.ask([entry(access_mode="single_use")]))
    put(memory, GrantRow, GrantRow.consumed_at_ns.to(1))
    with pytest.raises(InvalidGrantCode):
        redeem(memory, code)
    assert memory.rows(TokenRow) == []


def test_a_second_use_of_a_code_ends_all_that_came_of_the_first(memory: Bench) -> None:
    code = memory.allow(memory.ask([entry()]))
    redeem(memory, code)
    with pytest.raises(InvalidGrantCode):
        redeem(memory, code)
    for table in (FamilyRow, TokenRow, GrantRow):
        assert memory.rows(table)[0].reason == "code_replay"
    assert memory.events()[-1] == ("code.replayed", "cli_1", None, None)


@pytest.mark.parametrize("entries", [1, 2])
def test_a_second_use_ends_what_has_no_family(memory: Bench, entries: int) -> None:
    single = [entry(access_mode="single_use"), entry(NOTES, access_mode="single_use")]
    memory.client("cli_2")
    kept = memory.connect(entry(), request_id="ar_2", client_id="cli_2")
    code = memory.allow(memory.ask(single[:entries], scope="pdpp:read offline_access"))
    issued = redeem(memory, code)
    assert (issued.family_id, issued.scope) == (None, "pdpp:read")
    with pytest.raises(InvalidGrantCode):
        redeem(memory, code)
    tokens = {row.client_id: row.reason for row in memory.rows(TokenRow)}
    assert tokens == {"cli_1": "code_replay", "cli_2": None}
    ended = {row.grant_id for row in memory.rows(GrantRow) if row.reason == "code_replay"}
    assert len(ended) == entries
    assert not ended & {*kept.grant_ids}


def test_only_a_single_use_is_used_up_and_once(memory: Bench) -> None:
    memory.allow(memory.ask([entry(access_mode="single_use")]))
    (grant,) = memory.rows(GrantRow)
    with memory.store.write() as writer:
        assert consume(writer, [grant.grant_id], "continuous", CLIENT, 5)
        assert consume(writer, [grant.grant_id], "single_use", CLIENT, 6)
        assert not consume(writer, [grant.grant_id], "single_use", CLIENT, 7)
    assert memory.rows(GrantRow)[0].consumed_at_ns == 6
    events = [event for event in memory.events() if event[0] == "grant.consumed"]
    assert events == [("grant.consumed", None, grant.grant_id, None)]


def test_a_device_that_polls_too_often_has_to_slow_down(memory: Bench) -> None:
    memory.ask_device([entry()])
    with pytest.raises(AuthorizationPending):
        poll(memory)
    assert memory.rows(RequestRow)[0].last_poll_at_ns == memory.now_ns
    memory.now_ns += 5 * SECONDS - 1
    with pytest.raises(SlowDown) as caught:
        poll(memory)
    assert caught.value.members["interval"] == 10
    memory.now_ns += 10 * SECONDS
    with pytest.raises(AuthorizationPending):
        poll(memory)
    assert memory.rows(RequestRow)[0].interval_seconds == 10


def test_a_device_collects_what_was_allowed_once(memory: Bench) -> None:
    memory.allow(memory.ask_device([entry()]))
    issued = poll(memory, resource=MCP)
    (grant,) = memory.rows(GrantRow)
    assert issued.grant_ids == (grant.grant_id,)
    assert memory.rows(RequestRow)[0].status == "redeemed"
    assert memory.events()[-1] == ("device.collected", "cli_1", grant.grant_id, None)
    with pytest.raises(InvalidGrantCode):
        poll(memory)
    assert memory.rows(GrantRow)[0].reason is None


@pytest.mark.parametrize("wrong", [{"client_id": "cli_2"}, {"code": "pdpp_dc_2"}])
def test_a_device_code_is_that_of_its_client(memory: Bench, wrong: dict[str, str]) -> None:
    memory.allow(memory.ask_device([entry()]))
    with pytest.raises(InvalidGrantCode):
        poll(memory, **wrong)
    assert poll(memory)


def test_a_device_gets_nothing_for_another_resource_or_an_ended_grant(memory: Bench) -> None:
    memory.allow(memory.ask_device([entry()]))
    with pytest.raises(InvalidTarget):
        poll(memory, resource="https://me.example/v1")
    put(memory, GrantRow, GrantRow.revoked_at_ns.to(1), GrantRow.reason.to("owner"))
    with pytest.raises(InvalidGrantCode):
        poll(memory)
    assert memory.rows(TokenRow) == []


def test_a_device_that_was_denied_is_told(memory: Bench) -> None:
    memory.granting.deny(memory.ask_device([entry()]), OWNER)
    with pytest.raises(AccessDenied):
        poll(memory)


@pytest.mark.parametrize("decided", [False, True])
@pytest.mark.parametrize(("early_ns", "is_good"), [(1, True), (0, False)])
def test_a_device_code_ends_at_its_instant(
    memory: Bench, early_ns: int, *, decided: bool, is_good: bool
) -> None:
    request_id = memory.ask_device([entry()])
    if decided:
        memory.allow(request_id)
    (row,) = memory.rows(RequestRow)
    memory.now_ns = (row.collect_until_ns if decided else row.expires_at_ns) - early_ns
    if decided and is_good:
        assert poll(memory)
        return
    with pytest.raises(AuthorizationPending if is_good else ExpiredToken):
        poll(memory)


def test_a_device_request_that_was_swept_is_expired(memory: Bench) -> None:
    memory.ask_device([entry()])
    put(memory, RequestRow, RequestRow.status.to("expired"))
    with pytest.raises(ExpiredToken):
        poll(memory)


def test_a_device_of_the_owner_gets_a_token_of_the_owner(memory: Bench) -> None:
    request_id = memory.ask_device(flow=OWNER_DEVICE, scope="pdpp:owner", picker=False)
    put(
        memory,
        RequestRow,
        RequestRow.status.to("approved"),
        RequestRow.collect_until_ns.to(memory.now_ns + SECONDS),
    )
    issued = poll(memory)
    assert (issued.kind, issued.scope, issued.grant_ids) == ("owner", "pdpp:owner", ())
    assert memory.rows(RequestRow)[0].request_id == request_id
    assert memory.events()[-1] == ("owner_token.issued", "cli_1", None, None)
    assert memory.rows(AuditRow)[-1].actor == "client"
