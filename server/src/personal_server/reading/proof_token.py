"""The token of a proof of possession: parsed, its signature checked with the key that it brings.

Source: RFC 9449 4.2 and 4.3; docs/contract/authorization-server.md.
Raises: InvalidDpopProof, whose `reason` says which check failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
from joserfc import jwk, jws
from joserfc.errors import JoseError

from pdpp_kernel.errors import InvalidDpopProof
from personal_server.domain.possession import PROOF_ALGORITHMS, SentProof

MAX_JTI = 256
MAX_PROOF = 4_096


_TYPES = ("dpop+jwt", "application/dpop+jwt")
_PUBLIC = {"ES256": ("kty", "crv", "x", "y"), "Ed25519": ("kty", "crv", "x")}
_CURVES = {"ES256": ("EC", "P-256"), "Ed25519": ("OKP", "Ed25519")}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
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


@dataclass(frozen=True, slots=True)
class Proof:
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


def opened_proof(sent: SentProof) -> tuple[Mapping[str, Any], str]:
    """The claims of a proof whose signature fits the key in it, and that key's thumbprint.

    Raises: InvalidDpopProof.
    """
    if len(sent.texts) != 1:
        raise proof_refused("header")
    header, claims = _read(sent.texts[0])
    if str(header.get("typ")).lower() not in _TYPES:
        raise proof_refused("typ")
    algorithm = header.get("alg")
    if algorithm not in PROOF_ALGORITHMS:
        raise proof_refused("alg")
    if "crit" in header or header.get("b64") is False:
        raise proof_refused("crit")
    key = _key(header.get("jwk"), algorithm)
    try:
        jws.deserialize_compact(sent.texts[0], key, algorithms=[algorithm])
    except (JoseError, ValueError, TypeError):
        raise proof_refused("signature") from None
    return claims, key.thumbprint()


def _read(text: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    try:
        if len(text) > MAX_PROOF:
            raise proof_refused("form")
        found = jws.extract_compact(text.encode("ascii"))
        claims = orjson.loads(found.payload)
    except (JoseError, ValueError):
        raise proof_refused("form") from None
    if not isinstance(claims, dict):
        raise proof_refused("form")
    return found.headers(), cast("dict[str, Any]", claims)


def _key(sent: object, algorithm: str) -> jwk.Key:
    """The public key of a header, of its public members alone.  Raises: InvalidDpopProof."""
    if not isinstance(sent, dict):
        raise proof_refused("jwk")
    members = cast("dict[str, object]", sent)
    kind = (members.get("kty"), members.get("crv"))
    if kind != _CURVES[algorithm] or members.keys() & _PRIVATE:
        raise proof_refused("jwk")
    public = {name: members.get(name) for name in _PUBLIC[algorithm]}
    if not all(isinstance(value, str) for value in public.values()):
        raise proof_refused("jwk")
    try:
        return jwk.import_key(cast("Any", public))
    except (JoseError, ValueError, TypeError):
        raise proof_refused("jwk") from None


def proof_refused(reason: str) -> InvalidDpopProof:
    """The refusal of a proof; `reason` is a key of `_WHY`."""
    return InvalidDpopProof(f"The DPoP proof is not valid: {_WHY[reason]}.", reason=reason)
