import threading
from collections.abc import Sequence

import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.domain.disclosure import SERVED, DisclosureEntry
from personal_server.reading.disclosure_recorder import MOST_UNWATCHED, DisclosureRecorder
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from tests.oracle.disclosure_memory import MemoryDisclosures


class FailingDisclosures(MemoryDisclosures):
    fails = True
    error: Exception = StorageUnavailable("The store cannot be used now.")

    def __init__(self) -> None:
        super().__init__()
        self.tried, self.written = threading.Event(), threading.Event()

    def append_disclosures(self, entries: Sequence[DisclosureEntry]) -> None:
        self.tried.set()
        if self.fails:
            raise self.error
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


def test_a_thread_tries_again_though_nothing_further_comes() -> None:
    store = FailingDisclosures()
    recorder = DisclosureRecorder(store, lambda: 0)
    recorder.enter([entry(1)])
    assert store.tried.wait(10)
    store.fails = False
    assert store.written.wait(10)
    recorder.close()
    assert stored_ids(store) == ["dis_1"]


def writers() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "disclosures"}


@pytest.mark.parametrize(("background", "count"), [(True, 1), (False, 0)])
def test_one_thread_writes_or_none_and_holds_up_no_end(*, background: bool, count: int) -> None:
    store, before = FailingDisclosures(), writers()
    store.fails = False
    recorder = DisclosureRecorder(store, lambda: 0, background=background)
    recorder.enter([entry(1)])
    recorder.enter([entry(2)])
    begun = writers() - before
    assert (len(begun), all(each.daemon for each in begun)) == (count, True)
    recorder.close()
    assert not any(each.is_alive() for each in begun)
    assert stored_ids(store) == ["dis_2", "dis_1"]


class Watch:
    """Remembers what it was shown; fails while it should."""

    def __init__(self) -> None:
        self.shown: list[list[str]] = []
        self.fails = False

    def __call__(self, entries: Sequence[DisclosureEntry]) -> None:
        self.shown.append([each.disclosure_id for each in entries])
        if self.fails:
            raise StorageUnavailable("Not now.")


def test_what_was_written_is_watched_and_shown_again_where_it_could_not_be() -> None:
    store, watch = FailingDisclosures(), Watch()
    recorder = DisclosureRecorder(store, lambda: 0, watch, background=False)
    recorder.enter([entry(1)])
    recorder.flush()
    assert watch.shown == []
    store.fails = False
    watch.fails = True
    recorder.flush()
    recorder.enter([entry(2)])
    assert recorder.flush()
    watch.fails = False
    recorder.enter([entry(3)])
    recorder.flush()
    recorder.enter([entry(4)])
    recorder.flush()
    assert watch.shown == [
        ["dis_1"],
        ["dis_1", "dis_2"],
        ["dis_1", "dis_2", "dis_3"],
        ["dis_4"],
    ]


def test_no_more_is_kept_for_a_watch_than_it_may_hold() -> None:
    store, watch = FailingDisclosures(), Watch()
    store.fails, watch.fails = False, True
    recorder = DisclosureRecorder(store, lambda: 0, watch, background=False)
    for first in (0, MOST_UNWATCHED):
        recorder.enter([entry(first + number) for number in range(MOST_UNWATCHED)])
        recorder.flush()
    assert len(watch.shown[-1]) == MOST_UNWATCHED
    assert watch.shown[-1][0] == f"dis_{MOST_UNWATCHED}"


def test_nothing_that_waits_writes_nothing_and_is_no_failure() -> None:
    recorder = DisclosureRecorder(FailingDisclosures(), lambda: 0)
    recorder.enter([])
    assert recorder.flush()
    recorder.check()
    recorder.close()


def test_reads_go_on_until_ten_seconds_from_the_first_failure() -> None:
    now = [5]
    recorder = DisclosureRecorder(FailingDisclosures(), lambda: now[0], background=False)
    recorder.enter([entry(1)])
    recorder.flush()
    now[0] += 9_999_999_999
    recorder.flush()
    recorder.check()
    now[0] += 1
    with pytest.raises(StorageUnavailable) as caught:
        recorder.check()
    assert caught.value.members["retry_after_seconds"] == 10


def test_what_is_lost_at_the_end_is_told(caplog: pytest.LogCaptureFixture) -> None:
    store = FailingDisclosures()
    recorder = DisclosureRecorder(store, lambda: 0, background=False)
    recorder.enter([entry(1), entry(2)])
    recorder.close()
    assert stored_ids(store) == []
    assert any(record.args == (2,) for record in caplog.records)
    store.fails = False
    caplog.clear()
    recorder.close()
    assert stored_ids(store) == ["dis_2", "dis_1"]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_that_the_log_cannot_be_written_is_told_once_by_its_code(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for error, code in (
        (StorageUnavailable("The store cannot be used now."), "storage_unavailable"),
        (LookupError(), "internal_error"),
    ):
        caplog.clear()
        store = FailingDisclosures()
        store.error = error
        recorder = DisclosureRecorder(store, lambda: 0, background=False)
        recorder.enter([entry(1)])
        assert not recorder.flush()
        assert not recorder.flush()
        assert [record.args for record in caplog.records] == [(code, type(error).__name__)]
