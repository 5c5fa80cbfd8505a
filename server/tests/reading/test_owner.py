"""Whoever looks reads under an authority: the owner's, that of a holder, or of a grant to come."""

from __future__ import annotations

import pytest

from personal_server.domain.authority import TokenKind
from personal_server.domain.grant import Resolved
from personal_server.reading.identification import Identifier
from personal_server.reading.owner import HolderReads, OwnerReads, ProspectiveReads, owner_of
from personal_server.reading.tokens import TokenHolder
from personal_server.storage.authorization_rows import GrantRow
from personal_server.storage.known_declarations import KnownDeclarations
from server.tests.reading.tokens.test_identifying import NOW, World
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    DIARY,
    NARROW,
    furnished,
    grant,
    member,
    resolved,
    stream_grant,
)


def test_an_owner_stands_for_everything_and_for_no_client() -> None:
    owner = owner_of("own_1")
    assert (owner.kind, owner.subject_id, owner.client_id) == (TokenKind.OWNER, "own_1", "")
    assert (owner.grants, owner.expires_at_ns) == ((), 0)


def test_the_owner_sees_every_stream_of_every_account() -> None:
    ports = Door(furnished()).ports
    reads = OwnerReads(ports, KnownDeclarations())
    with reads.open(1.0) as (snapshot, authority):
        assert authority.kind is TokenKind.OWNER
        assert {source.stream for source in authority.sources} == {
            "entries",
            "volumes",
            "attachments",
        }
        assert len({source.connection_id for source in authority.sources}) == 3
        assert snapshot.stored_streams()


def test_a_grant_to_come_is_read_as_its_token_would() -> None:
    prospective: Resolved = resolved(
        "client", member(grant(stream_grant(instance_ids=(DIARY,), fields=NARROW)))
    )
    reads = ProspectiveReads(Door(furnished()).ports, KnownDeclarations(), prospective)
    with reads.open(1.0) as (_, authority):
        (source,) = authority.sources
    assert (source.connection_id, source.stream, source.fields) == (DIARY, "entries", NARROW)


def holder_reads(world: World, holder: TokenHolder) -> HolderReads:
    identify: Identifier = world.identifier
    return HolderReads(Door(furnished()).ports, identify, world.open_state, holder)


def test_a_holder_reads_what_its_grant_covers_and_nothing_once_that_has_ended() -> None:
    world = World()
    reads = holder_reads(world, TokenHolder("cli_1", "grt_1"))
    with reads.open(1.0) as (_, authority):
        assert [source.stream for source in authority.sources] == ["entries"]
        assert authority.kind is TokenKind.CLIENT
    world.change(GrantRow, GrantRow.revoked_at_ns.to(NOW), GrantRow.reason.to("owner"))
    with reads.open(1.0) as (_, authority):
        assert authority.sources == ()


@pytest.mark.parametrize(
    ("holder", "kind"),
    [
        (TokenHolder("cli_1"), TokenKind.OWNER),
        (TokenHolder("cli_1", "grt_1"), TokenKind.CLIENT),
        (TokenHolder("cli_1", "grt_1", "gpkg_1"), TokenKind.PACKAGE),
    ],
)
def test_a_holder_has_the_kind_of_its_tokens(holder: TokenHolder, kind: TokenKind) -> None:
    row = holder.token()
    assert holder.kind is kind
    assert row.kind == kind
    assert row.client_id == "cli_1"
    assert (row.grant_id, row.package_id) == (
        "grt_1" if kind is TokenKind.CLIENT else None,
        "gpkg_1" if kind is TokenKind.PACKAGE else None,
    )
