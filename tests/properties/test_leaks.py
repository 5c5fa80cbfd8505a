"""Nothing hidden is in any byte that leaves the process: bodies, headers, disclosure entries, logs.

The comparison with the reference covers bodies and tokens at scale; this goes through the frame.
"""

from __future__ import annotations

import logging
import random
import re
from pathlib import Path

import pytest

from personal_server.reading.identification import Identified
from personal_server.resource_server.quotas import LimitRules
from personal_server.web.routing import RouteTable
from server.tests.resource_server.conftest import Bench
from server.tests.resource_server.door import Door
from tests.properties.comparing import Session, furnish
from tests.properties.requests import make_ask
from tests.properties.stores import STORES, open_store
from tests.properties.worlds import make_token, make_world

MARKER = re.compile(r"mk(\d+)marx")
UNLIMITED = LimitRules(0, 0, 0, 0, 0)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", STORES)
async def test_markers_of_hidden_values_are_found_nowhere(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world = make_world(99)
    rng = random.Random(99)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        door = Door(store)
        bench = Bench(RouteTable(door.table.routes), rules=UNLIMITED, store=store)
        for turn in range(5):
            session = Session(door, world, make_token(world))
            bench.tokens[f"token{turn}"] = Identified(session.authority)
            async with bench.client(f"token{turn}") as caller:
                for _ in range(60):
                    reply = await caller.get(make_ask(rng, session.places).target)
                    shown = reply.text + repr(reply.headers)
                    leaked = {int(m) for m in MARKER.findall(shown)} - session.allowed
                    assert leaked == set()
        assert MARKER.findall(repr(bench.log.entries)) == []
        assert MARKER.findall(caplog.text) == []
