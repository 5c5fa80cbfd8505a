"""A server that starts with a clock a year ahead ends nothing, forgets nothing, and says so."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.app.server import compose
from personal_server.reading.disclosure_recorder import DisclosureRecorder
from personal_server.settings import Settings
from personal_server.storage.authorization_rows import FamilyRow, TokenRow
from personal_server.upkeep.clock import accept_clock
from personal_server.web.guarded_fetch import GuardedFetch
from server.tests.app.whole import Whole, whole
from server.tests.console.household import mail_request

YEAR = 365 * DAY_NANOSECONDS


@pytest.fixture
def site(tmp_path: Path) -> Generator[Whole]:
    with whole(tmp_path) as made:
        yield made


async def ran_until(site: Whole, reached: Callable[[], bool]) -> None:
    """The server's life, from its start until something is so."""
    shut = anyio.Event()
    asked = iter(("lifespan.startup", "lifespan.shutdown"))

    async def receive() -> dict[str, Any]:
        message = next(asked)
        if message == "lifespan.shutdown":
            with anyio.fail_after(30):
                while not reached():
                    await anyio.sleep(0.01)
        return {"type": message}

    async def send(message: Any) -> None:
        if message["type"] == "lifespan.shutdown.complete":
            shut.set()

    stores = site.server.stores
    recorder = DisclosureRecorder(stores.disclosures, site.clock)
    server = compose(Settings(), stores, recorder, GuardedFetch())
    await server.app({"type": "lifespan"}, receive, send)
    recorder.close()
    assert shut.is_set()


def health(site: Whole) -> Any:
    return site.body(site.client.get("/healthz"))


def test_nothing_is_ended_by_a_clock_that_jumped_until_its_owner_says_so(site: Whole) -> None:
    tokens = site.connect(mail_request())
    assert tokens["refresh_token"]
    upkeep = site.server.stores.upkeep

    def swept() -> bool:
        note = upkeep.clock_note()
        return note is not None and note.steady_ns > 0

    anyio.run(ran_until, site, lambda: upkeep.clock_note() is not None)
    site.clock.now_ns += YEAR
    anyio.run(ran_until, site, swept)
    assert health(site)["faults"][0]["part"] == "clock"
    assert [row.revoked_at_ns for row in site.owner_rows(FamilyRow)] == [None]
    assert len(site.owner_rows(TokenRow)) == 1
    accept_clock(upkeep, site.clock())
    assert health(site) == {"status": "ok"}
    anyio.run(ran_until, site, lambda: not site.owner_rows(FamilyRow))
    assert site.owner_rows(TokenRow) == []
