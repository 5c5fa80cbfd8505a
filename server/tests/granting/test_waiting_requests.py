"""What waits for its owner: the newest first, and nothing of a blocked app."""

from __future__ import annotations

from personal_server.granting.grant_changes import CHANGE
from personal_server.granting.waiting_requests import waiting_requests
from personal_server.storage.authorization_rows import RequestRow
from server.tests.granting.conftest import SECONDS, Bench


def waiting(bench: Bench, limit: int = 10) -> list[str]:
    with bench.store.read() as reader:
        requests = waiting_requests(reader, bench.now_ns, limit)
    assert all(row.client_id == client.client_id for row, client in requests)
    return [row.request_id for row, _ in requests]


def test_the_newest_come_first_and_no_more_than_asked(memory: Bench) -> None:
    for number in range(3):
        memory.ask(None, f"ar_{number}", created_at_ns=memory.now_ns + number)
    assert waiting(memory) == ["ar_2", "ar_1", "ar_0"]
    assert waiting(memory, 2) == ["ar_2", "ar_1"]


def test_a_device_waits_once_its_code_was_entered(memory: Bench) -> None:
    memory.ask_device()
    assert waiting(memory) == []
    with memory.store.write() as writer:
        writer.change(RequestRow, [RequestRow.opened_at_ns.to(memory.now_ns)])
    assert waiting(memory) == ["ar_1"]


def test_nothing_waits_that_is_decided_too_old_or_a_change_of_the_owner(memory: Bench) -> None:
    memory.ask(None, "ar_decided", status="denied")
    memory.ask(None, "ar_old", expires_at_ns=memory.now_ns)
    memory.ask(None, "ar_change", flow=CHANGE, opened_at_ns=memory.now_ns)
    memory.ask(None, "ar_live", expires_at_ns=memory.now_ns + 1)
    assert waiting(memory) == ["ar_live"]


def test_nothing_of_a_blocked_or_forgotten_app_waits(memory: Bench) -> None:
    memory.client("cli_blocked", blocked_at_ns=memory.now_ns)
    memory.ask(None, "ar_blocked", client_id="cli_blocked")
    memory.ask(None, "ar_gone", client_id="cli_gone", created_at_ns=memory.now_ns + SECONDS)
    memory.ask(None, "ar_live")
    assert waiting(memory) == ["ar_live"]
