"""How long history, disclosures, what was asked and the audit log are kept."""

from __future__ import annotations

from typing import Any

from personal_server.granting.retention import Retention, forget

DAY = 86_400 * 10**9
NOW = 20_000 * DAY


class Kept:
    """Remembers before when it was asked to forget what."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        def note(before_ns: int) -> None:
            self.asked[name] = before_ns

        return note


def forgotten(retention: Retention) -> dict[str, int]:
    kept: Any = Kept()
    forget(kept, kept, kept, retention, NOW)
    return {name: (NOW - before_ns) // DAY for name, before_ns in kept.asked.items()}


def test_each_is_forgotten_after_its_days() -> None:
    asked = Retention(history_days=2, disclosure_days=3, detail_days=4, audit_days=5)
    assert forgotten(asked) == {
        "prune_history": 2,
        "forget_disclosures": 3,
        "forget_details": 4,
        "forget_audit": 5,
        "sweep_blobs": 1,
    }


def test_without_a_number_of_days_it_is_kept() -> None:
    asked = Retention(history_days=0, disclosure_days=0, detail_days=4, audit_days=0)
    assert set(forgotten(asked)) == {"forget_details", "sweep_blobs"}


def test_the_log_of_what_was_read_outlives_a_year_and_what_was_asked_a_month() -> None:
    # docs/contract/resource-server.md 14.3, authorization-server.md 11
    assert forgotten(Retention()) == {
        "prune_history": 180,
        "forget_disclosures": 400,
        "forget_details": 30,
        "forget_audit": 1_095,
        "sweep_blobs": 1,
    }
