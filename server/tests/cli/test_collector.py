from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from personal_server.consent.credentials import secret_hash, token_reference
from personal_server.storage.authorization_rows import TokenRow
from server.tests.app.server.test_collectors import MANIFEST
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


def test_a_source_of_one_s_own_is_declared_and_gets_an_account(
    terminal: Any, tmp_path: Path
) -> None:
    file = tmp_path / "plays.json"
    file.write_text(json.dumps(MANIFEST), encoding="utf-8")
    declared = ("--declaration", str(file))
    made = terminal.json("collector", "create", "My player", *declared)
    again = terminal.json("collector", "create", "My player", *declared)
    assert made["connection_id"] == again["connection_id"]
    assert made["token"] != again["token"]
    assert terminal.run("collector", "create", "My player", "--declaration", "nowhere.json") == 64
    file.write_text(json.dumps({**MANIFEST, "streams": [{"name": "plays"}]}), encoding="utf-8")
    assert terminal.run("collector", "create", "My player", *declared) == 64
    assert "/streams/0/schema" in terminal.err
    assert terminal.json("collector", "rejected", "My player")["rejections"] == []
    assert terminal.run("collector", "rejected", "My player") == 0
    assert terminal.run("collector", "rejected", "My player", "--limit", "0") == 64
