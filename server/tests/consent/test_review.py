"""The artifact's revision moves with everything that a decision fixes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from personal_server.consent.choices import Choices
from personal_server.consent.offers import resolve_request
from personal_server.consent.review import (
    ClientFacts,
    RequestFacts,
    build_artifact,
    canonical,
    facts_text,
    revision_of,
)
from personal_server.consent.selections import parse_selections
from personal_server.consent.terms import narrow
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration

SAMPLE = Path(__file__).parents[1] / "samples" / "journal.json"
JOURNAL = "https://registry.pdpp.dev/connectors/journal"
DECLARATION = parse_declaration(SAMPLE.read_bytes())
HELD = [Connection("cin_a", "journal", JOURNAL, None, ConnectionStatus.ACTIVE, 0, 0)]
REQUEST = RequestFacts("ar_1", "https://me.example", "own_1", "https://me.example/mcp")
CLIENT = ClientFacts("cli_1", "dynamic", {"name": "Notes"}, "https://app.example/cb", "none")
ENTRY = {
    "type": "https://pdpp.dev/data-access",
    "source": {"id": JOURNAL},
    "purpose_code": "https://pdpp.dev/purpose/agent_context",
    "access_mode": "continuous",
    "client_claims": {"commitments": ["No sharing"]},
    "streams": [{"name": "entries"}],
}


def artifact(
    request: RequestFacts = REQUEST,
    client: ClientFacts = CLIENT,
    choices: Choices | None = None,
    **over: Any,
) -> dict[str, object]:
    offers = resolve_request(parse_selections([{**ENTRY, **over}]), {JOURNAL: DECLARATION}, HELD)
    return build_artifact(request, client, narrow(offers, choices or Choices(), 10**18))


def test_it_holds_what_the_contract_lists() -> None:
    found = artifact()
    assert found.keys() == {
        "version",
        "request",
        "origin",
        "subject",
        "client",
        "resource",
        "access_mode",
        "expires_at",
        "sources",
        "ai_training_consented",
        "ends",
    }
    source = json.loads(canonical(found))["sources"][0]
    assert source["client_claims"] == {"commitments": ["No sharing"]}
    assert source["source_declaration"]["digest"] == DECLARATION.digest
    assert source["streams"][0]["instance_ids"] == ["cin_a"]
    assert revision_of(found).startswith("rv1:sha256:")


@pytest.mark.parametrize(
    "changed",
    [
        {"request": replace(REQUEST, request_id="ar_2")},
        {"request": replace(REQUEST, resource="https://me.example")},
        {"client": replace(CLIENT, redirect_uri="https://app.example/other")},
        {"client": replace(CLIENT, auth_method="private_key_jwt")},
        {"choices": Choices(expiry="30d")},
        {"choices": Choices(mode="single_use")},
        {"choices": Choices(ends=("grt_1",))},
        {"purpose_description": "To answer"},
        {"streams": [{"name": "entries", "fields": ["title"]}]},
        {"streams": [{"name": "entries", "time_range": {"since": "2026-01-01"}}]},
        {"retention": {"max_duration": "P30D", "on_expiry": "delete"}},
        {"client_claims": {"commitments": ["Sharing"]}},
    ],
)
def test_each_part_moves_the_revision(changed: dict[str, Any]) -> None:
    assert revision_of(artifact(**changed)) != revision_of(artifact())


def test_equal_decisions_have_equal_revisions() -> None:
    assert revision_of(artifact()) == revision_of(artifact())
    offset = artifact(
        streams=[{"name": "entries", "time_range": {"since": "2026-01-01T01:00:00+01:00"}}]
    )
    utc = artifact(streams=[{"name": "entries", "time_range": {"since": "2026-01-01"}}])
    assert revision_of(offset) == revision_of(utc)


def test_training_is_consented_to_by_approving_a_training_purpose() -> None:
    purpose = "https://pdpp.dev/purpose/ai_training"
    assert artifact(purpose_code=purpose)["ai_training_consented"] is True
    assert artifact()["ai_training_consented"] is False


def test_facts_move_with_client_declaration_and_connections_only() -> None:
    offers = resolve_request(parse_selections([ENTRY]), {JOURNAL: DECLARATION}, HELD)
    base = facts_text(CLIENT, (), offers)
    more = [*HELD, replace(HELD[0], connection_id="cin_b")]
    wider = resolve_request(parse_selections([ENTRY]), {JOURNAL: DECLARATION}, more)
    newer = replace(DECLARATION, digest="sha256:00")
    changed = resolve_request(parse_selections([ENTRY]), {JOURNAL: newer}, HELD)
    assert len({base, facts_text(CLIENT, (), wider), facts_text(CLIENT, (), changed)}) == 3
    assert facts_text(replace(CLIENT, redirect_uri="x"), (), offers) != base
    assert facts_text(CLIENT, ("https://app.example/cb",), offers) != base
