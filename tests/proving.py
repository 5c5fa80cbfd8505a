"""Keys and proofs of possession as a client makes them (RFC 9449), good and bad in every way."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from dataclasses import dataclass, field
from typing import Any

from joserfc import jwk, jws

from personal_server.domain.possession import PresentedToken
from personal_server.reading.proofs import Proofs

SECONDS = 10**9


def unproven(now_ns: int = 1) -> Proofs:
    """A judge of proofs that none will come to."""
    return Proofs(lambda: now_ns, bytes)


def bearer(token: str) -> PresentedToken:
    return PresentedToken(token)


def digest_of(token: str) -> str:
    digest = hashlib.sha256(token.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def segment(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


@dataclass
class Holder:
    """Holds a key, and proves it; `nonce` is what the server gave last."""

    key: Any = field(default_factory=lambda: jwk.ECKey.generate_key("P-256"))
    alg: str = "ES256"
    nonce: str | None = None

    @property
    def jkt(self) -> str:
        return self.key.thumbprint()

    def proof(
        self,
        method: str,
        url: str,
        now_ns: int,
        *,
        token: str | None = None,
        header: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A proof; a claim or member of the header that is given as `None` is left out."""
        said = {
            "jti": str(uuid.uuid4()),
            "htm": method,
            "htu": url,
            "iat": now_ns // SECONDS,
            "ath": None if token is None else digest_of(token),
            "nonce": self.nonce,
            **claims,
        }
        public = self.key.as_dict(private=False)
        head = {"typ": "dpop+jwt", "alg": self.alg, "jwk": public, **(header or {})}
        head = {name: value for name, value in head.items() if value is not None}
        said = {name: value for name, value in said.items() if value is not None}
        payload = json.dumps(said).encode()
        return jws.serialize_compact(head, payload, self.key, algorithms=[self.alg])
