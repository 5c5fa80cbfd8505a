from __future__ import annotations

from typing import Any

import pytest

from personal_server.storage.authorization_rows import EventRow, SubscriptionRow


def subscribed(terminal: Any, status: str = "active") -> None:
    row = SubscriptionRow(
        subscription_id="sub_1",
        client_id="planner",
        grant_id="grt_1",
        callback_url="https://app.example/hooks",
        status=status,
        secret=b"sealed",
        seen=0,
        created_at_ns=1,
        updated_at_ns=1,
    )
    with terminal.house.store.authorization.write() as writer:
        writer.insert(row)


def row(terminal: Any) -> SubscriptionRow:
    (found,) = terminal.house.rows(SubscriptionRow)
    return found


def test_nobody_is_told_at_first(terminal: Any) -> None:
    assert terminal.json("subscription", "list") == []
    assert terminal.run("subscription", "test", "sub_1") == 5


def test_one_is_listed_paused_resumed_tested_and_deleted(terminal: Any) -> None:
    subscribed(terminal)
    assert terminal.run("subscription", "list") == 0
    assert "app.example" in terminal.out
    assert terminal.json("subscription", "list")[0]["status"] == "active"
    assert terminal.run("subscription", "pause", "sub_1") == 0
    assert (row(terminal).status, row(terminal).disabled_reason) == ("disabled", "owner")
    assert terminal.run("subscription", "pause", "sub_1") != 0
    assert terminal.run("subscription", "test", "sub_1") != 0
    assert terminal.run("subscription", "resume", "sub_1") == 0
    assert row(terminal).status == "active"
    assert terminal.run("subscription", "resume", "sub_1") != 0
    assert terminal.run("subscription", "test", "sub_1") == 0
    (event,) = terminal.house.rows(EventRow)
    assert event.event_id in terminal.out
    assert terminal.run("subscription", "delete", "sub_1") == 0
    assert terminal.house.rows(SubscriptionRow) == []
    assert terminal.house.rows(EventRow) == []


def test_in_a_narrow_terminal_ids_and_addresses_stay_whole(
    terminal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribed(terminal)
    monkeypatch.setenv("COLUMNS", "40")
    assert terminal.run("subscription", "list") == 0
    first, *facts = terminal.out.splitlines()
    assert first == "sub_1"
    assert "https://app.example/hooks" in " ".join(facts).split()
    assert "active" in " ".join(facts).split()
