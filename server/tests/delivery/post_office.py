"""Deliveries over a store, with receivers that are functions and a clock of the test."""

from __future__ import annotations

import base64
import hashlib
import hmac
import inspect
import json
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2

from pdpp_kernel.values import NANOSECONDS
from personal_server.app.server_database import ServerDatabase
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.deliveries import Deliveries
from personal_server.delivery.events import Events
from personal_server.delivery.signatures import SecretBox
from personal_server.delivery.subscribers import (
    Subscriptions,
    SubscriptionView,
)
from personal_server.delivery.subscription_scopes import (
    EVERYTHING,
    Filters,
)
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.grant import Grant, render_grant
from personal_server.domain.stored import SealingKey
from personal_server.granting.audit import Acting
from personal_server.reading.identification import Identifier, OneState
from personal_server.reading.ports import ReadPorts
from personal_server.reading.proofs import Proofs
from personal_server.reading.sealed_tokens import KeyedSealer
from personal_server.reading.tokens import TokenHolder, TokenResolver
from personal_server.storage.authorization_rows import (
    EventRow,
    GrantRow,
    ReadingLimitsRow,
    SubscriptionRow,
    TokenRow,
)
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sql.logs.authorization_transaction import SqlAuthorizationTransaction
from personal_server.storage.sql.snapshot import SqlSnapshot
from personal_server.storage.sql.store import SqlRecordStore
from server.tests.storage.conftest import sqlite_store
from tests.postgresql import postgres_store

BEGIN_NS = 1_795_000_000 * NANOSECONDS
ACTING = Acting("client")
PUBLIC = "93.184.215.14"
OPENED = {"sqlite": sqlite_store, "postgres": postgres_store}
Json = dict[str, Any]


class Chance:
    """Distinct bytes, the same in each run."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, size: int) -> bytes:
        self._count += 1
        return hashlib.shake_256(self._count.to_bytes(8, "big")).digest(size)


class NoSignal:
    """Nobody waits: tests take turns themselves."""

    count = 0

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        del timeout_seconds
        return last_seen


@dataclass(frozen=True)
class Received:
    """An event as it arrived."""

    headers: httpx2.Headers
    body: bytes
    at_ns: int
    url: str

    @property
    def event(self) -> Json:
        return json.loads(self.body)

    @property
    def type(self) -> str:
        return self.event["type"].removeprefix("pdpp.")

    @property
    def data(self) -> Json:
        return self.event["data"]

    def is_signed_by(self, secret: bytes) -> bool:
        """As a receiver checks it."""
        content = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode()
        made = hmac.new(secret, content + self.body, hashlib.sha256).digest()
        return f"v1,{base64.b64encode(made).decode()}" in self.headers["webhook-signature"].split()


Behave = Callable[[Received], Any]


def echo(received: Received) -> httpx2.Response:
    """A good receiver."""
    challenge = received.data.get("challenge")
    return saying(json.dumps({"challenge": challenge}).encode() if challenge else b"")


def saying(body: bytes, status: int = 200) -> httpx2.Response:
    """An answer whose body has not been read yet."""

    async def chunks() -> AsyncGenerator[bytes, None]:
        for begin in range(0, len(body), 1_024):
            yield body[begin : begin + 1_024]

    return httpx2.Response(status, content=chunks())


def answering(status: int, **headers: str) -> Behave:
    """A receiver that answers challenges, and everything else so."""

    def behave(received: Received) -> httpx2.Response:
        if received.type == "subscription.verify":
            return echo(received)
        return httpx2.Response(status, headers={k.replace("_", "-"): v for k, v in headers.items()})

    return behave


@dataclass
class PostOffice:
    """A store, who asked to be told, and the receivers."""

    store: SqlRecordStore
    now_ns: int = BEGIN_NS
    behave: Behave = echo
    hosts: dict[str, Sequence[str]] = field(
        default_factory=lambda: defaultdict[str, Sequence[str]](lambda: (PUBLIC,))
    )
    received: list[Received] = field(default_factory=list[Received])
    own_hosts: frozenset[str] = frozenset()
    random_bytes: Callable[[int], bytes] = field(default_factory=Chance)
    many: int = 100
    """How many clients there are, where many are meant: fewer where that takes long."""

    def __post_init__(self) -> None:
        database = cast(ServerDatabase, cast(Any, self.store)._database)
        subject_id = self.store.subject_id
        self.authorization: AuthorizationStore = SqlAuthorizationStore(database, subject_id)

        @contextmanager
        def open_state(timeout_seconds: float | None) -> Generator[OneState, None, None]:
            with database.read(timeout_seconds) as session:
                yield (
                    SqlAuthorizationTransaction(session, subject_id),
                    SqlSnapshot(session, database, subject_id),
                )

        self.open_state: Callable[[float | None], AbstractContextManager[OneState]] = open_state
        sealer = KeyedSealer([SealingKey(1, b"k" * 32, 0)])
        self.ports = ReadPorts(self.store, sealer, self.clock, self.random_bytes)
        proofs = Proofs(self.clock, self.random_bytes)
        resolver = TokenResolver(self.authorization, self.clock, proofs)
        self.identify = Identifier(resolver, open_state, KnownDeclarations(), lambda _: True)
        self.secrets = SecretBox(lambda: [SealingKey(1, b"k" * 32, 0)])
        self.events = Events(
            self.ports, self.authorization, open_state, self.identify, self.secrets
        )
        self.callbacks = Callbacks(
            self.own_hosts, resolver=self._resolve, transport=httpx2.MockTransport(self._receive)
        )
        self.subscriptions = Subscriptions(
            self.authorization, self.callbacks, self.secrets, self.events.newest, self.random_bytes
        )
        self.deliveries = self.new_process()

    def new_process(self) -> Deliveries:
        """Deliveries as after a start."""
        return Deliveries(
            self.events,
            self.callbacks,
            NoSignal(),
            self.clock,
            monotonic=lambda: self.steady_ns / NANOSECONDS,
        )

    @property
    def steady_ns(self) -> int:
        return self.now_ns + self.set_back_ns

    set_back_ns: int = 0

    def clock(self) -> int:
        return self.now_ns

    def _resolve(self, host: str) -> Sequence[str]:
        return self.hosts[host]

    async def _receive(self, request: httpx2.Request) -> httpx2.Response:
        host = request.headers["host"]
        received = Received(
            request.headers, request.content, self.now_ns, f"https://{host}{request.url.path}"
        )
        self.received.append(received)
        answer = self.behave(received)
        return await answer if inspect.isawaitable(answer) else answer

    # Who may read.

    def grant(self, grant: Grant) -> TokenHolder:
        """A client with a grant."""
        row = GrantRow(
            grant_id=grant.grant_id,
            grant=render_grant(grant),
            client_id=grant.client_id,
            connector_key="",
            access_mode=grant.access_mode,
            issued_at_ns=1,
            expires_at_ns=None,
            revision=f"sha256:{grant.grant_id}",
        )
        with self.authorization.write() as writer:
            writer.insert(row)
            writer.insert(ReadingLimitsRow(held_id=grant.grant_id, events=True))
        return TokenHolder(grant.client_id, grant.grant_id)

    def owner(self) -> TokenHolder:
        """A client that acts as the owner."""
        row = TokenRow(
            token_hash=b"t" * 32,
            kind="owner",
            client_id="pdpp-owner-cli",
            origin="",
            resource="",
            scope="",
            issued_at_ns=1,
            expires_at_ns=2**62,
        )
        with self.authorization.write() as writer:
            writer.insert(row)
        return TokenHolder("pdpp-owner-cli")

    def authority(self, holder: TokenHolder) -> ReadAuthority:
        """What a holder may read now."""
        with self.open_state(None) as (reader, snapshot):
            return self.identify.holder(holder, reader, snapshot).authority

    def change_grant(self, holder: TokenHolder, *columns: Any) -> None:
        with self.authorization.write() as writer:
            writer.change(GrantRow, columns, GrantRow.grant_id.equals(holder.grant_id or ""))

    # Being told.

    async def subscribe(
        self,
        holder: TokenHolder,
        url: str = "https://app.example/hooks",
        filters: Filters = EVERYTHING,
    ) -> SubscriptionView:
        """An active subscription."""
        authority = self.authority(holder)
        made = self.subscriptions.create(authority, url, filters, None, ACTING, self.now_ns)
        await self.deliveries.work()
        return made

    async def pass_time(self, seconds: float) -> list[Received]:
        """Let time pass and do what is due; what arrived."""
        before = len(self.received)
        self.now_ns += round(seconds * NANOSECONDS)
        await self.deliveries.work()
        return self.received[before:]

    async def told(self) -> list[Received]:
        """What arrives of what was written."""
        return [*await self.pass_time(0), *await self.pass_time(5), *await self.pass_time(0)]

    def row(self, made: SubscriptionView) -> SubscriptionRow:
        with self.authorization.read() as reader:
            which = SubscriptionRow.subscription_id.equals(made.row.subscription_id)
            row = reader.get(SubscriptionRow, which)
        assert row is not None
        return row

    def queued(self) -> list[EventRow]:
        """What is not done."""
        with self.authorization.read() as reader:
            return reader.rows(
                EventRow, EventRow.done_at_ns.equals(None), order=EventRow.created_at_ns
            )


@contextmanager
def post_office(kind: str, folder: Path, **members: Any) -> Generator[PostOffice, None, None]:
    """One over an empty store."""
    with OPENED[kind](folder) as store:
        yield PostOffice(store, **members)
