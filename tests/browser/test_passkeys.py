"""Passkeys in a real browser, with the authenticator that Chromium plays for tests."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Generator
from dataclasses import dataclass, replace

import pytest
from selenium.webdriver.common.virtual_authenticator import VirtualAuthenticatorOptions
from selenium.webdriver.support.wait import WebDriverWait
from webauthn import verify_authentication_response
from webauthn.helpers import base64url_to_bytes

from personal_server.storage.authorization_rows import AuditRow, RequestRow, ReviewArtifactRow
from tests.browser.chromium import chromium
from tests.browser.site import SECONDS, Owner, Site
from tests.browser.visits import mail_wanted, prepare


@dataclass(frozen=True, slots=True)
class ByName:
    """The same server, at the name that passkeys need."""

    site: Site

    @property
    def origin(self) -> str:
        return self.site.origin.replace("127.0.0.1", "localhost")

    def sign_in_link(self) -> str:
        return self.site.sign_in_link().replace("127.0.0.1", "localhost")


@pytest.fixture
def named(running: Site) -> Generator[Owner]:
    """The owner at `localhost`, with a device that verifies them."""
    with chromium() as driver:
        device = VirtualAuthenticatorOptions()
        device.transport = device.Transport.INTERNAL
        device.has_resident_key = device.has_user_verification = device.is_user_verified = True
        driver.add_virtual_authenticator(device)
        owner = Owner(driver, ByName(running))
        owner.sign_in()
        yield owner
        driver.remove_virtual_authenticator()


def add_passkey(owner: Owner) -> None:
    owner.press(owner.find('main a[href$="/owner/sign-ins"]'))
    owner.press(owner.find('main a[href$="/owner/passkeys"]'))
    owner.press(owner.find("button[data-passkey-press]"))
    assert owner.shows('form[action$="/remove"]')


def test_a_passkey_signs_in_and_each_permission_is_one_signature_that_is_kept(
    named: Owner, running: Site
) -> None:
    add_passkey(named)
    store = running.server.stores.authorization
    prepare(running)
    with store.write() as writer:
        row = writer.rows(RequestRow, RequestRow.status.equals("pending"))[0]
        fresh = replace(
            row,
            request_id="ar_signed",
            flow="device",
            redirect_uri=None,
            details=mail_wanted(),
            picker=False,
            device_code_hash=b"d" * 32,
            user_code_hash=b"u" * 32,
            request_uri_hash=None,
            created_at_ns=time.time_ns(),
            expires_at_ns=time.time_ns() + 900 * 10**9,
        )
        writer.insert(fresh)
    named.driver.get(f"{named.site.origin}/consent/ar_signed")
    assert "/owner/login" in named.driver.current_url
    named.press(named.find("button[data-passkey-press]"))
    assert named.shows(".decide")
    named.decide("approve")
    assert named.shows('main[data-state="allowed"]')
    with store.read() as reader:
        (decided,) = reader.rows(
            ReviewArtifactRow, ReviewArtifactRow.request_id.equals("ar_signed")
        )
        events = [each.event for each in reader.rows(AuditRow)]
    kept = {name: str(value) for name, value in (decided.signature or {}).items()}
    challenge = base64url_to_bytes(
        json.loads(base64url_to_bytes(kept["clientDataJSON"]))["challenge"]
    )
    assert challenge[-32:] == hashlib.sha256(decided.revision.encode()).digest()
    response = {n: kept[n] for n in ("authenticatorData", "clientDataJSON", "signature")}
    identity = {"id": kept["credential_id"], "rawId": kept["credential_id"], "type": "public-key"}
    checked = verify_authentication_response(
        credential={**identity, "response": response},
        expected_challenge=challenge,
        expected_rp_id="localhost",
        expected_origin=named.site.origin,
        credential_public_key=base64url_to_bytes(kept["public_key"]),
        credential_current_sign_count=0,
        require_user_verification=True,
    )
    assert checked.user_verified
    assert "owner.passkey_added" in events


def test_at_an_address_the_page_leads_to_the_name(owner: Owner, running: Site) -> None:
    owner.press(owner.find('main a[href$="/owner/sign-ins"]'))
    owner.press(owner.find('main a[href$="/owner/passkeys"]'))
    assert not owner.all("form[data-passkey]")
    name = running.origin.replace("127.0.0.1", "localhost")
    assert owner.find(f'a[href="{name}/owner/passkeys"]').is_displayed()


def test_a_removed_passkey_is_offered_no_more(named: Owner) -> None:
    add_passkey(named)
    named.press(named.find('form[action$="/remove"] button'))
    WebDriverWait(named.driver, SECONDS).until(lambda _: not named.all('form[action$="/remove"]'))
    named.driver.delete_all_cookies()
    named.driver.get(f"{named.site.origin}/owner/login")
    assert not named.all("form[data-passkey]")
