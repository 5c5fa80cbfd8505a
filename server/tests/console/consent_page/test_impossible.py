"""A request that cannot be granted: said in words to the owner, one button back to the app."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from personal_server.storage.authorization_rows import AuditRow, CodeRow, GrantRow, RequestRow
from server.tests.console.browsing import Browser, press
from server.tests.console.household import Household, mail_request

SAMPLE = Path(__file__).parents[2] / "samples" / "journal.json"
JOURNAL = "https://registry.pdpp.dev/connectors/journal"
Details = dict[str, Any]
TOLD: list[tuple[str, Details]] = [
    ("source_kind_mismatch", {"source": {"id": JOURNAL, "kind": "provider_native"}}),
    ("unknown_preset", {"streams": None, "selection_preset": "none"}),
    ("unknown_stream", {"streams": [{"name": "none"}]}),
    ("unknown_view", {"streams": [{"name": "entries", "view": "none"}]}),
    ("unknown_field", {"streams": [{"name": "entries", "fields": ["none"]}]}),
    (
        "unsupported_selection",
        {"streams": [{"name": "volumes", "time_range": {"since": "2026-01-01"}}]},
    ),
    ("invalid_limit", {"streams": [{"name": "entries", "only": {"pinned": ["yes"]}}]}),
    ("invalid_resource", {"streams": [{"name": "volumes", "resources": ["one"]}]}),
]
HIDDEN: list[Details] = [
    {"source": {"id": "https://registry.pdpp.dev/connectors/nobody-has-this"}},
    {"source": {"id": "https://registry.pdpp.dev/connectors/empty"}},
    {"streams": [{"name": "entries", "instance_ids": ["cin_none"]}]},
    {"streams": [{"name": "entries", "instance_ids": ["cin_home"]}]},
]


@pytest.fixture
def house() -> Household:
    """A household with a journal whose volumes are counted, and a source without connection."""
    made = Household()
    raw = json.loads(SAMPLE.read_text(encoding="utf-8"))
    (volumes,) = [stream for stream in raw["streams"] if stream["name"] == "volumes"]
    volumes["schema"]["properties"]["id"] = {"type": "integer"}
    raw["streams"] = [s for s in raw["streams"] if s["name"] in ("entries", "volumes")]
    for stream in raw["streams"]:
        stream.pop("relationships", None)
        stream["query"].pop("expand", None)
    made.declare(raw)
    made.connect("cin_journal", "journal", JOURNAL, "My journal")
    empty = "https://registry.pdpp.dev/connectors/empty"
    made.declare({**raw, "source": {**raw["source"], "id": empty}, "connector_key": "empty"})
    return made


def wanted(**over: Any) -> list[Details]:
    entry = {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": JOURNAL},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "entries"}],
        **over,
    }
    return [{name: value for name, value in entry.items() if value is not None}]


def sent_back(house: Household, browser: Browser, details: list[Details]) -> dict[str, str]:
    """What the app hears when the owner presses the only button."""
    path = house.ask(details)
    page = browser.get(path)
    assert page.status == 200
    assert 'value="approve"' not in page.text
    assert page.text.count('name="action"') == 1
    gone = press(browser, page, path, "deny")
    assert gone.status == 303
    assert (house.rows(GrantRow), house.rows(CodeRow)) == ([], [])
    query = parse_qs(urlsplit(gone.headers["location"]).query)
    assert {len(values) for values in query.values()} == {1}
    return {name: values[0] for name, values in query.items()}


def test_what_can_be_asked_for_is_no_refusal(house: Household, browser: Browser) -> None:
    page = browser.get(house.ask(wanted()))
    assert 'value="approve"' in page.text


@pytest.mark.parametrize(("reason", "over"), TOLD)
def test_a_fault_of_the_request_is_told_with_its_reason(
    house: Household, browser: Browser, reason: str, over: Details
) -> None:
    answer = sent_back(house, browser, wanted(**over))
    assert answer["error"] == "invalid_authorization_details"
    assert answer["error_description"].startswith(f"{reason} /0/")
    assert (answer["state"], answer["iss"]) == ("state-of-the-app", house.origin)


def test_which_sources_a_person_keeps_is_told_to_nobody(house: Household, browser: Browser) -> None:
    denied = house.ask(wanted())
    refused = press(browser, browser.get(denied), denied, "deny")
    answers = [sent_back(house, browser, wanted(**over)) for over in HIDDEN]
    for answer in answers:
        assert answer["error"] == "access_denied"
        assert not answer["error_description"].startswith(("source", "no_", "connection"))
    assert len({answer["error_description"] for answer in answers}) == 1
    assert "error=access_denied" in refused.headers["location"]


@pytest.mark.parametrize("over", [over for _, over in TOLD] + HIDDEN)
def test_before_sign_in_every_request_looks_alike(house: Household, over: Details) -> None:
    stranger = house.browser()
    pages = [stranger.get(house.ask(details)) for details in (wanted(), wanted(**over))]
    assert [page.status for page in pages] == [303, 303]
    assert pages[0].text == pages[1].text
    told = [stranger.get(path, accept="application/json") for path in ("/consent/ar_0", "/device")]
    assert [(page.status, json.loads(page.text)["error"]["code"]) for page in told] == [
        (401, "owner_session_required")
    ] * 2


@pytest.mark.parametrize("path", ["/consent", "/device"])
@pytest.mark.parametrize(
    "headers", [{"origin": "null"}, {"origin": "https://evil.example"}, {"origin": ""}]
)
def test_a_form_from_another_page_does_nothing(
    house: Household, browser: Browser, path: str, headers: dict[str, str]
) -> None:
    asked = house.ask(mail_request())
    fields = browser.get(asked).form(asked) if path == "/consent" else browser.get(path).form(path)
    where = asked if path == "/consent" else path
    for sent in ([*fields, ("action", "approve")], [("action", "approve")]):
        forged = browser.post(where, sent, **headers)
        assert (forged.status, forged.error) == (403, "csrf_failed")
    assert house.rows(RequestRow)[0].status == "pending"
    assert "request.approved" not in {row.event for row in house.rows(AuditRow)}
