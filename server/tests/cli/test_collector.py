from __future__ import annotations

from typing import Any

from personal_server.consent.credentials import secret_hash, token_reference
from personal_server.storage.authorization import TokenRow
from server.tests.console.household import HOME


def test_a_token_is_printed_once_and_ends_when_it_is_revoked(terminal: Any) -> None:
    made = terminal.json("collector", "create", "Home mailbox")
    assert made["connection_id"] == HOME
    [listed] = terminal.json("collector", "list")["collector_tokens"]
    assert listed["reference"] == token_reference(secret_hash(made["token"]))
    assert (listed["connection_id"], listed["last_used_at"]) == (HOME, None)
    assert terminal.run("collector", "revoke", listed["reference"]) == 0
    assert terminal.json("collector", "list")["collector_tokens"] == []
    with terminal.house.store.authorization.read() as reader:
        [row] = reader.rows(TokenRow, TokenRow.kind.equals("collector"))
    assert row.revoked_at_ns is not None


def test_what_is_not_there_is_refused_with_what_there_is(terminal: Any) -> None:
    assert terminal.run("collector", "create", "Holiday pictures") == 64
    assert "Home mailbox" in terminal.err
    assert terminal.run("collector", "revoke", "tok_000000000000") == 5
    assert terminal.run("collector", "list") == 0
