"""Proofs of possession (RFC 9449): that whoever sends a request holds the key it names.

Rule: a proof speaks of one request and is good once.  How old it is, its own time says; where that
cannot be relied on (the clocks differ, or what was used before is no longer known) the server asks
for a proof that holds a nonce of its own, whose time then counts instead.
Source: docs/contract/authorization-server.md 9.5.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from pdpp_kernel.errors import InvalidToken, UseDpopNonce
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.keyed_values import ValueSpace
from personal_server.domain.own_values import (
    OwnSpace,
    OwnValues,
)
from personal_server.domain.possession import PresentedToken, SentProof
from personal_server.reading.proof_token import (
    MAX_JTI,
    Proof,
    normal_url,
    proof_refused,
)

BEHIND_SECONDS = 60
AHEAD_SECONDS = 5
NONCE_SECONDS = 300
REMEMBERED = 65_536
_INTEGER_BYTES, _MEMORY_BYTES = 9, 80


class ProofMemory(msgspec.Struct, frozen=True):
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
        # what checks signatures takes a tenth of the start of each command, and few proofs come
        from personal_server.reading.proof_signatures import opened_proof  # noqa: PLC0415

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
        assert found is not None  # noqa: S101 (it was put at the start)
        return found

    def _needed_nonce(self) -> UseDpopNonce:
        return UseDpopNonce(
            "Send a DPoP proof that contains the nonce from this answer's DPoP-Nonce header.",
            self._nonce(self._now()),
        )

    def _nonce(self, at: int) -> str:
        instant = at.to_bytes(8, "big")
        return _base64url(instant + hmac.digest(self._remembered().secret, instant, "sha256")[:16])

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


def _digest(token: str) -> str:
    return _base64url(hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest())


def _base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
