"""The authorization code flow with a listener on this computer.

Rule: `state` and `iss` are checked before a code is used; the listener answers one path, on
127.0.0.1 only, and is gone when the block ends.  Source: AS contract 14.1, `--loopback`; RFC 8252.
"""

from __future__ import annotations

import base64
import hashlib
import queue
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

from personal_server.rs_client.authorizing import RequestRefused, denied
from personal_server.rs_client.credentials import ApprovalExpired, ConnectNotSupported
from personal_server.rs_client.discovery import Provider

PATH = "/callback"
SECRET_BYTES = 32
DONE = b"<!doctype html><title>Done</title><p>Done. You can close this window.</p>"


class Listener(ThreadingHTTPServer):
    """Waits for the browser to come back."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Callback)
        self.answers: queue.Queue[dict[str, str]] = queue.Queue()

    @property
    def redirect_uri(self) -> str:
        """Where the browser is sent back to."""
        return f"http://127.0.0.1:{self.server_port}{PATH}"

    def answer(self, timeout_seconds: float) -> dict[str, str]:
        """The parameters the browser came back with.  Raises: ApprovalExpired."""
        try:
            return self.answers.get(timeout=timeout_seconds)
        except queue.Empty:
            raise ApprovalExpired("Nobody decided in time.", "Run the command again.") from None


class _Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Take the answer of the authorization server."""
        parts = urlsplit(self.path)
        listener = self.server
        found = parts.path == PATH and isinstance(listener, Listener)
        self.send_response(200 if found else 404)
        self.send_header("content-type", "text/html; charset=utf-8")
        self.send_header("cache-control", "no-store")
        self.end_headers()
        if found and isinstance(listener, Listener):
            self.wfile.write(DONE)
            query = parse_qs(parts.query, keep_blank_values=True)
            listener.answers.put({name: values[-1] for name, values in query.items()})

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the path holds a code."""


@contextmanager
def listening() -> Generator[Listener]:
    """A listener that serves while the block runs."""
    with Listener() as listener:
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        try:
            yield listener
        finally:
            listener.shutdown()
            thread.join()


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """The parameters of one authorization request and the secrets that guard its answer."""

    parameters: dict[str, str] = field(repr=False)
    verifier: str = field(repr=False)
    state: str = field(repr=False)

    def address(self, provider: Provider, carried: dict[str, str]) -> str:
        """Where the browser begins.  Raises: ConnectNotSupported."""
        if provider.authorization is None:
            raise ConnectNotSupported("The server has no authorization page.", "Use --device.")
        return f"{provider.authorization}?{urlencode(carried)}"

    def code(self, provider: Provider, answer: dict[str, str]) -> str:
        """The code of an answer that is ours.  Raises: ApprovalDenied, RequestRefused."""
        if answer.get("state") != self.state or answer.get("iss", provider.issuer) != (
            provider.issuer
        ):
            raise RequestRefused(
                "The browser came back with an answer to another request.", "Run it again."
            )
        if answer.get("error") == "access_denied":
            raise denied()
        code = answer.get("code")
        if not code:
            raise RequestRefused(
                f"The server refused the request: {answer.get('error', 'no code')[:80]}.",
                "Check what you asked for.",
            )
        return code


def code_request(
    client_id: str,
    redirect_uri: str,
    resource: str,
    scope: str,
    details: str | None,
    random_bytes: Callable[[int], bytes],
) -> CodeRequest:
    """A request with a fresh state and S256 challenge."""
    verifier, state = _secret(random_bytes), _secret(random_bytes)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    parameters = {
        "response_type": "code",
        "client_id": client_id,
        "redirect_uri": redirect_uri,
        "code_challenge": challenge.rstrip(b"=").decode(),
        "code_challenge_method": "S256",
        "resource": resource,
        "scope": scope,
        "state": state,
    }
    if details is not None:
        parameters["authorization_details"] = details
    return CodeRequest(parameters, verifier, state)


def _secret(random_bytes: Callable[[int], bytes]) -> str:
    return base64.urlsafe_b64encode(random_bytes(SECRET_BYTES)).rstrip(b"=").decode()
