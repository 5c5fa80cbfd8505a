"""Calendars and contacts against a real Radicale: nothing twice, nothing lost, little asked."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pdpp_sources.common.errors import ExportUnreadable
from pdpp_sources.dav.dav_messages import (
    CollectionEnd,
    CollectionGone,
    CollectionSeen,
    DavEnd,
    DavTask,
    ItemGone,
    ItemRefused,
    ItemSeen,
    KnownCollection,
    SeenInAccount,
)
from pdpp_sources.reader_process import PathContents, ReaderProcess, Wanted
from personal_server.app import dav_runs
from personal_server.app.dav_batches import dav_batches
from personal_server.app.dav_records import DavRecords, ItemRecords, read_items
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feeding import feed_engine, feed_store
from personal_server.app.stores import open_stores
from personal_server.cli.dav_checks import check_account
from personal_server.cli.feed_checks import FeedComparison
from personal_server.feeds.feed_kinds import ADDRESS_BOOKS, CALENDARS
from personal_server.feeds.feed_runs import PutOff, RunResult
from personal_server.feeds.fetched_batches import BATCH_ITEMS, FetchedBatches
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.settings import Settings
from server.tests.app.importing_here import ImportHere
from server.tests.app.test_feeding import Fed, aged
from server.tests.app.test_mailbox_runs import again, by_itself
from server.tests.cli.import_machine import shared_reader
from server.tests.feeds.test_feed_states import a_feed
from tests.radicale_server import ADDRESS_BOOK, CALENDAR, PASSWORD, DavServer, dav_server

FeedOf = Callable[[str, str], Fed]


def an_event(number: int, title: str = "", day: int = 2) -> str:
    return (
        "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//y//EN\r\nBEGIN:VEVENT\r\n"
        f"UID:event-{number}\r\nDTSTAMP:20230101T000000Z\r\nDTSTART:202303{day:02}T100000Z\r\n"
        f"DTEND:202303{day:02}T110000Z\r\nSUMMARY:{title or f'Meeting {number}'}\r\n"
        "END:VEVENT\r\nEND:VCALENDAR\r\n"
    )


def a_card(number: int, name: str = "") -> str:
    return (
        f"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:card-{number}\r\nFN:{name or f'Person {number}'}\r\n"
        f"N:{number};Person;;;\r\nEMAIL:p{number}@example.org\r\nEND:VCARD\r\n"
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DavServer]:
    with dav_server(tmp_path_factory.mktemp("radicale")) as found:
        yield found


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", time_zone="UTC")


@pytest.fixture
def feed_of(settings: Settings) -> Iterator[FeedOf]:
    with open_stores(settings, serving=False) as stores:

        def fed(place: str, password: str = PASSWORD) -> Fed:
            kind = place.partition(":")[0].removesuffix("s")
            feed = a_feed(kind=kind, layout=kind, place=place, due_at_ns=stores.clock())
            feed_store(stores).add_feed(feed)
            FeedSecrets.of(stores).keep(feed, password)
            engine = feed_engine(settings, stores, ImportHere.over(stores, settings))
            return Fed(stores, engine, feed.feed_id)

        yield fed


def follow(fed: Fed) -> None:
    feed_store(fed.stores).change_feed(fed.feed_id, lambda e: replace(e, deletions="follow"))


def slots_of(fed: Fed) -> list[str]:
    """When the events of the account take place, as its owner sees it."""
    with fed.stores.records.snapshot() as snapshot:
        (account,) = snapshot.connections()
    return sorted(
        str(slot.data["starts_at"])
        for event in uids_of(fed)
        for slot in fed.stores.records.records_holding(
            account.connection_id, "agenda", "event_id", event, "", 1_000
        )
    )


def uids_of(fed: Fed) -> list[str]:
    """The keys of its events, by the ledger."""
    lines = feed_store(fed.stores).feed_items(fed.feed_id)
    return [key.partition("/")[2] for line in lines for key in line.record_keys]


def compared(fed: Fed, settings: Settings) -> FeedComparison:
    with shared_reader() as reader:
        return check_account(fed.feed, settings, fed.stores, reader)


@pytest.fixture
def calendar(server: DavServer) -> Iterator[DavServer]:
    server.make("work", CALENDAR, "Work, and more")
    yield server
    server.delete("work/")


@pytest.fixture
def book(server: DavServer) -> Iterator[DavServer]:
    server.make("people", ADDRESS_BOOK, "People")
    yield server
    server.delete("people/")


def test_a_calendar_that_was_imported_before_has_nothing_new_and_stays_current(
    calendar: DavServer, settings: Settings, feed_of: FeedOf, tmp_path: Path
) -> None:
    for number in range(12):
        calendar.put(f"work/event-{number}.ics", an_event(number))
    exported = aged(tmp_path / "export" / "work.ics", calendar.export("work"))
    fed = feed_of(calendar.place(CALENDARS), PASSWORD)
    ImportHere.over(fed.stores, settings)("fee_other", WantedImport([exported], exported.parent))
    assert fed.held() == {"events": 12, "agenda": 12}
    first = fed.run()
    assert (first.code, first.seen, first.new, first.records_new) == (None, 12, 12, 0)
    assert first.records_updated == 0
    assert fed.held() == {"events": 12, "agenda": 12}
    idle = fed.run()
    assert (idle.code, idle.seen, idle.new, idle.changed) == (None, 12, 0, 0)
    assert idle.commands == 1
    assert idle.size_bytes < 6_000
    calendar.put("work/event-3.ics", an_event(3, "Moved to the lake"))
    calendar.put("work/event-77.ics", an_event(77))
    calendar.delete("work/event-5.ics")
    changed = fed.run()
    assert (changed.code, changed.new, changed.changed, changed.gone) == (None, 1, 1, 1)
    assert (changed.records_new, changed.records_updated) == (2, 2)
    assert changed.commands <= 3
    assert fed.held() == {"events": 13, "agenda": 13}
    checked = compared(fed, settings)
    assert (checked.items, checked.differences) == (12, [])


def test_an_address_book_that_was_imported_before_has_nothing_new_and_stays_current(
    book: DavServer, settings: Settings, feed_of: FeedOf, tmp_path: Path
) -> None:
    for number in range(12):
        book.put(f"people/card-{number}.vcf", a_card(number))
    exported = aged(tmp_path / "export" / "people.vcf", book.export("people"))
    fed = feed_of(book.place(ADDRESS_BOOKS), PASSWORD)
    ImportHere.over(fed.stores, settings)("fee_other", WantedImport([exported], exported.parent))
    first = fed.run()
    assert (first.code, first.seen, first.new, first.records_new) == (None, 12, 12, 0)
    assert fed.held() == {"contacts": 12}
    assert fed.run().commands == 1
    book.put("people/card-3.vcf", a_card(3, "Ada Byron"))
    book.delete("people/card-5.vcf")
    changed = fed.run()
    assert (changed.code, changed.new, changed.changed, changed.gone) == (None, 0, 1, 1)
    assert (changed.records_new, changed.records_updated) == (0, 1)
    checked = compared(fed, settings)
    assert (checked.items, checked.differences) == (11, [])


def test_a_wrong_password_of_a_calendar_is_tried_once(server: DavServer, feed_of: FeedOf) -> None:
    fed = feed_of(server.place(CALENDARS), "wrong")
    before = server.log.count("Failed login attempt")
    for _ in range(5):
        fed.engine.work()
        for thread in threading.enumerate():
            if thread.name == fed.feed_id:
                thread.join()
    assert (fed.feed.state, fed.feed.code) == ("needs_you", "sign_in_refused")
    assert server.log.count("Failed login attempt") == before + 1
    FeedSecrets.of(fed.stores).keep(fed.feed, PASSWORD)
    fed.engine.resume(fed.feed_id)
    assert fed.run().code is None


def test_a_check_of_a_calendar_names_what_the_feed_has_not_seen(
    calendar: DavServer, settings: Settings, feed_of: FeedOf
) -> None:
    for number in range(3):
        calendar.put(f"work/event-{number}.ics", an_event(number))
    fed = feed_of(calendar.place(CALENDARS), PASSWORD)
    assert fed.run().new == 3
    calendar.put("work/event-0.ics", an_event(0, "Other words"))
    calendar.put("work/event-9.ics", an_event(9))
    calendar.delete("work/event-1.ics")
    found = {
        (each.item.rpartition("/")[2], each.reason) for each in compared(fed, settings).differences
    }
    assert {("event-0.ics", "changed"), ("event-9.ics", "new"), ("event-1.ics", "gone")} <= found
    feed_store(fed.stores).change_feed(fed.feed_id, lambda feed: replace(feed, state="waiting"))
    assert fed.run().code is None
    assert compared(fed, settings).differences == []


def shown_in_turn(
    monkeypatch: pytest.MonkeyPatch, looks: list[list[SeenInAccount]]
) -> list[DavTask]:
    """Each look finds the next of these; what is asked is added to the answer."""
    tasks = list[DavTask]()

    @contextmanager
    def read(_server: object, task: DavTask) -> Generator[Iterator[SeenInAccount]]:
        tasks.append(task)
        yield iter(looks[len(tasks) - 1])

    monkeypatch.setattr(dav_runs, "read_dav", read)
    return tasks


def test_a_calendar_that_its_server_does_not_show_for_once_keeps_its_name_and_is_listed_next(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/ada/work/"
    shown = CollectionEnd(path, "Work", "c-1", "t-1", True, True, True)
    runs: list[list[SeenInAccount]] = [
        [CollectionSeen(path, "Work"), shown, DavEnd(None)],
        [CollectionSeen(path, "Work"), ItemRefused(path, "", "item_not_given"), DavEnd(None)],
        [DavEnd(None)],
    ]
    tasks = shown_in_turn(monkeypatch, runs)
    fed = feed_of("caldav://ada@127.0.0.1:9/", PASSWORD)
    assert [fed.run().rejected for _ in runs] == [0, 1, 0]
    first, second, third = (task.collections.get(path) for task in tasks)
    assert (first, second) == (None, KnownCollection("Work", "c-1", "t-1"))
    assert third == KnownCollection("Work", "c-1", "t-1", lists=True)


def test_a_moved_event_leaves_no_time_behind(calendar: DavServer, feed_of: FeedOf) -> None:
    weekly = an_event(1).replace("SUMMARY", "RRULE:FREQ=WEEKLY;COUNT=4\r\nSUMMARY")
    override = an_event(1, "Elsewhere", 10).replace(
        "DTEND", "RECURRENCE-ID:20230309T100000Z\r\nDTEND"
    )
    both = weekly.replace("END:VCALENDAR\r\n", override[override.index("BEGIN:VEVENT") :])
    for number, content in enumerate((an_event(0), both)):
        calendar.put(f"work/event-{number}.ics", content)
    fed = feed_of(calendar.place(CALENDARS), PASSWORD)
    assert fed.run().records_new == 3 + 5
    days = ("02", "02", "10", "16", "23")
    assert slots_of(fed) == [f"2023-03-{day}T10:00:00Z" for day in days]
    calendar.put("work/event-0.ics", an_event(0, day=7))
    moved = fed.run()
    assert (moved.changed, moved.records_new, moved.records_deleted) == (1, 1, 1)
    days = ("02", "07", "10", "16", "23")
    assert slots_of(fed) == [f"2023-03-{day}T10:00:00Z" for day in days]
    calendar.put("work/event-1.ics", weekly.replace("20230302", "20230303"))
    moved = fed.run()  # the occurrence that was changed is one as the others again
    assert (moved.changed, moved.records_new, moved.records_deleted) == (1, 4, 5)
    days = ("03", "07", "10", "17", "24")
    assert slots_of(fed) == [f"2023-03-{day}T10:00:00Z" for day in days]
    assert fed.held() == {"events": 2, "agenda": 5}


def test_what_is_deleted_in_the_account_is_deleted_after_two_looks(
    calendar: DavServer, settings: Settings, feed_of: FeedOf
) -> None:
    for number in range(3):
        calendar.put(f"work/event-{number}.ics", an_event(number))
    fed = feed_of(calendar.place(CALENDARS), PASSWORD)
    follow(fed)
    assert fed.run().records_new == 6
    for number in (0, 1):
        calendar.delete(f"work/event-{number}.ics")
    first = by_itself(fed)
    assert (first.gone, first.records_deleted, fed.held()["events"]) == (2, 0, 3)
    calendar.put("work/event-1.ics", an_event(1))  # back before the second look
    second = by_itself(fed)
    assert (second.new, second.records_new, second.records_deleted) == (1, 0, 2)
    assert fed.held() == {"events": 2, "agenda": 2}
    assert (by_itself(fed).records_deleted, compared(fed, settings).differences) == (0, [])


def test_what_a_run_stored_that_was_killed_before_it_said_so_goes_with_its_item(
    calendar: DavServer, settings: Settings, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    calendar.put("work/event-0.ics", an_event(0))
    fed = feed_of(calendar.place(CALENDARS), PASSWORD)
    follow(fed)
    assert fed.run().records_new == 2
    take = FetchedBatches.take

    def killed(batches: FetchedBatches, *args: Any) -> None:
        take(batches, *args)
        raise PutOff

    monkeypatch.setattr(FetchedBatches, "take", killed)
    calendar.put("work/event-1.ics", an_event(1))
    calendar.put("work/event-2.ics", an_event(2))
    again(fed)
    fed.engine.run(fed.feed_id)
    monkeypatch.setattr(FetchedBatches, "take", take)
    assert fed.held()["events"] == 3
    calendar.delete("work/event-1.ics")
    assert compared(fed, settings).differences
    for _ in range(3):
        again(fed)
        by_itself(fed)
    assert fed.held() == {"events": 2, "agenda": 2}
    assert compared(fed, settings).differences == []


def test_a_collection_that_is_gone_loses_its_items_and_those_that_moved_stay(
    book: DavServer, feed_of: FeedOf
) -> None:
    book.make("others", ADDRESS_BOOK, "Others")
    for number in range(4):
        book.put(f"others/card-{number}.vcf", a_card(number))
    fed = feed_of(book.place(ADDRESS_BOOKS), PASSWORD)
    follow(fed)
    assert fed.run().records_new == 4
    book.put("people/moved.vcf", a_card(0))
    book.delete("others/")
    assert (by_itself(fed).gone, by_itself(fed).records_deleted) == (4, 3)
    assert fed.held() == {"contacts": 1}
    book.make("others", ADDRESS_BOOK, "Others")
    book.put("others/card-1.vcf", a_card(1))
    assert (by_itself(fed).new, fed.held()) == (1, {"contacts": 2})
    book.delete("others/")


def a_look(*seen: SeenInAccount) -> list[SeenInAccount]:
    """Of one address book."""
    return [CollectionSeen("/ada/people/", "People"), *seen, DavEnd(None)]


def card_at(name: str, number: int, mark: str) -> ItemSeen:
    return ItemSeen(f"/ada/people/{name}.vcf", mark, a_card(number).encode())


def test_what_an_item_held_is_not_deleted_while_another_holds_it(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [
        a_look(card_at("a", 0, "1"), card_at("b", 1, "1")),
        a_look(card_at("a", 1, "2"), card_at("b", 0, "2")),  # they change places
        a_look(card_at("c", 0, "1"), card_at("b", 2, "3")),
        a_look(card_at("c", 3, "2")),
    ]
    shown_in_turn(monkeypatch, looks)
    fed = feed_of("carddav://ada@127.0.0.1:9/", PASSWORD)
    counted = [(fed.run().records_deleted, fed.held()) for _ in looks]
    assert counted == [
        (0, {"contacts": 2}),
        (0, {"contacts": 2}),
        (0, {"contacts": 3}),
        (1, {"contacts": 3}),
    ]


class Failing(ReaderProcess):
    """A reader that reads no folder, nor the files that `alone` names."""

    alone = ("b.vcf",)

    def look(self, path: Path, instructions: Wanted) -> PathContents:
        if path.is_dir() or path.name in self.alone:
            raise ExportUnreadable("It cannot be read.", "Try again.")
        return super().look(path, instructions)


def test_items_whose_second_reading_fails_are_read_alone(tmp_path: Path) -> None:
    contents = [a_card(0), a_card(1), "nothing", a_card(2)]
    for name, content in zip("abcd", contents, strict=True):
        aged(tmp_path / f"{name}.vcf", content.encode())
    starts = [(0, "/a"), (len(contents[0]), "/b"), (1_000, "/c"), (2_000, "/d")]
    read = {
        item: each.keys for item, each in read_items(tmp_path, starts, "contacts", Failing).items()
    }
    assert {item: len(keys) for item, keys in read.items()} == {"/a": 1, "/c": 0, "/d": 1}
    assert read["/a"] != read["/d"]


def test_an_item_that_is_not_read_again_is_named_and_fetched_again_with_its_records(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = [a_look(card_at("a", 0, "1"), card_at("b", 1, "1")), a_look(card_at("b", 1, "1"))]
    shown_in_turn(monkeypatch, looks)
    fed = feed_of("carddav://ada@127.0.0.1:9/", PASSWORD)
    read = dav_runs.read_items

    def without_b(
        folder: Path, starts: Sequence[tuple[int, str]], source: str
    ) -> dict[str, ItemRecords]:
        found = read(folder, starts, source)
        return {item: keys for item, keys in found.items() if "/b" not in item}

    monkeypatch.setattr(dav_runs, "read_items", without_b)
    first = by_itself(fed)
    assert (first.code, first.rejected, fed.held()) == (None, 1, {"contacts": 2})
    line = {e.item: e for e in feed_store(fed.stores).feed_items(fed.feed_id)}
    assert line["/ada/people/b.vcf"].code == "item_unread"
    assert line["/ada/people/b.vcf"].mark == ""  # so that no list finds it as it was
    monkeypatch.setattr(dav_runs, "read_items", read)
    again(fed)
    assert by_itself(fed).rejected == 0
    line = {e.item: e for e in feed_store(fed.stores).feed_items(fed.feed_id)}
    assert len(line["/ada/people/b.vcf"].record_keys) == 1
    assert line["/ada/people/b.vcf"].code is None


def test_an_item_that_comes_back_or_is_refused_keeps_its_records(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = "/ada/people/{}.vcf".format
    looks = [
        a_look(card_at("a", 0, "1"), card_at("b", 1, "1")),
        a_look(card_at("c", 1, "1")),
        a_look(ItemGone(place("a")), ItemGone(place("b"))),
        a_look(card_at("a", 0, "1"), ItemRefused(place("c"), "2", "item_not_given")),
        a_look(ItemGone(place("a"))),
        a_look(),
    ]
    shown_in_turn(monkeypatch, looks)
    fed = feed_of("carddav://ada@127.0.0.1:9/", PASSWORD)
    follow(fed)
    assert [(by_itself(fed).records_deleted, fed.held()["contacts"]) for _ in looks] == [
        *5 * [(0, 2)],
        (1, 1),
    ]


def test_an_account_that_is_emptied_deletes_nothing_until_its_owner_asks(
    book: DavServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dav_runs, "FEW_GONE", 2)
    for number in range(4):
        book.put(f"people/card-{number}.vcf", a_card(number))
    fed = feed_of(book.place(ADDRESS_BOOKS), PASSWORD)
    follow(fed)
    assert fed.run().records_new == 4
    for number in range(3):
        book.delete(f"people/card-{number}.vcf")
    assert by_itself(fed).code is None
    assert (by_itself(fed).code, fed.feed.state) == ("account_emptied", "needs_you")
    assert fed.held() == {"contacts": 4}
    again(fed)
    assert (fed.run().records_deleted, fed.held()) == (3, {"contacts": 1})


def test_with_deletions_kept_what_is_deleted_in_the_account_stays(
    book: DavServer, feed_of: FeedOf
) -> None:
    for number in range(2):
        book.put(f"people/card-{number}.vcf", a_card(number))
    fed = feed_of(book.place(ADDRESS_BOOKS), PASSWORD)
    assert fed.run().records_new == 2
    book.delete("people/card-0.vcf")
    assert [by_itself(fed).records_deleted for _ in range(3)] == [0, 0, 0]
    assert fed.held() == {"contacts": 2}


def test_more_items_than_an_account_has_end_the_run_before_they_are_kept(
    calendar: DavServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run holds a line for each: a server that lies may not have it hold them without end."""
    monkeypatch.setattr(dav_runs, "MOST_ITEMS", 3)
    for number in range(4):
        calendar.put(f"work/event-{number}.ics", an_event(number))
    fed = feed_of(calendar.place(CALENDARS), PASSWORD)
    assert fed.run().code == "dav_misbehaves"
    assert fed.held() == {}
    assert len(feed_store(fed.stores).feed_items(fed.feed_id)) <= 3


def test_what_counts_is_each_item_that_is_there_once(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither what is read again nor what went makes an account of three items larger."""
    monkeypatch.setattr(dav_runs, "MOST_ITEMS", 3)
    refused = ItemRefused("/ada/people/x.vcf", "1", "item_too_large")
    gone = [ItemGone(f"/ada/people/{name}.vcf") for name in "abx"]
    looks = [
        a_look(card_at("a", 0, "1"), card_at("b", 1, "1"), refused),
        a_look(card_at("a", 0, "2"), card_at("b", 1, "2"), refused),
        a_look(*gone),
        a_look(card_at("c", 2, "1"), card_at("d", 3, "1"), card_at("e", 4, "1")),
        a_look(card_at("f", 5, "1")),
    ]
    shown_in_turn(monkeypatch, looks)
    fed = feed_of("carddav://ada@127.0.0.1:9/", PASSWORD)
    assert [by_itself(fed).code for _ in looks] == [None] * 4 + ["dav_misbehaves"]
    assert fed.held() == {"contacts": 5}


def test_what_went_and_has_no_record_leaves_no_line(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server may name and take back as many as it likes."""
    path = "/ada/people/{}.vcf".format
    refused = ItemRefused(path("x"), "1", "item_too_large")
    looks = [
        a_look(card_at("a", 0, "1"), card_at("b", 1, "1"), refused),
        a_look(ItemGone(path("a")), ItemGone(path("x"))),
        a_look(),
    ]
    shown_in_turn(monkeypatch, looks)
    fed = feed_of("carddav://ada@127.0.0.1:9/", PASSWORD)
    follow(fed)
    lines = list[set[str]]()
    for _ in looks:
        by_itself(fed)
        lines.append({line.item for line in feed_store(fed.stores).feed_items(fed.feed_id)})
    assert lines == [{path("a"), path("b"), path("x")}, {path("a"), path("b")}, {path("b")}]
    assert fed.held() == {"contacts": 1}


@pytest.mark.parametrize("is_deleted", [False, True])
def test_what_went_is_looked_for_until_its_records_are_deleted(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch, *, is_deleted: bool
) -> None:
    """A run is killed in front of the deletion, or behind it and before it wrote so."""
    path = "/ada/people/{}.vcf".format
    looks = [
        a_look(card_at("a", 0, "1"), card_at("b", 1, "1")),
        a_look(ItemGone(path("a"))),
        a_look(),
        a_look(),
    ]
    shown_in_turn(monkeypatch, looks)
    fed, delete = feed_of("carddav://ada@127.0.0.1:9/", PASSWORD), DavRecords.delete
    follow(fed)
    by_itself(fed)
    by_itself(fed)

    def killed(records: DavRecords, *args: Any) -> int:
        if is_deleted:
            delete(records, *args)
        raise PutOff

    with monkeypatch.context() as during:
        during.setattr(DavRecords, "delete", killed)
        fed.engine.run(fed.feed_id)
    lines = {line.item: line for line in feed_store(fed.stores).feed_items(fed.feed_id)}
    assert (lines[path("a")].state, len(lines[path("a")].record_keys)) == ("gone", 1)
    again(fed)
    assert by_itself(fed).records_deleted == (not is_deleted)
    assert {line.item for line in feed_store(fed.stores).feed_items(fed.feed_id)} == {path("b")}
    assert fed.held() == {"contacts": 1}


def test_more_collections_than_an_account_has_end_the_run_before_they_are_kept(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dav_runs, "MOST_COLLECTIONS", 2)

    def shown(*names: str) -> list[SeenInAccount]:
        found = list[SeenInAccount]()
        for name in names:
            path = f"/ada/{name}/"
            found.append(CollectionSeen(path, name))
            found.append(CollectionEnd(path, name, "c-1", "t-1", True, True, True))
        return found

    looks = [
        [*shown("a", "b"), DavEnd(None)],
        [*shown("a", "b"), CollectionGone("/ada/b/"), DavEnd(None)],
        [*shown("c", "d", "e"), DavEnd(None)],
    ]
    shown_in_turn(monkeypatch, looks)
    fed = feed_of("carddav://ada@127.0.0.1:9/", PASSWORD)
    assert [by_itself(fed).code for _ in looks] == [None, None, "dav_misbehaves"]
    lines = {line.item for line in feed_store(fed.stores).feed_items(fed.feed_id)}
    assert lines == {"/ada/a/", "/ada/c/"}


@pytest.mark.parametrize(
    "each",
    [ItemGone("/a/x.vcf"), CollectionGone("/a/"), ItemRefused("/a/x.vcf", "", "item_not_given")],
)
def test_a_batch_without_items_is_full_as_well(each: SeenInAccount, tmp_path: Path) -> None:
    seen = [each] * (2 * BATCH_ITEMS)
    batches = list(dav_batches(seen, tmp_path / "staged", ADDRESS_BOOKS, RunResult()))
    assert [len(e.refused) + len(e.gone) + len(e.lost) for e in batches] == [
        BATCH_ITEMS,
        BATCH_ITEMS,
        0,
    ]
