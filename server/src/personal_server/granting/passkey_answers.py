"""What a browser answered about a passkey, checked by the library of WebAuthn.

Rule: imported with the first answer; the formats of every maker of keys take long to load.
Source: docs/contract/authorization-server.md 13.6; W3C WebAuthn Level 3.
"""

from __future__ import annotations

from collections.abc import Mapping

from webauthn import verify_authentication_response, verify_registration_response
from webauthn.authentication.verify_authentication_response import VerifiedAuthentication
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.registration.verify_registration_response import VerifiedRegistration

from personal_server.storage.authorization_rows import PasskeyRow


def verified_registration(
    credential: Mapping[str, object], challenge: bytes, party: str, origin: str
) -> VerifiedRegistration | None:
    """The passkey that was made; None where the answer does not hold."""
    try:
        return verify_registration_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=party,
            expected_origin=origin,
            require_user_verification=True,
        )
    except WebAuthnException:
        return None


def verified_signature(
    credential: Mapping[str, object], challenge: bytes, row: PasskeyRow, origin: str
) -> VerifiedAuthentication | None:
    """What was signed with a passkey; None where the answer does not hold."""
    try:
        return verify_authentication_response(
            credential=dict(credential),
            expected_challenge=challenge,
            expected_rp_id=row.relying_party,
            expected_origin=origin,
            credential_public_key=row.public_key,
            credential_current_sign_count=row.sign_count,
            require_user_verification=True,
        )
    except WebAuthnException:
        return None
