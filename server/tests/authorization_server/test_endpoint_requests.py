"""Whatever is sent, the answer is one of ours: no defect, no traceback, no word of the store."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.oauth_errors import BadRequest
from personal_server.authorization_server.endpoint_requests import parse_form

HOUR = 3_600 * 10**9
NAMES = (
    "client_id",
    "redirect_uri",
    "response_type",
    "code_challenge",
    "code_challenge_method",
    "state",
    "resource",
    "scope",
    "authorization_details",
    "client_display",
    "prompt",
    "request_uri",
    "grant_type",
    "code",
    "code_verifier",
    "refresh_token",
    "device_code",
    "client_assertion",
    "client_assertion_type",
    "token",
    "user_code",
)
PATHS = (
    "/oauth/token",
    "/oauth/par",
    "/oauth/device_authorization",
    "/oauth/revoke",
    "/oauth/register",
    "/introspect",
    "/oauth/authorize",
    "/grants/x/revoke",
    "/grants/current",
)
likely = st.sampled_from(
    [
        "pdpp-cli",
        "pdpp-owner-cli",
        "https://app.example/client.json",
        "http://127.0.0.1/callback",
        "code",
        "S256",
        "a" * 43,
        "https://me.example/mcp",
        "pdpp:read pdpp:owner",
        "[]",
        "{}",
        '[{"type":"https://pdpp.dev/data-access"}]',
        "none",
        "authorization_code",
        "refresh_token",
        "urn:ietf:params:oauth:grant-type:device_code",
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "a.b.c",
        "",
    ]
)
pairs = st.lists(
    st.tuples(st.sampled_from(NAMES) | st.text(max_size=6), likely | st.text(max_size=20)),
    max_size=10,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | likely,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["redirect_uris", "grant_types", "client_name", "scope"]) | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


def encoded(form: list[tuple[str, str]]) -> bytes:
    return urlencode(
        [(n.encode("utf-8", "replace"), v.encode("utf-8", "replace")) for n, v in form]
    ).encode()


def ask(server: Any, method: str, path: str, content: bytes, content_type: str) -> Any:
    async def asked() -> Any:
        async with server.client() as http:
            headers = {"Content-Type": content_type, "Accept": "application/json"}
            if method == "GET":
                return await http.get(f"{path}?{content.decode('latin-1')}", headers=headers)
            return await http.post(path, content=content, headers=headers)

    server.now_ns += HOUR
    return anyio.run(asked)


EXPECTED = {200, 201, 303, 400, 401, 404, 405, 410, 413, 429}
FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(PATHS), form=pairs, method=st.sampled_from(["GET", "POST"]))
def test_any_form_is_answered(
    server: Any, path: str, form: list[tuple[str, str]], method: str
) -> None:
    answer = ask(server, method, path, encoded(form), FORM)
    assert answer.status_code in EXPECTED, answer.text


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.sampled_from(PATHS), body=st.binary(max_size=64))
def test_any_bytes_are_answered(server: Any, path: str, body: bytes) -> None:
    for content_type in (FORM, "application/json", "text/plain"):
        answer = ask(server, "POST", path, body, content_type)
        assert answer.status_code in EXPECTED, answer.text


@pytest.mark.parametrize("store", ["memory"], indirect=True)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(metadata=json_values)
def test_any_metadata_registers_or_is_refused(server: Any, metadata: Any) -> None:
    body = json.dumps(metadata, allow_nan=True).encode()
    answer = ask(server, "POST", "/oauth/register", body, "application/json")
    assert answer.status_code in (201, 400), answer.text


def test_empty_values_count_as_absent_and_resources_are_collected() -> None:
    parameters, resources = parse_form(b"code=&state=a&resource=x&resource=y&resource=")
    assert parameters == {"state": "a"}
    assert resources == ("x", "y")


@pytest.mark.parametrize("body", [b"a=1&a=2", b"a=%ff", b"\xff=1", b"&".join([b"a=1"] * 300)])
def test_repeated_broken_and_endless_forms_are_refused(body: bytes) -> None:
    with pytest.raises((BadRequest, InvalidRequest)):
        parse_form(body)
