"""What the OAuth endpoints of a whole server answer is what its OpenAPI document says."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from server.tests.app.whole import JSON, Whole, whole
from server.tests.console.browsing import Page
from server.tests.console.household import mail_request

METADATA = "/.well-known/oauth-authorization-server"


@pytest.fixture
def house(tmp_path: Path) -> Generator[Whole]:
    with whole(tmp_path) as made:
        yield made


def test_each_endpoint_answers_as_described(house: Whole) -> None:
    document = house.body(house.client.get("/openapi.json", accept=JSON))

    def check(method: str, path: str, page: Page) -> dict[str, Any]:
        return checked(document, method, path, page)

    def posted(path: str, **form: str) -> dict[str, Any]:
        page = house.client.post(path, list(form.items()), accept=JSON)
        return check("post", path, page)

    client = {"client_id": "pdpp-cli"}
    check("get", METADATA, house.client.get(METADATA, accept=JSON))
    posted("/oauth/device_authorization", **client)
    posted("/oauth/token", grant_type="refresh_token", refresh_token="wrong", **client)
    posted("/oauth/par", **client)
    posted("/introspect", token="wrong")
    tokens = house.connect(mail_request())
    refreshed = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    token = posted("/oauth/token", **refreshed, **client)["access_token"]
    access = check("get", "/grants/current", house.call("/grants/current", token))
    ending = f"/grants/{access['grant_id']}/revoke"
    check("post", "/grants/{grant_id}/revoke", house.call(ending, token, "POST"))
    check("post", "/grants/{grant_id}/revoke", house.call(ending, None, "POST"))
    check("get", "/grants/current", house.call("/grants/current", "wrong"))


def checked(document: Any, method: str, path: str, page: Page) -> dict[str, Any]:
    """The body of an answer that the document describes."""
    answers = document["paths"][path][method]["responses"]
    assert str(page.status) in answers, page.text
    schema = answers[str(page.status)]["content"][JSON]["schema"]
    judge = jsonschema_rs.Draft202012Validator(
        {**schema, "components": document["components"]}, validate_formats=True
    )
    body = json.loads(page.text)
    assert [error.message for error in judge.iter_errors(body)] == []
    return body
