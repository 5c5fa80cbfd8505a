from __future__ import annotations

import json
from typing import Any

from personal_server.storage.authorization_rows import CanaryRow


def test_a_canary_is_planted_listed_and_taken_out(terminal: Any) -> None:
    assert terminal.json("canary", "list") == []
    assert terminal.run("canary", "add", "transactions") == 0
    (row,) = terminal.house.rows(CanaryRow)
    assert row.key in terminal.out
    assert terminal.run("canary", "list") == 0
    assert row.key in terminal.out
    assert terminal.run("canary", "list", "--json") == 0
    assert json.loads(terminal.out)[0]["key"] == row.key
    assert terminal.run("canary", "remove", row.key) == 0
    assert terminal.house.rows(CanaryRow) == []
    assert terminal.run("canary", "remove", row.key) == 5
    assert terminal.run("canary", "add", "no_such_stream") == 5
    assert terminal.run("canary", "add", "messages", "--connection", "cin_work", "--json") == 0
    assert json.loads(terminal.out)["connection_id"] == "cin_work"
