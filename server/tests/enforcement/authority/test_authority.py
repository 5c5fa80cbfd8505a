"""From a resolved token to its read authority."""

import copy

import pytest
from msgspec.structs import replace

from pdpp_kernel.source_declaration import SourceDeclaration
from personal_server.domain.authority import ReadAuthority, SourceId, TimeConstraint
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.grant import ACTIVE, ContentLimit, Grant, StreamGrant
from personal_server.enforcement.authority import content_conditions, read_authority
from server.tests.enforcement.mailbox import MAILS
from server.tests.resource_server.journal import (
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    LETTERS,
    OWNER,
    authority_of,
    client,
    connection,
    grant,
    member,
    other_source,
    resolved,
    stream_grant,
)

ALL = tuple(JOURNAL_RAW["streams"][0]["schema"]["properties"])


def reasons(authority: ReadAuthority) -> list[tuple[str, str, str | None]]:
    return [(u.connection_id, u.reason, u.stream) for u in authority.unavailable]


def changed(**members: object) -> SourceDeclaration:
    raw = copy.deepcopy(JOURNAL_RAW)
    for name, change in members.items():
        if name == "drop_stream":
            raw["streams"] = [s for s in raw["streams"] if s["name"] != change]
            raw.pop("selection_presets", None)
        if name == "add_field":
            raw["streams"][0]["schema"]["properties"][str(change)] = {"type": "string"}
        if name == "drop_field":
            del raw["streams"][0]["schema"]["properties"][str(change)]
            raw["streams"][0]["query"]["search"] = {"lexical_fields": ["title"]}
    return parse_declaration(raw)


def with_declaration(declaration: SourceDeclaration, granted: Grant) -> ReadAuthority:
    token = resolved("client", member(granted))
    return read_authority(token, CONNECTIONS, {"journal": declaration})


def test_sources_stand_by_connection_then_stream() -> None:
    authority = client(stream_grant("volumes"), stream_grant())
    assert [source.order for source in authority.sources] == [
        (DIARY, "entries"),
        (DIARY, "volumes"),
        (LETTERS, "entries"),
        (LETTERS, "volumes"),
    ]


def test_fields_stand_in_schema_order() -> None:
    authority = client(stream_grant(fields=("created_at", "title", "id")))
    assert authority.sources[0].fields == ("id", "title", "created_at")


def test_a_new_declaration_narrows_and_never_widens() -> None:
    granted = grant(stream_grant(fields=ALL))
    wider = with_declaration(changed(add_field="mood"), granted)
    assert "mood" not in wider.sources[0].fields
    narrower = with_declaration(changed(drop_field="body"), granted)
    assert "body" not in narrower.sources[0].fields


def test_a_stream_that_is_no_longer_declared_is_named() -> None:
    granted = grant(stream_grant(), stream_grant("volumes"))
    authority = with_declaration(changed(drop_stream="volumes"), granted)
    assert reasons(authority) == [
        (DIARY, "stream_not_declared", "volumes"),
        (LETTERS, "stream_not_declared", "volumes"),
    ]
    assert {source.stream for source in authority.sources} == {"entries"}


def test_no_granted_field_left_means_the_stream_is_gone() -> None:
    granted = grant(StreamGrant("entries", (DIARY,), ("nowhere",)))
    assert reasons(with_declaration(changed(), granted)) == [
        (DIARY, "stream_not_declared", "entries")
    ]


@pytest.mark.parametrize(
    ("status", "readable"),
    [
        (ConnectionStatus.ACTIVE, True),
        (ConnectionStatus.PAUSED, True),
        (ConnectionStatus.DRAFT, True),
        (ConnectionStatus.REVOKED, False),
    ],
)
def test_only_a_revoked_connection_is_closed_to_clients(
    status: ConnectionStatus, *, readable: bool
) -> None:
    granted = member(grant(stream_grant(instance_ids=(DIARY,))))
    authority = authority_of("client", granted, connections=[connection(DIARY, status=status)])
    assert bool(authority.sources) is readable
    owner = authority_of("owner", connections=[connection(DIARY, status=status)])
    assert len(owner.sources) == 3


def test_a_connection_of_another_source_is_a_mismatch() -> None:
    granted = member(grant(stream_grant(instance_ids=(DIARY,))))
    other = connection(DIARY, "banking", "Secret account")
    authority = authority_of("client", granted, connections=[other])
    assert reasons(authority) == [(DIARY, "source_mismatch", None)]
    entry = authority.unavailable[0]
    assert (entry.display_name, entry.connector_key) == (None, "journal")


def test_a_grant_that_cannot_be_read_gives_nothing_and_is_named() -> None:
    authority = authority_of("mcp_package", member(None, "grant_invalid", "grt_9"))
    assert authority.sources == ()
    assert authority.unavailable[0].grant_id == "grt_9"
    assert authority.unavailable[0].next_step == "reapprove"


def test_a_grant_without_the_key_or_with_a_foreign_constraint_is_malformed() -> None:
    keyless = client(StreamGrant("entries", (DIARY,), ("title",)))
    assert reasons(keyless) == [(DIARY, "grant_invalid", None)]
    constraint = TimeConstraint("title", since_ns=1)
    foreign = client(StreamGrant("entries", (DIARY,), ALL, constraint))
    assert reasons(foreign) == [(DIARY, "grant_invalid", None)]


def test_a_content_limit_is_held_to_as_declared_now_or_not_at_all() -> None:
    held = client(stream_grant(only={"pinned": (True,), "volume_id": ("v1", "v2")}))
    assert [c.values for c in held.sources[0].only] == [(True,), ("v1", "v2")]
    for only in ({"title": ("Rain",)}, {"gone": ("a",)}, {"pinned": ("true",)}, {"id": ("e1",)}):
        denied = client(stream_grant(instance_ids=(DIARY,), only=only))
        assert reasons(denied) == [(DIARY, "grant_invalid", None)]
        assert denied.sources == ()


def test_the_later_of_two_grants_replaces_the_earlier_and_fields_are_not_united() -> None:
    early = grant(stream_grant(fields=("id", "title")), grant_id="grt_a", issued="2026-01-01")
    late = grant(stream_grant(fields=("id", "body")), grant_id="grt_b", issued="2026-02-01")
    for order in ((early, late), (late, early)):
        authority = authority_of("mcp_package", *(member(each) for each in order))
        assert {s.fields for s in authority.sources} == {("id", "body")}


def test_an_ended_grant_replaces_nothing() -> None:
    early = grant(stream_grant(fields=("id", "title")), grant_id="grt_a", issued="2026-01-01")
    late = grant(stream_grant(fields=("id", "body")), grant_id="grt_b", issued="2026-02-01")
    authority = authority_of("mcp_package", member(early, ACTIVE), member(late, "grant_revoked"))
    assert {s.grant_id for s in authority.sources} == {"grt_a"}


def test_each_unavailable_connection_is_named_once_per_grant() -> None:
    streams = (stream_grant(instance_ids=("cin_x",)), stream_grant("volumes", ("cin_x",)))
    assert reasons(client(*streams)) == [("cin_x", "connection_deleted", None)]


def test_the_owner_has_every_stream_and_field_without_constraint() -> None:
    entries = next(s for s in OWNER.sources if s.order == (DIARY, "entries"))
    assert entries.fields == ALL
    assert (entries.grant_id, entries.time_constraint, entries.resources) == (None, None, None)
    assert OWNER.access is None
    assert OWNER.holder == "owner:owner"


def test_access_tells_the_agreed_terms() -> None:
    access = client().access
    assert access is not None
    assert (access.access_mode, access.expires_at) == ("continuous", None)


def test_persons_are_made_of_what_the_same_authority_reads_and_that_tells_of_some() -> None:
    raw = copy.deepcopy(JOURNAL_RAW)
    writer = {"type": "string", "x_pdpp_person": {"form": "address"}}
    raw["streams"][0]["schema"]["properties"]["writer"] = writer
    telling, people = parse_declaration(raw), other_source("persons")
    made = Connection("cin_p", "persons", people.source_id, None, ConnectionStatus.ACTIVE, 1, 1)
    declared = {"journal": telling, "persons": people}

    def made_of(*fields: str) -> dict[str, set[tuple[str, str]] | None]:
        one = grant(stream_grant(fields=fields or None))
        other = replace(
            grant(stream_grant(instance_ids=("cin_p",)), grant_id="grt_2"),
            source=SourceId(people.source_kind, people.source_id),
        )
        members = (member(one), replace(member(other), connector_key="persons"))
        token = resolved("mcp_package", *members)
        found = read_authority(token, (*CONNECTIONS, made), declared).sources
        return {
            each.connection_id: None if each.made_of is None else {s.order for s in each.made_of}
            for each in found
        }

    assert made_of("id", "writer") == {
        DIARY: None,
        LETTERS: None,
        "cin_p": {(DIARY, "entries"), (LETTERS, "entries")},
    }
    assert made_of("id", "title")["cin_p"] == set()


@pytest.mark.parametrize(
    ("limits", "conditions"),
    [
        ((), []),
        ((ContentLimit("folder", ("in",)),), [("folder", "eq", ("in",), False)]),
        ((ContentLimit("folder", ("in", "out")),), [("folder", "in", ("in", "out"), False)]),
        ((ContentLimit("receiver", ("A@b",)),), [("receiver", "eq", ("A@b",), True)]),
        ((ContentLimit("folder", ("in",)), ContentLimit("unread", (1,))), None),
        ((ContentLimit("folder", ("in", 7)),), None),
        ((ContentLimit("tags", ("in",)),), None),
        ((ContentLimit("subject", ("in",)),), None),
        ((ContentLimit("gone", ("in",)),), None),
    ],
)
def test_a_limit_holds_where_its_field_and_all_its_values_can_be_compared(
    limits: tuple[ContentLimit, ...], conditions: object
) -> None:
    grouped = replace(MAILS.aggregations, group_by=("thread", "folder", "unread"))
    found = content_conditions(limits, replace(MAILS, aggregations=grouped))
    told = None
    if found is not None:
        told = [(each.field, each.operator.value, each.values, each.caseless) for each in found]
    assert told == conditions


def test_what_cannot_be_read_stands_by_connection_stream_and_grant() -> None:
    ended = [
        member(grant(stream_grant(stream, instance_ids=(at,)), grant_id=number), "grant_expired")
        for number in ("grt_2", "grt_1")
        for stream in ("volumes", "entries")
        for at in (LETTERS, DIARY)
    ]
    entries = authority_of("mcp_package", *ended).unavailable
    places = [(each.connection_id, each.stream or "", each.grant_id or "") for each in entries]
    assert places == sorted(places)
    assert {grant_id for *_, grant_id in places} == {"grt_1", "grt_2"}
