"""A frame around a few routes, with fakes behind its ports."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from pdpp_kernel.errors import InvalidToken, PersonalServerError
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.disclosure import DisclosureEntry
from personal_server.reading.identification import Identified
from personal_server.reading.tokens import TokenState
from personal_server.resource_server.application import Bearer, Ports, ResourceServer
from personal_server.resource_server.quotas import LimitRules, Quotas
from personal_server.storage.ports.snapshots import ReadSnapshot
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.web.call_capacity import Capacity
from personal_server.web.routes import Route
from personal_server.web.routing import RouteTable
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import furnished
from server.tests.storage.conftest import sqlite_store
from tests.oracle.memory import MemoryStore
from tests.postgresql import postgres_store

NOON_NS = 1_775_476_800 * NANOSECONDS


@dataclass
class FakeLog:
    entries: list[DisclosureEntry] = field(default_factory=list[DisclosureEntry])
    failure: PersonalServerError | None = None

    def enter(self, entries: Sequence[DisclosureEntry]) -> None:
        self.entries.extend(entries)

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure


@dataclass
class FakeClock:
    now_ns: int = NOON_NS

    def __call__(self) -> int:
        return self.now_ns

    def advance(self, seconds: float) -> None:
        self.now_ns += int(seconds * NANOSECONDS)


def client_authority(**members: object) -> ReadAuthority:
    values: dict[str, object] = {
        "kind": TokenKind.CLIENT,
        "subject_id": "sub_1",
        "sources": (),
        "client_id": "planner",
        "grant_ids": ("grt_1",),
        "granted_streams": frozenset({"entries"}),
    }
    return ReadAuthority(**{**values, **members})  # type: ignore[arg-type]


OWNER = ReadAuthority(TokenKind.OWNER, "sub_1", (), client_id="pdpp-cli")


@dataclass
class Bench:
    """A resource server under test and its fakes; tokens are keys of `tokens`."""

    table: RouteTable[Route]
    tokens: dict[str, Identified] = field(
        default_factory=lambda: {
            "client": Identified(client_authority()),
            "owner": Identified(OWNER),
        }
    )
    rules: LimitRules = field(default_factory=LimitRules)
    capacity: Capacity = field(default_factory=Capacity)
    log: FakeLog = field(default_factory=FakeLog)
    store: RecordStore = field(default_factory=MemoryStore)
    clock: FakeClock = field(default_factory=FakeClock)
    bearers: list[str | TokenState] = field(default_factory=list[str | TokenState])

    @contextmanager
    def identify(self, bearer: Bearer) -> Generator[tuple[Identified, ReadSnapshot]]:
        known = isinstance(bearer, TokenState)
        token = bearer.resolved.token_reference if known else bearer.token
        self.bearers.append(bearer if known else token)
        if token not in self.tokens:
            raise InvalidToken("This token is not known here.")
        with self.store.snapshot() as snapshot:
            yield self.tokens[token], snapshot

    def app(self) -> ResourceServer:
        ports = Ports(
            self.identify,
            Quotas(self.rules, self.clock),
            self.log,
            self.clock,
            lambda n: b"\x5b" * n,
            self.capacity,
            identify_briefly=self.identify,
        )
        return ResourceServer(self.table, ports)

    def client(self, token: str | None = "client") -> httpx2.AsyncClient:  # noqa: S107 (a fake)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app()),
            base_url="http://127.0.0.1:7662",
            headers=headers,
        )


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordStore]:
    """Each store in turn: the wire is the same."""
    if request.param == "memory":
        yield MemoryStore()
        return
    with (sqlite_store if request.param == "sqlite" else postgres_store)(tmp_path) as store:
        yield store


MakeBench = Callable[..., Bench]


@pytest.fixture
def make_bench() -> MakeBench:
    def make(*routes: Route, **members: object) -> Bench:
        return Bench(RouteTable(routes), **members)  # type: ignore[arg-type]

    return make


@pytest.fixture
def door() -> Door:
    """Reads over the furnished journal."""
    return Door(furnished())
