"""Apps register, make room for others and are forgotten; secrets of callers are shown once."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import InvalidState, RateLimitExceeded
from personal_server.consent.client_registration import CHECK, DOCUMENT, DYNAMIC, Registration
from personal_server.consent.credentials import secret_hash
from personal_server.granting.audit import Acting
from personal_server.granting.clients import (
    add_introspection_client,
    forget_check,
    purge_clients,
    register_client,
)
from personal_server.granting.revocations import end_access
from personal_server.storage.authorization_rows import (
    ClientRow,
    GrantRow,
    IntrospectionClientRow,
    RequestRow,
)
from personal_server.storage.sql.logs.authorization import SqlAuthorizationStore
from server.tests.granting.conftest import SECONDS, Bench, entry, make_bench
from tests.new_files import new_file

DAY = 86_400


def test_the_secret_is_known_by_its_hash(bench: Any) -> None:
    made = add_introspection_client(bench.store, "Backup server", bench.random, bench.now_ns)
    row = bench.rows(IntrospectionClientRow)[0]
    assert (made.caller_id, row.caller_id) == ("rs_backup-server", "rs_backup-server")
    assert row.secret_hash == secret_hash(made.secret)
    assert made.secret not in repr(made)
    with pytest.raises(InvalidState):
        add_introspection_client(bench.store, "backup server", bench.random, bench.now_ns)


def registration(**over: Any) -> Registration:
    registered = Registration(
        name="Notes app",
        redirect_uris=("https://app.example/cb",),
        grant_types=("authorization_code",),
        application_type="web",
        scope="pdpp:read",
        display={"logo_uri": "https://app.example/logo.png"},
        echoed={},
        dpop_bound=True,
    )
    return replace(registered, **over)


def register(bench: Bench, **over: Any) -> str:
    return register_client(
        bench.store, registration(**over), Acting("client"), bench.random, bench.now_ns
    )


def purge(bench: Bench) -> int:
    with bench.store.write() as writer:
        return purge_clients(writer, bench.now_ns)


def ids(bench: Bench) -> set[str]:
    return {row.client_id for row in bench.rows(ClientRow)}


def test_a_client_is_registered_as_it_said(memory: Bench) -> None:
    client_id = register(memory)
    row = next(row for row in memory.rows(ClientRow) if row.client_id == client_id)
    assert (row.registration, row.name, row.dpop_bound) == ("dynamic", "Notes app", True)
    assert (row.redirect_uris, row.grant_types) == (
        ("https://app.example/cb",),
        ("authorization_code",),
    )
    assert row.display == {"logo_uri": "https://app.example/logo.png"}
    assert row.registered_at_ns == memory.now_ns
    assert memory.events()[-1] == ("client.registered", client_id, None, None)


def test_a_client_that_only_checks_is_forgotten_with_its_requests(memory: Bench) -> None:
    client_id = register(memory, is_check=True)
    memory.ask(None, client_id=client_id)
    forget_check(memory.store, "cli_1", memory.now_ns)
    forget_check(memory.store, client_id, memory.now_ns)
    assert ids(memory) == {"cli_1"}
    assert memory.rows(RequestRow)[0].status == "expired"
    assert memory.events()[-1] == ("client.purged", client_id, None, None)


@pytest.mark.parametrize(
    ("kind", "seconds"), [(CHECK, 600), (DYNAMIC, 7 * DAY), (DOCUMENT, 7 * DAY)]
)
def test_who_was_never_allowed_anything_is_forgotten(
    memory: Bench, kind: str, seconds: int
) -> None:
    with memory.store.write() as writer:
        writer.change(ClientRow, [ClientRow.registration.to(kind)])
    memory.now_ns += seconds * SECONDS - 1
    assert purge(memory) == 0
    memory.now_ns += 1
    assert purge(memory) == 1
    assert memory.rows(ClientRow) == []


def test_who_is_blocked_or_set_up_here_is_not_forgotten(memory: Bench) -> None:
    memory.client("cli_blocked", blocked_at_ns=memory.now_ns)
    memory.client("cli_local", registration="local")
    memory.now_ns += 1_000 * DAY * SECONDS
    assert purge(memory) == 1
    assert ids(memory) == {"cli_blocked", "cli_local"}


def test_an_app_is_forgotten_ninety_days_after_its_last_access_ended(memory: Bench) -> None:
    grant_id = memory.connect(entry()).grant_ids[0]
    memory.now_ns += DAY * SECONDS
    with memory.store.write() as writer:
        end_access(writer, grant_id, "owner", Acting("owner"), memory.now_ns)
    memory.now_ns += 90 * DAY * SECONDS - 1
    assert purge(memory) == 0
    memory.now_ns += 1
    assert purge(memory) == 1


def test_an_app_with_an_access_that_lives_is_not_forgotten(memory: Bench) -> None:
    first = memory.connect(entry()).grant_ids[0]
    memory.connect(entry(), request_id="ar_2")
    with memory.store.write() as writer:
        end_access(writer, first, "owner", Acting("owner"), memory.now_ns)
        writer.change(GrantRow, [GrantRow.expires_at_ns.to(None)])
    memory.now_ns += 1_000 * DAY * SECONDS
    assert purge(memory) == 0


def test_an_approved_app_without_any_access_left_is_kept(memory: Bench) -> None:
    with memory.store.write() as writer:
        writer.change(ClientRow, [ClientRow.first_approved_at_ns.to(memory.now_ns)])
    memory.now_ns += 1_000 * DAY * SECONDS
    assert purge(memory) == 0


def test_the_oldest_that_was_never_allowed_gives_way_after_an_hour(tmp_path: Path) -> None:
    """The thousandth registers, and the next takes the place of the first."""
    file = new_file(tmp_path / "pdpp.db")
    bench = make_bench(SqlAuthorizationStore(file, "own_1"))
    (first,) = bench.rows(ClientRow)
    later = [
        dataclasses.replace(
            first,
            client_id=f"cli_{number:04}",
            client_ref=f"clr_{number:04}",
            registered_at_ns=bench.now_ns + number,
        )
        for number in range(100, 1_098)
    ]
    bench.insert(*later)
    bench.now_ns += 1
    register(bench)
    bench.now_ns += 3_600 * SECONDS - 2
    with pytest.raises(RateLimitExceeded):
        register(bench)
    bench.now_ns += 1
    register(bench)
    assert "cli_1" not in ids(bench)
    assert len(ids(bench)) == 1_000
    file.close()
