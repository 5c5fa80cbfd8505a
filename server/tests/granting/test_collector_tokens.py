"""A token of a collector is named by a reference, and ends when its owner ends it."""

from __future__ import annotations

import pytest

from pdpp_kernel.errors import NotFound
from personal_server.consent.credentials import secret_hash
from personal_server.granting.audit import Acting
from personal_server.granting.collector_tokens import (
    collector_tokens,
    issue_collector_token,
    revoke_collector_token,
)
from personal_server.storage.authorization_rows import AuditRow, TokenRow
from server.tests.granting.conftest import Bench, entry

OWNER = Acting("owner")
ORIGIN = "https://me.example"


def issue(bench: Bench, connection_id: str) -> str:
    return issue_collector_token(
        bench.store, ORIGIN, connection_id, OWNER, bench.random, bench.now_ns
    )


def test_a_token_is_for_one_account_and_collects_only(memory: Bench) -> None:
    token = issue(memory, "cin_a")
    (row,) = memory.rows(TokenRow)
    assert row.token_hash == secret_hash(token)
    assert (row.kind, row.client_id, row.connection_id) == ("collector", "collector", "cin_a")
    assert (row.origin, row.resource, row.scope) == (ORIGIN, ORIGIN, "pdpp:collect")
    assert (row.grant_id, row.package_id, row.issued_at_ns) == (None, None, memory.now_ns)
    # it lives until its owner ends it
    assert row.expires_at_ns > memory.now_ns + 10**18
    event = memory.rows(AuditRow)[-1]
    assert (event.event, event.detail) == ("collector_token.issued", {"connection_id": "cin_a"})


def test_living_tokens_are_listed_oldest_first(memory: Bench) -> None:
    memory.connect(entry())
    memory.now_ns += 1
    issue(memory, "cin_a")
    memory.now_ns -= 1
    issue(memory, "cin_n")
    listed = collector_tokens(memory.store)
    assert [token.connection_id for token in listed] == ["cin_n", "cin_a"]
    assert [token.issued_at_ns for token in listed] == [memory.now_ns, memory.now_ns + 1]
    assert [token.last_used_at_ns for token in listed] == [None, None]
    revoke_collector_token(memory.store, listed[0].reference, OWNER, memory.now_ns)
    assert [token.connection_id for token in collector_tokens(memory.store)] == ["cin_a"]


def test_a_token_is_ended_by_its_reference_alone_and_once(memory: Bench) -> None:
    memory.connect(entry())
    issue(memory, "cin_a")
    issue(memory, "cin_n")
    reference = collector_tokens(memory.store)[0].reference
    revoke_collector_token(memory.store, reference, OWNER, memory.now_ns)
    ended = {(row.kind, row.connection_id): row.reason for row in memory.rows(TokenRow)}
    assert ended == {
        ("client", None): None,
        ("collector", "cin_a"): "owner",
        ("collector", "cin_n"): None,
    }
    event = memory.rows(AuditRow)[-1]
    assert (event.event, event.detail) == ("collector_token.revoked", {"connection_id": "cin_a"})
    for named in (reference, "tok_000000000000"):
        with pytest.raises(NotFound) as caught:
            revoke_collector_token(memory.store, named, OWNER, memory.now_ns)
        assert caught.value.param == "reference"
