"""A house full of records: two mailboxes and a bank account, in memory."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

from msgspec.structs import replace

from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_kernel.values import render_instant
from pdpp_sources.bank.reader import DECLARATION as BANK
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.app.owner_store import OwnerStore
from personal_server.app.uploads import sample_declarations
from personal_server.collecting.import_folders import ImportFolders
from personal_server.collecting.uploads import Uploads
from personal_server.console.composition import ConsoleParts, console_app
from personal_server.console.languages import Language, languages
from personal_server.console.uploads import Recognized, UploadParts
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration, render_declaration
from personal_server.domain.stored import Batch, CollectionRun, RecordWrite, RunStatus
from personal_server.feeds.wanted_accounts import AccountSignUps
from personal_server.granting.consent_receipts import ConsentReceipts
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.owner_locale import OwnerLocale
from personal_server.reading.identification import Identifier, OneState
from personal_server.reading.ports import ReadPorts
from personal_server.reading.sealed_tokens import store_sealer
from personal_server.reading.tokens import TokenResolver
from personal_server.storage.authorization_rows import (
    AuthorizationRow,
    ClientRow,
    GrantRow,
    RequestRow,
    TokenRow,
)
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.authorization_store import R
from server.tests.console.browsing import CHEAP_HASHER, ORIGIN, SECOND, Browser, Clock
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.oracle.disclosure_memory import MemoryDisclosures
from tests.oracle.memory import MemoryStore
from tests.proving import unproven

DAY = 86_400 * SECOND
MAIL_SOURCE = "https://registry.pdpp.dev/connectors/mail"
BANK_SOURCE = "https://registry.pdpp.dev/connectors/bank"
HOW_TO_EXPORT = [{"connector_key": "mail", "name": "E-mail", "how_to_export": "Ask for it."}]
HOME, WORK, CHECKING = "cin_home", "cin_work", "cin_checking"
PEOPLE = ("Grace Hopper", "Alan Turing", "Mary Anning", "Emmy Noether", "Karl Popper")
SUBJECTS = ("Lunch on Thursday?", "Your invoice", "Re: holiday plans", "Minutes of the meeting")


@lru_cache(maxsize=32)
def parsed(rendered: bytes) -> SourceDeclaration:
    """A declaration of a house; the two that every house has are parsed once."""
    return parse_declaration(rendered)


@cache
def known_declarations() -> KnownDeclarations:
    """One for all houses: the same digest is the same content."""
    return KnownDeclarations()


@dataclass
class Randomness:
    drawn: int = 0

    def __call__(self, size: int) -> bytes:
        self.drawn += 1
        return hashlib.shake_256(str(self.drawn).encode()).digest(size)


@dataclass
class HeldLocale:
    """The owner's locale, in memory."""

    known: OwnerLocale = field(default_factory=OwnerLocale)

    def __call__(self) -> OwnerLocale:
        return self.known

    def keep(self, time_zone: str, language: str | None) -> None:
        self.known = replace(self.known, time_zone=time_zone, language=language)


@dataclass
class Household:
    """The stores and the owner's view of them."""

    clock: Clock = field(default_factory=Clock)
    origin: str = ORIGIN
    random_bytes: Any = secrets.token_bytes
    uploads: Uploads | None = None
    locale: HeldLocale = field(default_factory=lambda: HeldLocale())
    languages: Callable[[], Mapping[str, Language]] = languages
    folders: ImportFolders = field(default_factory=ImportFolders)
    recognized: Recognized = lambda _: {}
    feeds: list[FeedRow] = field(default_factory=list[FeedRow])
    asked: list[str] = field(default_factory=list[str])
    sign_ups: Callable[[], AccountSignUps] | None = None
    has_desktop: bool = False
    called: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.records = MemoryStore("own_test")
        self.authorization = MemoryAuthorizationStore("own_test")
        self.disclosures = MemoryDisclosures()
        for raw in (MAIL, BANK):
            self.declare(raw)
        self.connect(HOME, "mail", MAIL_SOURCE, "Home mailbox")
        self.connect(WORK, "mail", MAIL_SOURCE, "Work mailbox")
        self.connect(CHECKING, "bank", BANK_SOURCE, "Checking account")
        self.fill(HOME, "messages", mails(self.clock.now_ns, 40))
        self.fill(WORK, "messages", mails(self.clock.now_ns, 12))
        self.fill(CHECKING, "transactions", payments(self.clock.now_ns, 30))
        sealer = store_sealer(self.records, self.random_bytes, self.clock.now_ns)
        self.reads = ReadPorts(self.records, sealer, self.clock, self.random_bytes)
        self.store = OwnerStore(
            origin=self.origin,
            authorization=self.authorization,
            disclosures=self.disclosures,
            reads=self.reads,
            declarations=known_declarations(),
            receipts=ConsentReceipts(lambda: bytes(32)),
            random_bytes=self.random_bytes,
        )
        self.sign_in = OwnerSignIn(self.authorization, self.clock, self.random_bytes, CHEAP_HASHER)
        self.app = self.console()

    def console(self) -> Any:
        """The pages over these stores, as a process makes them when it starts."""
        return console_app(
            ConsoleParts(
                server_name="Ada's server",
                authorization=self.authorization,
                disclosures=self.disclosures,
                reads=self.reads,
                declarations=self.store.declarations,
                random_bytes=self.random_bytes,
                sign_in=self.sign_in,
                identify=Identifier(
                    TokenResolver(self.authorization, self.clock, unproven()),
                    self.open_state,
                    self.store.declarations,
                    frozenset({self.origin}).__contains__,
                ),
                open_state=self.open_state,
                sample_declarations=sample_declarations,
                locale=self.locale,
                languages=self.languages,
                uploads=self.uploads
                and UploadParts(self.uploads, lambda: HOW_TO_EXPORT, self.folders, self.recognized),
                feeds=lambda: self.feeds,
                run_feed=self.asked.append,
                sign_ups=self.sign_ups,
                desktop=lambda: self.has_desktop,
                check_url=self.called.append,
            )
        )

    @contextmanager
    def open_state(self, timeout_seconds: float | None) -> Generator[OneState]:
        """Both stores, which nothing changes between."""
        with (
            self.authorization.read() as reader,
            self.records.snapshot(timeout_seconds) as snapshot,
        ):
            yield reader, snapshot

    def browser(self, origin: str | None = None) -> Browser:
        return Browser(self.app, origin or self.origin)

    def signed_in(self, origin: str | None = None) -> Browser:
        browser = self.browser(origin)
        page = browser.get(f"/owner/enter?t={self.sign_in.make_link()}")
        assert browser.submit(page, "/owner/enter").status == 303
        return browser

    def client(self, client_id: str = "cli_notes", **members: Any) -> str:
        facts: dict[str, Any] = {
            "client_id": client_id,
            "client_ref": f"clr_{len(client_id)}{client_id[-6:]}",
            "registration": "dynamic",
            "name": "Notes app",
            "redirect_uris": ("https://app.example/cb?kept=1", "cursor://any.where/cb"),
            "registered_at_ns": self.clock.now_ns,
        }
        with self.authorization.write() as writer:
            writer.insert(ClientRow(**{**facts, **members}))
        return client_id

    def ask(
        self, details: list[dict[str, object]] | None, client_id: str = "cli_notes", **members: Any
    ) -> str:
        """A pending request; the path of its consent page."""
        with self.authorization.read() as reader:
            known = reader.get(ClientRow, ClientRow.client_id.equals(client_id))
            number = reader.count(RequestRow)
        if known is None:
            self.client(client_id)
        facts: dict[str, Any] = {
            "request_id": f"ar_{number}",
            "flow": "code",
            "client_id": client_id,
            "origin": self.origin,
            "resource": f"{self.origin}/mcp",
            "scope": "pdpp:read",
            "redirect_uri": "https://app.example/cb?kept=1",
            "state": "state-of-the-app",
            "code_challenge": "c" * 43,
            "details": details,
            "picker": details is None,
            "created_at_ns": self.clock.now_ns,
            "expires_at_ns": self.clock.now_ns + 900 * SECOND,
        }
        with self.authorization.write() as writer:
            writer.insert(RequestRow(**{**facts, **members}))
        return f"/consent/ar_{number}"

    def collect(self) -> None:
        """As when the apps of what was allowed have redeemed their codes."""
        made = [
            TokenRow(
                token_hash=row.grant_id.encode().ljust(32, b".")[:32],
                kind="client",
                client_id=row.client_id,
                grant_id=row.grant_id,
                origin=self.origin,
                resource=f"{self.origin}/mcp",
                scope="pdpp:read",
                issued_at_ns=self.clock.now_ns,
                expires_at_ns=self.clock.now_ns + 3_600 * SECOND,
            )
            for row in self.rows(GrantRow)
        ]
        self.insert(*made)
        redeemed = [RequestRow.status.to("redeemed")]
        with self.authorization.write() as writer:
            writer.change(RequestRow, redeemed, RequestRow.status.equals("approved"))

    def insert(self, *rows: AuthorizationRow) -> None:
        with self.authorization.write() as writer:
            for row in rows:
                writer.insert(row)

    def rows(self, table: type[R]) -> list[R]:
        with self.authorization.read() as reader:
            return reader.rows(table)

    def declare(self, raw: Mapping[str, object]) -> None:
        rendered = render_declaration(raw)
        self.records.put_declaration(parsed(rendered), rendered, self.clock.now_ns)

    def connect(self, connection_id: str, key: str, source_id: str, name: str | None) -> None:
        self.records.add_connection(
            Connection(
                connection_id=connection_id,
                connector_key=key,
                source_id=source_id,
                display_name=name,
                status=ConnectionStatus.ACTIVE,
                created_at_ns=self.clock.now_ns,
                updated_at_ns=self.clock.now_ns,
            )
        )
        run = CollectionRun("run_1", RunStatus.SUCCEEDED, self.clock.now_ns - DAY)
        self.records.record_run(connection_id, run)

    def fill(self, connection_id: str, stream: str, records: Iterable[dict[str, Any]]) -> None:
        connection = next(c for c in self._connections() if c.connection_id == connection_id)
        raw = MAIL if connection.connector_key == "mail" else BANK
        declared = parsed(render_declaration(raw)).streams[stream]
        writes = [RecordWrite(r["id"], r, self.clock.now_ns) for r in records]
        self.records.commit(Batch(connection_id, declared, writes, self.clock.now_ns))

    def _connections(self) -> tuple[Connection, ...]:
        with self.records.snapshot() as snapshot:
            return snapshot.connections()


def mails(now_ns: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"m{number:03}",
            "thread_id": f"t{number // 3}",
            "sent_at": render_instant(now_ns - number * 5 * DAY),
            "subject": SUBJECTS[number % len(SUBJECTS)],
            "from_name": PEOPLE[number % len(PEOPLE)],
            "from_address": f"{PEOPLE[number % len(PEOPLE)].split()[0].lower()}@example.org",
            "to": ["Ada <ada@example.org>"],
            "body": f"Dear Ada, secret number {number} stays between us.",
            "is_reply": number % 2 == 0,
            "size_bytes": 1_000 + number,
        }
        for number in range(count)
    ]


def payments(now_ns: int, count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"p{number:03}",
            "account_id": "a1",
            "posted_on": render_instant(now_ns - number * 3 * DAY)[:10],
            "payee": ("Bakery", "Rent", "Railway", "Pharmacy")[number % 4],
            "amount": -12.5 * (number + 1),
            "amount_minor": -1_250 * (number + 1),
            "currency": "EUR",
            "direction": "out",
        }
        for number in range(count)
    ]


def mail_request(**stream: object) -> list[dict[str, object]]:
    """A request for messages of the mail source."""
    return [
        {
            "type": "https://pdpp.dev/data-access",
            "source": {"id": MAIL_SOURCE},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "access_mode": "continuous",
            "streams": [{"name": "messages", "instance_ids": [HOME], **stream}],
        }
    ]


def bank_request(**stream: object) -> list[dict[str, object]]:
    """A request for payments of the bank source."""
    return [
        {
            "type": "https://pdpp.dev/data-access",
            "source": {"id": BANK_SOURCE},
            "purpose_code": "https://pdpp.dev/purpose/agent_context",
            "access_mode": "continuous",
            "streams": [{"name": "transactions", **stream}],
        }
    ]
