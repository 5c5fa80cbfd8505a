"""A provider of sign-ins for tests: device and browser flow, tokens that rotate, introspection.

A refresh token is taken once; a client that shows one again has all its tokens ended.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

USER_CODE = "WDJB-MJHT"
CODE, DEVICE_CODE = "code-1", "device-1"


@dataclass
class OAuthProviderDouble:
    """What it knows, and was asked.

    Units: `lasts_seconds` of access tokens, `renewable_seconds` of refresh tokens where it says so.
    """

    user: str
    address: str = ""
    client_secret: str | None = None
    lasts_seconds: int = 3_600
    renewable_seconds: int | None = None
    active: set[str] = field(default_factory=set[str])
    renewals: int = 0
    challenge: str = ""
    asked: dict[str, str] = field(default_factory=dict[str, str])
    _number: int = 0
    _refresh: str = ""

    def tokens(self) -> dict[str, object]:
        """A new pair; the refresh token before is no more."""
        self._number += 1
        token, self._refresh = f"access-{self._number}", f"refresh-{self._number}"
        self.active = {token}
        found: dict[str, object] = {
            "access_token": token,
            "refresh_token": self._refresh,
            "token_type": "Bearer",
            "expires_in": self.lasts_seconds,
        }
        if self.renewable_seconds is not None:
            found["refresh_token_expires_in"] = self.renewable_seconds
        return found

    def end(self) -> None:
        """The owner takes the access back."""
        self.active, self._refresh = set(), ""

    def token_answer(self, form: dict[str, str]) -> dict[str, object]:
        """What the token endpoint answers."""
        if form.get("client_secret") != self.client_secret:
            return {"error": "invalid_client"}
        match form.get("grant_type"):
            case "refresh_token" if form.get("refresh_token") == self._refresh != "":
                self.renewals += 1
                return self.tokens()
            case "authorization_code" if form.get("code") == CODE:
                digest = hashlib.sha256(form["code_verifier"].encode()).digest()
                if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == self.challenge:
                    return self.tokens()
            case str() as grant if grant.endswith("device_code"):
                if form.get("device_code") == DEVICE_CODE:
                    return self.tokens()
            case _:
                pass
        self.end()
        return {"error": "invalid_grant"}

    def answer(self, path: str, form: dict[str, str]) -> dict[str, object] | None:
        """What a path answers; None for one that it does not have."""
        match path:
            case "/.well-known/oauth-authorization-server":
                return {
                    "issuer": self.address,
                    "authorization_endpoint": f"{self.address}/authorize",
                    "token_endpoint": f"{self.address}/token",
                    "device_authorization_endpoint": f"{self.address}/device",
                }
            case "/device" if form.get("client_secret") != self.client_secret:
                return {"error": "invalid_client"}
            case "/device":
                self.asked = form
                return {
                    "device_code": DEVICE_CODE,
                    "user_code": USER_CODE,
                    "verification_uri": f"{self.address}/typed",
                    "expires_in": 60,
                    "interval": 0.01,
                }
            case "/token":
                return self.token_answer(form)
            case "/introspect":
                is_active = form.get("token") in self.active
                return {"active": is_active, "username": self.user, "token_type": "Bearer"}
            case _:
                return None

    def returned_to(self, query: dict[str, str]) -> str:
        """Where a browser goes once its owner allowed access."""
        self.asked, self.challenge = query, query["code_challenge"]
        back = urlencode({"code": CODE, "state": query["state"]})
        return f"{query['redirect_uri']}?{back}"


@contextmanager
def oauth_provider(user: str) -> Generator[OAuthProviderDouble]:
    """One that answers while the block lasts."""
    double = OAuthProviderDouble(user)

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", double.returned_to(query))
                self.end_headers()
                return
            self._say(double.answer(parts.path, query))

        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            form = dict(parse_qsl(self.rfile.read(size).decode()))
            self._say(double.answer(urlsplit(self.path).path, form))

        def _say(self, answer: dict[str, object] | None) -> None:
            content = json.dumps(answer).encode()
            failed = answer is None or "error" in answer
            self.send_response(400 if failed else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        double.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield double
        finally:
            server.shutdown()
            thread.join()
