"""The authorization server in process: an app, an owner who decides, a client that calls."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import pytest
from msgspec.structs import replace

from personal_server.authorization_server.application import (
    AuthorizationParts,
    authorization_app,
)
from personal_server.authorization_server.configuration import (
    Configuration,
    keep_pre_registered,
)
from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.consent.offers import EntryOffer
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.granting.audit import Acting
from personal_server.granting.codes import challenge_of
from personal_server.granting.consent_receipts import ConsentReceipts
from personal_server.granting.decisions import Granting
from personal_server.granting.owner_sessions import Browser, OwnerSignIn
from personal_server.granting.pending_requests import Requesting
from personal_server.granting.reviews import Review
from personal_server.reading.proofs import Proofs
from personal_server.reading.tokens import TokenUses
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.catalog import Catalog
from personal_server.storage.ports.authorization_store import AuthorizationStore, R
from personal_server.storage.postgres.database import PostgresDatabase
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.tables import Assignment, ColumnCondition
from personal_server.web.guarded_fetch import GuardedFetch
from server.tests.authorization_server.publishing import JWKS, KEY, RSA, URL, claude, public
from server.tests.samples.two_sources import JOURNAL, NOTES, declarations
from tests.new_files import new_file
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.postgresql import empty_schema

ORIGIN = "https://me.example"
SECONDS = 10**9
OWNER = Acting("owner", "req_owner", "127.0.0.1")
VERIFIER = "a" * 64
CALLBACK = "http://127.0.0.1:5555/cb"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"


async def chunks(body: bytes) -> AsyncIterator[bytes]:
    """A body as the network brings it."""
    for start in range(0, len(body), 4_096):
        yield body[start : start + 4_096]


@dataclass
class Web:
    """What documents strangers publish, by URL; and where their names lead."""

    pages: dict[str, httpx2.Response] = field(default_factory=dict[str, httpx2.Response])
    addresses: dict[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    requests: list[httpx2.Request] = field(default_factory=list[httpx2.Request])
    unknown: set[str] = field(default_factory=set[str])

    def publish(self, url: str, document: object, **headers: str) -> None:
        content_type = {"content-type": "application/json", **headers}
        self.pages[url] = httpx2.Response(
            200, content=json.dumps(document).encode(), headers=content_type
        )

    async def resolve(self, host: str) -> Sequence[str]:
        if host in self.unknown:
            raise OSError("no such name")
        return self.addresses.get(host, ["93.184.216.34"])

    async def handle(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(request)
        host = request.headers["host"]
        found = self.pages.get(f"https://{host}{request.url.raw_path.decode()}")
        if found is None:
            return httpx2.Response(404)
        headers = {n: v for n, v in found.headers.items() if n != "content-length"}
        return httpx2.Response(found.status_code, content=chunks(found.content), headers=headers)

    @property
    def fetch(self) -> GuardedFetch:
        return GuardedFetch(self.resolve, httpx2.MockTransport(self.handle))


@dataclass
class Server:
    """The application under test with its store, clock and owner."""

    store: AuthorizationStore
    configuration: Configuration = field(
        default_factory=lambda: Configuration(origins=(ORIGIN, "http://127.0.0.1:7662"))
    )
    now_ns: int = 1_700_000_000 * SECONDS
    catalog: Catalog = field(default_factory=lambda: Catalog({}, ()))
    web: Web = field(default_factory=Web)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    origin: str = ORIGIN
    seen: list[str] = field(default_factory=list[str])

    def clock(self) -> int:
        return self.now_ns

    def random(self, size: int) -> bytes:
        return next(self.numbers).to_bytes(8, "big") * (size // 8 + 1) if size > 8 else b"\x07"

    def bytes_of(self, size: int) -> bytes:
        return self.random(size)[:size]

    def app(self, **over: Any) -> Any:
        keep_pre_registered(self.store, self.configuration, self.now_ns, self.bytes_of)
        parts = AuthorizationParts(
            store=self.store,
            catalogs=lambda: self.catalog,
            clock=self.clock,
            random_bytes=self.bytes_of,
            uses=TokenUses(self.store),
            proofs=Proofs(lambda: self.now_ns, self.bytes_of),
            receipts=ConsentReceipts(lambda: bytes(32)),
            configuration=self.configuration,
            fetch=self.web.fetch,
        )
        return authorization_app(replace(parts, **over))

    def client(self, **over: Any) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(self.app(**over), client=("203.0.113.9", 1234))
        return httpx2.AsyncClient(transport=transport, base_url=self.origin)

    @property
    def granting(self) -> Granting:
        return Granting(self.store, lambda: self.catalog, self.clock, self.bytes_of)

    @property
    def requesting(self) -> Requesting:
        return Requesting(self.store, self.clock, self.bytes_of)

    def rows(self, table: type[R], *where: ColumnCondition[R]) -> list[R]:
        with self.store.read() as reader:
            return reader.rows(table, *where)

    def change(
        self, table: type[R], to: Sequence[Assignment[R]], *where: ColumnCondition[R]
    ) -> None:
        with self.store.write() as writer:
            writer.change(table, to, *where)

    def events(self) -> list[str]:
        return [row.event for row in self.rows(AuditRow)]

    def allow(self, handle: str, **over: Any) -> dict[str, str]:
        """Approve everything; the parameters of the redirect."""
        review = self.granting.view(handle, OWNER)
        choices = replace(everything(review), **over)
        shown = self.granting.choose(handle, choices, OWNER)
        assert shown.revision is not None, shown.missing
        decided = self.granting.approve(handle, choices, shown.revision, OWNER)
        return query_of(decided.redirect_to or "")

    def deny(self, handle: str) -> dict[str, str]:
        return query_of(self.granting.deny(handle, OWNER).redirect_to or "")


def everything(review: Review) -> Choices:
    return Choices(
        entries={
            offer.index: EntryChoice(
                keep=True,
                connections=frozenset(c.connection_id for c in offer.connections),
                streams={stream.name: StreamChoice(wanted=True) for stream in offer.streams},
            )
            for offer in review.offers
            if isinstance(offer, EntryOffer)
        },
        ai_training=True,
    )


def query_of(url: str) -> dict[str, str]:
    found = parse_qs(urlsplit(url).query, keep_blank_values=True)
    assert all(len(values) == 1 for values in found.values())
    return {name: values[0] for name, values in found.items()}


@dataclass
class App:
    """A public client that does everything right unless told otherwise."""

    server: Server
    http: httpx2.AsyncClient
    client_id: str = ""
    redirect_uri: str = CALLBACK

    async def register(self, **over: Any) -> httpx2.Response:
        metadata = {"client_name": "Notes app", "redirect_uris": [CALLBACK], **over}
        answer = await self.http.post("/oauth/register", json=metadata)
        self.client_id = answer.json().get("client_id", self.client_id)
        return answer

    def parameters(self, **over: Any) -> dict[str, Any]:
        found = {
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "state": "st",
            **over,
        }
        return {name: value for name, value in found.items() if value is not None}

    async def authorize(self, **over: Any) -> httpx2.Response:
        query = urlencode(self.parameters(**over), doseq=True)
        return await self.http.get(f"/oauth/authorize?{query}")

    async def code(self, choices: dict[str, Any] | None = None, **over: Any) -> str:
        answer = await self.authorize(**over)
        assert answer.status_code == 303, answer.text
        handle = answer.headers["location"].removeprefix("/consent/")
        return self.server.allow(handle, **(choices or {}))["code"]

    async def post(self, path: str, **form: Any) -> httpx2.Response:
        fields = {name: value for name, value in form.items() if value is not None}
        return await self.http.post(path, data=fields)

    async def redeem(self, code: str, /, **over: Any) -> httpx2.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "code_verifier": VERIFIER,
            "client_id": self.client_id,
            "redirect_uri": self.redirect_uri,
            **over,
        }
        return await self.post("/oauth/token", **form)

    async def refresh(self, token: str, /, **over: Any) -> httpx2.Response:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id}
        return await self.post("/oauth/token", **{**form, **over})

    async def connect(self, **over: Any) -> dict[str, Any]:
        answer = await self.redeem(await self.code(**over))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def sign_owner_in(self, address: str = "203.0.113.9") -> None:
        """Let the owner be signed in at an address, which is the client's too."""
        door = OwnerSignIn(self.server.store, self.server.clock, self.server.bytes_of)
        door.enter_by_link(door.make_link(), Browser(address))

    async def current(self, token: str) -> httpx2.Response:
        return await self.http.get("/grants/current", headers={"Authorization": f"Bearer {token}"})


def entry(source: str = JOURNAL, **over: object) -> dict[str, object]:
    found: dict[str, object] = {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": source},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "entries"}],
    }
    found.update(over)
    return found


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AuthorizationStore]:
    if request.param == "memory":
        yield MemoryAuthorizationStore("own_1")
        return
    if request.param == "postgres":
        with (
            empty_schema() as (url, name),
            closing(PostgresDatabase(url, tmp_path, name)) as shared,
        ):
            # where other processes find it
            tmp_path.joinpath("schema").write_text(f"{url}\n{name}")
            yield SqlAuthorizationStore(shared, "own_1")
        return
    database = new_file(tmp_path / "pdpp.db")
    yield SqlAuthorizationStore(database, "own_1")
    database.close()


def connection(connection_id: str, key: str, source: str) -> Connection:
    return Connection(
        connection_id=connection_id,
        connector_key=key,
        source_id=source,
        display_name=f"My {key}",
        status=ConnectionStatus.ACTIVE,
        created_at_ns=0,
        updated_at_ns=0,
    )


@pytest.fixture
def server(store: AuthorizationStore) -> Server:
    connections = (
        connection("cin_journal", "journal", JOURNAL),
        connection("cin_notes", "notes", NOTES),
    )
    return Server(store, catalog=Catalog(declarations(), connections))


@pytest.fixture
async def app(server: Server) -> AsyncIterator[App]:
    async with server.client() as http:
        made = App(server, http)
        await made.register()
        yield made


@pytest.fixture
def details() -> Any:
    def made(*entries: dict[str, object]) -> str:
        return json.dumps(entries or [entry()])

    return made


@pytest.fixture
def make_entry() -> Any:
    return entry


@pytest.fixture
def document(app: Any) -> Any:
    app.client_id = URL
    app.server.web.publish(URL, claude())
    app.server.web.publish(JWKS, public(KEY, RSA))
    return app
