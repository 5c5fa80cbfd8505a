"""A change of state that no table lists is refused, and nothing else changes a state."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import personal_server
from personal_server.granting.transitions import LIFECYCLES, revoke, transition
from personal_server.storage.authorization_rows import (
    AuthorizationRow,
    CodeRow,
    FamilyRow,
    GrantRow,
    PackageRow,
    RefreshTokenRow,
    RequestRow,
    SubscriptionRow,
    TokenRow,
)
from server.tests.granting.conftest import entry

SOURCE = Path(personal_server.__file__).parent
WHERE: Any = {"client_id": "cli_1", "resource": "https://me.example", "scope": "pdpp:read"}
ORIGIN = "https://me.example"

# A row of every table that has states; requests are asked for, since they are long.
ROWS: tuple[AuthorizationRow, ...] = (
    CodeRow(
        **WHERE,
        code_hash=b"c" * 32,
        request_id="ar_1",
        redirect_uri="https://app.example/cb",
        code_challenge="c" * 43,
        origin=ORIGIN,
        expires_at_ns=9,
    ),
    RefreshTokenRow(token_hash=b"r" * 32, family_id="fam_1", generation=1),
    FamilyRow(
        **WHERE,
        family_id="fam_1",
        kind="client",
        origin=ORIGIN,
        last_used_at_ns=1,
        idle_end_ns=9,
    ),
    GrantRow(
        grant_id="grt_1",
        grant=b"{}",
        client_id="cli_1",
        connector_key="journal",
        access_mode="continuous",
        issued_at_ns=1,
        revision="rv1",
    ),
    PackageRow(package_id="gpkg_1", client_id="cli_1", created_at_ns=1, revision="rv1"),
    TokenRow(
        **WHERE,
        token_hash=b"t" * 32,
        kind="client",
        grant_id="grt_1",
        origin=ORIGIN,
        issued_at_ns=1,
        expires_at_ns=9,
    ),
    SubscriptionRow(
        subscription_id="sub_1",
        client_id="cli_1",
        callback_url="https://app.example/cb",
        secret=b"s",
        seen=0,
        created_at_ns=1,
        updated_at_ns=1,
    ),
)
CHANGES = [
    (table, state, to)
    for table, life in LIFECYCLES.items()
    for state, to in itertools.product(life.ways, repeat=2)
]


@pytest.mark.parametrize(("table", "state", "to"), CHANGES)
def test_a_change_is_made_once_or_refused(
    bench: Any, table: type[AuthorizationRow], state: str, to: str
) -> None:
    life = LIFECYCLES[table]
    bench.ask([entry()]) if table is RequestRow else bench.insert(
        *(row for row in ROWS if isinstance(row, table))
    )
    if not life.timed or state != (*life.ways,)[0]:
        with bench.store.write() as writer:
            named = life.entering(state, 1).items()
            writer.change(table, [table.table.column(name).to(value) for name, value in named])
    (before,) = bench.rows(table)
    with bench.store.write() as writer:
        if life.may(state, to):
            assert [transition(writer, table, state, to, 5) for _ in range(2)] == [1, 0]
        else:
            with pytest.raises(AssertionError):
                transition(writer, table, state, to, 5)
    (after,) = bench.rows(table)
    changed = {life.column} if life.may(state, to) else set[str]()
    assert {n for n in table.table.names if getattr(before, n) != getattr(after, n)} == changed
    assert not changed or getattr(after, life.column) == (5 if life.timed else to)


def test_nothing_is_ended_for_a_reason_that_nobody_knows(bench: Any) -> None:
    with bench.store.write() as writer, pytest.raises(AssertionError):
        revoke(writer, GrantRow, "because", 5, GrantRow.grant_id.equals("grt_1"))


def test_states_are_changed_by_the_tables_alone() -> None:
    columns = {life.column for life in LIFECYCLES.values()}
    assert columns == {"status", "superseded_at_ns", "revoked_at_ns"}
    paths = [path for path in (SOURCE / "granting").glob("*.py") if path.stem != "transitions"]
    for path in paths:
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                assert not columns & set(changed_columns(function)), (path.name, function.name)


def changed_columns(function: ast.FunctionDef) -> Iterator[object]:
    """The columns that a function gives to `change`, as a literal or by way of a name."""
    nodes = [*ast.walk(function)]
    given = [
        node.args[1]
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "change"
    ]
    names = {node.id for node in given if isinstance(node, ast.Name)}
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value and any(isinstance(t, ast.Name) and t.id in names for t in targets):
                given.append(node.value)
    for node in (node for value in given for node in ast.walk(value)):
        if isinstance(node, ast.Attribute) and node.attr == "to":
            yield node.value.attr if isinstance(node.value, ast.Attribute) else None
