"""Every parameter of every endpoint: missing, empty, given twice, oversized, of no known form."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest

from personal_server.consent.credentials import secret_hash
from personal_server.storage.authorization_rows import (
    CodeRow,
    GrantRow,
    IntrospectionClientRow,
    RequestRow,
    TokenRow,
)
from server.tests.authorization_server.application.endpoints import (
    ENDPOINTS,
    OK,
    WRONG,
    Endpoint,
    Form,
    Parameter,
    good_form,
)

pytestmark = pytest.mark.anyio
FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
CALLER = ("rs", "pdpp_is_rs")
LARGE = 140_000
LONG = 20_000
EACH = [
    pytest.param(endpoint, parameter, id=f"{endpoint.name}-{parameter.name}")
    for endpoint in ENDPOINTS
    for parameter in endpoint.parameters
]
POSTED = [endpoint for endpoint in ENDPOINTS if endpoint.name != "authorize"]


@pytest.fixture
def app(app: Any) -> Any:
    row = IntrospectionClientRow(
        caller_id=CALLER[0], secret_hash=secret_hash(CALLER[1]), name="rs", created_at_ns=0
    )
    with app.server.store.write() as writer:
        writer.insert(row)
    return app


async def send(app: Any, endpoint: Endpoint, pairs: list[tuple[str, str]]) -> httpx2.Response:
    if endpoint.name == "authorize":
        return await app.http.get(f"{endpoint.path}?{urlencode(pairs)}", headers=FORM)
    auth = CALLER if endpoint.name == "introspect" else None
    content = urlencode(pairs).encode()
    return await app.http.post(endpoint.path, content=content, headers=FORM, auth=auth)


def error_of(answer: httpx2.Response) -> tuple[str, str | None]:
    """Code and parameter of an error, from whichever face it has; no word of it is a secret."""
    assert "pdpp_" not in answer.text.replace("pdpp_is_rs", "")
    if answer.status_code == 303:
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        return query.get("error", [OK])[0], None
    if answer.status_code < 300:
        return OK, None
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    if isinstance(body["error"], dict):
        return body["error"]["code"], body["error"].get("param")
    assert body["request_id"] == answer.headers["request-id"]
    assert body["error_description"]
    return body["error"], body.get("param")


def held(app: Any) -> list[Any]:
    """What exists of requests, codes, grants and tokens."""
    tables = (RequestRow, CodeRow, GrantRow, TokenRow)
    return [len(app.server.rows(table)) for table in tables]


async def refused(
    app: Any, endpoint: Endpoint, pairs: list[tuple[str, str]], error: str
) -> str | None:
    """Send a call that has to fail so; nothing new exists after it.  The parameter it names."""
    before = held(app)
    answer = await send(app, endpoint, pairs)
    found, param = error_of(answer)
    assert (found, answer.status_code in (303, 400)) == (error, True)
    assert held(app) == before
    return param


async def accepted(app: Any, endpoint: Endpoint, pairs: list[tuple[str, str]]) -> None:
    answer = await send(app, endpoint, pairs)
    assert error_of_good(answer) == (endpoint.ok, OK)


def error_of_good(answer: httpx2.Response) -> tuple[int, str]:
    query = parse_qs(urlsplit(answer.headers.get("location", "")).query)
    return answer.status_code, query.get("error", [OK])[0]


def without(form: Form, name: str) -> list[tuple[str, str]]:
    return [(n, v) for n, v in form.items() if n != name]


@pytest.mark.parametrize(("endpoint", "parameter"), EACH)
async def test_missing_or_empty(app: Any, endpoint: Endpoint, parameter: Parameter) -> None:
    form = await good_form(app, endpoint)
    absent, empty = (
        without(form, parameter.name),
        [*without(form, parameter.name), (parameter.name, "")],
    )
    if parameter.missing == OK:
        await accepted(app, endpoint, absent)
        return
    await refused(app, endpoint, absent, parameter.missing)
    await refused(app, endpoint, empty, parameter.missing)
    await accepted(app, endpoint, list(form.items()))


@pytest.mark.parametrize(("endpoint", "parameter"), EACH)
async def test_given_twice(app: Any, endpoint: Endpoint, parameter: Parameter) -> None:
    form = await good_form(app, endpoint)
    pairs = list(form.items())
    if parameter.name == "resource":
        two = [*pairs, ("resource", "https://me.example/v1")]
        await refused(app, endpoint, two, "invalid_target")
        await accepted(app, endpoint, [*pairs, ("resource", form["resource"])])
        return
    for value in (form.get(parameter.name, "x"), "other", ""):
        param = await refused(app, endpoint, [*pairs, (parameter.name, value)], "invalid_request")
        assert param in (None, parameter.name)
    await accepted(app, endpoint, pairs)


@pytest.mark.parametrize(("endpoint", "parameter"), EACH)
async def test_of_no_known_form(app: Any, endpoint: Endpoint, parameter: Parameter) -> None:
    form = await good_form(app, endpoint)
    pairs = [*without(form, parameter.name), (parameter.name, WRONG)]
    if parameter.wrong == OK:
        answer = await send(app, endpoint, pairs)
        assert error_of_good(answer) == (endpoint.ok, OK)
    else:
        await refused(app, endpoint, pairs, parameter.wrong)


@pytest.mark.parametrize(("endpoint", "parameter"), EACH)
async def test_very_long(app: Any, endpoint: Endpoint, parameter: Parameter) -> None:
    form = await good_form(app, endpoint)
    pairs = [*without(form, parameter.name), (parameter.name, "x" * LONG)]
    expected = "invalid_request" if parameter.name == "state" else parameter.wrong
    if expected == OK:
        answer = await send(app, endpoint, pairs)
        assert error_of_good(answer) == (endpoint.ok, OK)
    else:
        await refused(app, endpoint, pairs, expected)


@pytest.mark.parametrize("endpoint", POSTED, ids=str)
async def test_a_body_over_its_limit(app: Any, endpoint: Endpoint) -> None:
    form = await good_form(app, endpoint)
    before = held(app)
    answer = await send(app, endpoint, [*form.items(), ("padding", "x" * LARGE)])
    assert (answer.status_code, error_of(answer)[0]) == (413, "invalid_request")
    assert held(app) == before
    await accepted(app, endpoint, list(form.items()))


@pytest.mark.parametrize("endpoint", POSTED, ids=str)
async def test_another_type_of_body(app: Any, endpoint: Endpoint) -> None:
    form = await good_form(app, endpoint)
    before = held(app)
    auth = CALLER if endpoint.name == "introspect" else None
    answer = await app.http.post(endpoint.path, json=form, auth=auth)
    assert (answer.status_code, error_of(answer)[0]) == (400, "invalid_request")
    assert held(app) == before


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=str)
async def test_what_nobody_knows_is_ignored_in_a_form_and_by_the_authorization_endpoint(
    app: Any, endpoint: Endpoint
) -> None:
    form = await good_form(app, endpoint)
    await accepted(app, endpoint, [*form.items(), ("utm_source", "x")])


@pytest.mark.parametrize("endpoint", POSTED, ids=str)
async def test_a_parameter_in_the_query_is_refused(app: Any, endpoint: Endpoint) -> None:
    form = await good_form(app, endpoint)
    before = held(app)
    auth = CALLER if endpoint.name == "introspect" else None
    answer = await app.http.post(f"{endpoint.path}?code=x", data=form, auth=auth)
    assert (answer.status_code, error_of(answer)) == (400, ("invalid_request", "code"))
    assert held(app) == before


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=str)
async def test_another_version_is_refused(app: Any, endpoint: Endpoint) -> None:
    headers = {**FORM, "PDPP-Version": "1999-01-01"}
    method = "GET" if endpoint.name == "authorize" else "POST"
    answer = await app.http.request(method, endpoint.path, headers=headers)
    assert (answer.status_code, error_of(answer)[0]) == (400, "unsupported_version")


@pytest.mark.parametrize("way", ["authorize", "par"])
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("request", "eyJhbGciOiJub25lIn0.e30.", "request_not_supported"),
        ("scope", "pdpp:read pdpp:owner", "invalid_scope"),
        ("response_mode", "form_post", "invalid_request"),
        ("code_challenge_method", "plain", "invalid_request"),
        ("code_challenge", "a" * 42, "invalid_request"),
        ("code_challenge", "a" * 44, "invalid_request"),
        ("resource", "https://me.example/mcp#x", "invalid_target"),
        ("resource", "https://me.example/other", "invalid_target"),
        ("resource", "https://other.example", "invalid_target"),
        ("prompt", "none", "interaction_required"),
    ],
)
async def test_what_is_well_formed_but_not_spoken_here(
    app: Any, way: str, name: str, value: str, error: str
) -> None:
    (endpoint,) = [endpoint for endpoint in ENDPOINTS if endpoint.name == way]
    form = await good_form(app, endpoint)
    await refused(app, endpoint, list({**form, name: value}.items()), error)


async def test_reading_what_a_token_stands_for_takes_no_parameters(app: Any) -> None:
    answer = await app.http.get("/grants/current?access_token=x")
    assert (answer.status_code, error_of(answer)) == (400, ("invalid_request", "access_token"))
