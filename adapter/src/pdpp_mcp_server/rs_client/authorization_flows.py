"""Getting a first credential: registration, device authorization, authorization code, revocation.

Rule: an OAuth client like any other; secrets stand in the values returned and nowhere else. In the
code flow `state` and `iss` are checked before a code is used; its listener answers one path, on
127.0.0.1 only, and is gone when the block ends.
Source: docs/contract/authorization-server.md 3.2, 5, 8, 9, 10.2, 14.1; RFC 8252.
"""

from __future__ import annotations

import base64
import hashlib
import json
import queue
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from pdpp_kernel.unprinted import Unprinted
from pdpp_mcp_server.rs_client.credentials import (
    ApprovalDenied,
    ApprovalExpired,
    ConnectNotSupported,
    CredentialError,
    MetadataFailure,
    ProviderUnavailable,
)
from pdpp_mcp_server.rs_client.discovery import (
    JsonResponse,
    Provider,
    ProviderExchange,
    unavailable,
)

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
REDIRECT = "http://127.0.0.1/callback"
SCOPE = "pdpp:read offline_access"
OWNER_SCOPE, OWNER_CLIENT, CLI_CLIENT = "pdpp:owner", "pdpp-owner-cli", "pdpp-cli"
SLOW_DOWN_SECONDS = 5
CALLBACK_PATH = "/callback"
_PAGE = re.compile(r"https?://[^\s\\@/?#]+([/?#]\S*)?\Z", re.IGNORECASE)
SECRET_BYTES = 32
DONE = b'<!doctype html><title>Done</title><p id="done">Done. You can close this window.</p>'

Details = Sequence[Mapping[str, object]]


class RequestRefused(CredentialError):
    """The server refuses the request itself; its own code says why."""

    code = "usage"


class ClientForgotten(RequestRefused):
    """The server does not know this client, or no longer."""


class DeviceOffer(Unprinted, frozen=True):
    """What the person is shown, and what the device polls with.  Units: seconds."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str
    expires_in: float
    interval: float


def register(exchange: ProviderExchange, provider: Provider, name: str) -> str:
    """The client id of a fresh registration; the built-in client where registration is off.

    Raises: ConnectNotSupported, ProviderUnavailable.
    """
    if provider.registration is None:
        if CLI_CLIENT in provider.public_clients:
            return CLI_CLIENT
        raise ConnectNotSupported(
            "The server neither registers clients nor knows one for the command line.",
            "Ask the server's operator to turn registration on (PDPP_DCR=on).",
        )
    body = {
        "client_name": name,
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token", DEVICE_GRANT],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
        "scope": SCOPE,
    }
    reply = exchange.post_json(provider.registration, body)
    client_id = reply.text("client_id")
    if not reply.ok or client_id is None:
        raise _refused(reply, "The server did not register this client")
    return client_id


def ask_for_device(
    exchange: ProviderExchange, provider: Provider, client_id: str, details: Details | None
) -> DeviceOffer:
    """Begin a grant-scoped device authorization.

    Raises: ConnectNotSupported, RequestRefused, ProviderUnavailable.
    """
    form = {"client_id": client_id, "scope": SCOPE, "resource": provider.origin}
    if details is not None:
        form["authorization_details"] = json.dumps(list(details), ensure_ascii=False)
    return begin_device(exchange, provider, form)


def ask_as_owner(exchange: ProviderExchange, provider: Provider) -> DeviceOffer:
    """Begin the owner profile.  Raises: as `ask_for_device`."""
    return begin_device(exchange, provider, {"client_id": OWNER_CLIENT, "scope": OWNER_SCOPE})


class PollWait(msgspec.Struct, frozen=True):
    """How polling passes the time.  Units: seconds."""

    sleep: Callable[[float], None]
    monotonic: Callable[[], float]
    timeout: float | None = None


def poll_device(
    exchange: ProviderExchange,
    provider: Provider,
    client_id: str,
    offer: DeviceOffer,
    waiting: PollWait,
    client_secret: str | None = None,
) -> Mapping[str, object]:
    """The token response, once the owner has decided.

    Raises: ApprovalDenied, ApprovalExpired, RequestRefused, ProviderUnavailable.
    """
    form = {"grant_type": DEVICE_GRANT, "device_code": offer.device_code, "client_id": client_id}
    if client_secret is not None:
        form["client_secret"] = client_secret
    limit = offer.expires_in if waiting.timeout is None else min(waiting.timeout, offer.expires_in)
    until = waiting.monotonic() + limit
    interval = offer.interval
    end: CredentialError = _too_late()
    while waiting.monotonic() + interval <= until:
        waiting.sleep(interval)
        try:
            reply = exchange.post_form(provider.token, form)
        except ProviderUnavailable as error:  # restarting, perhaps: RFC 8628 section 3.5
            end, interval = error, interval + SLOW_DOWN_SECONDS
            continue
        end = _too_late()
        if reply.ok:
            return tokens_of(reply)
        match reply.error:
            case "authorization_pending":
                continue
            case "slow_down":
                interval += SLOW_DOWN_SECONDS
            case "access_denied":
                raise denied()
            case "expired_token":
                raise end
            case _:
                raise _refused(reply, "The server did not give access")
    raise end


def _too_late() -> ApprovalExpired:
    return ApprovalExpired("Nobody decided in time.", "Run the command again.")


def push_request(
    exchange: ProviderExchange, provider: Provider, parameters: Mapping[str, str]
) -> dict[str, str]:
    """What the browser carries: a pushed request's handle, or all parameters without PAR.

    Raises: RequestRefused, ProviderUnavailable.
    """
    if provider.pushed_request is None:
        return dict(parameters)
    reply = exchange.post_form(provider.pushed_request, parameters)
    request_uri = reply.text("request_uri")
    if not reply.ok or request_uri is None:
        raise _refused(reply, "The server did not accept the request")
    return {"client_id": parameters["client_id"], "request_uri": request_uri}


def redeem_code(
    exchange: ProviderExchange, provider: Provider, form: Mapping[str, str]
) -> Mapping[str, object]:
    """The token response for an authorization code.  Raises: RequestRefused."""
    reply = exchange.post_form(provider.token, {"grant_type": "authorization_code", **form})
    if not reply.ok:
        raise _refused(reply, "The server did not exchange the code")
    return tokens_of(reply)


def revoke(exchange: ProviderExchange, provider: Provider, client_id: str, token: str) -> None:
    """Give a token back (RFC 7009).  Raises: ConnectNotSupported, ProviderUnavailable."""
    if provider.revocation is None:
        raise ConnectNotSupported(
            "The server has no revocation endpoint.",
            "Use --local to delete the saved credential here, and end the grant on the server.",
        )
    reply = exchange.post_form(provider.revocation, {"token": token, "client_id": client_id})
    if not reply.ok:
        raise _refused(reply, "The server did not accept the returned token")


def tokens_of(reply: JsonResponse) -> Mapping[str, object]:
    """A token response that has a token.  Raises: MetadataFailure."""
    if reply.text("access_token") is None:
        raise MetadataFailure(
            "The server's answer contains no token.", "Check the server's version."
        )
    return reply.body


def denied() -> ApprovalDenied:
    """The error of a request that the owner denied."""
    return ApprovalDenied(
        "The owner denied the request, or what was asked for cannot be granted.",
        (
            "Ask for something else, or let the owner choose: run the command without "
            "naming what to read."
        ),
    )


def begin_device(
    exchange: ProviderExchange, provider: Provider, form: Mapping[str, str]
) -> DeviceOffer:
    """Begin a device authorization (RFC 8628).

    Raises: ConnectNotSupported, RequestRefused, ProviderUnavailable.
    """
    if provider.device_authorization is None:
        raise ConnectNotSupported(
            "The server does not support device authorization.", "Connect with --loopback."
        )
    reply = exchange.post_form(provider.device_authorization, form)
    device_code, user_code = reply.text("device_code"), reply.text("user_code")
    address = reply.text("verification_uri")
    if not reply.ok or device_code is None or user_code is None or address is None:
        raise _refused(reply, "The server did not accept the request")
    return DeviceOffer(
        device_code=device_code,
        user_code=user_code,
        verification_uri=_page(address),
        verification_uri_complete=_page(reply.text("verification_uri_complete") or address),
        expires_in=_seconds(reply, "expires_in", 600),
        interval=_seconds(reply, "interval", 5),
    )


def _page(address: str) -> str:
    """The address of a page, which a browser is sent to: nothing else that a machine would open.

    Raises: MetadataFailure.
    """
    if not (_PAGE.match(address) and address.isascii() and address.isprintable()):
        raise MetadataFailure(
            "The server sends the browser to what is no web page.",
            "Do not connect to this server; ask its operator.",
        )
    return address


def _seconds(reply: JsonResponse, name: str, default: float) -> float:
    value = reply.body.get(name)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(value) if usable else default  # type: ignore[arg-type]


def _refused(reply: JsonResponse, what: str) -> RequestRefused | ProviderUnavailable:
    if reply.status == 429 or reply.status >= 500:
        return unavailable(f"{what}: the server is busy or broken (status {reply.status}).")
    reason, param = reply.text("reason"), reply.text("param")
    named = [word for word in (reply.error, reason, param) if word]
    kind = ClientForgotten if reply.error == "invalid_client" else RequestRefused
    return kind(
        f"{what}: {' '.join(named) or f'status {reply.status}'}.", "Check what you asked for."
    )


class Listener(ThreadingHTTPServer):
    """Waits for the browser to come back."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Callback)
        self.answers: queue.Queue[dict[str, str]] = queue.Queue()

    @property
    def redirect_uri(self) -> str:
        """Where the browser is sent back to."""
        return f"http://127.0.0.1:{self.server_port}{CALLBACK_PATH}"

    def answer(self, timeout_seconds: float, state: str) -> dict[str, str]:
        """The parameters the browser came back with; what has another state is passed over.

        Any page that finds the port can send such a one, and would end the sign-in.
        Raises: ApprovalExpired.
        """
        end = time.monotonic() + timeout_seconds
        try:
            while (found := self.answers.get(timeout=max(0, end - time.monotonic()))).get(
                "state"
            ) != state:
                pass
        except queue.Empty:
            raise ApprovalExpired("Nobody decided in time.", "Run the command again.") from None
        return found


class _Callback(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Take the answer of the authorization server."""
        parts = urlsplit(self.path)
        listener = self.server
        found = parts.path == CALLBACK_PATH and isinstance(listener, Listener)
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


class ClientCodeRequest(Unprinted, frozen=True):
    """The parameters of one authorization request and the secrets that guard its answer."""

    parameters: dict[str, str]
    verifier: str
    state: str

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
                "The browser came back with an answer to another request.", "Run the command again."
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
) -> ClientCodeRequest:
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
    return ClientCodeRequest(parameters, verifier, state)


def _secret(random_bytes: Callable[[int], bytes]) -> str:
    return base64.urlsafe_b64encode(random_bytes(SECRET_BYTES)).rstrip(b"=").decode()
