"""A review: what is ticked at first, what is new, and what must still be chosen."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from pdpp_kernel.oauth_errors import NotANarrowing
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.consent.offers import Ungrantable
from personal_server.granting.audit import Acting
from personal_server.granting.grant_changes import GrantChanges
from personal_server.granting.reviews import (
    Review,
    all_choices,
    facts_of,
    first_choices,
    render_choices,
    stored_choices,
)
from personal_server.storage.authorization_rows import ClientRow, GrantRow
from personal_server.storage.catalog import Catalog
from server.tests.granting.conftest import JOURNAL, NOTES, SECONDS, Bench, connection, entry

OWNER = Acting("owner")
DAY = 86_400 * SECONDS


def view(bench: Bench, *details: dict[str, object], request_id: str = "ar_1") -> Review:
    bench.ask([*details], request_id)
    return bench.granting.view(request_id, OWNER)


def change(bench: Bench, held_id: str) -> Review:
    bench.now_ns += SECONDS
    request_id = GrantChanges(bench.store, bench.clock, bench.random).begin(held_id, OWNER)
    return bench.granting.view(request_id, OWNER)


def test_what_was_asked_for_is_ticked_and_what_is_optional_is_not(memory: Bench) -> None:
    streams = [{"name": "entries"}, {"name": "volumes", "necessity": "optional"}]
    review = view(memory, entry(streams=streams))
    wanted = {name: stream.wanted for name, stream in review.choices.entries[0].streams.items()}
    assert wanted == {"entries": True, "volumes": False}
    assert review.choices.entries[0].keep
    assert first_choices(review.offers, picker=False) == review.choices
    ticked = all_choices(review.offers).entries[0]
    assert {stream.wanted for stream in ticked.streams.values()} == {True}
    assert not first_choices(review.offers, picker=True).entries[0].keep


def test_being_told_of_changes_is_ticked_where_it_was_asked_for(memory: Bench) -> None:
    told, untold = view(memory, entry(events=True)), view(memory, entry(), request_id="ar_2")
    assert [first_choices(each.offers, picker=False).events for each in (told, untold)] == [
        True,
        False,
    ]
    assert not first_choices(told.offers, picker=True).events


def test_a_complete_review_has_an_artifact_and_an_incomplete_one_none(memory: Bench) -> None:
    review = view(memory, entry())
    assert review.missing == ()
    assert review.artifact is not None
    assert review.revision is not None
    assert review.impossible is None
    optional = entry(streams=[{"name": "entries", "necessity": "optional"}])
    nothing = view(memory, optional, request_id="ar_2")
    assert [missing.what for missing in nothing.missing] == ["stream"]
    assert (nothing.artifact, nothing.revision) == (None, None)


def test_choices_come_back_as_they_were_kept() -> None:
    choices = Choices(
        entries={
            1: EntryChoice(
                keep=True,
                connections=frozenset({"cin_a"}),
                streams={"entries": StreamChoice(wanted=True, fields=frozenset({"title"}))},
            )
        },
        expiry="30d",
        ai_training=True,
        records_per_day=5,
    )
    assert stored_choices(render_choices(choices)) == choices
    with pytest.raises(NotANarrowing):
        stored_choices('{"entries": 3}')


def test_nothing_can_be_granted_without_a_source_or_of_an_unknown_one(memory: Bench) -> None:
    review = view(memory, entry("https://example.com/none"))
    assert isinstance(review.offers[0], Ungrantable)
    assert review.impossible is not None
    assert review.impossible.members["reason"] == "source_unknown"
    memory.catalog = Catalog({}, ())
    memory.ask(None, "ar_2")
    picked = memory.granting.view("ar_2", OWNER).impossible
    assert picked is not None
    assert picked.members["reason"] == "no_connection"
    both = view(memory, entry("https://example.com/none"), entry(), request_id="ar_3")
    assert both.impossible is not None


def test_one_part_that_can_be_granted_is_enough(memory: Bench) -> None:
    assert view(memory, entry("https://example.com/none"), entry()).impossible is None


def test_what_an_app_holds_already_is_no_gain(memory: Bench) -> None:
    fields = [{"name": "entries", "fields": ["title"]}]
    first = view(memory, entry(streams=fields))
    assert first.gains
    assert first.reaches_further
    memory.allow("ar_1")
    assert view(memory, entry(streams=fields), request_id="ar_2").gains == ()
    assert view(memory, entry(), request_id="ar_3").gains
    with memory.store.write() as writer:
        writer.change(GrantRow, [GrantRow.revoked_at_ns.to(1), GrantRow.reason.to("owner")])
    assert view(memory, entry(streams=fields), request_id="ar_4").gains


def test_a_change_that_shares_as_much_or_less_reaches_no_further(memory: Bench) -> None:
    held_id = memory.connect(entry(streams=[{"name": "entries"}])).grant_ids[0]
    review = change(memory, held_id)
    assert review.is_change
    assert review.gains == ()
    assert not review.reaches_further
    request_id = review.asked.facts.request_id
    longer = replace(review.choices, expiry="1y")
    shorter = replace(review.choices, expiry="30d")
    endless = replace(review.choices, expiry="none")
    further = [
        memory.granting.choose(request_id, chosen, OWNER).reaches_further
        for chosen in (longer, shorter, endless)
    ]
    assert further == [True, False, True]


def test_an_access_without_an_end_cannot_last_longer(memory: Bench) -> None:
    held_id = memory.connect(entry()).grant_ids[0]
    with memory.store.write() as writer:
        writer.change(GrantRow, [GrantRow.expires_at_ns.to(None)])
    assert not change(memory, held_id).reaches_further


def test_only_an_access_of_that_app_can_be_ended_along(memory: Bench) -> None:
    held_id = memory.connect(entry()).grant_ids[0]
    review = view(memory, entry(), request_id="ar_2")
    assert [holding.id for holding in review.earlier] == [held_id]
    ends = replace(review.choices, ends=(held_id,))
    assert memory.granting.choose("ar_2", ends, OWNER).choices.ends == (held_id,)
    other = replace(review.choices, ends=("grt_other",))
    with pytest.raises(NotANarrowing) as caught:
        memory.granting.choose("ar_2", other, OWNER)
    assert caught.value.param == "end"


@pytest.mark.parametrize(("entries", "kind"), [(1, "client"), (2, "mcp_package")])
def test_counts_are_those_of_the_token_that_would_be(
    memory: Bench, entries: int, kind: str
) -> None:
    review = view(memory, *[entry(), entry(NOTES)][:entries])
    token = review.prospective()
    assert (token.kind, token.package_id) == (kind, "review" if entries == 2 else None)
    assert (token.subject_id, token.client_id) == ("own_1", "cli_1")
    assert (token.resource, token.expires_at_ns) == (
        "https://me.example/mcp",
        review.terms.expires_at_ns,
    )
    assert [member.grant_id for member in token.grants] == ["review:0", "review:1"][:entries]
    assert [member.connector_key for member in token.grants] == ["journal", "notes"][:entries]
    grant = token.grants[0].grant
    assert grant is not None
    assert [stream.name for stream in grant.streams] == ["entries"]


def test_what_the_owner_did_not_choose_changes_with_accounts_and_addresses(memory: Bench) -> None:
    review = view(memory, entry())
    before = facts_of(review)
    chosen = replace(review.choices, expiry="30d")
    assert facts_of(memory.granting.choose("ar_1", chosen, OWNER)) == before
    addresses = ("https://app.example/cb", "https://app.example/other")
    with memory.store.write() as writer:
        writer.change(ClientRow, [ClientRow.redirect_uris.to(addresses)])
    moved = facts_of(memory.granting.view("ar_1", OWNER))
    assert moved != before
    memory.catalog = replace(
        memory.catalog, connections=(*memory.catalog.connections, connection("b"))
    )
    assert facts_of(memory.granting.view("ar_1", OWNER)) not in (before, moved)


def test_training_is_named_by_its_purpose(memory: Bench) -> None:
    purpose = "https://pdpp.dev/purpose/ai_training"
    assert view(memory, entry(purpose_code=purpose)).trains
    assert not view(memory, entry(), request_id="ar_2").trains


def test_the_artifact_says_who_asked_and_for_what(memory: Bench) -> None:
    review = view(memory, entry())
    artifact = json.loads(json.dumps(review.artifact))
    assert artifact["client"]["client_id"] == "cli_1"
    assert review.asked.client_facts.redirect_uri == "https://app.example/cb"
    assert review.asked.opened_at_ns == memory.now_ns
    assert JOURNAL in json.dumps(artifact["sources"])
