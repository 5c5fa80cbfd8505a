"""What may happen to a connection."""

from __future__ import annotations

from personal_server.domain.connection import CLIENT_READABLE, TRANSITIONS, ConnectionStatus

DRAFT, ACTIVE, PAUSED, REVOKED = ConnectionStatus


def test_clients_read_what_is_active_or_paused() -> None:
    assert {ACTIVE, PAUSED} == CLIENT_READABLE


def test_a_connection_is_revoked_from_every_other_status() -> None:
    assert {before for (action, before) in TRANSITIONS if action == "revoke"} == {
        DRAFT,
        ACTIVE,
        PAUSED,
    }
    assert TRANSITIONS["reactivate", REVOKED] is ACTIVE


def test_only_a_record_makes_a_draft_active() -> None:
    assert [action for (action, before) in TRANSITIONS if before is DRAFT] == [
        "record",
        "revoke",
    ]
    assert TRANSITIONS["record", DRAFT] is ACTIVE


def test_a_pause_ends_where_it_began() -> None:
    assert TRANSITIONS["pause", ACTIVE] is PAUSED
    assert TRANSITIONS["resume", PAUSED] is ACTIVE
    assert ("pause", REVOKED) not in TRANSITIONS
