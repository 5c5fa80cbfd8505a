from typing import Any

import orjson
import pytest

from personal_server.domain.authority import ReadAuthority
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration
from personal_server.domain.grant import LimitValue
from personal_server.enforcement.authority import read_authority
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    BANK,
    CONNECTIONS,
    DIARY,
    LETTERS,
    NARROW,
    OWNER,
    authority_of,
    client,
    connection,
    furnished,
    grant,
    member,
    resolved,
    stream_grant,
)


def row(door: Door, query: str, authority: ReadAuthority) -> dict[str, Any]:
    reply = door.get(f"/v1/schema?{query}", authority)
    return reply.body["connectors"][0]["streams"][0]


def test_a_client_sees_its_grant_and_its_terms(door: Door) -> None:
    body = door.get("/v1/schema", client()).body
    assert body["bearer"] == {
        "token_kind": "client",
        "scope": "grant",
        "grant_id": "grt_1",
        "client_id": "planner",
        "expires_at": None,
        "access_mode": "continuous",
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "manage_url": "/owner/access/grt_1",
    }
    assert (body["connector_count"], body["stream_count"]) == (1, 1)
    assert body["unavailable_connections"] == []
    assert "detail" not in body
    assert "grant_id" not in body["connectors"][0]


def test_the_owner_sees_every_source(door: Door) -> None:
    body = door.get("/v1/schema", OWNER).body
    assert body["bearer"] == {"token_kind": "owner", "scope": "owner", "client_id": "planner"}
    assert [c["connector_key"] for c in body["connectors"]] == ["banking", "journal"]
    assert body["stream_count"] == 6


def test_fields_outside_the_grant_are_listed_and_marked(door: Door) -> None:
    fields = row(door, "", client(stream_grant(fields=NARROW)))["field_capabilities"]
    assert fields["body"]["granted"] is False
    refused = {"declared": True, "usable": False, "reason": "field_not_granted"}
    assert fields["body"]["lexical_search"] == refused
    assert fields["body"]["exact_filter"] == refused
    assert fields["labels"]["exact_filter"] == {"declared": False, "usable": False}
    assert fields["title"]["granted"] is True
    assert list(fields["created_at"]["aggregation"]) == [
        "count_distinct",
        "group_by",
        "group_by_time",
        "max",
        "min",
        "sum",
    ]
    assert fields["created_at"]["range_filter"]["operators"] == ["gte", "gt", "lte", "lt"]


def test_semantic_search_is_declared_but_not_available(door: Door) -> None:
    fields = row(door, "", client())["field_capabilities"]
    assert fields["body"]["semantic_search"] == {
        "declared": True,
        "usable": False,
        "reason": "mode_not_available",
    }


def test_what_a_row_offers_is_cut_to_the_grant(door: Door) -> None:
    found = row(door, "", client(stream_grant(fields=NARROW)))
    assert found["search"] == {
        "modes": ["lexical"],
        "lexical_fields": ["title"],
        "semantic_fields": [],
    }
    assert found["sort"] == {"fields": ["created_at"], "default": "-created_at"}
    assert found["aggregate"] == {"metrics": ["count", "max", "min"]}
    assert found["views"] == [
        {"id": "titles", "label": "Titles only", "fields": ["id", "title", "created_at"]}
    ]
    assert found["constraints"] == {"time_constraint": None, "resource_count": None}


def test_constraints_are_stated(door: Door) -> None:
    authority = client(stream_grant(since="2026-01-01T00:00:00Z", resources=("e1", "e2")))
    assert row(door, "", authority)["constraints"] == {
        "time_constraint": {"field": "created_at", "since": "2026-01-01T00:00:00Z"},
        "resource_count": 2,
    }


def test_limits_by_what_was_not_granted_are_not_named(door: Door) -> None:
    only: dict[str, tuple[LimitValue, ...]] = {"pinned": (True,), "volume_id": ("secret", "v1")}
    both = row(door, "", client(stream_grant(only=only)))["constraints"]
    assert both["only"] == [
        {"field": "pinned", "value_count": 1},
        {"field": "volume_id", "value_count": 2},
    ]
    assert "further_limits" not in both
    hidden = row(door, "", client(stream_grant(fields=(*NARROW, "pinned"), only=only)))
    assert hidden["constraints"]["only"] == [{"field": "pinned", "value_count": 1}]
    assert hidden["constraints"]["further_limits"] is True
    compact = door.get("/v1/schema?view=compact", client(stream_grant(fields=NARROW, only=only)))
    (shown,) = compact.body["connectors"][0]["streams"]
    assert shown["constraints"] == {
        "time_constraint": None,
        "resource_count": None,
        "further_limits": True,
    }
    assert shown["visible"]["records"] == 1
    assert b"secret" not in compact.text


def test_relations_say_whether_they_can_be_followed(door: Door) -> None:
    authority = client(stream_grant(fields=NARROW), stream_grant("attachments"))
    entries = door.get("/v1/schema?stream=entries", authority).body["connectors"][0]["streams"][0]
    found = {e["name"]: e for e in entries["expand_capabilities"]}
    assert found["volume"]["reason"] == "related_stream_not_granted"
    assert found["attachments"]["usable"] is True
    assert found["attachments"]["max_limit"] == 50
    assert "max_limit" not in found["volume"]
    hidden_key = client(stream_grant(fields=NARROW), stream_grant("volumes"))
    volume = row(door, "stream=entries", hidden_key)["expand_capabilities"][0]
    assert (volume["granted"], volume["usable"]) == (True, False)
    assert volume["reason"] == "field_not_granted"


@pytest.mark.parametrize(
    ("field", "flags"),
    [
        ("id", "t=string,eq,f=text"),
        ("title", "t=text,role=primary-title,eq,f=text,lex"),
        ("labels", "t=array,a=group_by"),
        ("word_count", "t=integer,eq,f=set,r=gte|lte,a=group_by|sum"),
        (
            "created_at",
            "t=timestamp,role=event-time,eq,f=set,r=gte|gt|lte|lt,a=group_by_time|max|min",
        ),
        ("body", "t=text,eq,f=text,lex,sem=unusable:mode_not_available"),
    ],
)
def test_compact_flags_say_the_same_in_one_string(door: Door, field: str, flags: str) -> None:
    assert row(door, "view=compact", client())["field_capabilities"][field] == flags


def test_beside_a_hidden_field_only_type_and_role_stand(door: Door) -> None:
    fields = row(door, "view=compact", client(stream_grant(fields=NARROW)))["field_capabilities"]
    assert fields["body"] == "t=text,g=false"


def test_compact_rows_drop_what_only_full_rows_have(door: Door) -> None:
    found = row(door, "view=compact", client())
    dropped = {"object", "schema", "relationships", "query", "selection", "semantics", "display"}
    assert not dropped & set(found)
    assert "freshness" not in found
    assert "constraints" not in found
    assert found["display_name"] == "Your entries"
    assert all("child_parent_key_field" not in e for e in found["expand_capabilities"])
    scoped = row(door, "view=compact&stream=entries", client())
    assert scoped["freshness"]["captured_at"] == "2026-05-01T00:00:00.000Z"


def test_the_most_frequent_connections_are_lifted(door: Door) -> None:
    authority = client(
        stream_grant(),
        stream_grant("volumes"),
        stream_grant("attachments", (DIARY,)),
    )
    connector = door.get("/v1/schema?view=compact", authority).body["connectors"][0]
    assert [c["connection_id"] for c in connector["granted_connections"]] == [DIARY, LETTERS]
    rows = {r["name"]: r.get("granted_connections") for r in connector["streams"]}
    assert rows["entries"] is None
    assert rows["volumes"] is None
    assert rows["attachments"] == [{"connection_id": DIARY, "display_name": "Paper diary"}]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("view=x", (400, "invalid_request", "view")),
        ("detail=full", (400, "invalid_request", "detail")),
        ("detail=full&stream=entries&view=compact", (400, "invalid_request", "detail")),
        ("connection_id=cin_nobody0000000000", (404, "connection_not_found", "connection_id")),
        ("connector_id=nothing", (404, "connection_not_found", "connector_id")),
        ("limit=3", (400, "invalid_request", "limit")),
    ],
)
def test_bad_schema_requests_name_the_parameter(
    door: Door, query: str, expected: tuple[object, ...]
) -> None:
    reply = door.get(f"/v1/schema?{query}", client())
    assert (reply.status, reply.code, reply.error["param"]) == expected


def test_full_detail_needs_one_connection(door: Door) -> None:
    reply = door.get("/v1/schema?detail=full&stream=entries", client())
    assert (reply.status, reply.code) == (409, "ambiguous_schema_detail")
    assert len(reply.error["available_connections"]) == 2
    one = door.get(f"/v1/schema?detail=full&stream=entries&connection_id={DIARY}", client())
    assert one.body["connectors"][0]["streams"][0]["object"] == "stream_metadata"
    missing = door.get("/v1/schema?detail=full", client())
    assert missing.error["retry_with"] == "stream"


def test_a_stream_without_rows_gives_an_empty_schema(door: Door) -> None:
    body = door.get("/v1/schema?stream=nowhere", client()).body
    assert (body["connectors"], body["stream_count"]) == ([], 0)


def test_a_compact_schema_stays_within_its_budget() -> None:
    raw: dict[str, Any] = {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": "https://connectors.example/wide"},
        "connector_key": "wide",
        "declaration_version": "1",
        "display": {"name": "Wide"},
        "streams": [
            {
                "name": f"stream_{n}",
                "semantics": "mutable_state",
                "display": {"label": "x"},
                "primary_key": ["id"],
                "selection": {"fields": True},
                "schema": {
                    "type": "object",
                    "properties": {"id": {"type": "string"}}
                    | {f"property_{i:03}": {"type": "string"} for i in range(60)},
                    "required": ["id"],
                },
            }
            for n in range(200)
        ],
    }
    door = Door(furnished())
    wide = parse_declaration(raw)

    authority = read_authority(
        resolved("owner"),
        [Connection("cin_wide", "wide", wide.source_id, None, ConnectionStatus.ACTIVE, 1, 1)],
        {"wide": wide},
    )
    reply = door.get("/v1/schema?view=compact", authority)
    assert len(reply.text) <= 256 * 1024
    rows = reply.body["connectors"][0]["streams"]
    assert len(rows) == 200
    reduced = [r.get("reduced", False) for r in rows]
    assert reduced == sorted(reduced)
    assert "field_capabilities" in rows[0]
    assert "field_capabilities" not in rows[-1]
    assert reply.warnings == ["partial_results"]


def test_a_scoped_compact_row_of_thirty_fields_is_small(door: Door) -> None:
    found = row(door, "view=compact&stream=entries", client())
    per_field = len(orjson.dumps(found["field_capabilities"])) / len(found["field_capabilities"])
    rest = len(orjson.dumps(found)) - len(orjson.dumps(found["field_capabilities"]))
    assert rest + 30 * per_field < 6_000


def test_stream_metadata_is_one_full_row(door: Door) -> None:
    body = door.get("/v1/streams/entries", client()).body
    assert body["object"] == "stream_metadata"
    assert [c["connection_id"] for c in body["granted_connections"]] == [DIARY, LETTERS]
    assert door.get("/v1/streams/volumes", client()).code == "grant_stream_not_allowed"
    assert door.get("/v1/streams/nowhere", OWNER).code == "not_found"
    assert door.get("/v1/streams/entries", OWNER).code == "ambiguous_connection"


def test_connectors_list_their_streams_and_what_they_offer(door: Door) -> None:
    data = door.get("/v1/connectors", OWNER).data
    assert [c["connector_key"] for c in data] == ["banking", "journal"]
    volumes = data[1]["streams"][2]
    assert volumes["name"] == "volumes"
    assert volumes["capabilities"] == {
        "records": True,
        "records_url": "/v1/streams/volumes/records",
        "stream_metadata": True,
        "metadata_url": "/v1/streams/volumes",
        "aggregate": True,
        "aggregate_url": "/v1/streams/volumes/aggregate",
        "exact_filters": True,
        "range_filters": False,
        "expand": False,
        "changes_since": True,
    }
    assert data[1]["streams"][1]["record_count"] == 5
    one = door.get(f"/v1/connectors?connection_id={BANK}", OWNER).data
    assert [c["connection_id"] for c in one[0]["granted_connections"]] == [BANK]


def test_unavailable_connections_are_named_with_a_reason() -> None:
    door = Door(furnished())
    connections = (*CONNECTIONS[:1], connection(LETTERS, status=ConnectionStatus.REVOKED))
    authority = authority_of(
        "client",
        member(grant(stream_grant(instance_ids=(DIARY, LETTERS, "cin_gone000000000000")))),
        connections=connections,
    )
    expected = [
        ("cin_gone000000000000", "connection_deleted", "choose_another"),
        (LETTERS, "connection_revoked", "choose_another"),
    ]
    body = door.get("/v1/schema", authority).body
    shown = [
        (u["connection_id"], u["reason"], u["next_step"]) for u in body["unavailable_connections"]
    ]
    assert shown == expected
    for target in ("/v1/streams", "/v1/connectors", "/v1/streams/entries/records"):
        assert len(door.get(target, authority).body["meta"]["unavailable_connections"]) == 2
    one = door.get(f"/v1/streams/entries/records?connection_id={DIARY}", authority)
    assert "unavailable_connections" not in one.body["meta"]


def test_fields_left_out_are_counted(door: Door) -> None:
    found = row(door, "view=compact", client(stream_grant(fields=NARROW)))
    hidden = [each for each in found["field_capabilities"].values() if "g=false" in each]
    assert found["fields_left_out"] == len(hidden) > 0
    assert "fields_left_out" not in row(door, "view=compact", client())
