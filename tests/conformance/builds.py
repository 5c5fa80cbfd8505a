"""The two servers that the public suite is run against, on loopback ports that add a bearer.

`real` is the whole server as `pdpp serve` composes it.  `fixtures` is the hosted adapter with the
suite's own tools, resources and prompts in place of ours.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from personal_server.app.server import Server
from personal_server.consent.selections import parse_selections
from personal_server.granting.audit import Acting
from personal_server.granting.local_grants import LocalGranting, LocalRequest
from personal_server.settings import Settings
from server.tests.console.household import BANK_SOURCE
from tests.browser.chromium import served
from tests.browser.site import site
from tests.conformance.fixtures import FIXTURES
from tests.ports import free_port
from tests.requirements.real import Real, outermost

SELECTION = {
    "type": "https://pdpp.dev/data-access",
    "source": {"kind": "connector", "id": BANK_SOURCE},
    "streams": [{"name": "transactions"}],
    "purpose_code": "https://pdpp.dev/purpose/agent_context",
    "access_mode": "continuous",
}


class AddBearer:
    """Passes everything on, with a bearer where none was sent: the suite knows no tokens."""

    def __init__(self, app: Any, token: str) -> None:
        self.app = app
        self.bearer = (b"authorization", f"Bearer {token}".encode())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            sent = {name for name, _ in scope["headers"]}
            if b"authorization" not in sent:
                scope = {**scope, "headers": [*scope["headers"], self.bearer]}
        await self.app(scope, receive, send)


@contextmanager
def real(folder: Path) -> Generator[str]:
    """The address of `/mcp` of a whole server, with the bearer of one grant added."""
    with site(folder, served_app=lambda server: AddBearer(server.app, token_of(server))) as found:
        yield f"{found.origin}/mcp"


def token_of(server: Server) -> str:
    """An access token, granted on this machine."""
    stores = server.stores
    granting = LocalGranting(
        stores.authorization, stores.catalogs, stores.clock, stores.random_bytes
    )
    asked = LocalRequest("Conformance suite", server.origin, parse_selections([SELECTION]))
    return granting.approve(asked, granting.review(asked), Acting("local_cli")).access_token


class Still:
    """The signal of a store that nobody writes to."""

    count = 0

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        time.sleep(timeout_seconds)
        return last_seen


@contextmanager
def fixtures(folder: Path) -> Generator[str]:
    """The address of `/mcp` of the hosted adapter that offers the suite's fixtures."""
    del folder
    port = free_port()
    settings = Settings(public_url=f"http://127.0.0.1:{port}")
    app, _ = outermost(anyio.run(Real.seeded), settings, FIXTURES, Still())
    with served(AddBearer(app, "mine"), port) as address:
        yield f"{address}/mcp"


BUILDS = {"real": real, "fixtures": fixtures}
