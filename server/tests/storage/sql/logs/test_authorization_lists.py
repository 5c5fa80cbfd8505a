"""The long lists of an owner: the same on every store, and pages laid end to end are the list."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from personal_server.storage.authorization_rows import (
    AuthorizationRow,
    ClientRow,
    FamilyRow,
    GrantRow,
    PackageMemberRow,
    PackageRow,
)
from personal_server.storage.ports.authorization_store import (
    AuthorizationReader,
    AuthorizationStore,
    ClientQuery,
    HeldQuery,
    ListPlace,
)
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from personal_server.storage.sqlite.database import SqliteDatabase
from tests.oracle.authorization_memory import MemoryAuthorizationStore

NOW = 1_000
HELD = [
    HeldQuery(NOW, lasts, client_id)
    for lasts, client_id in itertools.product((None, True, False), (None, "cli_1", "cli_2"))
]


def grant(number: int, random: Random) -> GrantRow:
    return GrantRow(
        grant_id=f"grt_{number}",
        grant=b"{}",
        client_id=random.choice(["cli_1", "cli_2"]),
        connector_key="mail",
        access_mode="continuous",
        issued_at_ns=random.randrange(20),
        expires_at_ns=random.choice([None, NOW, NOW + 1]),
        reason=random.choice([None, None, "owner"]),
        revision=f"rv_{number}",
    )


def client(number: int, random: Random) -> ClientRow:
    return ClientRow(
        client_id=f"cli_{number}",
        client_ref=f"clr_{number}",
        registration=random.choice(["dynamic", "pre_registered"]),
        name="App",
        registered_at_ns=random.randrange(20),
        first_approved_at_ns=random.choice([None, None, 5]),
        blocked_at_ns=random.choice([None, None, None, 6]),
    )


def family(number: int, random: Random) -> FamilyRow:
    return FamilyRow(
        family_id=f"fam_{number}",
        kind=random.choice(["owner", "client"]),
        client_id=f"cli_{number}",
        origin="o",
        resource="r",
        scope="s",
        last_used_at_ns=1,
        idle_end_ns=random.choice([NOW, NOW + 1]),
        absolute_end_ns=random.choice([None, NOW, NOW + 2]),
        revoked_at_ns=random.choice([None, None, 7]),
    )


def rows_at_random(seed: int) -> list[AuthorizationRow]:
    random = Random(seed)
    grants = [grant(number, random) for number in range(40)]
    rows: list[AuthorizationRow] = list(grants)
    for number, members in enumerate(zip(grants[::4], grants[1::4], strict=True)):
        package_id = f"gpkg_{number}"
        rows.append(
            PackageRow(
                package_id=package_id,
                client_id=members[0].client_id,
                created_at_ns=members[0].issued_at_ns,
                reason=random.choice([None, "owner"]),
                revision="rv",
            )
        )
        rows += [
            PackageMemberRow(package_id=package_id, position=place, grant_id=each.grant_id)
            for place, each in enumerate(members)
        ]
    rows += [client(number, random) for number in range(30)]
    return rows + [family(number, random) for number in range(30)]


@pytest.fixture(params=range(3))
def stores(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[AuthorizationStore, AuthorizationStore]]:
    database = SqliteDatabase(tmp_path / "pdpp.db")
    made = (SqlAuthorizationStore(database, "own_1"), MemoryAuthorizationStore("own_1"))
    other = SqlAuthorizationStore(database, "own_2")
    for store, seed in ((made[0], request.param), (made[1], request.param), (other, 99)):
        with store.write() as writer:
            for row in rows_at_random(seed):
                writer.insert(row)
    yield made
    database.close()


def held_by_pages(reader: AuthorizationReader, query: HeldQuery) -> list[str]:
    """Every id, seven at a time."""
    issued = {row.grant_id: row.issued_at_ns for row in reader.rows(GrantRow)}
    issued |= {row.package_id: row.created_at_ns for row in reader.rows(PackageRow)}
    found: list[str] = []
    while page := reader.held(query, 7, ListPlace(issued[found[-1]], found[-1]) if found else None):
        found += page
    return found


@pytest.mark.parametrize("query", HELD, ids=str)
def test_what_is_held_is_listed_as_it_means(stores: Any, query: HeldQuery) -> None:
    sql, memory = stores
    with sql.read() as one, memory.read() as other:
        listed = one.held(query)
        assert listed == other.held(query)
        assert len(listed) == one.count_held(query) == other.count_held(query)
        assert held_by_pages(one, query) == held_by_pages(other, query) == listed


@pytest.mark.parametrize("known", [True, False])
def test_clients_are_listed_as_they_mean(stores: Any, known: bool) -> None:
    query = ClientQuery(NOW, known)
    sql, memory = stores
    with sql.read() as one, memory.read() as other:
        listed = one.clients(query)
        assert listed
        assert listed == other.clients(query)
        assert len(listed) == one.count_clients(query) == other.count_clients(query)
        pages: list[ClientRow] = []
        below = None
        while page := one.clients(query, 4, below):
            pages += page
            below = ListPlace(page[-1].registered_at_ns, page[-1].client_ref)
        assert pages == listed
