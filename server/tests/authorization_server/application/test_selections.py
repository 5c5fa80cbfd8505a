"""The shape of a selection, judged alike wherever a client may send one."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from personal_server.storage.authorization_rows import RequestRow
from server.tests.authorization_server.conftest import NOTES, entry

pytestmark = pytest.mark.anyio
TRAINING = "https://pdpp.dev/purpose/ai_training"
ROWS: list[tuple[str, str | None, list[dict[str, object]]]] = [
    ("malformed", "/0/streams", [entry(streams=[])]),
    ("malformed", None, [entry()] * 17),
    ("unsupported_type", "/0/type", [entry(type="https://other.example/type")]),
    ("not_a_uri", "/0/source/id", [entry("journal")]),
    ("not_a_uri", "/0/purpose_code", [entry(purpose_code="assist")]),
    ("exclusive_members", "/0", [entry(selection_preset="all")]),
    ("wildcard_not_alone", "/0/streams", [entry(streams=[{"name": "*"}, {"name": "entries"}])]),
    ("duplicate_stream", "/0/streams", [entry(streams=[{"name": "entries"}] * 2)]),
    (
        "invalid_time_range",
        "/0/streams/0/time_range",
        [entry(streams=[{"name": "entries", "time_range": {"since": "2026-01-01T00:00"}}])],
    ),
    (
        "invalid_retention",
        "/0/retention/max_duration",
        [entry(retention={"max_duration": "P30", "on_expiry": "delete"})],
    ),
    ("mixed_access_mode", None, [entry(), entry(NOTES, access_mode="single_use")]),
    ("duplicate_source", None, [entry(), entry()]),
    ("ai_training_not_alone", None, [entry(), entry(NOTES, purpose_code=TRAINING)]),
]
WAYS = ("/oauth/authorize", "/oauth/par", "/oauth/device_authorization")


async def refusal(app: Any, way: str, details: str) -> dict[str, Any]:
    """The error of a request with these details; the mark and place of a redirect are split."""
    if way != "/oauth/authorize":
        form = app.parameters(authorization_details=details)
        if way == "/oauth/device_authorization":
            form = {"client_id": "pdpp-cli", "authorization_details": details}
        answer = await app.post(way, **form)
        assert answer.status_code == 400
        return answer.json()
    answer = await app.authorize(authorization_details=details)
    assert answer.status_code == 303
    query = {n: v[0] for n, v in parse_qs(urlsplit(str(answer.headers["location"])).query).items()}
    reason, *param = query["error_description"].split(": ")[0].split(" ")
    return {"error": query["error"], "reason": reason, "param": param[0] if param else None}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("reason", "param", "details"), ROWS)
async def test_every_fault_of_shape_has_its_reason_and_place(
    app: Any, way: str, reason: str, param: str | None, details: list[dict[str, object]]
) -> None:
    found = await refusal(app, way, json.dumps(details))
    expected = ("invalid_authorization_details", reason, param)
    assert (found["error"], found["reason"], found.get("param")) == expected
    assert app.server.rows(RequestRow) == []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("details", ["[", "{}", "null", "[1]", "x" * 60_000, "[" * 20_000])
async def test_what_is_no_list_of_objects_is_malformed(app: Any, way: str, details: str) -> None:
    found = await refusal(app, way, details)
    assert (found["error"], found["reason"]) == ("invalid_authorization_details", "malformed")
    assert app.server.rows(RequestRow) == []


@pytest.mark.parametrize("way", WAYS[1:])
async def test_a_selection_has_at_most_sixty_four_kibibytes(app: Any, way: str) -> None:
    for spaces, status in ((60_000, {200, 201}), (66_000, {400})):
        details = json.dumps([entry()]) + " " * spaces
        form = app.parameters(client_id="pdpp-cli", redirect_uri="http://127.0.0.1/callback")
        answer = await app.post(way, **form, authorization_details=details)
        assert answer.status_code in status
