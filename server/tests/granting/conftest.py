"""A store, two sources and a clock for the operations of consent."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from personal_server.consent.choices import Choices, EntryChoice, StreamChoice
from personal_server.consent.credentials import secret_hash
from personal_server.consent.offers import EntryOffer
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.granting.audit import Acting
from personal_server.granting.codes import Redeeming, Redemption, challenge_of
from personal_server.granting.decisions import Granting
from personal_server.granting.reviews import Review
from personal_server.granting.tokens import Issued
from personal_server.storage.authorization_rows import (
    AuditRow,
    AuthorizationRow,
    ClientRow,
    RequestRow,
)
from personal_server.storage.catalog import Catalog
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from server.tests.samples.two_sources import JOURNAL, NOTES, declarations
from tests.new_files import new_file
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.postgresql import postgres_database

VERIFIER = "v" * 43
SECONDS = 10**9
OWNER = Acting("owner", "req_1", "127.0.0.1")


def connection(number: str, key: str = "journal", source: str = JOURNAL) -> Connection:
    return Connection(
        connection_id=f"cin_{number}",
        connector_key=key,
        source_id=source,
        display_name=f"My {number}",
        status=ConnectionStatus.ACTIVE,
        created_at_ns=0,
        updated_at_ns=0,
    )


@dataclass
class Bench:
    """Everything a decision needs, in memory."""

    store: AuthorizationStore
    now_ns: int = 1_700_000_000 * SECONDS
    catalog: Catalog = field(default_factory=lambda: Catalog({}, ()))
    numbers: Any = field(default_factory=lambda: itertools.count(1))

    def clock(self) -> int:
        return self.now_ns

    def random(self, size: int) -> bytes:
        return next(self.numbers).to_bytes(size, "big")

    @property
    def granting(self) -> Granting:
        return Granting(self.store, lambda: self.catalog, self.clock, self.random)

    @property
    def redeeming(self) -> Redeeming:
        return Redeeming(self.store, self.clock, self.random)

    def insert(self, *rows: AuthorizationRow) -> None:
        with self.store.write() as writer:
            for row in rows:
                writer.insert(row)

    def rows(self, table: Any) -> list[Any]:
        with self.store.read() as reader:
            return reader.rows(table)

    def client(self, client_id: str = "cli_1", **over: Any) -> None:
        row = ClientRow(
            client_id=client_id,
            client_ref="clr_" + client_id,
            registration="dynamic",
            name="Notes app",
            redirect_uris=("https://app.example/cb",),
            registered_at_ns=self.now_ns,
        )
        self.insert(replace(row, **over))

    def events(self) -> list[tuple[str, str | None, str | None, str | None]]:
        """What the audit trail says: event, client, grant, package."""
        rows = self.rows(AuditRow)
        return [(row.event, row.client_id, row.grant_id, row.package_id) for row in rows]

    def connect(self, *details: dict[str, object], request_id: str = "ar_1", **over: Any) -> Issued:
        """The tokens of a client that asked for this and was allowed all of it."""
        code = self.allow(self.ask([*details], request_id, **over))
        client_id = over.get("client_id", "cli_1")
        redemption = Redemption(client_id, code, "none", verifier=VERIFIER)
        return self.redeeming.redeem_code(redemption, Acting("client"))

    def ask(
        self, details: list[dict[str, object]] | None, request_id: str = "ar_1", **over: Any
    ) -> str:
        row = RequestRow(
            request_id=request_id,
            flow="code",
            client_id="cli_1",
            origin="https://me.example",
            resource="https://me.example/mcp",
            scope="pdpp:read",
            redirect_uri="https://app.example/cb",
            state="xyz",
            code_challenge=challenge_of(VERIFIER),
            details=details,
            picker=details is None,
            created_at_ns=self.now_ns,
            expires_at_ns=self.now_ns + 900 * SECONDS,
        )
        self.insert(replace(row, **over))
        return request_id

    def ask_device(self, details: list[dict[str, object]] | None = None, **over: Any) -> str:
        device: dict[str, Any] = {
            "flow": "device",
            "redirect_uri": None,
            "state": None,
            "code_challenge": None,
            "device_code_hash": secret_hash("pdpp_dc_1"),
            "user_code_hash": secret_hash("BCDFGHJK"),
        }
        return self.ask(details, **{**device, **over})

    def allow(self, request_id: str, chosen: Choices | None = None) -> str:
        """Approve what is shown; the code or an empty string."""
        review = self.granting.view(request_id, OWNER)
        choices = chosen or everything(review)
        shown = self.granting.choose(request_id, choices, OWNER)
        assert shown.revision is not None, shown.missing
        decided = self.granting.approve(request_id, choices, shown.revision, OWNER)
        found = (decided.redirect_to or "").partition("code=")[2]
        return found.partition("&")[0]


def everything(review: Review) -> Choices:
    """All entries, streams and connections."""
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


def entry(source: str = JOURNAL, **over: object) -> dict[str, object]:
    """A minimal entry of `authorization_details`."""
    found: dict[str, object] = {
        "type": "https://pdpp.dev/data-access",
        "source": {"id": source},
        "purpose_code": "https://pdpp.dev/purpose/agent_context",
        "access_mode": "continuous",
        "streams": [{"name": "entries"}],
    }
    found.update(over)
    return {name: value for name, value in found.items() if value is not None}


def make_bench(store: AuthorizationStore) -> Bench:
    """A bench with two connected sources and one app."""
    connections = (connection("a"), connection("n", "notes", NOTES))
    made = Bench(store, catalog=Catalog(declarations(), connections))
    made.client()
    return made


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    if request.param == "memory":
        yield make_bench(MemoryAuthorizationStore("own_1"))
        return
    if request.param == "postgres":
        with postgres_database(tmp_path) as database:
            yield make_bench(SqlAuthorizationStore(database, "own_1"))
        return
    file = new_file(tmp_path / "pdpp.db")
    yield make_bench(SqlAuthorizationStore(file, "own_1"))
    file.close()


@pytest.fixture
def memory() -> Bench:
    """A bench in memory alone, for what does not depend on the store."""
    return make_bench(MemoryAuthorizationStore("own_1"))


@pytest.fixture
def make_entry() -> Callable[..., dict[str, object]]:
    return entry
