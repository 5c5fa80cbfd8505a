"""Consent receipts: what was agreed, signed, so that either side can show it later.

Rule: a receipt follows from the grant and from the artifact that was decided on, which never
change; so it is made when it is asked for, and is the same each time.  What was shown stands in it
as a salted digest; the salt and the artifact stay with the owner.
Source: docs/contract/authorization-server.md 11.5.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pdpp_kernel.values import NANOSECONDS, render_instant
from personal_server.consent.credentials import base64url
from personal_server.consent.terms import render_details
from personal_server.granting.holdings import show_held
from personal_server.storage.authorization_rows import ReviewArtifactRow
from personal_server.storage.ports.authorization_store import AuthorizationReader

if TYPE_CHECKING:
    from joserfc.jwk import OKPKey

RECEIPT_TYPE = "pdpp-consent-receipt+jws"
ALGORITHM = "Ed25519"


class ConsentReceipt(msgspec.Struct, frozen=True):
    """A receipt, and what its owner needs to prove what was shown.

    Shapes: `signed` is a JWS in compact form; `salt` 16 bytes; `shown` the artifact, canonical.
    """

    signed: str
    salt: bytes
    shown: bytes


class ConsentReceipts:
    """Makes and signs them.  `seed` gives the server's signing secret, 32 bytes."""

    def __init__(self, seed: Callable[[], bytes]) -> None:
        self._make_seed = seed

    def public_keys(self) -> list[dict[str, object]]:
        """The keys that receipts are verified with, as JWKs."""
        return [dict(self._key.as_dict(private=False))]

    def of(self, reader: AuthorizationReader, held_id: str, now_ns: int) -> ConsentReceipt | None:
        """The receipt of a grant or package; `None` where there is none such.

        A grant that was decided on as part of a package has the package's artifact.
        """
        holding = show_held(reader, held_id, now_ns)
        if holding is None:
            return None
        row = reader.get(ReviewArtifactRow, ReviewArtifactRow.revision.equals(holding.revision))
        if row is None:
            return None
        artifact: Mapping[str, object] = orjson.loads(row.artifact)
        salt = hmac.new(self._seed, b"receipt " + row.revision.encode(), hashlib.sha256)
        salt_kept = salt.digest()[:16]
        members = {
            "iss": artifact["origin"],
            "iat": row.decided_at_ns // NANOSECONDS,
            "decided_at": render_instant(row.decided_at_ns),
            "decided_by": row.channel,
            "client": artifact["client"],
            "access": holding.id,
            "access_mode": artifact["access_mode"],
            "expires_at": artifact["expires_at"],
            **({"replaces": artifact["replaces"]} if "replaces" in artifact else {}),
            "ai_training_consented": artifact["ai_training_consented"],
            "grants": [
                {"grant_id": grant.grant_id, "details": render_details(grant.grant)}
                for grant in holding.grants
                if grant.grant is not None
            ],
            "shown_digest": "sha256:" + hashlib.sha256(salt_kept + row.artifact).hexdigest(),
        }
        header = {"alg": ALGORITHM, "kid": str(self._key.kid), "typ": RECEIPT_TYPE}
        # what signs takes a tenth of the start of each command, and few make a receipt
        from joserfc import jws  # noqa: PLC0415

        signed = jws.serialize_compact(
            header, orjson.dumps(members), self._key, algorithms=[ALGORITHM]
        )
        return ConsentReceipt(signed, salt_kept, row.artifact)

    @cached_property
    def _seed(self) -> bytes:
        return self._make_seed()

    @cached_property
    def _key(self) -> OKPKey:
        from joserfc.jwk import OKPKey  # noqa: PLC0415

        private = Ed25519PrivateKey.from_private_bytes(self._seed)
        public = private.public_key().public_bytes_raw()
        return OKPKey.import_key(
            {
                "kty": "OKP",
                "crv": "Ed25519",
                "x": base64url(public),
                "d": base64url(self._seed),
                "kid": base64url(hashlib.sha256(public).digest()[:12]),
                "use": "sig",
                "alg": ALGORITHM,
            }
        )
