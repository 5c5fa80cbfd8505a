"""What a proof of possession has to say, and why one is refused.

Source: RFC 9449 4.2 and 4.3; docs/contract/authorization-server.md.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import msgspec

from pdpp_kernel.errors import InvalidDpopProof
from personal_server.domain.possession import PROOF_ALGORITHMS

MAX_JTI = 256


_PORTS = {"http": 80, "https": 443}
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_WHY = {
    "header": "send exactly one DPoP header",
    "form": "the proof is not a readable signed token",
    "typ": "the type of the proof must be dpop+jwt",
    "alg": f"the proof must be signed with {' or '.join(PROOF_ALGORITHMS)}",
    "crit": "the proof requires extensions",
    "jwk": "the key of the proof is missing, of another kind, or contains a private part",
    "signature": "the signature of the proof does not fit its key",
    "jti": f"jti must have 1 to {MAX_JTI} characters",
    "htm": "htm names another method than the request's",
    "htu": "htu names another address than the request's",
    "iat": "iat is missing or not a number",
    "nonce": "nonce must be a string",
    "ath": "ath is not the digest of this access token",
    "replay": "the proof was used before; make a new one for each request",
}


class Proof(msgspec.Struct, frozen=True):
    """A proof that says what it has to.  Shapes: `jkt` is the thumbprint of its key (RFC 7638)."""

    jkt: str
    once: bytes
    until_seconds: int


def normal_url(url: str) -> str | None:
    """An address as two that mean the same are compared, without query; `None` for none.

    Source: RFC 3986 6.2.2, 6.2.3.  Dot segments stay: the server does not resolve them either.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    scheme, host = parts.scheme.lower(), parts.hostname
    if not host or "@" in parts.netloc:
        return None
    name = f"[{host}]" if ":" in host else host
    shown = "" if port in (None, _PORTS.get(scheme)) else f":{port}"
    return f"{scheme}://{name}{shown}{_ESCAPED.sub(_normal_escape, parts.path) or '/'}"


def _normal_escape(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    unreserved = character.isascii() and (character.isalnum() or character in "-._~")
    return character if unreserved else match[0].upper()


def proof_refused(reason: str) -> InvalidDpopProof:
    """The refusal of a proof; `reason` is a key of `_WHY`."""
    return InvalidDpopProof(f"The DPoP proof is not valid: {_WHY[reason]}.", reason=reason)
