"""The token of a proof of possession: parsed, its signature checked with the key that it brings.

Source: RFC 9449 4.2 and 4.3; docs/contract/authorization-server.md.
Raises: InvalidDpopProof, whose `reason` says which check failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import orjson
from joserfc import jwk, jws
from joserfc.errors import JoseError

from personal_server.domain.possession import PROOF_ALGORITHMS, SentProof
from personal_server.reading.proof_token import proof_refused

MAX_PROOF = 4_096
_TYPES = ("dpop+jwt", "application/dpop+jwt")
_PUBLIC = {"ES256": ("kty", "crv", "x", "y"), "Ed25519": ("kty", "crv", "x")}
_CURVES = {"ES256": ("EC", "P-256"), "Ed25519": ("OKP", "Ed25519")}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


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
    try:
        return jwk.import_key(cast("Any", public))
    except (JoseError, ValueError, TypeError):
        raise proof_refused("jwk") from None
