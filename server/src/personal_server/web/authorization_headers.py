"""Access tokens: from the `Authorization` header to the challenge.

Rule: this module knows the header's syntax and the challenge; what a token stands for is known to
whoever the surface hands in.  Cookies and query parameters are never credentials.
"""

from __future__ import annotations

from pdpp_kernel.errors import AuthenticationRequired, InvalidDpopProof, PersonalServerError
from personal_server.domain.possession import PROOF_ALGORITHMS

_SCHEMES = ("bearer", "dpop")


def sent_token(authorization: str | None) -> str | None:
    """The access token of an `Authorization` header, however it is presented."""
    scheme, _, token = (authorization or "").strip().partition(" ")
    return token.strip() or None if scheme.lower() in _SCHEMES else None


def shows_proof(authorization: str | None) -> bool:
    """Whether a token is presented with a proof of possession."""
    return (authorization or "").strip().partition(" ")[0].lower() == "dpop"


def metadata_url(origin: str, resource: str = "") -> str:
    """Where the protected resource of a path (`""`: the origin itself) describes itself."""
    return f"{origin}/.well-known/oauth-protected-resource{resource}"


def challenge(
    error: PersonalServerError, origin: str, resource: str = "", *, with_proof: bool = False
) -> str:
    """`WWW-Authenticate` of a 401; `error` stands in it only when a token was sent.

    It names the scheme that the token came with; without a token both are offered.
    Source: docs/contract/resource-server.md 3; docs/contract/authorization-server.md 12.2.
    """
    algorithms = f'algs="{" ".join(PROOF_ALGORITHMS)}"'
    where = f'resource_metadata="{metadata_url(origin, resource)}", scope="pdpp:read"'
    if isinstance(error, AuthenticationRequired):
        return f"Bearer {where}, DPoP {algorithms}"
    code = error.code if isinstance(error, InvalidDpopProof) else "invalid_token"
    what = f'error="{code}", error_description="{error.message}"'
    return f"DPoP {where}, {what}, {algorithms}" if with_proof else f"Bearer {where}, {what}"
