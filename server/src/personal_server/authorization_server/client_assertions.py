"""Client assertions (RFC 7523): a client proves itself with a signature.

Rule: the algorithm comes from our list and the client's document, never from the header alone;
each assertion is good once.  Source: docs/contract/authorization-server.md 3.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, cast

import orjson

from pdpp_kernel.oauth_errors import InvalidClient
from pdpp_kernel.values import NANOSECONDS
from personal_server.authorization_server.metadata import SIGNING_ALGORITHMS

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
MAX_ASSERTION = 16 * 1024
LEEWAY_SECONDS = 60
LONGEST_SECONDS = 600
_KEY_TYPES = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP"}
_CURVES = {"ES256": "P-256", "EdDSA": "Ed25519"}


class UnknownKey(InvalidClient):
    """No published key fits; the key set may be old."""


def peek(assertion: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and claims, not yet believed.  Raises: InvalidClient."""
    # it takes a thirtieth of the start of a server, and few clients sign
    from joserfc import jws  # noqa: PLC0415
    from joserfc.errors import JoseError  # noqa: PLC0415

    malformed = refusal("form")
    if len(assertion) > MAX_ASSERTION:
        raise malformed
    try:
        signed = jws.extract_compact(assertion.encode())
        header = signed.headers()
        claims = orjson.loads(signed.payload)
    except (JoseError, ValueError, UnicodeEncodeError):
        raise malformed from None
    if not isinstance(claims, dict):
        raise malformed
    return dict(header), cast("dict[str, Any]", claims)


def verify_signature(assertion: str, keys: Mapping[str, object], declared: str | None) -> None:
    """The signature fits one of the keys and an allowed algorithm.

    Raises: InvalidClient, UnknownKey.
    """
    from joserfc import jwk, jws  # noqa: PLC0415
    from joserfc.errors import JoseError  # noqa: PLC0415

    header, _ = peek(assertion)
    algorithm = header.get("alg")
    if algorithm not in SIGNING_ALGORITHMS or declared not in (None, algorithm):
        raise refusal("alg")
    if "crit" in header or header.get("b64") is False:
        raise refusal("crit")
    key = _key(keys, str(algorithm), header.get("kid"))
    try:
        jws.deserialize_compact(
            assertion, jwk.import_key(cast("Any", key)), algorithms=[str(algorithm)]
        )
    except (JoseError, ValueError, TypeError):
        raise refusal("signature") from None


def check_claims(
    claims: Mapping[str, Any], client_id: str, audiences: Collection[str], now_ns: int
) -> tuple[str, int]:
    """The `jti` and expiry (ns) of good claims.  Raises: InvalidClient, naming the check."""
    now = now_ns // NANOSECONDS
    if claims.get("iss") != client_id:
        raise refusal("iss")
    if claims.get("sub") != client_id:
        raise refusal("sub")
    audience = claims.get("aud")
    named = cast("list[object]", audience) if isinstance(audience, list) else [audience]
    if not any(audience in audiences for audience in named if isinstance(audience, str)):
        raise refusal("aud")
    expires = _seconds(claims, "exp")
    latest = now + LONGEST_SECONDS + LEEWAY_SECONDS
    if expires is None or expires + LEEWAY_SECONDS <= now or expires > latest:
        raise refusal("exp")
    for name in ("iat", "nbf"):
        at = _seconds(claims, name)
        if at is not None and at > now + LEEWAY_SECONDS:
            raise refusal(name)
    jti = claims.get("jti")
    if not isinstance(jti, str) or not 1 <= len(jti) <= 256:
        raise refusal("jti")
    return jti, (expires + LEEWAY_SECONDS) * NANOSECONDS


def refusal(check: str) -> InvalidClient:
    """A refused assertion; `check` goes to the audit trail, the client hears no more."""
    return InvalidClient("The client assertion is not valid.", check=check)


def _seconds(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e12:
        raise refusal(name)
    return int(value)


def _key(keys: Mapping[str, object], algorithm: str, kid: object) -> dict[str, object]:
    published = cast("list[dict[str, object]]", keys.get("keys", []))
    fitting = [key for key in published if _fits(key, algorithm)]
    if kid is not None:
        fitting = [key for key in fitting if key.get("kid") == kid]
    if len(fitting) != 1:
        raise UnknownKey("The client assertion is not valid.", check="kid")
    return fitting[0]


def _fits(key: Mapping[str, object], algorithm: str) -> bool:
    return (
        key.get("kty") == _KEY_TYPES[algorithm]
        and key.get("crv") in (None, _CURVES.get(algorithm))
        and key.get("use") in (None, "sig")
        and key.get("alg") in (None, algorithm)
    )
