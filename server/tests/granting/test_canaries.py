"""A bait record is known by account, kind and key, until it is removed."""

from __future__ import annotations

from personal_server.granting.audit import Acting
from personal_server.granting.canaries import forget_canary, note_canary, planted_records
from personal_server.storage.authorization_rows import AuditRow, CanaryRow
from server.tests.granting.conftest import Bench

OWNER = Acting("owner")


def note(bench: Bench, connection_id: str, stream: str, key: str) -> None:
    with bench.store.write() as writer:
        note_canary(writer, connection_id, stream, key, OWNER, bench.now_ns)


def forget(bench: Bench, connection_id: str, stream: str, key: str) -> bool:
    with bench.store.write() as writer:
        return forget_canary(writer, connection_id, stream, key, OWNER, bench.now_ns)


def test_what_is_planted_is_known_and_its_key_is_in_no_trail(memory: Bench) -> None:
    assert planted_records(memory.store) == frozenset()
    note(memory, "cin_a", "entries", "bait")
    note(memory, "cin_n", "entries", "bait")
    assert planted_records(memory.store) == {
        ("cin_a", "entries", "bait"),
        ("cin_n", "entries", "bait"),
    }
    assert memory.rows(CanaryRow)[0].planted_at_ns == memory.now_ns
    event = memory.rows(AuditRow)[-1]
    assert event.event == "canary.planted"
    assert event.detail == {"connection": "cin_n", "stream": "entries"}


def test_one_is_removed_and_no_other(memory: Bench) -> None:
    baits = [("cin_a", "entries", "1"), ("cin_a", "entries", "2"), ("cin_a", "moods", "1")]
    for bait in (*baits, ("cin_n", "entries", "1")):
        note(memory, *bait)
    assert forget(memory, *baits[0])
    assert planted_records(memory.store) == {*baits[1:], ("cin_n", "entries", "1")}
    event = memory.rows(AuditRow)[-1]
    assert event.event == "canary.removed"
    assert event.detail == {"connection": "cin_a", "stream": "entries"}
    assert not forget(memory, *baits[0])
    assert memory.rows(AuditRow)[-1] == event
