"""Decisions: what was shown is what is fixed, once, or nothing is written."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from pdpp_kernel.errors import NotFound, PersonalServerError
from pdpp_kernel.oauth_errors import (
    AiTrainingConsentRequired,
    ApprovalConflict,
    RequestClosed,
    ReviewChanged,
    ReviewStale,
)
from personal_server.consent.choices import Choices, EntryChoice
from personal_server.domain.grant import parse_grant
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.storage.authorization_rows import (
    AuditRow,
    ClientRow,
    CodeRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    RequestRow,
    ReviewArtifactRow,
    TokenRow,
)
from server.tests.granting.conftest import Bench, entry, everything

OWNER = Acting("owner", "req_1", "127.0.0.1")
VERIFIER = "v" * 43


def test_an_explicit_request_becomes_one_grant_and_a_code(bench: Any, make_entry: Any) -> None:
    code = bench.allow(bench.ask([make_entry()]))
    row = bench.rows(GrantRow)[0]
    grant = parse_grant(row.grant)
    assert [stream.name for stream in grant.streams] == ["entries"]
    assert grant.streams[0].instance_ids == ("cin_a",)
    assert bench.rows(TokenRow) == []
    assert bench.rows(PackageRow) == []
    assert code.startswith("pdpp_ac_")
    artifact = json.loads(bench.rows(ReviewArtifactRow)[0].artifact)
    assert artifact["client"]["client_id"] == "cli_1"
    assert row.expires_at_ns == bench.now_ns + 90 * 86_400 * 10**9


def test_the_code_gives_tokens_once_and_a_replay_ends_everything(
    bench: Any, make_entry: Any
) -> None:
    code = bench.allow(bench.ask([make_entry()]))
    asked = Redemption("cli_1", code, "none", verifier=VERIFIER)
    issued = bench.redeeming.redeem_code(asked, Acting("client"))
    assert issued.refresh_token is not None
    assert issued.expires_in_seconds == 3600
    assert issued.details[0]["access_mode"] == "continuous"
    with pytest.raises(PersonalServerError) as caught:
        bench.redeeming.redeem_code(asked, Acting("client"))
    assert caught.value.code == "invalid_grant"
    assert bench.rows(GrantRow)[0].reason == "code_replay"
    assert bench.rows(TokenRow)[0].revoked_at_ns == bench.now_ns


def test_two_kept_entries_become_a_package(bench: Any, make_entry: Any) -> None:
    notes = "https://registry.pdpp.dev/connectors/notes"
    bench.allow(bench.ask([make_entry(), make_entry(notes)]))
    assert len(bench.rows(GrantRow)) == 2
    assert [member.position for member in bench.rows(PackageMemberRow)] == [0, 1]
    code = bench.rows(CodeRow)[0]
    assert code.package_id is not None
    assert code.grant_id is None


def test_one_kept_entry_of_two_becomes_a_plain_grant(bench: Any, make_entry: Any) -> None:
    notes = "https://registry.pdpp.dev/connectors/notes"
    bench.allow(
        bench.ask([make_entry(), make_entry(notes)]),
        Choices(entries={1: EntryChoice(keep=True)}),
    )
    assert [row.connector_key for row in bench.rows(GrantRow)] == ["notes"]
    assert bench.rows(PackageRow) == []


def test_the_picker_starts_with_nothing_ticked_and_ends_like_any_request(bench: Any) -> None:
    request_id = bench.ask(None)
    review = bench.granting.view(request_id, OWNER)
    assert review.revision is None
    assert [missing.what for missing in review.missing] == ["entry"]
    bench.allow(request_id)
    assert len(bench.rows(GrantRow)) == 2


def test_several_connections_must_be_chosen(bench: Any, make_entry: Any) -> None:
    second = dataclasses.replace(bench.catalog.connections[0], connection_id="cin_b")
    bench.catalog = dataclasses.replace(
        bench.catalog, connections=(*bench.catalog.connections, second)
    )
    request_id = bench.ask([make_entry()])
    review = bench.granting.view(request_id, OWNER)
    assert [missing.what for missing in review.missing] == ["connection"]
    bench.allow(
        request_id,
        Choices(entries={0: EntryChoice(keep=True, connections=frozenset({"cin_b"}))}),
    )
    grant = parse_grant(bench.rows(GrantRow)[0].grant)
    assert grant.streams[0].instance_ids == ("cin_b",)


def test_other_choices_than_those_shown_are_review_changed(bench: Any, make_entry: Any) -> None:
    request_id = bench.ask([make_entry()])
    shown = bench.granting.view(request_id, OWNER)
    with pytest.raises(ReviewChanged):
        bench.granting.approve(request_id, Choices(expiry="30d"), shown.revision, OWNER)
    assert bench.rows(GrantRow) == []
    assert bench.rows(RequestRow)[0].status == "pending"


def test_a_source_that_changed_underneath_is_review_stale(bench: Any, make_entry: Any) -> None:
    request_id = bench.ask([make_entry()])
    shown = bench.granting.view(request_id, OWNER)
    journal = next(iter(bench.catalog.declarations.values()))
    changed = dataclasses.replace(journal, digest="sha256:00")
    bench.catalog = dataclasses.replace(
        bench.catalog, declarations={**bench.catalog.declarations, journal.source_id: changed}
    )
    with pytest.raises(ReviewStale):
        bench.granting.approve(request_id, Choices(), shown.revision, OWNER)
    assert bench.rows(GrantRow) == []


def test_a_second_approval_is_a_conflict(bench: Any, make_entry: Any) -> None:
    request_id = bench.ask([make_entry()])
    shown = bench.granting.view(request_id, OWNER)
    bench.granting.approve(request_id, shown.choices, shown.revision, OWNER)
    with pytest.raises(ApprovalConflict):
        bench.granting.approve(request_id, shown.choices, shown.revision, OWNER)
    with pytest.raises(RequestClosed):
        bench.granting.view(request_id, OWNER)
    assert len(bench.rows(GrantRow)) == 1


def test_the_decision_erases_state_and_redirect(bench: Any, make_entry: Any) -> None:
    bench.allow(bench.ask([make_entry()]))
    row = bench.rows(RequestRow)[0]
    assert (row.status, row.state, row.redirect_uri, row.code_challenge) == (
        "approved",
        None,
        None,
        None,
    )


def test_a_denial_goes_back_with_state_and_issuer_once(bench: Any, make_entry: Any) -> None:
    uri = "https://app.example/cb?a=1"
    with bench.store.write() as writer:
        writer.change(ClientRow, [ClientRow.redirect_uris.to((uri,))])
    request_id = bench.ask([make_entry()], redirect_uri=uri)
    decided = bench.granting.deny(request_id, OWNER)
    assert decided.redirect_to.startswith("https://app.example/cb?a=1&error=access_denied")
    assert decided.redirect_to.count("state=xyz") == 1
    assert decided.redirect_to.count("iss=https%3A%2F%2Fme.example") == 1


def test_what_a_person_keeps_is_not_told_to_the_client(bench: Any, make_entry: Any) -> None:
    unknown = bench.ask([make_entry("https://example.com/none")])
    assert bench.granting.view(unknown, OWNER).impossible.reason == "source_unknown"
    decided = bench.granting.deny(unknown, OWNER)
    assert "error=access_denied" in decided.redirect_to
    wrong = bench.ask([make_entry(streams=[{"name": "nothing"}])], "ar_2")
    decided = bench.granting.deny(wrong, OWNER)
    assert "error=invalid_authorization_details" in decided.redirect_to
    assert "error_description=unknown_stream" in decided.redirect_to


def test_training_needs_its_own_tick(bench: Any, make_entry: Any) -> None:
    training = make_entry(purpose_code="https://pdpp.dev/purpose/ai_training")
    request_id = bench.ask([training])
    shown = bench.granting.view(request_id, OWNER)
    with pytest.raises(AiTrainingConsentRequired):
        bench.granting.approve(request_id, shown.choices, shown.revision, OWNER)
    ticked = dataclasses.replace(shown.choices, ai_training=True)
    bench.granting.approve(request_id, ticked, shown.revision, OWNER)
    artifact = json.loads(bench.rows(ReviewArtifactRow)[0].artifact)
    assert artifact["ai_training_consented"] is True


def test_an_expired_request_is_closed_with_a_way_back(bench: Any, make_entry: Any) -> None:
    request_id = bench.ask([make_entry()])
    bench.now_ns += 901 * 10**9
    with pytest.raises(RequestClosed) as caught:
        bench.granting.view(request_id, OWNER)
    assert "error=access_denied" in str(caught.value.members["back_to_app"])


def test_what_was_asked_can_be_seen_once_the_request_was_opened(
    bench: Any, make_entry: Any
) -> None:
    request_id = bench.ask([make_entry()])
    with pytest.raises(NotFound):
        bench.granting.asked(request_id)
    shown = bench.granting.view(request_id, OWNER)
    assert bench.granting.asked(request_id).revision == shown.revision


def test_an_earlier_grant_can_be_ended_with_the_approval(bench: Any, make_entry: Any) -> None:
    bench.allow(bench.ask([make_entry()]))
    first = bench.rows(GrantRow)[0].grant_id
    request_id = bench.ask([make_entry()], "ar_2")
    review = bench.granting.view(request_id, OWNER)
    assert [held.id for held in review.earlier] == [first]
    bench.allow(request_id, dataclasses.replace(review.choices, ends=(first,)))
    ended = [row for row in bench.rows(GrantRow) if row.grant_id == first]
    assert ended[0].reason == "replaced"


def test_a_failure_anywhere_in_the_approval_leaves_nothing(bench: Any, make_entry: Any) -> None:
    request_id = bench.ask([make_entry()])
    shown = bench.granting.view(request_id, OWNER)
    draws = iter(range(1))

    class Failure(Exception):
        pass

    def fails_at_the_code(size: int) -> bytes:
        if next(draws, None) is None:
            raise Failure
        return bytes(size)

    bench.random = fails_at_the_code
    with pytest.raises(Failure):
        bench.granting.approve(request_id, shown.choices, shown.revision, OWNER)
    assert bench.rows(GrantRow) == []
    assert bench.rows(CodeRow) == []
    assert bench.rows(ReviewArtifactRow) == []
    assert bench.rows(RequestRow)[0].status == "pending"


def test_of_two_parallel_approvals_one_wins(bench: Any, make_entry: Any) -> None:
    request_id = bench.ask([make_entry()])
    shown = bench.granting.view(request_id, OWNER)
    outcomes: list[str] = []

    def approve() -> None:
        try:
            bench.granting.approve(request_id, shown.choices, shown.revision, OWNER)
            outcomes.append("approved")
        except PersonalServerError as refused:
            outcomes.append(refused.code)

    threads = [threading.Thread(target=approve) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["approval_conflict", "approved"]
    assert len(bench.rows(GrantRow)) == 1


class Failure(Exception):
    """What a store raises when the disk is gone."""


class FailingStore:
    """A store whose nth write statement fails."""

    def __init__(self, store: Any, fails_at: int) -> None:
        self.subject_id = store.subject_id
        self._store = store
        self._left = fails_at

    def read(self) -> Any:
        return self._store.read()

    @contextmanager
    def write(self) -> Generator[Any]:
        with self._store.write() as writer:
            yield FailingWriter(writer, self)

    def count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Failure


class FailingWriter:
    """Counts what is written."""

    def __init__(self, writer: Any, store: FailingStore) -> None:
        self._writer = writer
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name in ("insert", "change", "delete"):
            self._store.count()
        return getattr(self._writer, name)


def test_a_failure_at_any_statement_leaves_the_request_as_it_was(
    bench: Any, make_entry: Any
) -> None:
    notes = "https://registry.pdpp.dev/connectors/notes"
    request_id = bench.ask([make_entry(), make_entry(notes)])
    shown = bench.granting.view(request_id, OWNER)
    tables = (GrantRow, PackageRow, PackageMemberRow, CodeRow, ReviewArtifactRow, AuditRow)
    before = [bench.rows(table) for table in (*tables, RequestRow)]
    sound, statement = bench.store, 0
    while True:
        bench.store = FailingStore(sound, statement)
        try:
            bench.granting.approve(request_id, shown.choices, shown.revision, OWNER)
            break
        except Failure:
            assert [bench.rows(table) for table in (*tables, RequestRow)] == before
        statement += 1
    assert statement > 8
    assert len(bench.rows(GrantRow)) == 2


def test_picker_and_explicit_request_with_equal_choices_give_equal_grants(
    bench: Any, make_entry: Any
) -> None:
    notes = "https://registry.pdpp.dev/connectors/notes"
    streams = [{"name": "*", "necessity": "optional"}]
    picked = bench.ask(None)
    explicit = bench.ask([make_entry(streams=streams), make_entry(notes, streams=streams)], "ar_2")
    bench.allow(picked)
    bench.allow(explicit)
    first, second = (json.loads(row.artifact)["sources"] for row in bench.rows(ReviewArtifactRow))
    assert first == second


def test_an_app_that_changed_its_addresses_is_not_sent_anywhere(
    bench: Any, make_entry: Any
) -> None:
    request_id = bench.ask([make_entry()])
    shown = bench.granting.view(request_id, OWNER)
    with bench.store.write() as writer:
        more = ("https://app.example/cb", "https://app.example/other")
        writer.change(ClientRow, [ClientRow.redirect_uris.to(more)])
    with pytest.raises(ReviewStale):
        bench.granting.approve(request_id, shown.choices, shown.revision, OWNER)
    assert "request.stale" in [row.event for row in bench.rows(AuditRow)]
    with bench.store.write() as writer:
        writer.change(ClientRow, [ClientRow.redirect_uris.to(("https://app.example/other",))])
    with pytest.raises(RequestClosed):
        bench.granting.view(request_id, OWNER)


def test_the_trail_says_that_a_package_came_and_how_many_grants_it_has(memory: Bench) -> None:
    notes = "https://registry.pdpp.dev/connectors/notes"
    memory.allow(memory.ask([entry(), entry(notes)]))
    [package] = memory.rows(PackageRow)
    [noted] = [row for row in memory.rows(AuditRow) if row.event.startswith("package.")]
    assert (noted.event, noted.client_id) == ("package.created", "cli_1")
    assert (noted.package_id, noted.detail) == (package.package_id, {"members": 2})


def test_what_was_chosen_is_kept_with_its_request(memory: Bench) -> None:
    request_id = memory.ask([entry()])
    review = memory.granting.view(request_id, OWNER)
    assert memory.rows(RequestRow)[0].choices is None
    memory.granting.choose(request_id, everything(review), OWNER)
    kept = memory.rows(RequestRow)[0].choices
    assert kept is not None
    memory.granting.view(request_id, OWNER)
    assert memory.rows(RequestRow)[0].choices == kept
