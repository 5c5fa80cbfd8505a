"""Resolution against declarations: every owner row of the validation table, and the floor."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.oauth_errors import InvalidAuthorizationDetails
from personal_server.consent.offers import (
    EntryOffer,
    picker_details,
    picker_selections,
    resolve_entry,
    resolve_request,
)
from personal_server.consent.selections import parse_selections, parse_stored
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration

SAMPLE = Path(__file__).parents[1] / "samples" / "journal.json"
JOURNAL = "https://registry.pdpp.dev/connectors/journal"
RAW = json.loads(SAMPLE.read_bytes())
DECLARATION = parse_declaration(RAW)
HELD = [
    Connection("cin_b", "journal", JOURNAL, None, ConnectionStatus.PAUSED, 0, 0),
    Connection("cin_a", "journal", JOURNAL, None, ConnectionStatus.ACTIVE, 0, 0),
    Connection("cin_r", "journal", JOURNAL, None, ConnectionStatus.REVOKED, 0, 0),
    Connection("cin_d", "journal", JOURNAL, None, ConnectionStatus.DRAFT, 0, 0),
    Connection("cin_x", "other", "https://example.com/other", None, ConnectionStatus.ACTIVE, 0, 0),
]


def entry(**over: Any) -> dict[str, Any]:
    found = {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": JOURNAL},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "entries"}],
        **over,
    }
    return {name: value for name, value in found.items() if value is not None}


def offer(**over: Any) -> EntryOffer:
    selection = parse_selections([entry(**over)])[0]
    return resolve_entry(0, selection, {JOURNAL: DECLARATION}, sorted(HELD, key=str))


def stream(**over: Any) -> EntryOffer:
    return offer(streams=[{"name": "entries", **over}])


def reason(**over: Any) -> str | None:
    with pytest.raises(InvalidAuthorizationDetails) as caught:
        offer(**over)
    return caught.value.reason


def test_neither_fields_nor_view_means_every_property() -> None:
    assert stream().streams[0].fields == tuple(DECLARATION.streams["entries"].properties)


def test_fields_and_views_get_the_floor_in_schema_order() -> None:
    assert stream(fields=["title"]).streams[0].fields == ("id", "title", "created_at")
    assert stream(view="titles").streams[0].fields == ("id", "title", "created_at")


def test_a_preset_and_the_wildcard_are_expanded() -> None:
    preset = offer(streams=None, selection_preset="titles")
    assert [s.fields for s in preset.streams] == [("id", "title", "created_at")]
    wild = offer(streams=[{"name": "*"}])
    assert [s.name for s in wild.streams] == list(DECLARATION.streams)


def test_only_usable_connections_of_the_source_are_eligible() -> None:
    assert stream().streams[0].connections == ("cin_a", "cin_b")
    assert stream().streams[0].settled is False
    named = stream(instance_ids=["cin_b"]).streams[0]
    assert (named.connections, named.settled) == (("cin_b",), True)


@pytest.mark.parametrize(
    ("over", "expected"),
    [
        ({"source": {"id": "https://example.com/none"}}, "source_unknown"),
        ({"source": {"id": JOURNAL, "kind": "provider_native"}}, "source_kind_mismatch"),
        ({"streams": None, "selection_preset": "none"}, "unknown_preset"),
        ({"streams": [{"name": "none"}]}, "unknown_stream"),
        ({"streams": [{"name": "entries", "view": "none"}]}, "unknown_view"),
        ({"streams": [{"name": "entries", "fields": ["none"]}]}, "unknown_field"),
        ({"streams": [{"name": "entries", "instance_ids": ["cin_x"]}]}, "connection_unknown"),
        ({"streams": [{"name": "entries", "instance_ids": ["cin_r"]}]}, "connection_unknown"),
        ({"streams": [{"name": "entries", "instance_ids": ["cin_9"]}]}, "connection_unknown"),
        (
            {"streams": [{"name": "volumes", "time_range": {"since": "2026-01-01"}}]},
            "unsupported_selection",
        ),
    ],
)
def test_each_owner_row_has_its_reason(over: dict[str, Any], expected: str) -> None:
    assert reason(**over) == expected


def test_a_source_without_usable_connection_cannot_be_granted() -> None:
    selection = parse_selections([entry()])[0]
    with pytest.raises(InvalidAuthorizationDetails) as caught:
        resolve_entry(0, selection, {JOURNAL: DECLARATION}, HELD[2:])
    assert caught.value.reason == "no_connection"
    assert caught.value.for_client.code == "access_denied"


def test_an_optional_stream_that_fails_is_left_out_and_named() -> None:
    wanted = [{"name": "entries"}, {"name": "none", "necessity": "optional"}]
    found = offer(streams=wanted)
    assert [(u.name, u.reason) for u in found.unoffered] == [("none", "unknown_stream")]
    assert reason(streams=wanted[1:]) == "unknown_stream"


def test_a_failing_entry_of_several_is_shown_as_not_grantable() -> None:
    selections = parse_selections([entry(), entry(source={"id": "https://example.com/none"})])
    found = resolve_request(selections, {JOURNAL: DECLARATION}, HELD)
    assert isinstance(found[0], EntryOffer)
    assert not isinstance(found[1], EntryOffer)


def changed(stream_name: str, **over: Any) -> Any:
    raw = json.loads(SAMPLE.read_bytes())
    for declared in raw["streams"]:
        if declared["name"] == stream_name:
            declared.update(over)
    return parse_declaration(raw)


def test_a_stream_that_is_not_selectable_by_field_or_record_says_so() -> None:
    closed = changed("entries", selection={"fields": False, "resources": False})
    for member in ({"fields": ["title"]}, {"view": "titles"}, {"resources": ["e1"]}):
        wanted = parse_selections([entry(streams=[{"name": "entries", **member}])])[0]
        with pytest.raises(InvalidAuthorizationDetails) as caught:
            resolve_entry(0, wanted, {JOURNAL: closed}, HELD)
        assert caught.value.reason == "unsupported_selection"


@pytest.mark.parametrize(
    ("only", "refused"),
    [
        ({"nothing": ["a"]}, "unknown_field"),
        ({"id": ["e1"]}, "unsupported_selection"),
        ({"labels": ["wet"]}, "unsupported_selection"),
        ({"created_at": ["2026-01-01T00:00:00Z"]}, "unsupported_selection"),
        ({"pinned": ["yes"]}, "invalid_limit"),
        ({"pinned": [1]}, "invalid_limit"),
        ({"word_count": [True]}, "invalid_limit"),
        ({"volume_id": [7]}, "invalid_limit"),
    ],
)
def test_a_limit_is_by_a_field_and_values_that_records_are_found_by(
    only: dict[str, list[Any]], refused: str
) -> None:
    assert reason(streams=[{"name": "entries", "only": only}]) == refused


def test_the_text_of_a_value_is_the_value() -> None:
    only = {"pinned": ["true"], "word_count": ["-7", 8], "volume_id": ["<b>\u202e"]}
    wanted = parse_selections([entry(streams=[{"name": "entries", "only": only}])])[0]
    offer = resolve_entry(0, wanted, {JOURNAL: DECLARATION}, HELD).stream("entries")
    assert offer is not None
    found = {limit.field: limit.values for limit in offer.only}
    assert found == {"pinned": (True,), "word_count": (-7, 8), "volume_id": ("<b>\u202e",)}


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ('["a","1"]', True),
        ('["a", "1"]', False),
        ('["a"]', False),
        ("a", False),
        ('["a",1]', False),
        ('["a","x"]', False),
        ('["a","01"]', False),
        ("{}", False),
    ],
)
def test_a_compound_key_is_a_minified_array_of_typed_strings(key: str, good: bool) -> None:
    properties = {
        "volume": {"type": "string"},
        "number": {"type": "integer"},
    }
    schema = {"type": "object", "properties": properties, "required": ["volume", "number"]}
    stripped: dict[str, Any] = {"relationships": [], "query": {}, "views": []}
    raw = json.loads(SAMPLE.read_bytes())
    raw["streams"] = [s for s in raw["streams"] if s["name"] == "volumes"]
    raw["streams"][0] |= {"schema": schema, "primary_key": ["volume", "number"], **stripped}
    raw.pop("selection_presets")
    declaration = parse_declaration(raw)
    wanted = parse_selections([entry(streams=[{"name": "volumes", "resources": [key]}])])[0]
    if good:
        resolve_entry(0, wanted, {JOURNAL: declaration}, HELD)
    else:
        with pytest.raises(InvalidAuthorizationDetails) as caught:
            resolve_entry(0, wanted, {JOURNAL: declaration}, HELD)
        assert caught.value.reason == "invalid_resource"


def test_the_picker_offers_each_usable_source_with_every_stream_optional() -> None:
    other = replace(DECLARATION, source_id="https://example.com/other")
    unused = replace(DECLARATION, source_id="https://example.com/unused")
    known = {d.source_id: d for d in (DECLARATION, other, unused)}
    selections = picker_selections(known, HELD)
    assert [s.source_id for s in selections] == ["https://example.com/other", JOURNAL]
    assert parse_stored(picker_details(selections)) == selections
    found = resolve_entry(1, selections[1], known, HELD)
    assert all(not s.required for s in found.streams)
