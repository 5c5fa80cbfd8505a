"""What every answer of the whole server carries, whatever was asked.

Source: docs/contract/authorization-server.md 0.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from server.tests.app.whole import Whole, whole
from server.tests.console.household import mail_request
from server.tests.web.requests.test_everywhere import ROUTES

KEPT_BY_NOBODY = (
    "/oauth",
    "/introspect",
    "/grants",
    "/grant-packages",
    "/consent",
    "/device",
    "/owner",
)
MORE = (
    "/grants/grt_x/revoke",
    "/grant-packages/gpkg_x/revoke",
    "/oauth/none",
    "/owner/none",
    "/owner/access",
    "/owner/clients",
    "/owner/sign-ins",
    "/consent",
    "/none",
    "/v1/none",
    "/healthz",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
PLACES = [*ROUTES, *MORE]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Generator[Whole]:
    with whole(tmp_path_factory.mktemp("headers")) as made:
        yield made


@pytest.mark.parametrize("accept", ["application/json", "text/html"])
@pytest.mark.parametrize("path", PLACES)
def test_every_answer_is_named_and_dated(site: Whole, path: str, accept: str) -> None:
    for caller in (site.client, site.owner):
        for method in METHODS:
            headers = {"request_id": "mine.7", "accept": accept}
            page = caller.send(method, path, **headers)
            where = (method, path, page.status)
            assert page.status < 500, where
            assert page.headers["request-id"] == "mine.7", where
            assert page.headers["x-request-id"] == "mine.7", where
            assert page.headers["pdpp-version"] == "2026-04-06", where
            assert page.headers["x-content-type-options"] == "nosniff", where
            if page.headers.get("content-type", "").startswith("text/html"):
                assert "frame-ancestors 'none'" in page.headers["content-security-policy"], where
            if path.startswith(KEPT_BY_NOBODY) and page.status != 404:
                assert page.headers["cache-control"] == "no-store", where
                assert page.headers["pragma"] == "no-cache", where


@pytest.mark.parametrize("path", [path for path in PLACES if path not in ("/mcp", "/healthz")])
def test_another_version_of_the_protocol_is_refused(site: Whole, path: str) -> None:
    sent = {"accept": "application/json", "pdpp_version": "2020-01-01"}
    page = site.client.get(path, **sent)
    if page.status == 405:
        page = site.client.post(path, [], **sent)
    assert page.status in (400, 404)
    assert page.status == 404 or "unsupported_version" in page.text


def test_the_adapter_refuses_another_version_once_it_knows_who_calls(site: Whole) -> None:
    token = site.connect(mail_request())["access_token"]
    sent = {"authorization": f"Bearer {token}", "pdpp_version": "2020-01-01"}
    page = site.client.post("/mcp", [], **sent)
    assert (page.status, "unsupported_version" in page.text) == (400, True)
    unknown = site.client.post("/mcp", [], pdpp_version="2020-01-01")
    assert unknown.status == 401


@pytest.mark.parametrize("path", [path for path in PLACES if path != "/mcp"])
def test_head_is_answered_as_get_without_a_body(site: Whole, path: str) -> None:
    for caller in (site.client, site.owner):
        got, head = (caller.send(method, path, accept="text/html") for method in ("GET", "HEAD"))
        assert (head.status, head.text) == (got.status, "")


def test_a_wrong_method_names_the_right_ones(site: Whole) -> None:
    for path in PLACES:
        page = site.client.send("PATCH", path, accept="application/json")
        if page.status == 405:
            named = [method.strip() for method in page.headers["allow"].split(",")]
            assert named == sorted(named)
            assert "method_not_allowed" in page.text
        else:
            assert page.status in (401, 404), path
