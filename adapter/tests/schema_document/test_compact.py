from typing import Any

from pdpp_mcp_server.schema_document import (
    compact_catalog,
    flags_of,
    legend_for,
    scoped_to,
    without_alias,
)

Json = dict[str, Any]
mine: list[Json] = [{"connection_id": "cin_a", "display_name": "Mine"}]
both: list[Json] = [*mine, {"connection_id": "cin_b"}]


def catalog(*rows: Json) -> Json:
    return {"object": "schema", "connectors": [{"connector_key": "k", "streams": list(rows)}]}


def test_the_most_frequent_set_of_connections_is_lifted() -> None:
    rows = [
        {"name": "a", "granted_connections": both},
        {"name": "b", "granted_connections": both},
        {"name": "c", "granted_connections": mine},
    ]
    connector = compact_catalog(catalog(*rows), scoped=False)["connectors"][0]
    assert connector["granted_connections"] == both
    assert ["granted_connections" in row for row in connector["streams"]] == [False, False, True]


def test_the_retired_spelling_is_never_shown() -> None:
    row = {"name": "a", "granted_connections": [{"connector_instance_id": "cin_a"}]}
    shown = without_alias({**catalog(row), "connector_instance_id": "cin_x"})
    assert "connector_instance_id" not in str(shown)
    granted = shown["connectors"][0]["streams"][0]["granted_connections"]
    assert granted == [{"connection_id": "cin_a"}]


def test_rows_of_other_streams_and_connections_are_dropped() -> None:
    rows = [{"name": "a", "granted_connections": both}, {"name": "b", "granted_connections": mine}]
    whole = catalog(*rows)
    assert scoped_to(whole, None, None) is whole
    found = scoped_to(whole, "a", "cin_a")["connectors"][0]["streams"]
    assert found == [{"name": "a", "granted_connections": mine}]
    assert scoped_to(whole, "b", "cin_b")["connectors"] == []


def test_flags_follow_the_grammar() -> None:
    usable = {"declared": True, "usable": True}
    facts = {
        "schema": {"type": ["string", "null"]},
        "role": "a;b c",
        "exact_filter": usable,
        "range_filter": {**usable, "operators": ["lt", "gte"]},
        "lexical_search": usable,
        "semantic_search": {"declared": True, "usable": False, "reason": "mode_not_available"},
        "aggregation": {"sum": usable, "max": usable, "min": {"usable": False}},
    }
    assert flags_of(facts, {}) == (
        "t=string|null,role=a_b_c,eq,r=gte|lt,lex,sem=unusable:mode_not_available,a=max|sum"
    )
    assert flags_of({**facts, "granted": False}, {}) == "t=string|null,role=a_b_c,g=false"
    assert flags_of({}, {}) == "declared"
    assert flags_of("t=x,eq", {}) == "t=x,eq"
    assert legend_for(["sparkle,eq"])["sparkle"] == "as stated by the server"
