"""Proofs of possession (RFC 9449): that whoever sends a request holds the key it names.

Rule: a proof speaks of one request and is good once.  How old it is, its own time says; where that
cannot be relied on (the clocks differ, or what was used before is no longer known) the server asks
for a proof that holds a nonce of its own, whose time then counts instead.
Source: docs/contract/authorization-server.md 9.5.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

import orjson
from joserfc import jwk, jws
from joserfc.errors import JoseError

from pdpp_kernel.errors import InvalidDpopProof, InvalidToken, UseDpopNonce
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.keyed_values import OwnSpace, OwnValues, ValueSpace
from personal_server.domain.possession import PROOF_ALGORITHMS, PresentedToken, SentProof

MAX_PROOF = 4_096
MAX_JTI = 256
BEHIND_SECONDS = 60
AHEAD_SECONDS = 5
NONCE_SECONDS = 300
REMEMBERED = 65_536
_INTEGER_BYTES, _MEMORY_BYTES = 9, 80
_TYPES = ("dpop+jwt", "application/dpop+jwt")
_PUBLIC = {"ES256": ("kty", "crv", "x", "y"), "Ed25519": ("kty", "crv", "x")}
_CURVES = {"ES256": ("EC", "P-256"), "Ed25519": ("OKP", "Ed25519")}
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
_PORTS = {"http": 80, "https": 443}
_ESCAPED = re.compile(r"%([0-9A-Fa-f]{2})")
_WHY = {
    "header": "send exactly one DPoP header",
    "form": "it is no signed token of ours to read",
    "typ": "its type is dpop+jwt",
    "alg": f"sign it with {' or '.join(PROOF_ALGORITHMS)}",
    "crit": "it asks for extensions",
    "jwk": "its key is missing, of another kind, or holds a private part",
    "signature": "its signature does not fit its key",
    "jti": f"jti has 1 to {MAX_JTI} characters",
    "htm": "htm names another method",
    "htu": "htu names another address",
    "iat": "iat is missing or no number",
    "nonce": "nonce is no text",
    "ath": "ath is not the digest of this access token",
    "replay": "it was used before; make one for each request",
}


@dataclass(frozen=True, slots=True)
class Proof:
    """A proof that says what it has to.  Shapes: `jkt` is the thumbprint of its key (RFC 7638)."""

    jkt: str
    once: bytes
    until_seconds: int


@dataclass(frozen=True, slots=True)
class ProofMemory:
    """Since when uses are remembered, and the secret of the nonces that were given since."""

    secret: bytes
    from_seconds: int


class Proofs:
    """Judges proofs, and remembers which were used for as long as they could be used again.

    Memory is bounded: where it is full, and at every start, all proofs made before count as used,
    and whoever comes with one is asked for a nonce.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        random_bytes: Callable[[int], bytes],
        room: int = REMEMBERED,
        space: ValueSpace | None = None,
    ) -> None:
        kept = space or OwnSpace()
        self._clock = clock
        self._random_bytes = random_bytes
        self._used = kept.values("proofs.used", int, room, _INTEGER_BYTES)
        self._memory = kept.values("proofs.memory", ProofMemory, 1, _MEMORY_BYTES)
        self._sent_here = OwnValues[object](room)
        with self._used.lock:
            if self._memory.get(None) is None:
                self._begin(self._now())

    def admit(self, presented: PresentedToken, bound_to: str | None) -> None:
        """Let a token pass that is presented as it is bound: to a key, or (`None`) to none.

        Raises: InvalidToken, InvalidDpopProof, UseDpopNonce.
        """
        sent = presented.proof
        if sent is None:
            if bound_to is not None:
                raise InvalidToken(
                    "The access token is bound to a key. Send the token with a DPoP proof."
                )
            return
        if bound_to is None:
            raise InvalidToken("The access token is not bound to a key. Send it as a bearer token.")
        proof = self._judge(sent, presented.token)
        if proof.jkt != bound_to:
            raise InvalidToken(
                "The access token is bound to another key than the one that signed the proof."
            )
        self._use_once(proof, sent)

    def key_of(self, sent: SentProof) -> str:
        """The thumbprint of the key that a request without access token proves to hold.

        Raises: InvalidDpopProof, UseDpopNonce.
        """
        proof = self._judge(sent, None)
        self._use_once(proof, sent)
        return proof.jkt

    def _judge(self, sent: SentProof, token: str | None) -> Proof:
        claims, jkt = opened_proof(sent)
        jti = claims.get("jti")
        if not isinstance(jti, str) or not 1 <= len(jti) <= MAX_JTI:
            raise proof_refused("jti")
        if claims.get("htm") != sent.method:
            raise proof_refused("htm")
        named = claims.get("htu")
        if not isinstance(named, str) or normal_url(named) != normal_url(sent.url):
            raise proof_refused("htu")
        if token is not None and claims.get("ath") != _digest(token):
            raise proof_refused("ath")
        until = self._fresh_until(claims)
        once = hashlib.sha256(f"{jkt}\n{jti}".encode("utf-8", "surrogatepass")).digest()[:16]
        return Proof(jkt, once, until)

    def _fresh_until(self, claims: Mapping[str, Any]) -> int:
        """Until when a proof may be used, by its nonce or its own time.

        Raises: InvalidDpopProof, UseDpopNonce.
        """
        now, made, nonce = self._now(), claims.get("iat"), claims.get("nonce")
        if isinstance(made, bool) or not isinstance(made, int | float):
            raise proof_refused("iat")
        if nonce is not None and not isinstance(nonce, str):
            raise proof_refused("nonce")
        if nonce is not None:
            given = self._given_at(nonce)
            if given is None or not now - NONCE_SECONDS <= given <= now:
                raise self._needed_nonce()
            return given + NONCE_SECONDS
        is_timely = now - BEHIND_SECONDS <= made <= now + AHEAD_SECONDS
        if not is_timely or made <= self._remembered().from_seconds:
            raise self._needed_nonce()
        return int(made) + BEHIND_SECONDS

    def _use_once(self, proof: Proof, sent: SentProof) -> None:
        now = self._now()
        with self._used.lock:
            if self._used.get(proof.once) is not None:
                # a request may be judged twice, by the process that it came to
                if self._sent_here.get(proof.once) is sent.sending:
                    return
                raise proof_refused("replay")
            forgotten = self._used.displaced_by(proof.once)
            if forgotten is not None and forgotten >= now:
                self._begin(now)
                raise self._needed_nonce()
            self._used.put(proof.once, proof.until_seconds)
            self._sent_here.put(proof.once, sent.sending)

    def _begin(self, now: int) -> None:
        """Know of no use; what may have been used until now is not believed any more."""
        self._used.clear()
        self._memory.put(None, ProofMemory(self._random_bytes(32), now + AHEAD_SECONDS))

    def _remembered(self) -> ProofMemory:
        found = self._memory.get(None)
        if found is None:
            raise AssertionError("it was put at the start")
        return found

    def _needed_nonce(self) -> UseDpopNonce:
        return UseDpopNonce(
            "Send a DPoP proof that contains the nonce from this answer's DPoP-Nonce header.",
            self._nonce(self._now()),
        )

    def _nonce(self, at: int) -> str:
        told = at.to_bytes(8, "big")
        return _base64url(told + hmac.digest(self._remembered().secret, told, "sha256")[:16])

    def _given_at(self, nonce: str) -> int | None:
        """When we gave a nonce; `None` for one that is not ours, or of before."""
        try:
            raw = urlsafe_b64decode(nonce.encode("ascii"))
        except ValueError:
            return None
        at = int.from_bytes(raw[:8], "big")
        own = len(raw) == 24 and hmac.compare_digest(self._nonce(at), nonce)
        return at if own else None

    def _now(self) -> int:
        return self._clock() // NANOSECONDS


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


def _digest(token: str) -> str:
    return _base64url(hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest())


def _base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
