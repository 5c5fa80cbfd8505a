"""A token as a request presents it: alone, or with a proof that whoever sends it holds a key.

Rule: nothing here is believed yet.  Source: docs/contract/authorization-server.md 9.5; RFC 9449.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pdpp_kernel.unprinted import Unprinted

PROOF_ALGORITHMS = ("ES256", "Ed25519")
"""Curves only: the caller brings the key, and must not choose how long checking it takes."""


@dataclass(frozen=True, slots=True)
class SentProof:
    """The `DPoP` headers of a request, and what a proof has to say of it.

    Shapes: `url` is without query; `sending` stands for the request, which may be judged twice.
    """

    texts: tuple[str, ...] = field(repr=False)
    method: str
    url: str
    sending: object = field(default_factory=object, repr=False, compare=False)


class PresentedToken(Unprinted, frozen=True):
    """An access token in an `Authorization` header; without a `proof` it came as a bearer."""

    token: str
    proof: SentProof | None = None
