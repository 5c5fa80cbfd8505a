"""A whole provider behind a mock transport: discovery, registration, device and code flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import httpx2

from pdpp_mcp_server.rs_client.discovery import ProviderExchange

ORIGIN = "https://me.example"
RESOURCE = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"


@dataclass
class FakeProvider:
    """Answers like a personal server; tests change members before or while it is asked."""

    origin: str = ORIGIN
    polls: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    token_kind: str = "client"
    schema_status: int = 200
    current: tuple[int, dict[str, Any]] = (200, {})
    changes: dict[str, tuple[int, dict[str, Any]]] = field(
        default_factory=dict[str, tuple[int, dict[str, Any]]]
    )
    asked: list[tuple[str, str, dict[str, Any]]] = field(
        default_factory=list[tuple[str, str, dict[str, Any]]]
    )
    bearers: list[str | None] = field(default_factory=list[str | None])
    registered: int = 0
    forgotten: str | None = None
    down: bool = False

    @property
    def exchange(self) -> ProviderExchange:
        return ProviderExchange(httpx2.Client(transport=httpx2.MockTransport(self.handle)))

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.origin,
            "authorization_endpoint": f"{self.origin}/oauth/authorize",
            "token_endpoint": f"{self.origin}/oauth/token",
            "registration_endpoint": f"{self.origin}/oauth/register",
            "pushed_authorization_request_endpoint": f"{self.origin}/oauth/par",
            "device_authorization_endpoint": f"{self.origin}/oauth/device_authorization",
            "revocation_endpoint": f"{self.origin}/oauth/revoke",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
            "client_id_metadata_document_supported": True,
            "pdpp_pre_registered_public_clients": [{"client_id": "pdpp-cli"}],
        }

    def tokens(self, number: int = 1) -> dict[str, Any]:
        return {
            "access_token": f"pdpp_at_{number}",
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": f"pdpp_rt_{number}",
            "scope": "pdpp:read offline_access",
            "resource": self.origin,
            "grant_id": "grt_1",
            "authorization_details": [],
        }

    def grants(self) -> dict[str, Any]:
        stream = {
            "name": "messages",
            "instance_ids": ["cin_home"],
            "fields": ["id", "subject"],
            "time_constraint": {"field": "sent_at", "since": "2026-08-23T00:00:00Z"},
        }
        grant = {
            "grant_id": "grt_1",
            "status": "active",
            "connector_key": "mail",
            "expires_at": "2027-02-16T00:00:00Z",
            "streams": [stream],
        }
        return {"kind": "client", "client_name": "pdpp", "status": "active", "grants": [grant]}

    def forms(self, path: str) -> list[dict[str, Any]]:
        return [body for _, asked, body in self.asked if asked == path]

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        if self.down:
            raise httpx2.ConnectError("no")
        path = request.url.path
        self.asked.append((request.method, path, body_of(request)))
        self.bearers.append(request.headers.get("authorization"))
        if self.forgotten and self.asked[-1][2].get("client_id") == self.forgotten:
            return httpx2.Response(400, json={"error": "invalid_client"})
        if path in self.changes:
            status, body = self.changes[path]
            return httpx2.Response(status, json=body)
        answers: dict[str, Callable[[], httpx2.Response]] = {
            RESOURCE: self._resource,
            SERVER: lambda: httpx2.Response(200, json=self.metadata()),
            "/oauth/register": self._register,
            "/oauth/device_authorization": self._device,
            "/oauth/token": self._token,
            "/oauth/par": lambda: httpx2.Response(
                201, json={"request_uri": "urn:x:1", "expires_in": 300}
            ),
            "/oauth/revoke": lambda: httpx2.Response(200),
            "/v1/schema": self._schema,
            "/grants/current": lambda: httpx2.Response(
                self.current[0], json=self.current[1] or self.grants()
            ),
        }
        found = answers.get(path)
        return httpx2.Response(404, json={}) if found is None else found()

    def _resource(self) -> httpx2.Response:
        body = {"resource": self.origin, "authorization_servers": [self.origin]}
        return httpx2.Response(200, json=body)

    def _register(self) -> httpx2.Response:
        self.registered += 1
        return httpx2.Response(201, json={"client_id": f"cli_{self.registered}"})

    def _device(self) -> httpx2.Response:
        body = {
            "device_code": "pdpp_dc_1",
            "user_code": "WDJB-MJHT",
            "verification_uri": f"{self.origin}/device",
            "verification_uri_complete": f"{self.origin}/device?user_code=WDJB-MJHT",
            "expires_in": 600,
            "interval": 5,
        }
        return httpx2.Response(200, json=body)

    def _token(self) -> httpx2.Response:
        answer = self.polls.pop(0) if self.polls else self.tokens()
        if answer is DOWN:
            raise httpx2.ConnectError("no")
        return httpx2.Response(400 if "error" in answer else 200, json=answer)

    def _schema(self) -> httpx2.Response:
        body = {"data": {"bearer": {"token_kind": self.token_kind}}}
        return httpx2.Response(self.schema_status, json=body)


def body_of(request: httpx2.Request) -> dict[str, Any]:
    raw = request.read()
    if request.headers.get("content-type", "").startswith("application/json"):
        found: Any = httpx2.Response(200, content=raw).json()
        return found
    return dict(parse_qsl(raw.decode()))


@dataclass
class FakeTime:
    """Seconds that pass only by sleeping."""

    now: float = 0
    slept: list[float] = field(default_factory=list[float])

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def monotonic(self) -> float:
        return self.now


PENDING = {"error": "authorization_pending"}
SLOW_DOWN = {"error": "slow_down"}
DOWN: dict[str, Any] = {"error": "down"}
