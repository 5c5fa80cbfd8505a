"""The keys that this computer's credentials are bound to, and the proofs made with them (RFC 9449).

Rule: a key lies apart from the credential that it opens, in the home of its user: a cache that is
copied, shared or committed with the directory it stands in is worth nothing to whoever has it.
Source: docs/contract/authorization-server.md 9.5, 14.2.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from pdpp_kernel.unprinted import Unprinted
from pdpp_mcp_server.kept_values import kept_property
from pdpp_mcp_server.rs_client.credential_cache import ROOT_NAME, CredentialCache
from pdpp_mcp_server.rs_client.credentials import (
    Credential,
    CredentialInvalid,
    Document,
    connect_hint,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ALGORITHM = "ES256"
FOLDER = "keys"
_SIZE = 32


@dataclass
class ProofKey:
    """A key, and the nonce that the server gave last.  `secret` is the private number."""

    secret: bytes = field(default_factory=lambda: _fresh(), repr=False)
    clock: Callable[[], int] = time_ns
    nonce: str | None = None

    @kept_property
    def _private(self) -> EllipticCurvePrivateKey:
        from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 (start-up time)

        return ec.derive_private_key(int.from_bytes(self.secret, "big"), ec.SECP256R1())

    @kept_property
    def public(self) -> Mapping[str, str]:
        """The public key, as a proof names it (RFC 7517)."""
        numbers = self._private.public_key().public_numbers()
        x, y = (_base64url(n.to_bytes(_SIZE, "big")) for n in (numbers.x, numbers.y))
        return {"crv": "P-256", "kty": "EC", "x": x, "y": y}

    @kept_property
    def jkt(self) -> str:
        """Its thumbprint (RFC 7638)."""
        canonical = json.dumps(self.public, sort_keys=True, separators=(",", ":"))
        return _base64url(hashlib.sha256(canonical.encode()).digest())

    def proof(self, method: str, url: str, token: str | None = None) -> str:
        """A proof for one request, which may carry an access token."""
        parts = urlsplit(url)
        claims: dict[str, object] = {
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": f"{parts.scheme}://{parts.netloc}{parts.path}",
            "iat": self.clock() // 1_000_000_000,
        }
        if token is not None:
            claims["ath"] = _base64url(hashlib.sha256(token.encode()).digest())
        if self.nonce is not None:
            claims["nonce"] = self.nonce
        header = {"typ": "dpop+jwt", "alg": ALGORITHM, "jwk": self.public}
        signed = ".".join(_base64url(json.dumps(part).encode()) for part in (header, claims))
        return f"{signed}.{_base64url(self._sign(signed.encode()))}"

    def headers(self, method: str, url: str, token: str) -> dict[str, str]:
        """How a request presents a token that is bound to this key."""
        return {"Authorization": f"DPoP {token}", "DPoP": self.proof(method, url, token)}

    def learn(self, status: int, headers: Mapping[str, str]) -> bool:
        """Keep the nonce of an answer; whether the request has to be made again with it."""
        given = headers.get("dpop-nonce")
        if given is None or given == self.nonce:
            return False
        self.nonce = given
        return status in (400, 401)

    def _sign(self, text: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 (start-up time)
        from cryptography.hazmat.primitives.asymmetric import ec, utils  # noqa: PLC0415

        signature = self._private.sign(text, ec.ECDSA(hashes.SHA256()))
        r, s = utils.decode_dss_signature(signature)
        return r.to_bytes(_SIZE, "big") + s.to_bytes(_SIZE, "big")


class KeyRing(Unprinted, frozen=True):
    """The keys of one user, each in a file of its own named by its thumbprint."""

    cache: CredentialCache
    held: dict[str, ProofKey] = msgspec.field(default_factory=dict[str, ProofKey])

    def keep(self, key: ProofKey) -> None:
        """Write a key.  Raises: CredentialInsecure."""
        self.cache.keep_file(_name(key.jkt), {"kty": "EC", "d": _base64url(key.secret)})
        self.held[key.jkt] = key

    def of(self, credential: Credential) -> ProofKey | None:
        """The key that a credential is bound to; `None` for one that is bound to none.

        Raises: CredentialInvalid where it is not here, CredentialInsecure.
        """
        jkt = credential.jkt
        if jkt is None:
            return None
        if jkt not in self.held:
            self.held[jkt] = self._read(jkt, credential.provider_url)
        return self.held[jkt]

    def forget(self, credential: Credential) -> None:
        """Remove the key of a credential, if there is one."""
        if credential.jkt is not None:
            with suppress(FileNotFoundError):
                self.cache.remove_file(_name(credential.jkt))

    def _read(self, jkt: str, provider_url: str) -> ProofKey:
        missing = CredentialInvalid(
            "The key that the saved credential is bound to is not in this user account.",
            connect_hint(provider_url),
        )
        try:
            document: Document = self.cache.read_file(_name(jkt))
        except FileNotFoundError:
            raise missing from None
        secret = document.get("d")
        try:
            key = ProofKey(_bytes(secret if isinstance(secret, str) else ""))
            if key.jkt == jkt:
                return key
        except ValueError:
            pass
        raise missing


def own_keys() -> KeyRing:
    """The keys of whoever runs this."""
    return KeyRing(CredentialCache(Path.home() / ROOT_NAME, folder=FOLDER))


def _name(jkt: str) -> str:
    return f"{jkt}.json"


def _fresh() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 (start-up time)

    numbers = ec.generate_private_key(ec.SECP256R1()).private_numbers()
    return numbers.private_value.to_bytes(_SIZE, "big")


def _base64url(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
