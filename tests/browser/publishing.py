"""What hosts publish about themselves, over https on this machine.

Documents in the shapes of Claude (`none`) and ChatGPT (`private_key_jwt` with a `jwks_uri`), and a
certificate that is good for their names.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from joserfc import jwk
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.browser.chromium import served

CLAUDE = "https://claude.example/oauth/mcp-oauth-client-metadata"
CHATGPT = "https://chatgpt.example/oauth/client.json"
CHATGPT_KEYS = "https://chatgpt.example/oauth/jwks.json"
REDIRECTS = ("http://localhost/callback", "http://127.0.0.1/callback")
NAMES = tuple(str(urlsplit(url).hostname) for url in (CLAUDE, CHATGPT))
KEY = jwk.ECKey.generate_key("P-256", {"kid": "k1", "use": "sig", "alg": "ES256"}, private=True)


def claude() -> dict[str, Any]:
    return {
        "client_id": CLAUDE,
        "client_name": "Claude",
        "client_uri": "https://claude.example",
        "redirect_uris": ["https://claude.example/api/mcp/auth_callback", *REDIRECTS],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }


def chatgpt() -> dict[str, Any]:
    return {
        "client_id": CHATGPT,
        "client_name": "ChatGPT",
        "redirect_uris": ["https://chatgpt.example/connector/oauth/callback", *REDIRECTS],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "private_key_jwt",
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "token_endpoint_auth_signing_alg": "ES256",
        "jwks_uri": CHATGPT_KEYS,
    }


def published() -> dict[str, Any]:
    """URL → the JSON that stands there."""
    keys = {"keys": [KEY.as_dict(private=False)]}
    return {CLAUDE: claude(), CHATGPT: chatgpt(), CHATGPT_KEYS: keys}


@dataclass(frozen=True, slots=True)
class Publisher:
    """The listening host: its port, the certificate to trust, and the URLs it was asked for."""

    port: int
    certificate: Path
    asked: list[str] = field(default_factory=list[str])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        url = f"https://{request.headers['host']}{request.url.path}"
        self.asked.append(url)
        found = published().get(url)
        answer = JSONResponse(found) if found is not None else Response(status_code=404)
        await answer(scope, receive, send)


@contextmanager
def publishing(folder: Path, port: int) -> Generator[Publisher]:
    """Serve the documents while the block runs."""
    certificate, key = write_certificate(folder)
    host = Publisher(port, certificate)
    tls = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key)}
    with served(host, port, **tls):
        yield host


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for the names of the documents, good for an hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Test documents")])
    now = datetime.datetime.now(datetime.UTC)
    alternatives = x509.SubjectAlternativeName([x509.DNSName(host) for host in NAMES])
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(alternatives, critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "documents.pem", folder / "documents.key"
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate, secret
