"""The origin a caller used, byte for byte in whatever the whole server says of itself."""

from __future__ import annotations

import json
from collections.abc import Generator
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata

from server.tests.app.whole import ORIGIN, Whole, whole
from server.tests.console.browsing import press
from server.tests.console.household import mail_request

SERVER = "/.well-known/oauth-authorization-server"
RESOURCE = "/.well-known/oauth-protected-resource"
PUBLIC = "https://me.example"
PROXY = ip_network("203.0.113.0/24")
FORWARDED = {"x_forwarded_host": "other.example, me.example", "x_forwarded_proto": "http, https"}
ABSENT = (
    "/.well-known/openid-configuration",
    f"{SERVER}/mcp",
    f"{RESOURCE}/v1",
    "/register",
    "/authorize",
    "/token",
)
ROUTES = (
    SERVER,
    RESOURCE,
    f"{RESOURCE}/mcp",
    *ABSENT,
    "/",
    "/docs",
    "/icon.svg",
    "/mcp",
    "/v1",
    "/v1/schema",
    "/oauth/authorize",
    "/oauth/token",
    "/oauth/par",
    "/oauth/register",
    "/oauth/revoke",
    "/oauth/device_authorization",
    "/introspect",
    "/grants/current",
    "/consent/ar_x",
    "/device",
    "/owner/",
    "/owner/login",
)


def document(site: Whole, path: str, **headers: str) -> Any:
    page = site.client.get(path, accept="application/json", **headers)
    assert page.status == 200, page.text
    assert "logo_uri" not in page.text
    return json.loads(page.text)


def speaks_of(site: Whole, origin: str, **headers: str) -> None:
    """Each document reads with the SDK's models and names nothing but this origin."""
    server = document(site, SERVER, **headers)
    assert OAuthMetadata.model_validate(server).issuer is not None
    assert server["issuer"] == origin
    assert server["protected_resources"] == [origin, f"{origin}/mcp"]
    for path, resource in ((RESOURCE, origin), (f"{RESOURCE}/mcp", f"{origin}/mcp")):
        found = document(site, path, **headers)
        assert ProtectedResourceMetadata.model_validate(found).resource is not None
        assert (found["resource"], found["authorization_servers"]) == (resource, [origin])
        assert found["pdpp_core_query_base"] == f"{origin}/v1"
        assert found["pdpp_agent_discovery"]["mcp"]["endpoint"] == f"{origin}/mcp"
    named = [value for value in _texts([server, found]) if value.startswith("http")]
    foreign = [url for url in named if not url.startswith((origin, "https://pdpp.dev/"))]
    assert foreign == []


def _texts(value: Any) -> Generator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
            yield from _texts(inner)


@pytest.mark.parametrize("origin", [ORIGIN, "http://localhost:7662", "http://[::1]:7662"])
def test_each_loopback_name_finds_itself(tmp_path: Path, origin: str) -> None:
    with whole(tmp_path, origin) as site:
        speaks_of(site, origin)


def test_a_public_origin_behind_a_proxy_that_keeps_the_host(tmp_path: Path) -> None:
    with whole(tmp_path, PUBLIC, public_url=PUBLIC) as site:
        speaks_of(site, PUBLIC)
        speaks_of(site, PUBLIC, host="ME.example:443")


@pytest.fixture
def behind(tmp_path: Path) -> Generator[Whole]:
    settings: dict[str, Any] = {"public_url": PUBLIC, "trusted_proxies": (PROXY,)}
    with whole(tmp_path, PUBLIC, **settings) as site:
        yield site


def test_a_trusted_proxy_sets_every_address(behind: Whole) -> None:
    speaks_of(behind, PUBLIC, host="inner:8080", **FORWARDED)
    forwarded = {"host": "inner:8080", "accept": "application/json", **FORWARDED}
    challenge = behind.client.get("/mcp", **forwarded)
    assert challenge.status == 401
    expected = f'resource_metadata="{PUBLIC}{RESOURCE}/mcp"'
    assert expected in challenge.headers["www-authenticate"]
    assert challenge.headers["link"].startswith(f"<{PUBLIC}/icon.svg>")
    fields = [("client_id", "pdpp-cli")]
    codes = json.loads(behind.client.post("/oauth/device_authorization", fields, **forwarded).text)
    assert codes["verification_uri"] == f"{PUBLIC}/device"
    assert codes["verification_uri_complete"].startswith(f"{PUBLIC}/device?user_code=")
    asked = behind.ask(mail_request())
    denied = press(behind.owner, behind.owner.get(asked), asked, "deny")
    assert parse_qs(urlsplit(denied.headers["location"]).query)["iss"] == [PUBLIC]


def test_the_word_forwarded_takes_any_listed_host_over_https(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "public_url": "forwarded",
        "trusted_proxies": (PROXY,),
        "trusted_hosts": ("me.example", "you.example:8443"),
    }
    with whole(tmp_path, PUBLIC, signed_in=False, **settings) as site:
        speaks_of(site, PUBLIC, **FORWARDED)
        you = {"x_forwarded_host": "you.example:8443", "x_forwarded_proto": "https"}
        speaks_of(site, "https://you.example:8443", **you)
        for refused in (you | {"x_forwarded_proto": "http"}, {"x_forwarded_host": "x.example"}):
            assert site.client.get(SERVER, **refused).status == 421


def test_from_any_other_peer_forwarded_headers_change_nothing(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "public_url": PUBLIC,
        "trusted_proxies": (ip_network("10.0.0.0/8"),),
    }
    with whole(tmp_path, PUBLIC, **settings) as site:
        speaks_of(site, PUBLIC, **FORWARDED)
        speaks_of(site, PUBLIC, x_forwarded_host="evil.example", x_forwarded_proto="http")
        hidden = site.client.get(SERVER, host="inner:8080", **FORWARDED)
        assert hidden.status == 421


def test_nothing_but_the_health_check_answers_an_unknown_host(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        for path in ROUTES:
            for method in ("GET", "POST"):
                headers = {"host": "evil.example", "accept": "application/json"}
                page = (
                    site.client.get(path, **headers)
                    if method == "GET"
                    else site.client.post(path, [], **headers)
                )
                assert (path, page.status) == (path, 421)
                assert json.loads(page.text)["error"]["code"] == "misdirected_request"
                assert not {"www-authenticate", "link", "location"} & set(page.headers)
        assert site.client.get("/healthz", host="evil.example").text == '{"status":"ok"}'


def test_what_is_absent_on_purpose_is_not_found(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        for path in ABSENT:
            page = site.client.get(path, accept="application/json")
            code = json.loads(page.text)["error"]["code"]
            assert (path, page.status, code) == (path, 404, "not_found")
