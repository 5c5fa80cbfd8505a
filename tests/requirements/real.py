"""The real resource server in process, behind the real outermost application and `/mcp`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import httpx2
import orjson
from starlette.types import ASGIApp, Receive, Scope, Send

from adapter.tests.seed import long_body, photo
from pdpp_kernel.errors import InvalidToken
from pdpp_kernel.values import instant_ns
from pdpp_mcp_server.calls import ToolCall, those_of_this_program
from pdpp_mcp_server.change_bell import Signal
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer
from pdpp_mcp_server.server_metadata import ServerMetadata
from pdpp_mcp_server.server_offer import (
    ServerOffer,
    personal_data,
)
from pdpp_mcp_server.tool_runs import draw_nonce
from personal_server.domain.authority import TimeConstraint
from personal_server.domain.grant import StreamGrant
from personal_server.domain.possession import PresentedToken
from personal_server.hosted_mcp.admission import Admitted, HostedCredential
from personal_server.hosted_mcp.http import ServerBehind, hosted_app
from personal_server.settings import Settings
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from personal_server.web.application import Application
from personal_server.web.failed_attempts import FailedBearers
from personal_server.web.origins import origin_policy
from server.tests.resource_server.living import Living
from tests.requirements.doors import Door, HttpWire, World, eras, greeting_request

Json = dict[str, Any]
origin = "http://127.0.0.1:7662"
registry = "https://connectors.example/"
text: Json = {"type": "string", "x_pdpp_type": "text"}
moment: Json = {
    "type": "string",
    "format": "date-time",
    "x_pdpp_type": "timestamp",
    "x_pdpp_role": "event-time",
}
titled: Json = {**text, "x_pdpp_role": "primary-title"}


def stream(name: str, properties: Json, query: Json, **members: Any) -> Json:
    schema = {"type": "object", "properties": properties, "required": ["id", "sent_at"]}
    return {
        "name": name,
        "semantics": "mutable_state",
        "display": {"label": name.title(), "detail": "Test data."},
        "schema": {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema},
        "primary_key": ["id"],
        "cursor_field": "sent_at",
        "consent_time_field": "sent_at",
        "selection": {"fields": True, "resources": True},
        "query": {"range_filters": {"sent_at": ["gte", "gt", "lte", "lt"]}, **query},
        **members,
    }


def declaration(key: str, *streams: Json) -> Json:
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": registry + key},
        "connector_key": key,
        "declaration_version": "2026-10-01",
        "publisher": {"id": "https://connectors.example"},
        "display": {"name": key.title(), "detail": "Test data."},
        "streams": list(streams),
    }


messages = stream(
    "messages",
    {
        "id": {"type": "string"},
        "subject": titled,
        "body": text,
        "from": {"type": "string"},
        "sent_at": moment,
    },
    {
        "search": {"lexical_fields": ["subject", "body"]},
        "expand": [{"name": "attachments", "default_limit": 10, "max_limit": 50}],
        "aggregations": {
            "count": True,
            "min": ["sent_at"],
            "max": ["sent_at"],
            "group_by": ["from"],
            "group_by_time": ["sent_at"],
        },
    },
    relationships=[
        {
            "name": "attachments",
            "stream": "attachments",
            "foreign_key": "message_id",
            "cardinality": "has_many",
        }
    ],
    views=[{"id": "summary", "label": "Summary", "fields": ["id", "subject", "sent_at"]}],
)
attachments = stream(
    "attachments",
    {
        "id": {"type": "string"},
        "message_id": {"type": "string"},
        "filename": {"type": "string"},
        "sent_at": moment,
        "blob_ref": {"type": "object", "x_pdpp_type": "blob"},
    },
    {"search": {"lexical_fields": ["filename"]}},
)
transactions = stream(
    "transactions",
    {
        "id": {"type": "string"},
        "amount": {"type": "number"},
        "category": {"type": "string"},
        "note": titled,
        "sent_at": moment,
    },
    {
        "search": {"lexical_fields": ["note"]},
        "aggregations": {
            "count": True,
            "sum": ["amount"],
            "min": ["amount"],
            "max": ["amount"],
            "group_by": ["category"],
            "group_by_time": ["sent_at"],
        },
    },
)


def mail(label: str, count: int) -> list[Json]:
    return [
        {
            "id": f"m{n}",
            "subject": f"{label} invoice {n}",
            "body": long_body if n == 8 else f"Dear reader, invoice {n} is {n} euro.",
            "from": f"shop{n % 3}@example.org",
            "sent_at": f"2026-01-{n:02d}T10:00:00Z",
        }
        for n in range(1, count + 1)
    ]


def statement() -> list[Json]:
    return [
        {
            "id": f"t{n}",
            "amount": n * 1.5,
            "category": f"category {n % 14}",
            "note": f"Invoice paid {n}" if n % 2 else f"Refund {n}",
            "sent_at": f"2026-02-{n:02d}T00:00:00Z",
        }
        for n in range(1, 29)
    ]


@dataclass(frozen=True, slots=True)
class LivingAdmission:
    """The tokens of the living server, judged as the composition root does."""

    living: Living

    async def judge(self, presented: PresentedToken, /) -> Admitted:
        resolved = self.living.resolved.get(presented.token)
        if resolved is None:
            raise InvalidToken("The access token is not valid.")
        return Admitted(str(resolved.kind), resolved.client_id, None, resolved.package_id)

    async def judge_again(self, token: str, /) -> Admitted:
        return await self.judge(PresentedToken(token))


@dataclass(slots=True)
class Real:
    """A seeded server: two mailboxes and a bank, a grant for each, and packages of them."""

    living: Living
    personal: str = ""
    work: str = ""
    bank: str = ""

    @classmethod
    async def seeded(cls) -> Real:
        real = cls(Living(checked=False))
        for key, streams in (
            ("gmail", (messages, attachments)),
            ("chase", (transactions,)),
        ):
            await real.declare(declaration(key, *streams))
        real.personal = await real.living.connect("gmail", "Personal mail")
        real.work = await real.living.connect("gmail", "Work mail")
        real.bank = await real.living.connect("chase", "Chase")
        await real.living.ingest(real.personal, "messages", mail("Personal", 12))
        await real.living.ingest(real.work, "messages", mail("Work", 10))
        await real.living.ingest(real.bank, "transactions", statement())
        await real.attach()
        real.grants()
        return real

    async def declare(self, document: Json) -> None:
        async with self.living.client() as owner:
            answer = await owner.post("/v1/owner/declarations", json=document)
            assert answer.status_code in {200, 201}, answer.text

    async def attach(self) -> None:
        """One picture at the first message of the first mailbox."""
        digest = sha256(photo).hexdigest()
        reference = {
            "blob_id": f"blob_sha256_{digest}",
            "mime_type": "image/png",
            "size_bytes": len(photo),
            "sha256": digest,
        }
        row = {"id": "at1", "message_id": "m1", "filename": "garden.png", "blob_ref": reference}
        row["sent_at"] = "2026-01-01T10:00:00Z"
        target = {"connection_id": self.personal, "stream": "attachments", "record_key": "at1"}
        async with self.living.client() as owner:
            answer = await owner.post(
                "/v1/blobs", params=target, content=photo, headers={"Content-Type": "image/png"}
            )
            assert answer.status_code in {200, 201}, answer.text
        await self.living.ingest(self.personal, "attachments", [row])

    def grants(self) -> None:
        fields = ("id", "subject", "body", "from", "sent_at")
        files = ("id", "message_id", "filename", "sent_at", "blob_ref")
        money = ("id", "amount", "category", "note", "sent_at")
        gmail, chase = registry + "gmail", registry + "chase"
        grant = self.living.grant
        attached = StreamGrant("attachments", (self.personal,), files)
        mine = StreamGrant("messages", (self.personal,), fields)
        both = StreamGrant("messages", (self.personal, self.work), fields)
        grant("mine", mine, attached, connector="gmail", uri=gmail)
        grant("both", both, attached, connector="gmail", uri=gmail)
        grant("work", StreamGrant("messages", (self.work,), fields), connector="gmail", uri=gmail)
        bank = StreamGrant("transactions", (self.bank,), money)
        grant("bank", bank, connector="chase", uri=chase)
        until = "2026-02-20T00:00:00Z"
        window = TimeConstraint("sent_at", None, instant_ns(until), None, until)
        early = StreamGrant("transactions", (self.bank,), money, window)
        grant("early", early, connector="chase", uri=chase)
        self.living.package("all", "mine", "work", "bank")
        self.living.package("two", "mine", "bank")

    async def write_much(self) -> None:
        """More mail than a result holds, in both mailboxes."""
        for connection in (self.personal, self.work):
            rows = [
                {**row, "id": f"long{row['id']}", "body": f"{row['body']} " * 40}
                for row in mail("Long", 28)
            ]
            await self.living.ingest(connection, "messages", rows)

    def disclosures(self) -> list[Any]:
        self.living.recorder.flush()
        return [entry for _, entry in self.living.disclosures.disclosures(DisclosureQuery(500))]

    def read(self, token: str) -> httpx2.AsyncClient:
        return self.living.client(token)


def told_its_origin(inner: ASGIApp) -> ASGIApp:
    """An inner application that is called at once, without the outermost that settles it."""

    async def told(scope: Scope, receive: Receive, send: Send) -> None:
        host = dict(scope["headers"])[b"host"].decode()
        state = {"origin": f"{scope['scheme']}://{host}"}
        await inner({**scope, "state": state}, receive, send)

    return told


def outermost(
    real: Real,
    settings: Settings | None = None,
    offer: ServerOffer = personal_data,
    changes: Signal | None = None,
) -> tuple[Application, Any]:
    """The parts as the composition root puts them together."""
    policy = origin_policy(settings or Settings())
    inner = InnerApplication(real.living.app)

    def open_port(credential: HostedCredential) -> Any:
        client = RsClient(inner, credential.origin, FixedBearer(credential.token), "0")
        return client.port(credential.tool, credential.request_id)

    hosted = hosted_app(
        open_port=open_port,
        admission=LivingAdmission(real.living),
        origins=policy.origins,
        version="0.1.0",
        offer=offer,
        behind=ServerBehind(those_of_this_program, changes),
    )
    failed = FailedBearers(0, real.living.clock)
    parts = [(frozenset({"mcp"}), hosted)]
    return Application(policy, parts, real.living.app, failed, hosted.run), hosted


@asynccontextmanager
async def real_door(
    real: Real, bearer: str, name: str = "http-2025"
) -> AsyncGenerator[tuple[Door, httpx2.AsyncClient]]:
    """A door to `/mcp` over the real server, and a plain HTTP client beside it."""
    app, hosted = outermost(real)
    transport = httpx2.ASGITransport(app=app)
    async with hosted.run(), httpx2.AsyncClient(transport=transport, base_url=origin) as http:
        wire = HttpWire(http, eras[name], bearer)
        greeting = await wire.request(*greeting_request(eras[name]))
        yield Door(name, wire, World(), origin, greeting), http


@asynccontextmanager
async def stdio_caller(real: Real, bearer: str) -> AsyncGenerator[Callable[[str, Json], Any]]:
    """The tools as the stdio adapter calls them, over the server whose metadata it has read."""
    rs = RsClient(InnerApplication(real.living.app), origin, FixedBearer(bearer), "0")
    metadata = ServerMetadata(rs.port("metadata"))

    async def call(tool: str, arguments: Json) -> Json:
        made = ToolCall(
            tool, rs.port(tool), origin, draw_nonce, server_capabilities=metadata.capabilities
        )
        return (await personal_data.tools[tool](made, arguments)).structured

    yield call


def as_json(response: httpx2.Response) -> Json:
    return orjson.loads(response.content)
