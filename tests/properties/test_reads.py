"""Every answer equals a brute-force filter by the grant, and nothing hidden is in any byte of it.

`PDPP_READ_WORLDS` sets how many worlds are generated; each is asked by 6 tokens, 30 requests each,
at every store.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from server.tests.resource_server.door import Door
from tests.properties.comparing import Session, furnish
from tests.properties.requests import make_ask
from tests.properties.sizes import worlds
from tests.properties.stores import STORES, open_store
from tests.properties.worlds import make_token, make_world

TOKENS = 6
ASKS = 30


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize("seed", worlds())
def test_a_read_is_exactly_what_the_grant_lets_through(
    kind: str, seed: int, tmp_path: Path
) -> None:
    world = make_world(seed)
    with open_store(kind, tmp_path) as store:
        furnish(store, world)
        door = Door(store)
        for turn in range(TOKENS):
            token = make_token(world)
            session = Session(door, world, token)
            rng = random.Random(f"{seed}/{turn}")
            for _ in range(ASKS):
                ask = make_ask(rng, session.places)
                try:
                    session.check(ask)
                except AssertionError as failure:
                    failure.add_note(f"{kind} {ask.target}\n{token}")
                    raise
