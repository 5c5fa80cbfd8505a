from __future__ import annotations

import pytest

from pdpp_mcp_server.rs_client.credentials import (
    CredentialInvalid,
    InvalidProviderUrl,
    OwnerTokenRefused,
    normalize_provider_url,
    parse_credential,
    refuse_owner,
)

# What the other PDPP tools write: the base members only.
BASE_DOCUMENT = {
    "provider_url": "https://me.example",
    "authorization_server": "https://me.example",
    "scope": "pdpp:read",
    "client": {"client_id": "cli_1"},
    "credential": {
        "access_token": "pdpp_at_x",
        "token_type": "Bearer",
        "expires_at": "2026-11-21T22:00:00Z",
        "grant_id": "grt_1",
        "scope": "pdpp:read",
    },
    "created_at": "2026-11-21T21:00:00Z",
}


def test_a_file_of_another_tool_with_the_base_members_is_read() -> None:
    credential = parse_credential(BASE_DOCUMENT)
    assert credential.issuer == "https://me.example"
    assert (credential.token_kind, credential.refresh_token) == (None, None)
    assert credential.seconds_left(credential.expires_at_ns or 0) == 0


def test_a_file_may_say_how_long_results_are() -> None:
    credential = parse_credential({**BASE_DOCUMENT, "result_chars": 60_000})
    assert credential.result_chars == 60_000
    assert credential.renewed({"access_token": "b"}, 1).result_chars == 60_000


def test_a_credential_shows_no_token_in_its_representation() -> None:
    assert "pdpp_at_x" not in repr(parse_credential(BASE_DOCUMENT))


def test_a_file_with_nothing_but_a_credential_is_of_the_server_it_is_asked_for() -> None:
    inner = {"access_token": "pdpp_at_x", "refresh_token": "pdpp_rt_x"}
    for document in ({"credential": inner}, {"client": None, "credential": inner}):
        credential = parse_credential(document, "https://me.example")
        assert credential.provider_url == "https://me.example"
        assert (credential.access_token, credential.refresh_token) == ("pdpp_at_x", None)


@pytest.mark.parametrize(
    ("document", "member"),
    [
        ({"credential": {}}, "`credential.access_token`"),
        ({"credential": {"access_token": "a", "expires_at": "soon"}}, "`credential.expires_at`"),
        ({"credential": {"access_token": "a"}, "client": "cli_1"}, "`client`"),
        ({"credential": {"access_token": "a"}, "provider_url": 7}, "`provider_url`"),
        ({}, "`credential`"),
        ({"credential": {"access_token": "a"}, "result_chars": 19_999}, "`result_chars`"),
        ({"credential": {"access_token": "a"}, "result_chars": 200_001}, "`result_chars`"),
        ({"credential": {"access_token": "a"}, "result_chars": "60000"}, "`result_chars`"),
        ({"credential": {"access_token": "a"}, "result_chars": True}, "`result_chars`"),
    ],
)
def test_what_is_damaged_is_named(document: object, member: str) -> None:
    with pytest.raises(CredentialInvalid) as refused:
        parse_credential(document, "https://me.example")
    assert member in refused.value.message


@pytest.mark.parametrize("missing", ["provider_url", "credential"])
def test_a_document_without_a_base_member_is_malformed(missing: str) -> None:
    document = {name: value for name, value in BASE_DOCUMENT.items() if name != missing}
    with pytest.raises(CredentialInvalid):
        parse_credential(document)


@pytest.mark.parametrize("value", [None, [], "x", {"credential": []}])
def test_anything_but_an_object_is_malformed(value: object) -> None:
    with pytest.raises(CredentialInvalid):
        parse_credential(value)


@pytest.mark.parametrize("member", ["token_kind", "pdpp_token_kind", "kind", "role"])
@pytest.mark.parametrize("place", ["document", "credential"])
def test_owner_material_is_refused_wherever_it_says_so(member: str, place: str) -> None:
    inner: dict[str, object] = {"access_token": "pdpp_at_x"}
    document: dict[str, object] = {**BASE_DOCUMENT, "credential": inner}
    (document if place == "document" else inner)[member] = "owner"
    with pytest.raises(OwnerTokenRefused):
        refuse_owner(parse_credential(document))


def test_a_refresh_keeps_the_members_that_the_answer_lacks() -> None:
    document = {**BASE_DOCUMENT, "theirs": {"kept": 1}}
    answer = {"access_token": "pdpp_at_y", "expires_in": 60, "refresh_token": "pdpp_rt_y"}
    renewed = parse_credential(document).renewed(answer, 0)
    assert renewed.access_token == "pdpp_at_y"
    assert renewed.grant_id == "grt_1"
    assert renewed.document["theirs"] == {"kept": 1}
    assert renewed.expires_at_ns == 60_000_000_000
    assert parse_credential(document).access_token == "pdpp_at_x"


@pytest.mark.parametrize(
    ("given", "origin"),
    [
        ("me.example", "https://me.example"),
        ("https://me.example/", "https://me.example"),
        ("https://ME.example:443/mcp", "https://me.example"),
        ("https://me.example:8443/v1/", "https://me.example:8443"),
        ("127.0.0.1:7662", "http://127.0.0.1:7662"),
        ("localhost:7662/mcp/", "http://localhost:7662"),
        ("http://[::1]:7662", "http://[::1]:7662"),
    ],
)
def test_an_address_becomes_the_origin_that_is_meant(given: str, origin: str) -> None:
    assert normalize_provider_url(given) == origin


@pytest.mark.parametrize(
    "given",
    [
        "",
        "http://me.example",
        "ftp://me.example",
        "https://u@me.example",
        "https://me.example/other",
        "https://me.example?x=1",
        "https://me.example:99999",
        "https://",
        "not a url",
        "https://me%00.example",
        "https://me.example\\x",
    ],
)
def test_an_address_that_no_server_can_have_is_refused(given: str) -> None:
    with pytest.raises(InvalidProviderUrl):
        normalize_provider_url(given)
