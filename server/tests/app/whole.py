"""The whole server in process: its owner at a browser, a client, and a clock of the test."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from personal_server.app.meaning import MakeEmbedder, Meaning
from personal_server.app.server import Server, compose, watched_recorder
from personal_server.app.stores import open_stores
from personal_server.granting.codes import challenge_of
from personal_server.reading.disclosure_recorder import DisclosureRecorder
from personal_server.settings import Settings
from personal_server.storage.ports.authorization_store import R
from personal_server.web.guarded_fetch import GuardedFetch
from server.tests.console.browsing import Browser, Clock, Page, press
from tests.browser.site import fill
from tests.new_files import begin_database
from tests.proving import Holder

ORIGIN = "http://127.0.0.1:7662"
CALLBACK = "http://127.0.0.1:5555/callback"
VERIFIER = "v" * 64
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
JSON = "application/json"


@dataclass
class Whole:
    """A server with records, and who calls it."""

    server: Server
    clock: Clock
    client: Browser
    owner: Browser
    recorder: DisclosureRecorder
    holder: Holder | None = None
    """The key that the client's tokens are bound to."""
    meaning: Meaning | None = None

    def body(self, page: Page) -> Any:
        """What a JSON answer says."""
        return json.loads(page.text)

    def owner_rows(self, table: type[R]) -> list[R]:
        """The rows of a table of the authorization store."""
        with self.server.stores.authorization.read() as reader:
            return reader.rows(table)

    def sign_in(self) -> None:
        """The owner comes with a fresh link."""
        page = self.owner.get(f"/owner/enter?t={self.server.sign_in.make_link()}")
        assert self.owner.submit(page, "/owner/enter").status == 303

    def ask(self, details: list[dict[str, Any]], **over: str) -> str:
        """A client sends the owner's browser; the path of the consent page."""
        query = {
            "client_id": "pdpp-cli",
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "authorization_details": json.dumps(details),
            **over,
        }
        page = self.owner.get(f"/oauth/authorize?{urlencode(query)}")
        assert page.status == 303, page.text
        return page.headers["location"]

    def connect(
        self,
        details: list[dict[str, Any]],
        *,
        expiry: str | None = None,
        records_per_day: str = "",
        **over: str,
    ) -> dict[str, Any]:
        """Ask, allow everything (until `expiry`, as the page offers it), redeem."""
        path = self.ask(details, **over)
        page = self.owner.get(path)
        kept = {f"keep.{n}": "1" for n in range(len(details))} if len(details) > 1 else {}
        kept |= {} if expiry is None else {"expiry": expiry}
        kept |= {"records_per_day": records_per_day} if records_per_day else {}
        decided = press(
            self.owner, press(self.owner, page, path, "preview", **kept), path, "approve"
        )
        assert decided.status == 303, decided.text
        (code,) = parse_qs(urlsplit(decided.headers["location"]).query)["code"]
        return self.token(grant_type="authorization_code", code=code, code_verifier=VERIFIER)

    def token(self, **form: str) -> dict[str, Any]:
        """What the token endpoint gives."""
        fields = list({"client_id": "pdpp-cli", **form}.items())
        proof = {} if self.holder is None else {"dpop": self._proof(self.holder)}
        answer = self._post("/oauth/token", fields, **proof)
        assert answer.status == 200, answer.text
        return self.body(answer)

    def _post(self, path: str, fields: list[tuple[str, str]], **headers: str) -> Page:
        """As a program posts, which is of no origin."""
        return self.client.post(path, fields, accept=JSON, origin="", **headers)

    def _proof(self, holder: Holder) -> str:
        return holder.proof("POST", f"{self.client.origin}/oauth/token", self.clock())

    def owner_token(self) -> dict[str, Any]:
        """The owner profile of the device flow."""
        asking = [("client_id", "pdpp-owner-cli"), ("scope", "pdpp:owner")]
        codes = self.body(self._post("/oauth/device_authorization", asking))
        page = self.owner.get(f"/device?user_code={codes['user_code']}")
        shown = self.owner.submit(page, "/device", user_code=codes["user_code"])
        path = shown.headers["location"]
        confirmed = self.owner.submit(
            self.owner.get(path), path, understood="yes", action="approve"
        )
        assert confirmed.status == 200, confirmed.text
        form = {"grant_type": DEVICE, "device_code": codes["device_code"]}
        return self.token(client_id="pdpp-owner-cli", **form)

    def call(self, path: str, token: str | None, method: str = "GET") -> Page:
        """A call with a bearer."""
        headers = {"accept": JSON} | ({} if token is None else {"authorization": f"Bearer {token}"})
        return (
            self.client.get(path, **headers)
            if method == "GET"
            else self.client.post(path, [], **headers)
        )


@contextmanager
def whole(
    folder: Path,
    origin: str = ORIGIN,
    *,
    signed_in: bool = True,
    embedder: MakeEmbedder | None = None,
    **settings: Any,
) -> Generator[Whole]:
    """A server on a new store with two mailboxes and a bank account."""
    chosen, clock = Settings(data_dir=folder / "data", **settings), Clock()
    begin_database(chosen)
    with open_stores(chosen, serving=True, clock=clock) as stores:
        fill(stores.records, clock())
        recorder = watched_recorder(chosen, stores)
        meaning = None if embedder is None else Meaning(stores, chosen.data_dir, embedder)
        server = compose(chosen, stores, recorder, GuardedFetch(), meaning)
        browsers = (Browser(server.app, origin), Browser(server.app, origin))
        made = Whole(server, clock, *browsers, recorder, meaning=meaning)
        if signed_in:
            made.sign_in()
        try:
            yield made
        finally:
            recorder.close()


@contextmanager
def reopened(settings: Settings) -> Generator[Whole]:
    """A server on what is there, rebuilt as this version stores it."""
    clock = Clock()
    with open_stores(settings, serving=True, clock=clock) as stores:
        if not stores.database.is_read_only:
            stores.records.plan_rebuilds()
            while stores.records.rebuild_slice():
                pass
        recorder = DisclosureRecorder(stores.disclosures, clock)
        server = compose(settings, stores, recorder, GuardedFetch())
        browsers = (Browser(server.app, ORIGIN), Browser(server.app, ORIGIN))
        try:
            yield Whole(server, clock, *browsers, recorder)
        finally:
            recorder.close()
