"""What hosts publish of themselves, and how they prove themselves with it."""

from __future__ import annotations

from typing import Any

from joserfc import jwk, jwt

URL = "https://app.example/client.json"
JWKS = "https://app.example/jwks.json"
TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
KEY = jwk.ECKey.generate_key("P-256", {"kid": "k1", "use": "sig"}, private=True)
RSA = jwk.RSAKey.generate_key(2048, {"kid": "r1"}, private=True)


def public(*keys: Any) -> dict[str, Any]:
    return {"keys": [key.as_dict(private=False) for key in keys]}


def claude(**over: Any) -> dict[str, Any]:
    return {
        "client_id": URL,
        "client_name": "Claude",
        "redirect_uris": ["https://app.example/callback", "http://127.0.0.1/cb"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        **over,
    }


def chatgpt(**over: Any) -> dict[str, Any]:
    return claude(
        **{
            "client_name": "ChatGPT",
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_methods_supported": ["private_key_jwt"],
            "jwks_uri": JWKS,
            **over,
        }
    )


def assertion(app: Any, key: Any = KEY, header: Any = None, **over: Any) -> str:
    now = app.server.now_ns // 10**9
    claims: dict[str, Any] = {
        "iss": URL,
        "sub": URL,
        "aud": "https://me.example/oauth/token",
        "iat": now,
        "exp": now + 300,
        "jti": f"j{len(app.server.events())}-{over.pop('n', 0)}",
        **over,
    }
    claims = {name: value for name, value in claims.items() if value is not None}
    head: dict[str, Any] = {"alg": "ES256", "kid": "k1", **(header or {})}
    head = {name: value for name, value in head.items() if value is not None}
    return jwt.encode(head, claims, key, algorithms=[str(head["alg"])])


def proof(app: Any, **over: Any) -> dict[str, str]:
    return {"client_assertion_type": TYPE, "client_assertion": assertion(app, **over)}
