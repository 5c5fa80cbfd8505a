"""A client whose document says something else: audited, used from then on, and nothing ends."""

from __future__ import annotations

from typing import Any

import pytest
from joserfc import jwk

from personal_server.storage.authorization_rows import AuditRow, GrantRow
from server.tests.authorization_server.publishing import (
    JWKS,
    KEY,
    URL,
    chatgpt,
    claude,
    proof,
    public,
)

pytestmark = pytest.mark.anyio
NEW = jwk.ECKey.generate_key("P-256", {"kid": "k2"}, private=True)
LATER = 400 * 10**9


def changes(document: Any) -> list[object]:
    """What was noted, in order; every note names the client, never the place of its keys."""
    rows = document.server.rows(AuditRow, AuditRow.event.equals("client.metadata_changed"))
    assert {row.client_id for row in rows} <= {URL}
    return [row.detail["changed"] for row in rows]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"redirect_uris": ["http://127.0.0.1/cb", "https://new.example/cb"]}, [["redirect_uris"]]),
        ({"client_name": "Clod"}, [["name"]]),
        ({"jwks_uri": JWKS}, [["keys"]]),
        ({"jwks": public(KEY)}, [["keys"]]),
        ({"software_version": "2"}, []),
    ],
)
async def test_what_changed_is_noted_and_nothing_ends(
    document: Any, change: dict[str, Any], named: list[object]
) -> None:
    tokens = await document.connect()
    document.server.web.publish(URL, claude(**change))
    document.server.now_ns += LATER
    assert (await document.authorize()).status_code == 303
    assert changes(document) == named
    assert (await document.refresh(tokens["refresh_token"])).status_code == 200
    assert {row.revoked_at_ns for row in document.server.rows(GrantRow)} == {None}


async def test_a_stricter_method_is_noted_and_asked_for_from_then_on(document: Any) -> None:
    code = await document.code()
    document.server.web.publish(URL, chatgpt())
    document.server.now_ns += LATER
    assert (await document.redeem(code)).json()["error"] == "invalid_client"
    assert changes(document) == [["keys"], ["name", "auth_method"]]


async def test_other_keys_at_the_same_place_are_noted(document: Any) -> None:
    document.server.web.publish(URL, chatgpt())
    code = await document.code()
    await document.redeem(code, **proof(document))
    assert changes(document) == []
    document.server.web.publish(JWKS, public(KEY, NEW))
    document.server.now_ns += LATER
    await document.redeem(code, **proof(document, n=1))
    assert changes(document) == [["keys"]]


async def test_a_redirect_that_is_gone_is_refused_from_then_on(document: Any) -> None:
    assert (await document.authorize()).status_code == 303
    document.server.web.publish(URL, claude(redirect_uris=["https://app.example/other"]))
    document.server.now_ns += LATER
    page = await document.authorize()
    assert (page.status_code, 'data-error="invalid_redirect_uri"' in page.text) == (400, True)
