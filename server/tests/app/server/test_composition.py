"""What a token is worth at each door of the whole server.

Source: docs/contract/authorization-server.md 12.3.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.app.stores import open_stores
from personal_server.granting.audit import Acting
from personal_server.granting.pauses import pause_access
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import GrantRow, PackageRow, TokenRow
from personal_server.storage.ports.authorization_store import R
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sqlite.database import SqliteDatabase
from personal_server.storage.tables import Assignment, ColumnCondition
from server.tests.app.whole import ORIGIN, Whole, whole
from server.tests.console.browsing import SECOND, Page
from server.tests.console.household import CHECKING, bank_request, mail_request

DAY = 86_400 * SECOND
READ = "/v1/streams/messages/records?limit=1"
PAYMENTS = "/v1/streams/transactions/records"
MCP_METADATA = f"{ORIGIN}/.well-known/oauth-protected-resource/mcp"
METADATA = f"{ORIGIN}/.well-known/oauth-protected-resource"


@pytest.fixture
def site(tmp_path: Path) -> Generator[Whole]:
    with whole(tmp_path) as made:
        yield made


def told(site: Whole, page: Page) -> tuple[int, str]:
    """Status and code of a refusal; at `/mcp` and `/v1` the family is the server's."""
    error = site.body(page)["error"]
    assert error["request_id"] == page.headers["request-id"]
    return page.status, error["code"]


def challenged(page: Page) -> str:
    return page.headers.get("www-authenticate", "")


def change(
    site: Whole, table: type[R], to: Sequence[Assignment[R]], *where: ColumnCondition[R]
) -> None:
    with site.server.stores.authorization.write() as writer:
        assert writer.change(table, to, *where)


def doors(site: Whole, token: str | None) -> tuple[Page, Page]:
    return site.call(READ, token), site.call("/mcp", token)


def test_a_good_token_reads_and_reaches_the_adapter(site: Whole) -> None:
    token = site.connect(mail_request())["access_token"]
    rest, mcp = doors(site, token)
    assert rest.status == 200
    assert told(site, mcp) == (405, "method_not_allowed")
    assert mcp.headers["allow"] == "POST"


@pytest.mark.parametrize("token", [None, "", "pdpp_at_nobody_has_this"])
def test_no_or_an_unknown_bearer_is_challenged_at_both_doors(
    site: Whole, token: str | None
) -> None:
    code = "invalid_token" if token else "authentication_error"
    for page, metadata in zip(doors(site, token), (METADATA, MCP_METADATA), strict=True):
        assert told(site, page) == (401, code)
        assert f'resource_metadata="{metadata}"' in challenged(page)
        assert 'scope="pdpp:read"' in challenged(page)
        assert ('error="invalid_token"' in challenged(page)) is bool(token)


def test_an_address_typed_with_a_slash_is_described_as_it_was_typed(site: Whole) -> None:
    page = site.client.get("/mcp/", accept="application/json")
    assert f'resource_metadata="{MCP_METADATA}/"' in challenged(page)
    assert site.body(page)["error"]["resource_metadata"] == f"{MCP_METADATA}/"
    found, plain = (
        site.body(site.client.get(url.removeprefix(ORIGIN)))
        for url in (f"{MCP_METADATA}/", MCP_METADATA)
    )
    assert found == plain | {"resource": f"{ORIGIN}/mcp/"}
    assert plain["resource"] == f"{ORIGIN}/mcp"
    token = site.connect(mail_request())["access_token"]
    assert site.call("/mcp/", token).status == site.call("/mcp", token).status == 405


def test_every_address_that_the_metadata_name_is_there(site: Whole) -> None:
    documents = [
        site.body(site.client.get(f"/.well-known/oauth-{name}"))
        for name in ("authorization-server", "protected-resource", "protected-resource/mcp")
    ]
    named = {
        value.removeprefix(ORIGIN)
        for document in documents
        for value in document.values()
        if isinstance(value, str) and value.startswith(f"{ORIGIN}/")
    }
    assert "/.well-known/jwks.json" in named
    answers = {path: site.client.get(path, accept="application/json").status for path in named}
    assert 404 not in answers.values(), answers
    keys = site.body(site.client.get("/.well-known/jwks.json"))["keys"]
    assert [key["kty"] for key in keys] == ["OKP"]


def test_no_page_knows_the_server_again_by_its_keys(site: Whole) -> None:
    readable = {
        path: "access-control-allow-origin"
        in site.client.get(f"/.well-known/{path}", origin="https://evil.example").headers
        for path in ("jwks.json", "oauth-authorization-server", "oauth-protected-resource")
    }
    assert readable == {
        "jwks.json": False,
        "oauth-authorization-server": True,
        "oauth-protected-resource": True,
    }


@pytest.mark.parametrize("scheme", ["bearer", "BEARER", "Bearer"])
def test_the_scheme_is_a_word_in_any_case(site: Whole, scheme: str) -> None:
    token = site.connect(mail_request())["access_token"]
    page = site.client.get(READ, accept="application/json", authorization=f"{scheme} {token}")
    assert page.status == 200
    basic = site.client.get("/mcp", accept="application/json", authorization=f"Basic {token}")
    assert told(site, basic) == (401, "authentication_error")


def test_an_expired_token_under_a_live_grant_is_only_a_stale_token(site: Whole) -> None:
    tokens = site.connect(mail_request())
    site.clock.now_ns += 3_601 * SECOND
    for page in doors(site, tokens["access_token"]):
        assert told(site, page) == (401, "invalid_token")
        assert 'error="invalid_token"' in challenged(page)
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    assert site.call(READ, site.token(**form)["access_token"]).status == 200


def refused_for_its_grant(site: Whole, token: str, code: str) -> None:
    rest, mcp = doors(site, token)
    assert told(site, rest) == (403, code)
    assert challenged(rest) == ""
    assert told(site, mcp) == (401, code)
    assert 'error="invalid_token"' in challenged(mcp)


def test_a_grant_that_the_owner_ended_says_so(site: Whole) -> None:
    tokens = site.connect(mail_request())
    page = site.owner.get(f"/owner/access/{tokens['grant_id']}")
    where = f"/owner/access/{tokens['grant_id']}/revoke"
    assert site.owner.submit(page, where).status == 303
    refused_for_its_grant(site, tokens["access_token"], "grant_revoked")


def test_what_another_process_writes_is_seen_with_the_next_request(
    site: Whole, tmp_path: Path
) -> None:
    tokens = site.connect(mail_request())
    token, grant = tokens["access_token"], GrantRow.grant_id.equals(tokens["grant_id"])

    def shown() -> set[str]:
        (record,) = site.body(site.call(READ, token))["data"]
        return set(record["data"])

    def beside(to: Sequence[Assignment[GrantRow]]) -> None:
        """As a command does that the owner runs beside the server."""
        settings = Settings(data_dir=tmp_path / "data")
        with (
            open_stores(settings, serving=False) as stores,
            stores.authorization.write() as writer,
        ):
            assert writer.change(GrantRow, to, grant)

    wide = shown()
    for _ in range(5):
        assert shown() == wide
    (row,) = site.owner_rows(GrantRow)
    document = json.loads(row.grant)
    document["streams"][0]["fields"].remove("subject")
    assert "subject" in wide
    beside([GrantRow.grant.to(json.dumps(document).encode())])
    assert shown() == wide - {"subject"}
    beside([GrantRow.reason.to("owner"), GrantRow.revoked_at_ns.to(site.clock())])
    refused_for_its_grant(site, token, "grant_revoked")


def test_a_paused_grant_says_so_and_keeps_its_credentials(site: Whole) -> None:
    tokens = site.connect(mail_request())
    with site.server.stores.authorization.write() as writer:
        assert pause_access(writer, tokens["grant_id"], Acting("owner"), site.clock()) == 1
    rest, mcp = doors(site, tokens["access_token"])
    assert told(site, rest) == (403, "grant_paused")
    assert told(site, mcp) == (405, "method_not_allowed")
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    renewed = site.token(**form)["access_token"]
    page = site.owner.get(f"/owner/access/{tokens['grant_id']}")
    where = f"/owner/access/{tokens['grant_id']}/resume"
    assert site.owner.submit(page, where).status == 303
    assert site.call(READ, renewed).status == 200


def test_a_single_use_grant_past_its_end_is_expired_not_the_token(site: Whole) -> None:
    once = mail_request()
    once[0]["access_mode"] = "single_use"
    tokens = site.connect(once)
    assert "refresh_token" not in tokens
    site.clock.now_ns += DAY - SECOND
    assert site.call(READ, tokens["access_token"]).status == 200
    site.clock.now_ns += SECOND
    refused_for_its_grant(site, tokens["access_token"], "grant_expired")


def test_a_grant_that_cannot_be_read_is_never_guessed(site: Whole) -> None:
    tokens = site.connect(mail_request())
    for stored in (b"{", b'{"streams":[]}'):
        change(site, GrantRow, [GrantRow.grant.to(stored)])
        refused_for_its_grant(site, tokens["access_token"], "grant_invalid")
    ended = site.call(f"/grants/{tokens['grant_id']}/revoke", tokens["access_token"], "POST")
    assert site.body(ended)["status"] == "revoked"


def test_an_empty_list_in_a_stored_grant_denies(site: Whole) -> None:
    tokens = site.connect(mail_request())
    (row,) = site.owner_rows(GrantRow)
    change(site, GrantRow, [GrantRow.grant.to(row.grant.replace(b'["cin_home"]', b"[]"))])
    refused_for_its_grant(site, tokens["access_token"], "grant_invalid")


def test_a_token_for_the_query_base_does_not_reach_the_adapter(site: Whole) -> None:
    token = site.connect(mail_request(), resource=f"{ORIGIN}/v1")["access_token"]
    rest, mcp = doors(site, token)
    assert rest.status == 200
    assert told(site, mcp) == (401, "invalid_token")
    assert MCP_METADATA in challenged(mcp)


def test_an_owner_token_serves_rest_only(site: Whole) -> None:
    token = site.owner_token()["access_token"]
    rest, mcp = doors(site, token)
    assert rest.status == 200
    assert told(site, mcp) == (403, "permission_error")
    assert "/v1" in mcp.text
    assert challenged(mcp) == ""
    change(site, TokenRow, [TokenRow.resource.to(f"{ORIGIN}/mcp")], TokenRow.kind.equals("owner"))
    assert told(site, site.call("/mcp", token)) == (403, "permission_error")


def test_a_client_has_no_business_on_the_owners_routes(site: Whole) -> None:
    token = site.connect(mail_request())["access_token"]
    assert told(site, site.call("/v1/owner/export", token)) == (403, "permission_error")


def test_outside_the_grant_nothing_is_told_of_what_there_is(site: Whole) -> None:
    fields: dict[str, Any] = {"fields": ["subject"]}
    token = site.connect(mail_request(**fields))["access_token"]
    asked = {
        PAYMENTS: (403, "grant_stream_not_allowed"),
        "/v1/streams/messages/records?fields=body": (403, "field_not_granted"),
        f"/v1/streams/messages/records?connection_id={CHECKING}": (404, "connection_not_found"),
        "/v1/streams/messages/records?connection_id=cin_none": (404, "connection_not_found"),
    }
    for path, refusal in asked.items():
        assert told(site, site.call(path, token)) == refusal


@contextmanager
def without_a_store(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    @contextmanager
    def failing(database: SqliteDatabase, timeout_seconds: float | None = None) -> Generator[None]:
        raise StorageUnavailable("No.", retry_after_seconds=1)
        yield

    with monkeypatch.context() as patched:
        for kind in (SqliteDatabase, PostgresDatabase):
            patched.setattr(kind, "read", failing)
            patched.setattr(kind, "read_briefly", failing)
        yield


def test_a_failing_store_never_allows(site: Whole, monkeypatch: pytest.MonkeyPatch) -> None:
    token = site.connect(mail_request())["access_token"]
    with without_a_store(monkeypatch):
        for page in doors(site, token):
            assert told(site, page) == (503, "storage_unavailable")
            assert int(page.headers["retry-after"]) >= 1


def package(site: Whole) -> dict[str, Any]:
    return site.connect([*mail_request(), *bank_request()])


def test_a_package_reads_at_both_doors_and_has_no_tokens_of_its_members(site: Whole) -> None:
    tokens = package(site)
    rest, mcp = doors(site, tokens["access_token"])
    assert (rest.status, mcp.status) == (409, 405)
    named = site.call(
        f"/v1/streams/transactions/records?connection_id={CHECKING}", tokens["access_token"]
    )
    assert named.status == 200
    assert {row.kind for row in site.owner_rows(TokenRow)} == {"mcp_package"}
    assert {row.grant_id for row in site.owner_rows(TokenRow)} == {None}


def test_an_ended_member_drops_out_and_is_named(site: Whole) -> None:
    tokens = package(site)
    token, bank = tokens["access_token"], tokens["grant_ids"][1]
    bank_is = site.owner.get(f"/owner/access/{bank}")
    assert site.owner.submit(bank_is, f"/owner/access/{bank}/revoke").status == 303
    listed = site.body(site.call("/v1/schema", token))
    (gone,) = listed["unavailable_connections"]
    assert (gone["grant_id"], gone["reason"]) == (bank, "grant_revoked")
    assert gone["next_step"] == "reapprove"
    named = site.call(f"{PAYMENTS}?connection_id={CHECKING}", token)
    assert told(site, named) == (403, "grant_revoked")
    mail = tokens["grant_ids"][0]
    mail_is = site.owner.get(f"/owner/access/{mail}")
    assert site.owner.submit(mail_is, f"/owner/access/{mail}/revoke").status == 303
    refused_for_its_grant(site, token, "grant_revoked")
    assert {row.revoked_at_ns for row in site.owner_rows(PackageRow)} == {None}


def test_a_good_token_is_served_from_an_address_that_sends_bad_ones(tmp_path: Path) -> None:
    with whole(tmp_path) as site:
        token = site.connect(mail_request())["access_token"]
        limit = [site.call("/mcp", "pdpp_at_bad").status for _ in range(31)]
        assert (limit[29], limit[30]) == (401, 429)
        refused = site.call("/mcp", "pdpp_at_bad")
        assert told(site, refused) == (429, "rate_limit_exceeded")
        assert int(refused.headers["retry-after"]) == 60
        assert 'rel="icon"' in refused.headers["link"]
        assert [site.call("/mcp", token).status for _ in range(40)] == [405] * 40
        assert site.call(READ, token).status == 200


def test_an_unknown_host_is_misdirected_before_anything_is_looked_at(site: Whole) -> None:
    token = site.connect(mail_request())["access_token"]
    for path in (READ, "/mcp", "/oauth/token", "/owner/", "/.well-known/oauth-protected-resource"):
        page = site.client.get(
            path, accept="application/json", host="evil.example", authorization=f"Bearer {token}"
        )
        assert told(site, page) == (421, "misdirected_request")
        assert not {"www-authenticate", "link"} & set(page.headers)


def test_the_session_that_ends_a_grant_needs_the_form_secret(site: Whole) -> None:
    tokens = site.connect(mail_request())
    path = f"/grants/{tokens['grant_id']}/revoke"
    headers = {"accept": "application/json", "x_session_place": site.owner.place}
    forged = site.owner.post(path, [], **headers, x_csrf_token="x")
    assert told(site, forged) == (403, "csrf_failed")
    assert site.call(READ, tokens["access_token"]).status == 200
    page = site.owner.get("/owner/sign-ins")
    csrf = dict(page.form("/owner/logout"))["_csrf"]
    headers["x_csrf_token"] = csrf
    ended = site.owner.post(path, [], **headers)
    assert (ended.status, site.body(ended)["status"]) == (200, "revoked")
    gone = site.owner.post("/grant-packages/gpkg_x/revoke", [], **headers)
    assert told(site, gone) == (404, "not_found")
