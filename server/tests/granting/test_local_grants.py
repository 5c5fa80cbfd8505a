"""Grants from the command line are those of the page, with a token at once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import AmbiguousConnection, OwnerSessionRequired, PersonalServerError
from pdpp_kernel.oauth_errors import (
    AiTrainingConsentRequired,
    NotANarrowing,
    RequestClosed,
    ReviewStale,
)
from personal_server.consent.narrowings import Narrowing
from personal_server.consent.selections import parse_selections
from personal_server.granting.audit import Acting
from personal_server.granting.local_grants import LocalChange, LocalGranting, LocalRequest
from personal_server.granting.reviews import Review
from personal_server.reading.tokens import TokenResolver
from personal_server.storage.authorization_rows import (
    AuditRow,
    ClientRow,
    FamilyRow,
    GrantRow,
    ReviewArtifactRow,
)
from server.tests.granting.conftest import JOURNAL, SECONDS, Bench, entry
from tests.proving import bearer, unproven

CLI = Acting("local_cli", user="me")
NOTES = "https://registry.pdpp.dev/connectors/notes"


def local(bench: Any) -> LocalGranting:
    return LocalGranting(bench.store, lambda: bench.catalog, bench.clock, bench.random)


def request(*entries: dict[str, object], **over: Any) -> LocalRequest:
    asked = LocalRequest("My agent", "https://me.example", parse_selections(entries))
    return replace(asked, **over)


def test_the_token_works_at_once_and_stands_for_the_grant(bench: Any, make_entry: Any) -> None:
    asked = request(make_entry())
    issued = local(bench).approve(asked, local(bench).review(asked), CLI)
    found = TokenResolver(bench.store, bench.clock, unproven()).resolve(bearer(issued.access_token))
    assert (found.kind, found.client_id) == ("client", "local_my-agent")
    assert issued.refresh_token is not None
    assert issued.grant_id == found.grants[0].grant_id
    users = {row.detail.get("user") for row in bench.rows(AuditRow) if row.actor == "local_cli"}
    assert users == {"me"}


def test_it_is_the_grant_the_page_would_have_made(bench: Any, make_entry: Any) -> None:
    asked = request(make_entry())
    local(bench).approve(asked, local(bench).review(asked), CLI)
    bench.allow(bench.ask([make_entry()]))
    first, second = (json.loads(row.artifact) for row in bench.rows(ReviewArtifactRow))
    assert first["sources"] == second["sources"]
    assert first["expires_at"] == second["expires_at"]


def test_two_entries_give_a_package(bench: Any, make_entry: Any) -> None:
    asked = request(make_entry(), make_entry(NOTES))
    issued = local(bench).approve(asked, local(bench).review(asked), CLI)
    assert issued.package_id is not None
    assert len(issued.grant_ids) == len(issued.details) == 2


def test_single_use_is_consumed_and_never_refreshed(bench: Any, make_entry: Any) -> None:
    asked = request(make_entry(), mode="single_use", expiry="1h")
    issued = local(bench).approve(asked, local(bench).review(asked), CLI)
    assert issued.refresh_token is None
    assert issued.expires_in_seconds == 3600
    assert bench.rows(GrantRow)[0].consumed_at_ns == bench.now_ns


def test_several_connections_and_none_named_are_ambiguous(bench: Any, make_entry: Any) -> None:
    first = bench.catalog.connections[0]
    second = replace(first, connection_id="cin_b")
    bench.catalog = replace(bench.catalog, connections=(first, second))
    with pytest.raises(AmbiguousConnection) as caught:
        local(bench).review(request(make_entry()))
    found: Any = caught.value.members["available_connections"]
    assert [one["connection_id"] for one in found] == ["cin_a", "cin_b"]
    named = make_entry(streams=[{"name": "entries", "instance_ids": ["cin_b"]}])
    assert local(bench).review(request(named)).revision is not None


def test_training_needs_its_own_word(bench: Any, make_entry: Any) -> None:
    asked = request(make_entry(purpose_code="https://pdpp.dev/purpose/ai_training"))
    shown = local(bench).review(asked)
    with pytest.raises(AiTrainingConsentRequired):
        local(bench).approve(asked, shown, CLI)
    agreed = replace(asked, ai_training=True)
    assert local(bench).approve(agreed, shown, CLI).grant_id is not None


def test_nothing_is_granted_when_the_source_changed_meanwhile(bench: Any, make_entry: Any) -> None:
    asked = request(make_entry())
    shown = local(bench).review(asked)
    journal = next(iter(bench.catalog.declarations.values()))
    changed = replace(journal, digest="sha256:00")
    bench.catalog = replace(bench.catalog, declarations={journal.source_id: changed})
    with pytest.raises(ReviewStale):
        local(bench).approve(asked, shown, CLI)
    assert bench.rows(GrantRow) == []


def test_an_unknown_source_is_named_to_its_owner(bench: Any, make_entry: Any) -> None:
    with pytest.raises(PersonalServerError) as caught:
        local(bench).review(request(make_entry("https://example.com/none")))
    assert caught.value.members["reason"] == "source_unknown"


def test_a_program_that_was_set_up_before_is_the_same_client(memory: Bench) -> None:
    asked = request(entry())
    for _ in range(2):
        local(memory).approve(asked, local(memory).review(asked), CLI)
    clients = [row for row in memory.rows(ClientRow) if row.registration == "local"]
    assert [(row.client_id, row.name) for row in clients] == [("local_my-agent", "My agent")]
    events = [event for event, client_id, *_ in memory.events() if client_id == "local_my-agent"]
    assert events.count("client.registered") == 1
    assert events.count("token.issued") == 2


def test_its_token_is_for_this_server_and_as_long_as_the_grant(memory: Bench) -> None:
    asked = request(entry(), expiry="30d")
    issued = local(memory).approve(asked, local(memory).review(asked), CLI)
    (grant,) = memory.rows(GrantRow)
    (family,) = memory.rows(FamilyRow)
    assert grant.expires_at_ns == memory.now_ns + 30 * 86_400 * SECONDS
    assert (family.absolute_end_ns, family.origin, family.resource) == (
        grant.expires_at_ns,
        "https://me.example",
        "https://me.example",
    )
    assert (issued.kind, issued.scope) == ("client", "pdpp:read offline_access")


@pytest.mark.parametrize(("entries", "is_named"), [(1, False), (2, True)])
def test_nothing_is_granted_where_one_part_cannot_be(
    memory: Bench, entries: int, *, is_named: bool
) -> None:
    unknown = entry("https://example.com/none")
    asked = request(*[unknown, entry()][:entries])
    with pytest.raises(PersonalServerError) as caught:
        local(memory).review(asked)
    assert caught.value.members["reason"] == "source_unknown"
    assert ("next_step" in caught.value.members) is is_named


def narrow(bench: Bench, held_id: str, **to: Any) -> Review:
    bench.now_ns += SECONDS
    return local(bench).review_change(LocalChange(held_id, Narrowing(**to)))


def test_a_change_that_leaves_nothing_or_gives_more_is_refused(memory: Bench) -> None:
    held_id = memory.connect(entry()).grant_ids[0]
    with pytest.raises(NotANarrowing):
        narrow(memory, held_id, streams={})
    with pytest.raises(OwnerSessionRequired):
        narrow(memory, held_id, expiry="1y")
    assert len(memory.rows(GrantRow)) == 1


def test_a_change_is_refused_once_another_was_made_or_the_app_is_gone(memory: Bench) -> None:
    held_id = memory.connect(entry()).grant_ids[0]
    change = LocalChange(held_id, Narrowing(expiry="30d"))
    first = narrow(memory, held_id, expiry="30d")
    journal = memory.catalog.declarations[JOURNAL]
    catalog = memory.catalog
    changed = replace(journal, digest="sha256:00")
    memory.catalog = replace(catalog, declarations={**catalog.declarations, JOURNAL: changed})
    with pytest.raises(ReviewStale):
        local(memory).change(change, first, CLI)
    memory.catalog = catalog
    ids = local(memory).change(change, first, CLI)
    assert ids.grant_id not in (None, held_id)
    with memory.store.write() as writer:
        writer.delete(ClientRow)
    with pytest.raises(RequestClosed):
        narrow(memory, ids.grant_id or "", expiry="30d")
