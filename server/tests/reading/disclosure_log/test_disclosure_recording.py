import threading
from collections.abc import Sequence

import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.domain.disclosure import SERVED, DisclosureEntry
from personal_server.reading.disclosure_recorder import DisclosureRecorder
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from tests.oracle.disclosure_memory import MemoryDisclosures


class FailingDisclosures(MemoryDisclosures):
    fails = True

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        if self.fails:
            raise StorageUnavailable("The store cannot be used now.")
        super().append_disclosures(entries)
        self.written.set()


def entry(number: int) -> DisclosureEntry:
    return DisclosureEntry(
        f"dis_{number}", "sub_1", number, "req_1", SERVED, "client", "rest", "GET /v1/x"
    )


def stored_ids(store: MemoryDisclosures) -> list[str]:
    return [found.disclosure_id for _, found in store.disclosures(DisclosureQuery(10))]


def test_entries_that_cannot_be_written_are_kept_in_order() -> None:
    store = FailingDisclosures()
    recorder = DisclosureRecorder(store, lambda: 0, background=False)
    recorder.enter([entry(1)])
    assert not recorder.flush()
    recorder.enter([entry(2)])
    store.fails = False
    assert recorder.flush()
    assert stored_ids(store) == ["dis_2", "dis_1"]


def test_reads_are_refused_once_nothing_could_be_written_for_ten_seconds() -> None:
    now = [1]
    store = FailingDisclosures()
    recorder = DisclosureRecorder(store, lambda: now[0], background=False)
    recorder.enter([entry(1)])
    recorder.flush()
    recorder.check()
    now[0] += 10_000_000_000
    with pytest.raises(StorageUnavailable):
        recorder.check()
    store.fails = False
    recorder.flush()
    recorder.check()


def test_a_thread_writes_without_being_asked() -> None:
    store = FailingDisclosures()
    store.fails = False
    recorder = DisclosureRecorder(store, lambda: 0)
    recorder.enter([entry(1)])
    assert store.written.wait(10)
    recorder.enter([entry(2)])
    recorder.close()
    assert stored_ids(store) == ["dis_2", "dis_1"]
