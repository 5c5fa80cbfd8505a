"""A change makes a successor, and everything that belonged to the one before is its own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import InvalidRequest, NotFound, OwnerSessionRequired
from pdpp_kernel.oauth_errors import NotANarrowing, RequestClosed, ReviewStale
from personal_server.consent.choices import Choices, StreamChoice
from personal_server.consent.narrowings import Narrowing
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.granting.grant_changes import CHANGE_NS, GrantChanges
from personal_server.granting.grant_successors import rename_access
from personal_server.granting.holdings import lineage_of, show_held, uncollected_count
from personal_server.granting.local_grants import LocalChange, LocalGranting
from personal_server.granting.pauses import pause_access
from personal_server.granting.reading_alarms import limit_reading
from personal_server.granting.retention import sweep
from personal_server.granting.reviews import Review
from personal_server.granting.revocations import end_access
from personal_server.granting.tokens import Issued
from personal_server.reading.tokens import TokenResolver
from personal_server.storage.authorization_rows import (
    AuditRow,
    CodeRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    ReadingLimitsRow,
    ReadingSpanRow,
    RequestRow,
    ReviewArtifactRow,
    SubscriptionRow,
    TokenRow,
)
from server.tests.granting.conftest import JOURNAL, NOTES, OWNER, VERIFIER, connection
from tests.proving import bearer, unproven

CLI = Acting("local_cli", user="me")
DAY = 86_400 * 10**9


def redemption(code: str) -> Redemption:
    return Redemption(
        "cli_1", code, "none", redirect_uri="https://app.example/cb", verifier=VERIFIER
    )


def collect(bench: Any, *entries: dict[str, object]) -> Issued:
    """The tokens of an app that was allowed this."""
    code = bench.allow(bench.ask(list(entries)))
    asked = redemption(code)
    return bench.redeeming.redeem_code(asked, OWNER)


def local(bench: Any) -> LocalGranting:
    return LocalGranting(bench.store, lambda: bench.catalog, bench.clock, bench.random)


def narrow(bench: Any, held_id: str, **to: Any) -> Any:
    """What the command line makes of it."""
    asked = LocalChange(held_id, Narrowing(**to))
    bench.now_ns += 10**9
    return local(bench).change(asked, local(bench).review_change(asked), CLI)


def begin(bench: Any, held_id: str) -> str:
    bench.now_ns += 10**9
    return GrantChanges(bench.store, bench.clock, bench.random).begin(held_id, OWNER)


def resolved(bench: Any, token: str) -> Any:
    return TokenResolver(bench.store, bench.clock, unproven()).resolve(bearer(token))


def with_fields(review: Review, *names: str) -> Choices:
    """The choices that were shown, with these fields of entries."""
    entry = review.choices.entries[0]
    streams = {**entry.streams, "entries": StreamChoice(wanted=True, fields=frozenset(names))}
    return replace(review.choices, entries={0: replace(entry, streams=streams)})


def test_a_token_stands_for_the_successor_with_the_next_request(
    bench: Any, make_entry: Any
) -> None:
    issued = collect(bench, make_entry())
    before = bench.rows(GrantRow)[0]
    ids = narrow(bench, before.grant_id, streams={"entries": frozenset({"title"})})
    rows = {row.grant_id: row for row in bench.rows(GrantRow)}
    old, new = rows[before.grant_id], rows[ids.grant_id]
    assert old.grant == before.grant
    assert (old.reason, old.revoked_at_ns) == ("replaced", bench.now_ns)
    assert (new.replaces, new.lineage) == (before.grant_id, before.grant_id)
    found = resolved(bench, issued.access_token)
    assert (found.grants[0].grant_id, found.lineage) == (new.grant_id, before.grant_id)
    (stream,) = found.grants[0].grant.streams
    assert "title" in stream.fields
    assert "body" not in stream.fields
    events = {row.event: row for row in bench.rows(AuditRow)}
    assert events["grant.changed"].grant_id == new.grant_id
    assert events["grant.changed"].detail["replaces"] == before.grant_id
    assert events["grant.revoked"].detail["reason"] == "replaced"
    artifacts = [json.loads(row.artifact) for row in bench.rows(ReviewArtifactRow)]
    assert [one.get("replaces") for one in artifacts if "replaces" in one] == [before.grant_id]


def test_a_refreshed_token_is_the_successors(bench: Any, make_entry: Any) -> None:
    collect(bench, make_entry())
    held_id = bench.rows(GrantRow)[0].grant_id
    ids = narrow(bench, held_id, expiry="30d")
    (family,) = bench.rows(FamilyRow)
    assert (family.grant_id, family.revoked_at_ns) == (ids.grant_id, None)
    (row,) = [row for row in bench.rows(GrantRow) if row.grant_id == ids.grant_id]
    assert family.absolute_end_ns == row.expires_at_ns
    assert {row.grant_id for row in bench.rows(TokenRow)} == {ids.grant_id}


def test_all_that_belongs_to_a_grant_moves(bench: Any, make_entry: Any) -> None:
    collect(bench, make_entry())
    held_id = bench.rows(GrantRow)[0].grant_id
    bench.insert(
        SubscriptionRow(
            subscription_id="sub_1",
            client_id="cli_1",
            grant_id=held_id,
            callback_url="https://app.example/hooks",
            status="active",
            secret=b"sealed",
            seen=0,
            created_at_ns=bench.now_ns,
            updated_at_ns=bench.now_ns,
        ),
        ReadingSpanRow(
            held_id=held_id,
            seconds=60,
            start_ns=0,
            requests=1,
            records=9,
            size_bytes=9,
            searches=0,
            empty_searches=0,
            new_words=0,
            unknown_keys=0,
        ),
    )
    with bench.store.write() as writer:
        limit_reading(
            writer, ReadingLimitsRow(held_id=held_id, records_per_day=10), OWNER, bench.now_ns
        )
        assert rename_access(writer, held_id, "  Grandma  ", OWNER, bench.now_ns)
        pause_access(writer, held_id, OWNER, bench.now_ns)
    ids = narrow(bench, held_id, streams={"entries": frozenset({"title"})})
    for table in (ReadingLimitsRow, ReadingSpanRow):
        assert [row.held_id for row in bench.rows(table)] == [ids.grant_id]
    assert [row.grant_id for row in bench.rows(SubscriptionRow)] == [ids.grant_id]
    with bench.store.read() as reader:
        held = show_held(reader, ids.grant_id, bench.now_ns)
        assert held is not None
        assert (held.title, held.status, held.is_collected) == ("Grandma", "paused", True)
        line = lineage_of(reader, held_id, bench.now_ns)
    assert [one.id for one in line] == [held_id, ids.grant_id]


def test_a_change_of_a_change_has_the_first_one_as_its_line(bench: Any, make_entry: Any) -> None:
    issued = collect(bench, make_entry())
    first = bench.rows(GrantRow)[0].grant_id
    second = narrow(bench, first, expiry="30d").grant_id
    third = narrow(bench, second, streams={"entries": frozenset({"title"})}).grant_id
    assert resolved(bench, issued.access_token).lineage == first
    with bench.store.read() as reader:
        line = lineage_of(reader, second, bench.now_ns)
    assert [one.id for one in line] == [first, second, third]


def test_what_was_not_collected_yet_is_collected_as_it_is_now(bench: Any, make_entry: Any) -> None:
    code = bench.allow(bench.ask([make_entry()]))
    held_id = bench.rows(GrantRow)[0].grant_id
    with bench.store.read() as reader:
        held = show_held(reader, held_id, bench.now_ns)
        assert held is not None
        assert (held.status, uncollected_count(reader)) == ("waiting", 1)
    ids = narrow(bench, held_id, streams={"entries": frozenset({"title"})})
    assert bench.rows(CodeRow)[0].grant_id == ids.grant_id
    asked = redemption(code)
    assert bench.redeeming.redeem_code(asked, OWNER).grant_id == ids.grant_id
    with bench.store.read() as reader:
        assert uncollected_count(reader) == 0


def test_a_package_stays_one_also_with_one_source_left(bench: Any, make_entry: Any) -> None:
    issued = collect(bench, make_entry(), make_entry(NOTES))
    package_id = bench.rows(PackageRow)[0].package_id
    ids = narrow(bench, package_id, sources=frozenset({NOTES}))
    found = resolved(bench, issued.access_token)
    assert (found.kind, found.package_id) == ("mcp_package", ids.package_id)
    assert [one.grant.source.id for one in found.grants] == [NOTES]
    reasons = {row.package_id: row.reason for row in bench.rows(PackageRow)}
    assert reasons == {package_id: "replaced", ids.package_id: None}


def test_a_member_that_ended_alone_does_not_come_back(bench: Any, make_entry: Any) -> None:
    collect(bench, make_entry(), make_entry(NOTES))
    package_id = bench.rows(PackageRow)[0].package_id
    gone = next(r.grant_id for r in bench.rows(GrantRow) if r.connector_key == "notes")
    with bench.store.write() as writer:
        end_access(writer, gone, "owner", OWNER, bench.now_ns)
    ids = narrow(bench, package_id, expiry="30d")
    assert [grant.source.id for grant in ids.grants] == [JOURNAL]


@pytest.mark.parametrize(
    "to",
    [
        {"expiry": "1y"},
        {"expiry": "none"},
        {"streams": {"entries": frozenset({"title", "body"})}},
        {"streams": {"entries": None, "volumes": None}},
        {"since": "2020-01-01"},
        {"connections": frozenset({"cin_b"})},
    ],
)
def test_more_or_longer_is_not_given_without_a_fresh_sign_in(
    bench: Any, make_entry: Any, to: dict[str, Any]
) -> None:
    stream = {
        "name": "entries",
        "fields": ["title"],
        "instance_ids": ["cin_a"],
        "time_range": {"since": "2023-01-01"},
    }
    bench.catalog = replace(
        bench.catalog, connections=(*bench.catalog.connections, connection("b"))
    )
    collect(bench, make_entry(streams=[stream]))
    held_id = bench.rows(GrantRow)[0].grant_id
    with pytest.raises(OwnerSessionRequired):
        narrow(bench, held_id, **to)
    assert len(bench.rows(GrantRow)) == 1


@pytest.mark.parametrize(
    "to",
    [
        {"sources": frozenset({"https://elsewhere.example"})},
        {"connections": frozenset({"cin_n"})},
        {"streams": {"nothing": None}},
        {"streams": {"entries": frozenset({"nothing"})}},
        {"since": "yesterday"},
        {"streams": {}},
    ],
)
def test_what_cannot_be_left_is_refused(bench: Any, make_entry: Any, to: dict[str, Any]) -> None:
    collect(bench, make_entry())
    with pytest.raises(NotANarrowing):
        narrow(bench, bench.rows(GrantRow)[0].grant_id, **to)


def test_what_has_ended_is_not_changed(bench: Any, make_entry: Any) -> None:
    collect(bench, make_entry())
    held_id = bench.rows(GrantRow)[0].grant_id
    with pytest.raises(NotFound):
        begin(bench, "grt_nobody")
    handle = begin(bench, held_id)
    with bench.store.write() as writer:
        end_access(writer, held_id, "owner", OWNER, bench.now_ns)
    with pytest.raises(RequestClosed):
        begin(bench, held_id)
    with pytest.raises(RequestClosed):
        bench.granting.view(handle, OWNER)


# On the page ---------------------------------------------------------------------------------
def test_the_page_begins_with_what_was_given(bench: Any, make_entry: Any) -> None:
    stream = {
        "name": "entries",
        "fields": ["title"],
        "time_range": {"since": "2023-01-01T12:00:00Z"},
    }
    collect(bench, make_entry(streams=[stream]))
    before = bench.rows(GrantRow)[0]
    review = bench.granting.view(begin(bench, before.grant_id), OWNER)
    assert not review.reaches_further
    assert review.terms.expires_at_ns == before.expires_at_ns
    given = review.terms.entries[0].streams
    assert given == review.asked.replaced.living_grants[0].streams
    assert {offer.name for offer in review.offers[0].streams} > {"entries"}


def test_a_change_is_decided_and_over_at_once(bench: Any, make_entry: Any) -> None:
    issued = collect(bench, make_entry())
    held_id = bench.rows(GrantRow)[0].grant_id
    handle = begin(bench, held_id)
    choices = with_fields(bench.granting.view(handle, OWNER), "title")
    shown = bench.granting.choose(handle, choices, OWNER)
    assert not shown.reaches_further
    decided = bench.granting.approve(handle, choices, shown.revision, OWNER)
    assert decided.redirect_to is None
    assert resolved(bench, issued.access_token).grants[0].grant_id == decided.held_id
    assert [r.status for r in bench.rows(RequestRow) if r.request_id == handle] == ["redeemed"]
    bench.now_ns += CHANGE_NS + DAY
    sweep(bench.store, bench.now_ns)
    assert {row.reason for row in bench.rows(GrantRow)} == {"replaced", None}


def test_a_grant_changed_while_its_page_is_open_is_told(bench: Any, make_entry: Any) -> None:
    collect(bench, make_entry())
    held_id = bench.rows(GrantRow)[0].grant_id
    handle = begin(bench, held_id)
    choices = with_fields(bench.granting.view(handle, OWNER), "title", "body")
    shown = bench.granting.choose(handle, choices, OWNER)
    narrow(bench, held_id, streams={"entries": frozenset({"title"})})
    with pytest.raises(ReviewStale):
        bench.granting.approve(handle, choices, shown.revision, OWNER)
    again = bench.granting.choose(handle, choices, OWNER)
    assert again.choices == choices
    assert [gain.names for gain in again.gains] == [("body",)]
    assert again.reaches_further
    bench.granting.approve(handle, choices, again.revision, OWNER)
    assert len([row for row in bench.rows(GrantRow) if row.reason is None]) == 1


def test_an_access_left_as_it_is_stays(bench: Any, make_entry: Any) -> None:
    collect(bench, make_entry())
    held_id = bench.rows(GrantRow)[0].grant_id
    handle = begin(bench, held_id)
    bench.granting.view(handle, OWNER)
    assert bench.granting.deny(handle, OWNER).held_id == held_id
    assert len(bench.rows(GrantRow)) == 1


def test_a_mode_is_not_changed(bench: Any, make_entry: Any) -> None:
    collect(bench, make_entry())
    handle = begin(bench, bench.rows(GrantRow)[0].grant_id)
    choices = bench.granting.view(handle, OWNER).choices
    with pytest.raises(NotANarrowing):
        bench.granting.choose(handle, replace(choices, mode="single_use"), OWNER)


def test_a_name_is_short_and_can_be_taken_back(bench: Any, make_entry: Any) -> None:
    collect(bench, make_entry())
    held_id = bench.rows(GrantRow)[0].grant_id
    with bench.store.write() as writer:
        with pytest.raises(InvalidRequest):
            rename_access(writer, held_id, "x" * 81, OWNER, bench.now_ns)
        rename_access(writer, held_id, "Grandma", OWNER, bench.now_ns)
        rename_access(writer, held_id, " ", OWNER, bench.now_ns)
        assert not rename_access(writer, "grt_nobody", "x", OWNER, bench.now_ns)
        held = show_held(writer, held_id, bench.now_ns)
    assert held is not None
    assert held.title == "Notes app"
