"""Four ways to the same server; one test body goes through each of them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anyio.to_thread
import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from adapter.tests.fake_rs import Request
from adapter.tests.loopback import LoopbackServer
from adapter.tests.seed import world
from pdpp_kernel.errors import (
    GrantExpired,
    GrantInvalid,
    GrantRevoked,
    InvalidToken,
    PersonalServerError,
    StorageUnavailable,
)
from pdpp_mcp_server.calls import AdapterOptions, ServerCapabilities, none_known
from pdpp_mcp_server.change_bell import Signal
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer
from pdpp_mcp_server.sdk_server import build_server
from pdpp_mcp_server.server_offer import ServerOffer
from pdpp_mcp_server.tool_runs import ClientRequest
from personal_server.domain.possession import PresentedToken
from personal_server.hosted_mcp.admission import Admitted, HostedCredential
from personal_server.hosted_mcp.http import HostedApp, ServerBehind, hosted_app

Json = dict[str, Any]
origin = "http://127.0.0.1:7662"
token = "pdpp_at_client"
door_names = ("memory", "http-2025", "http-2026", "stdio")
eras = {"http-2025": "2025-11-25", "http-2026": "2026-07-28"}
wait_seconds = 240.0  # a second or two, but on a machine that is busy with much else
raw_result: Any = TypeAdapter(dict[str, Any])


@dataclass(frozen=True, slots=True)
class RpcError(Exception):
    code: int
    message: str
    data: Any = None


class Wire(Protocol):
    """Sends one JSON-RPC request and gives its result."""

    async def request(self, method: str, params: Json | None = None) -> Json: ...


@dataclass(slots=True)
class World:
    """The resource server behind a door; tests may replace it or script it."""

    rs: Any = field(default_factory=world)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.rs(scope, receive, send)


@dataclass(frozen=True, slots=True)
class Result:
    """One tool result, both faces."""

    raw: Json

    @property
    def text(self) -> str:
        return self.raw["content"][0]["text"]

    @property
    def structured(self) -> Json:
        return self.raw["structuredContent"]

    @property
    def is_error(self) -> bool:
        return bool(self.raw.get("isError"))

    @property
    def error(self) -> Json:
        assert self.is_error, self.text
        return self.structured["error"]

    @property
    def links(self) -> list[Json]:
        return [block for block in self.raw["content"] if block["type"] == "resource_link"]

    @property
    def meta(self) -> Json:
        return self.raw.get("_meta", {})


@dataclass(slots=True)
class Door:
    """A connected door and the world behind it."""

    name: str
    wire: Wire
    world: World
    provider_url: str
    greeting: Json

    @property
    def requests(self) -> list[Request]:
        return self.world.rs.requests

    @property
    def paths(self) -> list[str]:
        return ["/".join(request.path) for request in self.requests]

    async def call(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
        params: Json = {"name": tool, "arguments": dict(arguments or {})}
        return Result(await self.wire.request("tools/call", params))

    async def fresh(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Result:
        """A call after forgetting what was recorded."""
        self.requests.clear()
        return await self.call(tool, arguments)

    async def tools(self) -> list[Json]:
        return (await self.wire.request("tools/list"))["tools"]

    async def read(self, uri: str) -> list[Json]:
        return (await self.wire.request("resources/read", {"uri": uri}))["contents"]


def settings_for(rule: str) -> AdapterOptions:
    return AdapterOptions(rule)  # type: ignore[arg-type]


# memory --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class MemoryWire:
    client: Client

    async def request(self, method: str, params: Json | None = None) -> Json:
        message = types.Request[Any, Any](method=method, params=params or {})
        try:
            return await self.client.session.send_request(message, raw_result)
        except MCPError as error:
            raise RpcError(error.code, error.message, error.data) from None


@asynccontextmanager
async def memory_door(
    behind: World,
    settings: AdapterOptions,
    bearer: str = token,
    server_capabilities: ServerCapabilities = none_known,
) -> AsyncGenerator[Door]:
    client = RsClient(InnerApplication(behind), origin, FixedBearer(bearer), "0")

    def callers(request: Any) -> ClientRequest:
        return ClientRequest(
            lambda tool: client.port(tool, "req_memory"),
            origin,
            "req_memory",
            server_capabilities=server_capabilities,
        )

    server = build_server(callers, name="pdpp-mcp-server", version="0.1.0", settings=settings)
    async with Client(server, mode="legacy", raise_exceptions=False) as connected:
        greeting = {"instructions": connected.instructions, "serverInfo": connected.server_info}
        yield Door("memory", MemoryWire(connected), behind, origin, greeting)


# hosted --------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class FakeAdmission:
    """Knows a handful of tokens."""

    async def judge(self, presented: PresentedToken) -> Admitted:
        bearer = presented.token
        known: dict[str, Admitted | PersonalServerError] = {
            token: Admitted("client", "planner", "grt_1"),
            "pdpp_at_package": Admitted("mcp_package", "planner", None, "gpkg_1"),
            "pdpp_at_longer": Admitted("client", "planner", "grt_1", result_chars=60_000),
            "pdpp_at_openai": Admitted("client", "https://chatgpt.com/client.json", "grt_1"),
            "pdpp_at_owner": Admitted("owner"),
            "pdpp_at_rest_only": Admitted("client", "planner", "grt_1", reaches_mcp=False),
            "pdpp_at_revoked": GrantRevoked("The owner ended this access."),
            "pdpp_at_expired": GrantExpired("This access has ended."),
            "pdpp_at_invalid": GrantInvalid("This access cannot be used any more."),
        }
        if bearer == "pdpp_at_unjudged":
            raise StorageUnavailable("Tokens cannot be judged now.")
        found = known.get(bearer, InvalidToken("The access token is not valid."))
        if isinstance(found, PersonalServerError):
            raise found
        return found

    async def judge_again(self, token: str) -> Admitted:
        return await self.judge(PresentedToken(token))


@dataclass(frozen=True, slots=True)
class Outer:
    """What the outermost application does for the hosted one."""

    app: HostedApp

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        host = dict(scope["headers"]).get(b"host", b"").decode()
        place = {"origin": f"{scope['scheme']}://{host}", "request_id": "req_hosted"}
        await self.app({**scope, "state": place}, receive, send)


def hosted(
    behind: Any,
    settings: AdapterOptions | None = None,
    changes: Signal | None = None,
    offer: ServerOffer | None = None,
) -> HostedApp:
    inner = InnerApplication(behind)

    def open_port(credential: HostedCredential) -> Any:
        bearer = FixedBearer(credential.token)
        client = RsClient(inner, credential.origin, bearer, "0")
        return client.port(credential.tool, credential.request_id)

    return hosted_app(
        open_port=open_port,
        admission=FakeAdmission(),
        origins=(origin,),
        version="0.1.0",
        settings=settings,
        offer=offer,
        behind=ServerBehind(changes=changes),
    )


@dataclass(slots=True)
class HttpWire:
    """JSON-RPC over POST, in either era."""

    http: httpx2.AsyncClient
    era: str
    bearer: str = token
    extra_meta: Json = field(default_factory=dict[str, Any])
    headers: dict[str, str] = field(default_factory=dict[str, str])

    async def post(self, method: str, params: Json | None = None) -> httpx2.Response:
        params = dict(params or {})
        headers = {
            "Authorization": f"Bearer {self.bearer}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.era,
            **self.headers,
        }
        if self.era == "2026-07-28":
            headers["Mcp-Method"] = method
            name = params.get("name") or params.get("uri")
            if method in {"tools/call", "prompts/get", "resources/read"} and name:
                headers["Mcp-Name"] = name
            meta = {
                "io.modelcontextprotocol/protocolVersion": self.era,
                "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params["_meta"] = {**meta, **self.extra_meta}
        elif self.extra_meta:
            params["_meta"] = self.extra_meta
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.http.post("/mcp", json=body, headers=headers)

    async def request(self, method: str, params: Json | None = None) -> Json:
        return rpc_result((await self.post(method, params)).json())


def rpc_result(message: Json) -> Json:
    if "result" in message:
        return message["result"]
    error = message["error"]
    raise RpcError(error["code"], error["message"], error.get("data"))


@asynccontextmanager
async def http_door(
    name: str, behind: Any, settings: AdapterOptions | None = None, bearer: str = token
) -> AsyncGenerator[Door]:
    app = hosted(behind, settings)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(app.run())
        transport = httpx2.ASGITransport(app=Outer(app))
        http = await stack.enter_async_context(
            httpx2.AsyncClient(transport=transport, base_url=origin)
        )
        wire = HttpWire(http, eras[name], bearer)
        greeting = await wire.request(*greeting_request(eras[name]))
        yield Door(name, wire, behind, origin, greeting)


def greeting_request(era: str) -> tuple[str, Json]:
    if era == "2026-07-28":
        return "server/discover", {}
    client = {"name": "tests", "version": "1"}
    return "initialize", {"protocolVersion": era, "capabilities": {}, "clientInfo": client}


# stdio ---------------------------------------------------------------------------------------
def write_cache(root: Path, provider_url: str, **credential: Any) -> Path:
    """A credential file as the public command line writes it."""
    clients = root / "clients"
    clients.mkdir(parents=True, exist_ok=True, mode=0o700)
    root.chmod(0o700)
    host = provider_url.split("://")[1].replace(":", "_")
    document: Json = {
        "provider_url": provider_url,
        "authorization_server": provider_url,
        "scope": "pdpp:read",
        "client": {"client_id": "cli_1", "client_name": "tests"},
        "credential": {
            "access_token": token,
            "token_type": "Bearer",
            "expires_at": "2099-01-01T00:00:00Z",
            "grant_id": "grt_1",
            "scope": "pdpp:read",
            **credential,
        },
        "created_at": "2026-01-01T00:00:00Z",
    }
    path = clients / f"{host}.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def command(*arguments: str) -> list[str]:
    entry = "from pdpp_mcp_server.commands.mcp import run; run()"
    return [sys.executable, "-c", entry, *arguments]


def environment(**extra: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}  # noqa: TID251 (the child's)
    return {**kept, "NO_PROXY": "*", **extra}


class StdioWire:
    """A spawned adapter; every line of its standard output has to be JSON-RPC."""

    def __init__(self, arguments: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command(*arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        self.buffer = b""
        self.number = 0

    async def request(self, method: str, params: Json | None = None) -> Json:
        return await anyio.to_thread.run_sync(self.exchange, method, params)

    def exchange(self, method: str, params: Json | None) -> Json:
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params or {}})
        while True:
            message: Json = json.loads(self.line())
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == self.number:
                return rpc_result(message)

    def send(self, message: Json) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline = time.monotonic() + wait_seconds
        while b"\n" not in self.buffer:
            ready, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the adapter did not answer"
            chunk = os.read(descriptor, 1 << 20)
            assert chunk, "the adapter ended"
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return line

    def close(self) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(wait_seconds)
        self.process.stdout.close()
        return code


class StdioDoor:
    """One process and one loopback server, shared by the tests of a worker."""

    def __init__(self, root: Path) -> None:
        self.world = World()
        self.server = LoopbackServer(self.world)
        write_cache(root, self.server.url, token_kind="client")
        arguments = ["--provider-url", self.server.url, "--cache-root", str(root)]
        self.wire = StdioWire(arguments, environment())
        method, params = greeting_request("2025-11-25")
        self.greeting = self.wire.exchange(method, params)
        self.wire.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        # The process reads the metadata of its server once, which no test is to count as its own.
        self.wire.exchange("tools/call", {"name": "query_records", "arguments": {}})

    def door(self) -> Door:
        self.world.rs = world()
        return Door("stdio", self.wire, self.world, self.server.url, self.greeting)

    def close(self) -> None:
        self.wire.close()
        self.server.close()
