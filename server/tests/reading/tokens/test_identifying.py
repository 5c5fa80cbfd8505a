"""From a bearer to a read authority, judged anew on every request."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import InvalidToken
from personal_server.collecting.declarations import declare
from personal_server.consent.credentials import secret_hash
from personal_server.domain.authority import SourceId, TokenKind
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.grant import Grant, StreamGrant, render_grant
from personal_server.domain.possession import PresentedToken
from personal_server.reading.identification import Identified, Identifier, OneState
from personal_server.reading.tokens import TokenHolder, TokenResolver, TokenState
from personal_server.storage.authorization_rows import GrantRow, TokenRow
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.authorization_store import R
from personal_server.storage.ports.snapshots import PastBudget
from personal_server.storage.tables import Assignment
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.oracle.memory import MemoryStore
from tests.proving import bearer, unproven

NOW, HOUR = 1_000_000 * 10**9, 3_600 * 10**9
ORIGIN = "https://me.example"
URI = "https://registry.pdpp.dev/connectors/journal"
JOURNAL = Path(__file__).parents[2] / "samples" / "journal.json"
TOKEN = "pdpp_at_secret"


class World:
    """One granted journal and its token."""

    def __init__(self) -> None:
        self.records = MemoryStore("own_1")
        declare(self.records, JOURNAL.read_bytes(), NOW)
        self.records.add_connection(
            Connection("cin_1", "journal", URI, "Diary", ConnectionStatus.ACTIVE, NOW, NOW)
        )
        self.authorization = MemoryAuthorizationStore("own_1")
        self.insert(_grant(), _token())
        accepted = {ORIGIN, f"{ORIGIN}/v1", f"{ORIGIN}/mcp"}
        self.resolver = TokenResolver(self.authorization, lambda: NOW, unproven())
        self.identifier = Identifier(
            self.resolver, self.open_state, KnownDeclarations(), accepted.__contains__
        )

    @contextmanager
    def open_state(self, timeout_seconds: float | None) -> Generator[OneState]:
        with self.authorization.read() as reader, self.records.snapshot() as snapshot:
            yield reader, snapshot

    def identify(self, sent: PresentedToken | TokenState) -> Identified:
        with self.identifier(sent) as (found, _):
            return found

    def insert(self, *rows: GrantRow | TokenRow) -> None:
        with self.authorization.write() as writer:
            for row in rows:
                writer.insert(row)

    def change(self, table: type[R], *to: Assignment[R]) -> None:
        with self.authorization.write() as writer:
            writer.change(table, to)


def _grant() -> GrantRow:
    grant = Grant(
        grant_id="grt_1",
        issued_at="2026-11-21T21:00:00Z",
        subject_id="own_1",
        client_id="cli_1",
        source=SourceId("connector", URI),
        declaration_version="1",
        purpose_code="https://pdpp.dev/purpose/agent_context",
        access_mode="continuous",
        streams=(StreamGrant("entries", ("cin_1",), ("id", "created_at")),),
        expires_at=None,
    )
    return GrantRow(
        grant_id="grt_1",
        grant=render_grant(grant),
        client_id="cli_1",
        connector_key="journal",
        access_mode="continuous",
        issued_at_ns=0,
        revision="rv1:sha256:x",
    )


def _token(**over: object) -> TokenRow:
    row = TokenRow(
        token_hash=secret_hash(TOKEN),
        kind="client",
        client_id="cli_1",
        grant_id="grt_1",
        family_id=None,
        origin=ORIGIN,
        resource=f"{ORIGIN}/mcp",
        scope="pdpp:read",
        issued_at_ns=NOW,
        expires_at_ns=NOW + HOUR,
    )
    return dataclasses.replace(row, **over)  # type: ignore[arg-type]


@pytest.fixture
def world() -> World:
    return World()


def test_a_token_stands_for_what_its_grant_covers_now(world: World) -> None:
    found = world.identify(bearer(TOKEN))
    (source,) = found.authority.sources
    assert found.refusal is None
    assert found.authority.kind is TokenKind.CLIENT
    assert (source.connection_id, source.stream, source.fields) == (
        "cin_1",
        "entries",
        ("id", "created_at"),
    )


def test_a_connection_that_was_revoked_is_unavailable_with_the_next_request(world: World) -> None:
    world.identify(bearer(TOKEN))
    world.records.update_connection("cin_1", lambda c: replace(c, status=ConnectionStatus.REVOKED))
    authority = world.identify(bearer(TOKEN)).authority
    assert authority.sources == ()
    assert [entry.reason for entry in authority.unavailable] == ["connection_revoked"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ([GrantRow.revoked_at_ns.to(NOW), GrantRow.reason.to("owner")], "grant_revoked"),
        ([GrantRow.expires_at_ns.to(NOW - 1)], "grant_expired"),
        ([GrantRow.grant.to(b"{}")], "grant_invalid"),
    ],
)
def test_an_ended_grant_is_refused_and_still_named(
    world: World, change: list[Assignment[GrantRow]], code: str
) -> None:
    world.change(GrantRow, *change)
    found = world.identify(bearer(TOKEN))
    assert found.refusal is not None
    assert found.refusal.code == code
    assert found.authority.client_id == "cli_1"
    assert found.authority.grant_ids == ("grt_1",)
    assert found.authority.sources == ()


def test_what_was_looked_up_before_is_handed_on_and_read_in_the_present_catalog(
    world: World,
) -> None:
    state = world.resolver.current(bearer(TOKEN))
    world.change(GrantRow, GrantRow.revoked_at_ns.to(NOW), GrantRow.reason.to("owner"))
    assert world.identify(state).authority.grant_ids == ("grt_1",)
    assert world.identify(bearer(TOKEN)).refusal is not None
    world.records.update_connection("cin_1", lambda c: replace(c, status=ConnectionStatus.REVOKED))
    assert world.identify(state).authority.sources == ()


class OneSnapshot:
    """One state of the records, which keeps what was made of it."""

    def __init__(self, snapshot: object) -> None:
        self._snapshot = snapshot
        self.derived: dict[object, object] = {}

    def __getattr__(self, name: str) -> object:
        return getattr(self._snapshot, name)


def test_in_one_state_of_the_records_a_token_stands_for_what_was_looked_up(world: World) -> None:
    before = world.resolver.current(bearer(TOKEN))
    with world.records.snapshot() as opened:
        snapshot: Any = OneSnapshot(opened)
        first = world.identifier.identify(before, snapshot).authority
        assert world.identifier.identify(before, snapshot).authority is first
        world.change(TokenRow, TokenRow.kind.to("owner"), TokenRow.grant_id.to(None))
        after = world.resolver.current(bearer(TOKEN))
        assert world.identifier.identify(after, snapshot).authority.kind is TokenKind.OWNER
        assert world.identifier.identify(before, snapshot).authority == first


@pytest.mark.parametrize("resource", ["https://other.example", f"{ORIGIN}/v1/", f"{ORIGIN}/other"])
def test_a_token_for_another_resource_is_not_accepted(world: World, resource: str) -> None:
    world.change(TokenRow, TokenRow.resource.to(resource))
    with pytest.raises(InvalidToken):
        world.identify(bearer(TOKEN))


@pytest.mark.parametrize("resource", [ORIGIN, f"{ORIGIN}/v1", f"{ORIGIN}/mcp"])
def test_tokens_for_each_of_our_resources_are_accepted(world: World, resource: str) -> None:
    world.change(TokenRow, TokenRow.resource.to(resource))
    assert world.identify(bearer(TOKEN)).refusal is None


@pytest.mark.parametrize("token", ["pdpp_at_other", ""])
def test_an_unknown_token_is_invalid(world: World, token: str) -> None:
    with pytest.raises(InvalidToken):
        world.identify(bearer(token))


def test_any_other_kind_of_token_is_invalid(world: World) -> None:
    world.change(TokenRow, TokenRow.kind.to("session"))
    with pytest.raises(InvalidToken):
        world.identify(bearer(TOKEN))


def test_an_owner_token_stands_for_everything(world: World) -> None:
    world.change(TokenRow, TokenRow.kind.to("owner"), TokenRow.grant_id.to(None))
    authority = world.identify(bearer(TOKEN)).authority
    assert authority.kind is TokenKind.OWNER
    assert {source.stream for source in authority.sources} == {"entries", "volumes", "attachments"}
    assert all(source.grant_id is None for source in authority.sources)


def test_who_must_not_wait_gets_the_same_or_nothing(world: World) -> None:
    with pytest.raises(PastBudget), world.identifier.briefly(bearer(TOKEN)):
        pass
    opened: list[None] = []

    @contextmanager
    def open_briefly() -> Generator[OneState]:
        opened.append(None)
        with world.open_state(None) as state:
            yield state

    brief = Identifier(
        world.resolver, world.open_state, KnownDeclarations(), lambda _: True, open_briefly
    )
    with brief.briefly(bearer(TOKEN)) as (found, _):
        assert found.authority.sources == world.identify(bearer(TOKEN)).authority.sources
    assert opened == [None]


def test_the_authority_of_a_holder_ends_with_its_grant(world: World) -> None:
    def held() -> Identified:
        with world.open_state(None) as (reader, snapshot):
            return world.identifier.holder(TokenHolder("cli_1", "grt_1"), reader, snapshot)

    assert [source.stream for source in held().authority.sources] == ["entries"]
    world.change(GrantRow, GrantRow.revoked_at_ns.to(NOW), GrantRow.reason.to("owner"))
    refused = held()
    assert refused.refusal is not None
    assert refused.refusal.code == "grant_revoked"
    assert refused.authority.sources == ()


def test_a_token_that_changed_within_one_state_is_judged_anew(world: World) -> None:
    with world.open_state(None) as (reader, snapshot):
        state = world.resolver.state(reader, bearer(TOKEN))
        first = world.identifier.identify(state, snapshot).authority
        without = replace(state.resolved, grants=())
        changed = world.identifier.identify(TokenState(without), snapshot).authority
    assert len(first.sources) == 1
    assert changed.sources == ()
