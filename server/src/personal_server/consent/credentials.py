"""The forms of identifiers and secrets.

Rule: an identifier names something and opens nothing; a secret is a bearer of power, exists in
clear in one response only and is known to the store by its SHA-256.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Final

RandomBytes = Callable[[int], bytes]

ID_BYTES: Final = 16
SECRET_BYTES: Final = 32

GRANT, PACKAGE, CLIENT, FAMILY = "grt_", "gpkg_", "cli_", "fam_"
REQUEST, CLIENT_REFERENCE = "ar_", "clr_"
SUBSCRIPTION, EVENT, ALARM = "sub_", "evt_", "ral_"
ACCESS_TOKEN, REFRESH_TOKEN = "pdpp_at_", "pdpp_rt_"
AUTHORIZATION_CODE, DEVICE_CODE = "pdpp_ac_", "pdpp_dc_"
OWNER_LINK, INTROSPECTION_SECRET = "pdpp_ol_", "pdpp_is_"
REQUEST_URI = "urn:ietf:params:oauth:request_uri:"

USER_CODE_ALPHABET = "BCDFGHJKLMNPQRSTVWXZ"
USER_CODE_LENGTH = 8


def base64url(data: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def new_id(prefix: str, random_bytes: RandomBytes) -> str:
    """An identifier of 128 random bits."""
    return prefix + base64url(random_bytes(ID_BYTES))


def new_secret(prefix: str, random_bytes: RandomBytes) -> str:
    """A secret of 256 random bits."""
    return prefix + base64url(random_bytes(SECRET_BYTES))


def derived_secret(prefix: str, secret: str, salt: bytes) -> str:
    """The secret that follows from another: who brings that one and knows the salt can repeat it.

    The store keeps the salt and the hash of either secret, so that it alone cannot.
    """
    digest = hmac.new(secret.encode(), salt + prefix.encode(), hashlib.sha256).digest()
    return prefix + base64url(digest)


def new_user_code(random_bytes: RandomBytes) -> str:
    """Eight letters without vowels, uniformly drawn."""
    letters: list[str] = []
    usable = 256 - 256 % len(USER_CODE_ALPHABET)
    while len(letters) < USER_CODE_LENGTH:
        letters += [
            USER_CODE_ALPHABET[byte % len(USER_CODE_ALPHABET)]
            for byte in random_bytes(2 * USER_CODE_LENGTH)
            if byte < usable
        ]
    return "".join(letters[:USER_CODE_LENGTH])


def normal_user_code(typed: str) -> str:
    """The user code a person meant: case, spaces and dashes do not count."""
    return "".join(typed.split()).replace("-", "").upper()


def shown_user_code(code: str) -> str:
    """The user code as people read it."""
    return f"{code[:4]}-{code[4:]}"


def secret_hash(secret: str) -> bytes:
    """What the store knows of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def token_reference(token_hash: bytes) -> str:
    """The name of a token in logs, console and audit."""
    return "tok_" + token_hash.hex()[:12]
