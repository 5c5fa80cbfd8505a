"""What time ends, and what is kept."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.granting.retention import sweep
from personal_server.storage.authorization_rows import (
    AuditRow,
    ClientRow,
    CodeRow,
    EventRow,
    GrantRow,
    PackageRow,
    ReadingWordsRow,
    RefreshTokenRow,
    RequestRow,
    ReviewArtifactRow,
    SubscriptionRow,
    TokenRow,
)

VERIFIER = "v" * 43
MINUTE = 60 * 10**9
DAY = 86_400 * 10**9
OWNER = Acting("owner")


def later(bench: Any, ns: int) -> None:
    bench.now_ns += ns
    sweep(bench.store, bench.now_ns)


def events(bench: Any) -> list[str]:
    return [row.event for row in bench.rows(AuditRow)]


def test_an_undecided_request_expires_and_loses_its_redirect(bench: Any) -> None:
    bench.ask(None)
    later(bench, 16 * MINUTE)
    row = bench.rows(RequestRow)[0]
    assert (row.status, row.state, row.redirect_uri) == ("expired", None, None)
    assert "request.expired" in events(bench)
    later(bench, 2 * DAY)
    assert bench.rows(RequestRow) == []


def test_an_approval_that_nobody_collects_ends_its_grant(bench: Any, make_entry: Any) -> None:
    bench.allow(bench.ask([make_entry()]))
    later(bench, 3 * MINUTE)
    assert bench.rows(CodeRow)[0].status == "expired"
    assert bench.rows(RequestRow)[0].status == "expired"
    assert bench.rows(GrantRow)[0].reason == "not_collected"


def test_an_approved_device_request_that_is_not_collected_ends_its_package(bench: Any) -> None:
    bench.allow(bench.ask_device())
    later(bench, 16 * MINUTE)
    assert bench.rows(PackageRow)[0].reason == "not_collected"
    assert {row.reason for row in bench.rows(GrantRow)} == {"not_collected"}


def test_a_family_that_nobody_uses_ends_its_grant(bench: Any, make_entry: Any) -> None:
    request_id = bench.ask([make_entry()])
    review = bench.granting.view(request_id, OWNER)
    endless = replace(review.choices, expiry="none")
    code = bench.allow(request_id, endless)
    bench.redeeming.redeem_code(Redemption("cli_1", code, "none", verifier=VERIFIER), OWNER)
    later(bench, 91 * DAY)
    assert bench.rows(GrantRow)[0].reason == "idle"


def test_rows_of_tokens_go_after_a_month_and_evidence_stays(bench: Any, make_entry: Any) -> None:
    code = bench.allow(bench.ask([make_entry()]))
    bench.redeeming.redeem_code(Redemption("cli_1", code, "none", verifier=VERIFIER), OWNER)
    later(bench, 29 * DAY)
    assert len(bench.rows(TokenRow)) == 1
    later(bench, 100 * DAY)
    assert bench.rows(TokenRow) == []
    later(bench, 31 * DAY)
    assert bench.rows(RefreshTokenRow) == []
    assert len(bench.rows(GrantRow)) == 1
    assert len(bench.rows(ReviewArtifactRow)) == 1


def test_time_ending_a_grant_is_noted_once(bench: Any, make_entry: Any) -> None:
    code = bench.allow(bench.ask([make_entry()]))
    bench.redeeming.redeem_code(Redemption("cli_1", code, "none", verifier=VERIFIER), OWNER)
    with bench.store.write() as writer:
        writer.change(GrantRow, [GrantRow.expires_at_ns.to(bench.now_ns + 5 * MINUTE)])
    later(bench, 6 * MINUTE)
    later(bench, 11 * MINUTE)
    assert events(bench).count("grant.expired") == 1


def test_a_grant_that_ended_while_no_server_ran_is_noted_by_the_next_sweep(
    bench: Any, make_entry: Any
) -> None:
    code = bench.allow(bench.ask([make_entry()]))
    bench.redeeming.redeem_code(Redemption("cli_1", code, "none", verifier=VERIFIER), OWNER)
    with bench.store.write() as writer:
        writer.change(GrantRow, [GrantRow.expires_at_ns.to(bench.now_ns + 5 * MINUTE)])
    later(bench, 3 * DAY)
    later(bench, 3 * DAY)
    assert events(bench).count("grant.expired") == 1


def test_unused_dynamic_clients_go_after_a_week_and_used_ones_stay(
    bench: Any, make_entry: Any
) -> None:
    bench.client("cli_2")
    bench.allow(bench.ask([make_entry()]))
    later(bench, 8 * DAY)
    assert [row.client_id for row in bench.rows(ClientRow)] == ["cli_1"]
    assert "client.purged" in events(bench)


def test_a_client_whose_access_ended_goes_after_ninety_days(bench: Any, make_entry: Any) -> None:
    bench.allow(bench.ask([make_entry()]))
    later(bench, 3 * MINUTE)
    later(bench, 89 * DAY)
    assert len(bench.rows(ClientRow)) == 1
    later(bench, 2 * DAY)
    assert bench.rows(ClientRow) == []
    assert len(bench.rows(GrantRow)) == 1


def test_words_that_were_seen_are_forgotten_in_their_time(bench: Any) -> None:
    with bench.store.write() as writer:
        ends_at_ns = bench.now_ns + DAY
        writer.insert(ReadingWordsRow(held_id="grt_1", salt=b"", seen=b"", ends_at_ns=ends_at_ns))
    later(bench, DAY - 1)
    assert len(bench.rows(ReadingWordsRow)) == 1
    later(bench, 1)
    assert bench.rows(ReadingWordsRow) == []


def test_what_an_access_was_told_is_forgotten_a_month_after_it_ended(bench: Any) -> None:
    def told(name: str, status: str) -> list[SubscriptionRow | EventRow]:
        subscription = SubscriptionRow(
            subscription_id=name,
            client_id="cli_1",
            callback_url="https://app.example/told",
            status=status,
            secret=b"sealed",
            seen=0,
            created_at_ns=bench.now_ns,
            updated_at_ns=bench.now_ns,
        )
        event = EventRow(
            event_id=f"evt_{name}",
            subscription_id=name,
            type="pdpp.grant.revoked",
            created_at_ns=bench.now_ns,
        )
        return [subscription, event]

    with bench.store.write() as writer:
        for row in (*told("over", "disabled_revoked"), *told("lasting", "disabled_failure")):
            writer.insert(row)
    later(bench, 29 * DAY)
    assert len(bench.rows(SubscriptionRow)) == len(bench.rows(EventRow)) == 2
    later(bench, 2 * DAY)
    assert [row.subscription_id for row in bench.rows(SubscriptionRow)] == ["lasting"]
    assert [row.subscription_id for row in bench.rows(EventRow)] == ["lasting"]
