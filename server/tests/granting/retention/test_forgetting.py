from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.domain.disclosure import SERVED, DisclosureEntry
from personal_server.granting.audit import SERVER, audit
from personal_server.granting.retention import Retention, forget
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from tests.oracle.authorization_memory import MemoryAuthorizationStore
from tests.oracle.disclosure_memory import MemoryDisclosures
from tests.oracle.memory import MemoryStore

NOW_NS = 1_000 * DAY_NANOSECONDS
ENTRY = DisclosureEntry("dis_1", "sub_1", 0, "req_1", SERVED, "client", "rest", "GET /v1/x")


class WatchedStore(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.pruned_before: list[int] = []
        self.swept_before: list[int] = []

    def prune_history(self, before_ns: int) -> None:
        self.pruned_before.append(before_ns)

    def sweep_blobs(self, before_ns: int) -> int:
        self.swept_before.append(before_ns)
        return 0


def kept_days(retention: Retention) -> list[int]:
    log = MemoryDisclosures()
    log.append_disclosures([replace(ENTRY, at_ns=d * DAY_NANOSECONDS) for d in (100, 598, 602)])
    forget(WatchedStore(), log, MemoryAuthorizationStore("own_1"), retention, NOW_NS)
    return [e.at_ns // DAY_NANOSECONDS for _, e in log.disclosures(DisclosureQuery(9))]


def test_the_log_and_the_history_are_kept_as_long_as_configured() -> None:
    assert kept_days(Retention(disclosure_days=400)) == [602]
    assert kept_days(Retention(disclosure_days=0)) == [602, 598, 100]


@pytest.mark.parametrize(("days", "expected"), [(180, [820 * DAY_NANOSECONDS]), (0, [])])
def test_zero_days_of_history_forget_nothing(days: int, expected: Sequence[int]) -> None:
    store = WatchedStore()
    retention = Retention(history_days=days)
    forget(store, MemoryDisclosures(), MemoryAuthorizationStore("own_1"), retention, NOW_NS)
    assert store.pruned_before == expected
    assert store.swept_before == [999 * DAY_NANOSECONDS]


def test_decisions_are_kept_as_long_as_configured() -> None:
    store = MemoryAuthorizationStore("own_1")
    with store.write() as writer:
        for day in (100, 898, 902):
            audit(writer, "client.registered", SERVER, day * DAY_NANOSECONDS)
    forget(WatchedStore(), MemoryDisclosures(), store, Retention(audit_days=100), NOW_NS)
    with store.read() as reader:
        kept = [row.at_ns // DAY_NANOSECONDS for row in reader.rows(AuditRow)]
    assert kept == [902]
