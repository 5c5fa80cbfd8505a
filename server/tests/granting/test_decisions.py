"""Decisions: what was shown is what is fixed, once, or nothing is written."""

from __future__ import annotations

import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import NotFound, PersonalServerError
from pdpp_kernel.oauth_errors import (
    AiTrainingConsentRequired,
    ApprovalConflict,
    NotANarrowing,
    RequestClosed,
    ReviewChanged,
    ReviewStale,
)
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.domain.grant import parse_grant
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redemption
from personal_server.granting.pending_requests import OWNER_DEVICE
from personal_server.storage.authorization_rows import (
    AuditRow,
    ClientRow,
    CodeRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
    ReadingLimitsRow,
    RequestRow,
    ReviewArtifactRow,
    TokenRow,
)
from server.tests.granting.conftest import NOTES, Bench, entry, everything

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
    second = replace(bench.catalog.connections[0], connection_id="cin_b")
    bench.catalog = replace(bench.catalog, connections=(*bench.catalog.connections, second))
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
    changed = replace(journal, digest="sha256:00")
    bench.catalog = replace(
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
    ticked = replace(shown.choices, ai_training=True)
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
    bench.allow(request_id, replace(review.choices, ends=(first,)))
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


def events_of(bench: Bench, request_id: str) -> list[str]:
    rows = bench.rows(AuditRow)
    return [row.event for row in rows if row.detail.get("request") == request_id]


OPERATIONS = ("view", "choose", "asked", "approve", "deny")


def refusal(bench: Bench, operation: str, request_id: str, revision: str = "") -> type[Exception]:
    granting = bench.granting
    doing = {
        "view": lambda: granting.view(request_id, OWNER),
        "choose": lambda: granting.choose(request_id, Choices(), OWNER),
        "asked": lambda: granting.asked(request_id),
        "approve": lambda: granting.approve(request_id, Choices(), revision, OWNER),
        "deny": lambda: granting.deny(request_id, OWNER),
    }
    with pytest.raises(PersonalServerError) as caught:
        doing[operation]()
    return caught.type


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_nobody_asked_for_is_not_found(memory: Bench, operation: str) -> None:
    assert refusal(memory, operation, "ar_none") is NotFound
    assert memory.events() == []


@pytest.mark.parametrize("operation", OPERATIONS[:-1])
def test_a_device_of_the_owner_is_decided_elsewhere(memory: Bench, operation: str) -> None:
    request_id = memory.ask_device([entry()], flow=OWNER_DEVICE, opened_at_ns=1)
    assert refusal(memory, operation, request_id) is NotFound
    assert memory.rows(RequestRow)[0].status == "pending"


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("status", ["approved", "denied", "redeemed", "expired"])
def test_what_was_decided_is_closed_and_a_second_decision_is_a_conflict(
    memory: Bench, operation: str, status: str
) -> None:
    request_id = memory.ask([entry()], opened_at_ns=1, status=status)
    is_conflict = operation in ("approve", "deny") and status != "expired"
    expected = ApprovalConflict if is_conflict else RequestClosed
    assert refusal(memory, operation, request_id) is expected


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("early_ns", "is_open"), [(1, True), (0, False)])
def test_a_request_can_be_decided_until_its_instant(
    memory: Bench, operation: str, early_ns: int, *, is_open: bool
) -> None:
    request_id = memory.ask([entry()])
    shown = memory.granting.view(request_id, OWNER)
    memory.now_ns += 900 * 10**9 - early_ns
    if not is_open:
        assert refusal(memory, operation, request_id, shown.revision or "") is RequestClosed
    elif operation == "approve":
        assert memory.granting.approve(request_id, Choices(), shown.revision or "", OWNER)
    elif operation == "deny":
        assert memory.granting.deny(request_id, OWNER).redirect_to
    else:
        assert memory.granting.asked(request_id).revision == shown.revision


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    "change",
    [
        [ClientRow.blocked_at_ns.to(1)],
        [ClientRow.redirect_uris.to(("https://app.example/other",))],
        None,
    ],
)
def test_an_app_that_may_not_ask_any_more_gets_no_answer(
    memory: Bench, operation: str, change: Any
) -> None:
    request_id = memory.ask([entry()])
    shown = memory.granting.view(request_id, OWNER)
    with memory.store.write() as writer:
        if change is None:
            writer.delete(ClientRow)
        else:
            writer.change(ClientRow, change)
    assert refusal(memory, operation, request_id, shown.revision or "") is RequestClosed
    assert memory.rows(GrantRow) == []


def test_the_first_look_opens_a_request_and_what_was_chosen_is_noted(memory: Bench) -> None:
    request_id = memory.ask([entry()])
    first_ns = memory.now_ns
    shown = memory.granting.view(request_id, OWNER)
    memory.now_ns += 5
    memory.granting.view(request_id, OWNER)
    assert events_of(memory, request_id) == ["request.opened"]
    memory.granting.choose(request_id, shown.choices, OWNER)
    assert events_of(memory, request_id) == ["request.opened", "request.previewed"]
    (row,) = memory.rows(RequestRow)
    assert (row.opened_at_ns, row.revision, row.shown) == (
        first_ns,
        shown.revision,
        shown.artifact,
    )


def test_what_a_picker_may_pick_is_fixed_with_the_first_look(memory: Bench) -> None:
    request_id = memory.ask(None)
    offered = len(memory.granting.view(request_id, OWNER).offers)
    kept = memory.rows(RequestRow)[0].details
    memory.catalog = replace(memory.catalog, connections=memory.catalog.connections[:1])
    assert len(memory.granting.view(request_id, OWNER).offers) == offered == 2
    assert memory.rows(RequestRow)[0].details == kept


def test_choices_that_are_impossible_by_now_give_way_to_what_was_asked(memory: Bench) -> None:
    second = replace(memory.catalog.connections[0], connection_id="cin_b")
    both = replace(memory.catalog, connections=(*memory.catalog.connections, second))
    memory.catalog = both
    request_id = memory.ask([entry()])
    first = memory.granting.view(request_id, OWNER)
    chosen = Choices(
        entries={
            0: EntryChoice(
                keep=True,
                connections=frozenset({"cin_b"}),
                streams={"entries": StreamChoice(wanted=True)},
            )
        }
    )
    memory.granting.choose(request_id, chosen, OWNER)
    assert memory.granting.view(request_id, OWNER).choices.entries[0].connections == {"cin_b"}
    memory.catalog = replace(both, connections=both.connections[:-1])
    again = memory.granting.view(request_id, OWNER)
    assert again.choices.entries[0].connections != {"cin_b"}
    assert first.choices.entries[0].connections != {"cin_b"}


@pytest.mark.parametrize("entries", [1, 2])
@pytest.mark.parametrize(
    ("records", "events", "kept"),
    [(None, False, None), (50, False, (50, None)), (None, True, (None, True))],
)
def test_what_was_chosen_beside_the_grants_is_what_may_be_read_of_them(
    memory: Bench, entries: int, records: int | None, events: Any, kept: Any
) -> None:
    asked = [entry(events=True), entry(NOTES, events=True)][:entries]
    request_id = memory.ask(asked)
    review = memory.granting.view(request_id, OWNER)
    chosen = replace(everything(review), records_per_day=records, events=events)
    memory.allow(request_id, chosen)
    table: Any = PackageRow if entries == 2 else GrantRow
    (held,) = memory.rows(table)
    held_id = held.package_id if entries == 2 else held.grant_id
    limits = [
        (row.held_id, (row.records_per_day, row.events)) for row in memory.rows(ReadingLimitsRow)
    ]
    assert limits == ([] if kept is None else [(held_id, kept)])


def test_what_is_not_complete_is_not_allowed(memory: Bench) -> None:
    request_id = memory.ask(None)
    memory.granting.view(request_id, OWNER)
    with pytest.raises(NotANarrowing):
        memory.granting.approve(request_id, Choices(), "", OWNER)
    assert memory.rows(GrantRow) == []


def test_only_what_was_shown_last_is_allowed(memory: Bench) -> None:
    request_id = memory.ask([entry()])
    first = memory.granting.view(request_id, OWNER)
    other = replace(first.choices, expiry="30d")
    second = memory.granting.choose(request_id, other, OWNER)
    assert first.revision != second.revision
    for choices, revision in ((first.choices, first.revision), (other, first.revision)):
        with pytest.raises(ReviewChanged):
            memory.granting.approve(request_id, choices, revision or "", OWNER)
    assert events_of(memory, request_id).count("request.stale") == 2
    assert memory.granting.approve(request_id, other, second.revision or "", OWNER).redirect_to


def test_a_code_is_good_for_two_minutes_and_says_for_whom(memory: Bench) -> None:
    memory.allow(memory.ask([entry()], jkt="key"))
    (code,), (grant,) = memory.rows(CodeRow), memory.rows(GrantRow)
    assert code.expires_at_ns - memory.now_ns == 120 * 10**9
    assert (code.client_id, code.redirect_uri, code.jkt) == (
        "cli_1",
        "https://app.example/cb",
        "key",
    )
    assert (code.resource, code.scope) == ("https://me.example/mcp", "pdpp:read")
    assert (code.grant_id, code.package_id) == (grant.grant_id, None)


@pytest.mark.parametrize("left", [60, 300])
def test_a_device_has_two_minutes_to_collect_or_what_was_left(memory: Bench, left: int) -> None:
    request_id = memory.ask_device([entry()])
    memory.now_ns += (900 - left) * 10**9
    assert memory.allow(request_id) == ""
    (row,), (grant,) = memory.rows(RequestRow), memory.rows(GrantRow)
    assert row.collect_until_ns == memory.now_ns + max(left, 120) * 10**9
    assert (row.grant_id, row.package_id) == (grant.grant_id, None)
    assert memory.rows(CodeRow) == []


def test_the_first_approval_of_an_app_is_kept(memory: Bench) -> None:
    first_ns = memory.now_ns
    memory.allow(memory.ask([entry()]))
    memory.now_ns += 5
    memory.allow(memory.ask([entry()], "ar_2"))
    assert memory.rows(ClientRow)[0].first_approved_at_ns == first_ns


def test_what_was_decided_is_in_the_trail_with_who_and_what(memory: Bench) -> None:
    memory.allow(memory.ask([entry()]))
    (grant,), (artifact,) = memory.rows(GrantRow), memory.rows(ReviewArtifactRow)
    assert memory.events()[-2:] == [
        ("grant.created", "cli_1", grant.grant_id, None),
        ("request.approved", "cli_1", grant.grant_id, None),
    ]
    assert (artifact.channel, artifact.request_id, artifact.decided_at_ns) == (
        "page",
        "ar_1",
        memory.now_ns,
    )
    assert memory.rows(RequestRow)[0].decided_at_ns == memory.now_ns
    memory.granting.deny(memory.ask([entry()], "ar_2"), OWNER)
    assert memory.events()[-1] == ("request.denied", "cli_1", None, None)
    denied = next(row for row in memory.rows(RequestRow) if row.request_id == "ar_2")
    assert (denied.status, denied.decided_at_ns) == ("denied", memory.now_ns)
