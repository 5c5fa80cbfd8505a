"""A whole resource server over a store, whose every answer is checked against its own document."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import orjson

from pdpp_kernel.errors import InvalidToken, PersonalServerError
from pdpp_kernel.values import NANOSECONDS, instant_ns
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.signatures import SecretBox
from personal_server.delivery.subscribers import Subscriptions
from personal_server.domain.authority import SourceId, TimeConstraint
from personal_server.domain.grant import ACTIVE, Grant, MemberGrant, Resolved, StreamGrant
from personal_server.domain.stored import SealingKey
from personal_server.enforcement.authority import read_authority
from personal_server.reading.disclosure_recorder import DisclosureRecorder
from personal_server.reading.identification import Identified
from personal_server.reading.ports import ReadPorts
from personal_server.reading.sealed_tokens import KeyedSealer
from personal_server.reading.tokens import TokenState
from personal_server.resource_server.application import Bearer, Ports, ResourceServer
from personal_server.resource_server.openapi import openapi_document
from personal_server.resource_server.quotas import LimitRules, Quotas
from personal_server.resource_server.route_modules import Parts, route_table
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.feed_stores import FeedStore
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.web.call_capacity import Capacity
from personal_server.web.routes import Route
from personal_server.web.routing import RouteTable
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.oracle.disclosure_memory import MemoryDisclosures
from tests.oracle.memory import MemoryStore

JOURNAL = Path(__file__).parent.parent / "samples" / "journal.json"
JOURNAL_URI = "https://registry.pdpp.dev/connectors/journal"
NDJSON = {"Content-Type": "application/x-ndjson"}
NOW_NS = 1_790_000_000 * NANOSECONDS


class Counter:
    """Distinct bytes, the same in each run."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, size: int) -> bytes:
        self._count += 1
        return self._count.to_bytes(size, "big")


@dataclass
class Clock:
    now_ns: int = NOW_NS

    def __call__(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns


@dataclass
class Described:
    """The OpenAPI document, used as a judge."""

    table: RouteTable[Route]
    document: Mapping[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.document = orjson.loads(orjson.dumps(openapi_document(self.table, "Test")))
        self._validators: dict[str, jsonschema_rs.Validator] = {}

    def check(self, response: httpx2.Response) -> None:
        """The answer is one that the document describes."""
        raw_path = response.request.url.raw_path.partition(b"?")[0]
        method = response.request.method
        if method in ("HEAD", "OPTIONS") or response.status_code in (404, 405):
            return
        route = self.table.match(raw_path).route(method)
        if not route.advertised:
            return
        operation = self.document["paths"][route.pattern][method.lower()]
        described = operation["responses"].get(str(response.status_code))
        assert described is not None, f"{route.name} answered {response.status_code} undescribed"
        media_type = response.headers.get("content-type", "").partition(";")[0]
        if "content" not in described:
            assert response.content == b""
            return
        assert {media_type, "*/*"} & set(described["content"]), (route.name, media_type)
        schema = described["content"].get(media_type, {}).get("schema")
        if schema is not None:
            self._validate(f"{route.name} {response.status_code}", schema, response.json())

    def _validate(self, name: str, schema: Mapping[str, Any], body: object) -> None:
        if name not in self._validators:
            whole = {**schema, "components": self.document["components"]}
            self._validators[name] = jsonschema_rs.Draft202012Validator(
                whole, validate_formats=True
            )
        faults = [
            f"{e.instance_path}: {e.message}" for e in self._validators[name].iter_errors(body)
        ]
        assert not faults, (name, faults[:3])


@cache
def described() -> Described:
    """The document of all servers here, which takes a tenth of a second to write.

    What a server has, such as feeds, and its bounds change what its routes answer, not the routes.
    """
    return Described(Living().table)


@dataclass
class Living:
    """A server; tokens are `owner` and those given by `grant` and `package`."""

    store: RecordStore = field(default_factory=MemoryStore)
    rules: LimitRules = field(default_factory=lambda: LimitRules(0, 0, 0, 0, 0))
    capacity: Capacity = field(default_factory=Capacity)
    grants: tuple[Mapping[str, Any], ...] = ()
    clock: Clock = field(default_factory=Clock)
    disclosures: MemoryDisclosures = field(default_factory=MemoryDisclosures)
    max_blob_bytes: int = 50 * 1024 * 1024
    checked: bool = True
    feeds: FeedStore | None = None
    hosts: dict[str, tuple[str, ...]] = field(
        default_factory=lambda: {"app.example": ("93.184.215.14",)}
    )

    def __post_init__(self) -> None:
        self.random_bytes = Counter()
        self.resolved = {"owner": self._resolved("owner", "pdpp-cli")}
        self.ended: dict[str, PersonalServerError] = {}
        self.recorder = DisclosureRecorder(self.disclosures, self.clock, background=False)
        self.declarations = KnownDeclarations()

    def _resolved(self, kind: str, client_id: str, **members: Any) -> Resolved:
        subject = self.store.subject_id
        return Resolved(kind, subject, client_id, "ref", "http://127.0.0.1:7662", 2**62, **members)

    def grant(
        self, token: str, *streams: StreamGrant, connector: str = "journal", uri: str = JOURNAL_URI
    ) -> str:
        """A client token for one grant of one source."""
        member = MemberGrant(
            f"grt_{token}",
            Grant(
                grant_id=f"grt_{token}",
                issued_at="2026-01-01T00:00:00Z",
                subject_id=self.store.subject_id,
                client_id="planner",
                source=SourceId("connector", uri),
                declaration_version="2026-10-01",
                purpose_code="personal_assistance",
                access_mode="continuous",
                streams=streams,
                expires_at=None,
            ),
            connector,
            ACTIVE,
        )
        self.resolved[token] = self._resolved("client", "planner", grants=(member,))
        return token

    def package(self, token: str, *members: str) -> str:
        """A package token over the grants of other tokens."""
        grants = tuple(self.resolved[member].grants[0] for member in members)
        self.resolved[token] = self._resolved(
            "mcp_package", "planner", grants=grants, package_id=f"gpkg_{token}"
        )
        return token

    def resolve(self, token: str) -> Resolved:
        if token in self.ended:
            raise self.ended[token]
        if token not in self.resolved:
            raise InvalidToken("The access token is not valid.")
        return self.resolved[token]

    @contextmanager
    def identify(self, bearer: Bearer) -> Generator[tuple[Identified, ReadSnapshot]]:
        resolved = bearer.resolved if isinstance(bearer, TokenState) else self.resolve(bearer.token)
        with self.store.snapshot() as snapshot:
            declarations = self.declarations.current(snapshot.declarations())
            connections = snapshot.connections()
            authority = read_authority(resolved, connections, declarations)
            yield Identified(authority), snapshot

    @cached_property
    def subscriptions(self) -> Subscriptions:
        secrets = SecretBox(lambda: [SealingKey(1, b"k" * 32, 0)])
        callbacks = Callbacks(resolver=lambda host: self.hosts.get(host, ()))
        store = MemoryAuthorizationStore(self.store.subject_id)
        return Subscriptions(store, callbacks, secrets, lambda: 0, self.random_bytes)

    @cached_property
    def table(self) -> RouteTable[Route]:
        sealer = KeyedSealer([SealingKey(1, b"k" * 32, 0)])
        reads = ReadPorts(self.store, sealer, self.clock, self.random_bytes)
        return route_table(
            Parts(
                reads,
                self.disclosures,
                self.recorder.flush,
                self.subscriptions,
                self.declarations,
                lambda: self.grants,
                self.max_blob_bytes,
                feeds=self.feeds,
            )
        )

    @cached_property
    def app(self) -> ResourceServer:
        limits = Quotas(self.rules, self.clock)
        ports = Ports(
            self.identify, limits, self.recorder, self.clock, self.random_bytes, self.capacity
        )
        return ResourceServer(self.table, ports)

    def client(self, token: str | None = "owner") -> httpx2.AsyncClient:  # noqa: S107 (a fake)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}

        async def check(response: httpx2.Response) -> None:
            await response.aread()
            if self.checked:
                described().check(response)

        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app),
            base_url="http://127.0.0.1:7662",
            headers=headers,
            event_hooks={"response": [check]},
        )

    async def declare_journal(self) -> None:
        async with self.client() as owner:
            answer = await owner.post(
                "/v1/owner/declarations",
                content=JOURNAL.read_bytes(),
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code in (200, 201), answer.text

    async def connect(self, connector_key: str = "journal", name: str | None = None) -> str:
        async with self.client() as owner:
            answer = await owner.post(
                "/v1/owner/connections",
                json={"connector_key": connector_key, "display_name": name},
            )
            assert answer.status_code == 201, answer.text
            return answer.json()["connection_id"]

    async def ingest(
        self, connection_id: str, stream: str, records: Iterable[Mapping[str, Any]]
    ) -> Mapping[str, Any]:
        lines = [
            orjson.dumps({"data": record, "emitted_at": "2026-03-14T06:30:00Z"})
            for record in records
        ]
        async with self.client() as owner:
            answer = await owner.post(
                f"/v1/ingest/{stream}?connection_id={connection_id}",
                content=b"\n".join(lines),
                headers=NDJSON,
            )
            assert answer.status_code == 200, answer.text
            return answer.json()


def since(text: str, field_name: str = "created_at") -> TimeConstraint:
    """A constraint from an instant on."""
    return TimeConstraint(field_name, since_ns=instant_ns(text), since=text)
