"""Mailboxes against a real dovecot, and against servers that misbehave."""

from __future__ import annotations

import imaplib
import os
import random
import re
import socket
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BufferedReader
from pathlib import Path

import pytest

from pdpp_kernel.errors import StorageUnavailable
from pdpp_sources import mailbox_process, started_process
from pdpp_sources.mailbox_messages import SignIn
from personal_server.app import mail_batches, mail_ledger, mailbox_runs
from personal_server.app.feed_secrets import FILE, FeedSecrets
from personal_server.app.feeding import feed_engine, feed_store
from personal_server.app.mailbox_records import MailboxRecords
from personal_server.app.mailbox_runs import MailboxRuns, MailPlace
from personal_server.app.stores import open_stores
from personal_server.cli.feed_checks import FeedComparison, check_mailbox
from personal_server.feeds.feed_kinds import MAILBOX
from personal_server.feeds.feed_runs import PutOff, RunResult
from personal_server.feeds.fetched_batches import FetchedBatches, FetchTrouble
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.settings import Settings
from personal_server.storage.feed_rows import FeedRow
from personal_server.storage.sql.care.feed_mails import SqlFeedMails
from server.tests.app.http_server.served import until
from server.tests.app.importing_here import ImportHere
from server.tests.app.test_feeding import Fed, a_mail, aged, an_mbox
from server.tests.cli.import_machine import shared_reader
from server.tests.feeds.test_feed_states import a_feed
from tests.courier import CourierServer, courier_server, needs_courier
from tests.dovecot import PASSWORD, USER, MailServer, mail_server, needs_dovecot

FeedOf = Callable[[str, str], Fed]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", time_zone="UTC")


@pytest.fixture
def feed_of(settings: Settings) -> Iterator[FeedOf]:
    with open_stores(settings, serving=False) as stores:

        def fed(place: str, password: str = PASSWORD) -> Fed:
            feed = a_feed(kind=MAILBOX, layout=MAILBOX, place=place, due_at_ns=stores.clock())
            feed_store(stores).add_feed(feed)
            FeedSecrets.of(stores).keep(feed, password)
            importer = ImportHere.over(stores, settings)
            return Fed(stores, feed_engine(settings, stores, importer), feed.feed_id)

        yield fed


@pytest.fixture
def server() -> Iterator[MailServer]:
    with mail_server() as found:
        yield found


@contextmanager
def signed_in(server: MailServer | CourierServer) -> Generator[imaplib.IMAP4]:
    """Its owner's own mail program."""
    with imaplib.IMAP4("127.0.0.1", server.port) as client:
        client.login(USER, PASSWORD)
        yield client


def put(client: imaplib.IMAP4, folder: str, numbers: range) -> None:
    client.create(folder)
    for number in numbers:
        client.append(folder, "", "", a_mail(number).as_bytes().replace(b"\n", b"\r\n"))


def again(fed: Fed) -> None:
    """The feed is due, whatever ended the last run."""
    feed_store(fed.stores).change_feed(
        fed.feed_id, lambda feed: replace(feed, state="waiting", holder=None)
    )


def by_itself(fed: Fed) -> RunResult:
    """A run that nobody asked for."""
    result = fed.engine.run(fed.feed_id)
    assert result is not None
    return result


def compared(fed: Fed) -> FeedComparison:
    runs = fed.engine.runs[MAILBOX]
    assert isinstance(runs, MailboxRuns)
    with shared_reader() as reader:
        return check_mailbox(fed.feed, fed.stores, reader, "UTC", runs)


@needs_dovecot
def test_a_mailbox_that_was_imported_before_has_nothing_new_and_stays_current(
    server: MailServer, settings: Settings, feed_of: FeedOf, tmp_path: Path
) -> None:
    with signed_in(server) as client:
        put(client, "INBOX", range(20))
        put(client, "Archive/2023", range(20, 30))
    fed = feed_of(server.place, PASSWORD)
    exported = aged(tmp_path / "export" / "mail.mbox", an_mbox(range(30)))
    ImportHere.over(fed.stores, settings)("fee_other", WantedImport([exported], exported.parent))
    first = fed.run()
    assert (first.code, first.seen, first.new, first.records_new) == (None, 30, 30, 0)
    assert fed.held() == {"messages": 30}
    assert compared(fed).differences == []
    idle = fed.run()
    assert (idle.new, idle.records_new, idle.code) == (0, 0, None)
    assert idle.commands <= 10
    assert idle.size_bytes < 4_000
    with signed_in(server) as client:
        client.select("INBOX", readonly=True)
        assert client.search(None, "SEEN")[1] == [b""]  # nothing was marked as read
        client.select("INBOX")
        client.copy("1", "Archive/2023")
        client.store("1", "+FLAGS", r"(\Deleted)")
        client.expunge()
        put(client, "INBOX", range(30, 31))
    moved = fed.run()
    assert (moved.code, moved.new, moved.records_new) == (None, 2, 1)
    assert fed.held() == {"messages": 31}
    assert compared(fed).differences == []
    with signed_in(server) as client:  # a folder of the same name, made anew
        client.delete("Archive/2023")
        put(client, "Archive/2023", range(20, 25))
    anew = fed.run()
    assert (anew.code, anew.new, anew.records_new) == (None, 5, 0)
    assert fed.held() == {"messages": 31}


@needs_dovecot
def test_a_wrong_password_is_tried_once(server: MailServer, feed_of: FeedOf) -> None:
    fed = feed_of(server.place, "wrong")
    for _ in range(5):
        fed.engine.work()
        for thread in threading.enumerate():
            if thread.name == fed.feed_id:
                thread.join()
    assert (fed.feed.state, fed.feed.code) == ("needs_you", "sign_in_refused")
    until(lambda: "auth failed" in server.log)  # which is written when the connection has ended
    assert server.log.count("auth failed, 1 attempts") == 1
    FeedSecrets.of(fed.stores).keep(fed.feed, PASSWORD)
    fed.engine.resume(fed.feed_id)
    assert fed.run().code is None


@needs_dovecot
def test_what_an_account_holds_as_a_mail_is_one_whatever_it_looks_like(
    server: MailServer, feed_of: FeedOf
) -> None:
    odd = [
        b"Subject: a note to myself\r\n\r\nmilk\r\n",
        b"name,amount,day\r\nada,1,2024-01-01\r\nbob,2,2024-01-02\r\n",
        b"BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Eve\r\nEND:VCARD\r\n",
        b"From ada Mon Jan  1 00:00:00 2024\r\nSubject: kept\r\n\r\nwords\r\n",
        b"Message-ID: <1@x.example>\r\na remark\r\nSubject: x\r\nFrom: a@x.example\r\n\r\nhi\r\n",
    ]
    with signed_in(server) as client:
        for raw in odd:
            client.append("INBOX", "", "", raw)
    fed = feed_of(server.place, PASSWORD)
    first = fed.run()
    assert (first.code, first.new, first.rejected, first.records_new) == (None, 5, 0, 5)
    assert fed.held() == {"messages": 5}
    assert compared(fed).differences == []
    assert len(mails_held(fed)) == 5  # under the keys that the ledger has


@needs_dovecot
def test_a_connection_that_is_cut_at_any_point_goes_on_where_it_was(
    server: MailServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No body is fetched twice but those of the batch that was cut."""
    monkeypatch.setattr(mail_batches, "BATCH_ITEMS", 10)
    with signed_in(server) as client:
        put(client, "INBOX", range(40))
    fed, chance, fetched = feed_of(server.place, PASSWORD), random.Random(3), 0
    whole = MailPlace.connected

    def cut_short(place: MailPlace) -> socket.socket:
        return cut(whole(place), chance.randrange(500, 16_000))

    for _ in range(3):
        monkeypatch.setattr(MailPlace, "connected", cut_short)
        result = fed.run()
        fetched += result.new
        assert result.code in ("mailbox_unreachable", None)
        again(fed)
    monkeypatch.setattr(MailPlace, "connected", whole)
    result = fed.run()
    assert result.code is None
    assert fetched + result.new <= 40 + 3 * 10
    assert fed.held() == {"messages": 40}
    assert compared(fed).differences == []


@needs_dovecot
@pytest.mark.parametrize("can", [None, "IMAP4rev1"])
def test_what_is_moved_marked_and_deleted_is_followed(
    can: str | None, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server(can=can) as server:
        _follow_what_changes(server, feed_of, monkeypatch)


@needs_courier
def test_what_changes_is_followed_where_another_program_serves_it(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with courier_server() as server:
        _follow_what_changes(server, feed_of, monkeypatch)


def _follow_what_changes(
    server: MailServer | CourierServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    work, job = f"{server.root}Work", f"{server.root}Job"
    with signed_in(server) as client:
        put(client, "INBOX", range(6))
        put(client, work, range(6, 8))
    fed = feed_of(server.place, PASSWORD)
    feed_store(fed.stores).change_feed(fed.feed_id, lambda e: replace(e, deletions="follow"))
    assert fed.run().records_new == 8
    assert {mail["mailbox"] for mail in mails_held(fed)} == {"INBOX", work}
    assert all(mail["labels"] == ["Unread"] for mail in mails_held(fed))
    with signed_in(server) as client:
        client.select("INBOX")
        client.store("1:2", "+FLAGS", r"(\Seen \Flagged)")
        client.copy("3", work)
        client.store("3", "+FLAGS", r"(\Deleted)")
        client.store("4", "+FLAGS", r"(\Deleted)")
        client.expunge()
        client.rename(work, job)
    moved = by_itself(fed)
    assert (moved.code, moved.records_new, moved.records_deleted) == (None, 0, 0)
    assert moved.size_bytes < 6_000  # no body came again
    after = by_itself(fed)
    assert (after.code, after.records_deleted) == (None, 1)
    held = mails_held(fed)
    assert sorted(str(mail["mailbox"]) for mail in held) == ["INBOX"] * 4 + [job] * 3
    assert sum(mail["labels"] == ["Starred"] for mail in held) == 2
    assert compared(fed).differences == []
    with signed_in(server) as client:  # most of all: the owner is asked
        client.delete(job)
        client.select("INBOX")
        client.store("1:*", "+FLAGS", r"(\Deleted)")
        client.expunge()
        put(client, "INBOX", range(40, 41))
    monkeypatch.setattr(mail_ledger, "FEW_GONE", 3)
    by_itself(fed)
    again(fed)
    assert by_itself(fed).code == "mailbox_emptied"
    assert fed.held() == {"messages": 8}
    again(fed)
    assert fed.engine.run(fed.feed_id, retries=True) is not None
    assert fed.held() == {"messages": 1}


@needs_dovecot
def test_marks_that_a_killed_run_knew_and_told_no_record_are_told_by_the_next(
    server: MailServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with signed_in(server) as client:
        put(client, "INBOX", range(3))
    fed = feed_of(server.place, PASSWORD)
    fed.run()
    with signed_in(server) as client:
        client.select("INBOX")
        client.store("1:2", "+FLAGS", r"(\Seen \Flagged)")

    def killed(*_: object) -> None:
        raise PutOff

    with monkeypatch.context() as patch:
        patch.setattr(mail_ledger.MailLedger, "tell", killed)
        fed.engine.run(fed.feed_id)
    assert sum(mail["labels"] == ["Starred"] for mail in mails_held(fed)) == 0
    again(fed)
    by_itself(fed)
    assert sum(mail["labels"] == ["Starred"] for mail in mails_held(fed)) == 2
    assert [e.item for e in feed_store(fed.stores).feed_items(fed.feed_id)] == ["INBOX"]


@needs_dovecot
@pytest.mark.parametrize("imports_first", [True, False])
def test_a_run_killed_beside_its_import_leaves_no_record_whose_mail_is_gone(
    server: MailServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch, *, imports_first: bool
) -> None:
    with signed_in(server) as client:
        put(client, "INBOX", range(3))
        put(client, "Work", range(3, 5))
    fed = feed_of(server.place, PASSWORD)
    feed_store(fed.stores).change_feed(fed.feed_id, lambda e: replace(e, deletions="follow"))
    take = FetchedBatches.take

    def killed(
        batches: FetchedBatches, feed: FeedRow, name: str, path: Path, result: RunResult
    ) -> None:
        if name != "INBOX" or imports_first:
            take(batches, feed, name, path, result)
        if name == "INBOX":
            raise PutOff

    with monkeypatch.context() as patch:
        patch.setattr(FetchedBatches, "take", killed)
        fed.engine.run(fed.feed_id)
    assert fed.held() == ({"messages": 3} if imports_first else {})
    with signed_in(server) as client:
        client.select("INBOX")
        client.store("1:2", "+FLAGS", r"(\Deleted)")
        client.expunge()
    again(fed)
    assert [by_itself(fed).code for _ in range(3)] == [None] * 3
    assert fed.held() == {"messages": 3}
    assert compared(fed).differences == []


@needs_dovecot
def test_a_check_tells_records_that_say_otherwise_and_those_that_no_mail_is(
    server: MailServer, feed_of: FeedOf, settings: Settings, tmp_path: Path
) -> None:
    with signed_in(server) as client:
        put(client, "INBOX", range(3))
        put(client, "Work", range(1, 4))
    fed = feed_of(server.place, PASSWORD)
    feed_store(fed.stores).change_feed(fed.feed_id, lambda e: replace(e, deletions="follow"))
    by_itself(fed)
    assert compared(fed).differences == []
    with signed_in(server) as client:
        client.select("INBOX")
        client.store("1", "+FLAGS", r"(\Flagged)")
        client.store("3", "+FLAGS", r"(\Deleted)")
        client.expunge()
        client.select("Work")
        client.store("3", "+FLAGS", r"(\Deleted)")
        client.expunge()
    exported = aged(tmp_path / "export" / "mail.mbox", an_mbox(range(7, 9)))
    (account,) = fed.feed.connection_ids
    ImportHere.over(fed.stores, settings)(
        "fee_other", WantedImport([exported], exported.parent, account)
    )
    found = compared(fed)
    assert [(each.item, each.reason) for each in found.differences] == [
        ("INBOX", "differing 1"),
        ("Work", "differing 1"),
        ("messages", "gone 1"),
        ("messages", "extra 2"),
    ]
    assert found.is_short
    by_itself(fed)
    by_itself(fed)
    found = compared(fed)
    assert [each.reason for each in found.differences] == ["extra 2"]
    assert not found.is_short


@needs_dovecot
def test_a_run_killed_while_it_deletes_fetches_what_comes_back(
    server: MailServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    with signed_in(server) as client:
        put(client, "INBOX", range(3))
    fed = feed_of(server.place, PASSWORD)
    feed_store(fed.stores).change_feed(fed.feed_id, lambda e: replace(e, deletions="follow"))
    by_itself(fed)
    with signed_in(server) as client:
        client.create("Trash")
        client.select("INBOX")
        client.copy("1", "Trash")
        client.store("1", "+FLAGS", r"(\Deleted)")
        client.expunge()
    by_itself(fed)
    delete = MailboxRecords.delete

    def killed(records: MailboxRecords, keys: set[str], accounts: set[str]) -> int:
        delete(records, keys, accounts)
        raise PutOff

    with monkeypatch.context() as patch:
        patch.setattr(MailboxRecords, "delete", killed)
        fed.engine.run(fed.feed_id)
    assert fed.held() == {"messages": 2}
    with signed_in(server) as client:
        client.select("Trash")
        client.copy("1", "INBOX")
    again(fed)
    by_itself(fed)
    assert fed.held() == {"messages": 3}


@needs_dovecot
def test_what_is_deleted_stays_unless_the_owner_has_it_followed(
    server: MailServer, feed_of: FeedOf
) -> None:
    with signed_in(server) as client:
        put(client, "INBOX", range(3))
        put(client, "Trash", range(5, 7))
    fed = feed_of(server.place, PASSWORD)
    assert fed.run().records_new == 3
    with signed_in(server) as client:
        client.select("INBOX")
        client.store("1", "+FLAGS", r"(\Deleted)")
        client.expunge()
    for _ in range(3):
        assert fed.run().records_deleted == 0
    assert fed.held() == {"messages": 3}


@needs_dovecot
def test_an_idle_account_of_many_folders_costs_few_commands_and_bytes(
    server: MailServer, feed_of: FeedOf
) -> None:
    with signed_in(server) as client:
        put(client, "INBOX", range(3))
        for number in range(120):
            client.create(f"Folder {number}")
    fed = feed_of(server.place, PASSWORD)
    assert fed.run().records_new == 3
    idle = by_itself(fed)
    assert (idle.code, idle.new) == (None, 0)
    assert idle.commands <= 20
    assert idle.size_bytes <= 50_000


@needs_dovecot
def test_each_byte_of_a_mail_comes_once_also_over_a_connection_that_is_cut(
    server: MailServer, feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = a_mail(1).as_bytes().replace(b"\n", b"\r\n") + b"0123456789abcde\r\n" * 60_000
    with signed_in(server) as client:
        client.append("INBOX", "", "", large)
    fed, whole, spent = feed_of(server.place, PASSWORD), MailPlace.connected, 0

    def cut_short(place: MailPlace) -> socket.socket:
        return cut(whole(place), 400_000)

    monkeypatch.setattr(MailPlace, "connected", cut_short)
    for _ in range(3):
        spent += fed.run().size_bytes
        again(fed)
    assert fed.held() == {"messages": 1}
    assert spent < len(large) + 12_000
    assert compared_whole(fed, whole, monkeypatch).differences == []


def compared_whole(
    fed: Fed, whole: Callable[[MailPlace], socket.socket], monkeypatch: pytest.MonkeyPatch
) -> FeedComparison:
    monkeypatch.setattr(MailPlace, "connected", whole)
    return compared(fed)


def mails_held(fed: Fed) -> list[dict[str, object]]:
    """The mails of the account as they are stored."""
    (account,) = fed.feed.connection_ids
    rows = SqlFeedMails(fed.stores.database, fed.stores.configuration.subject_id)
    keys = {
        row.record_key
        for name in rows.mail_counts(fed.feed_id)
        for row in rows.mails_of(fed.feed_id, name, 0, 99)
    }
    return [
        dict(e.data) for e in fed.stores.records.records_named(account, "messages", sorted(keys))
    ]


def test_a_server_that_trickles_is_left() -> None:
    count = mailbox_process.WireCount(allowed_seconds=0.0)
    count.begin_command()
    count.received += 4_096 * 3_600
    assert not count.is_beyond()
    count.begin_command()
    until(count.is_beyond)
    count.begin_command()
    count.received += mailbox_process.LARGEST_ANSWER_BYTES + 1
    assert count.is_beyond()


@pytest.mark.parametrize("scheme", ["imaps", "imap+starttls"])
def test_a_server_that_never_comes_to_speak_with_tls_is_left(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setattr(mailbox_runs, "TLS_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        place = MailPlace.of(f"{scheme}://ada@127.0.0.1:{listener.getsockname()[1]}")
        with pytest.raises(FetchTrouble) as left:
            place.connected()
    assert left.value.code == "mailbox_unreachable"


def cut(wire: socket.socket, after_bytes: int) -> socket.socket:
    """A connection that gives so many bytes and then ends."""
    ours, theirs = socket.socketpair()

    def close() -> None:
        for each in (wire, theirs):
            each.close()

    both_ended = threading.Barrier(2, close)

    def carry(begin: socket.socket, end: socket.socket, left: int) -> None:
        with suppress(OSError):
            while left > 0 and (chunk := begin.recv(min(left, 4_096))):
                end.sendall(chunk)
                left -= len(chunk)
        for each in (begin, end):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        both_ended.wait()

    for ends in ((wire, theirs, after_bytes), (theirs, wire, 1 << 40)):
        threading.Thread(target=carry, args=ends, daemon=True).start()
    return ours


def test_a_password_lies_sealed_in_a_file_of_the_owner(settings: Settings, feed_of: FeedOf) -> None:
    fed = feed_of("imaps://ada@imap.example.org", "open sesame 42")
    kept = settings.data_dir / FILE
    assert kept.stat().st_mode & 0o777 == 0o600
    secrets = FeedSecrets.of(fed.stores)
    assert secrets.password(fed.feed) == "open sesame 42"
    assert secrets.password(replace(fed.feed, feed_id="fee_other")) is None
    lying = [path for path in settings.data_dir.rglob("*") if path.is_file()]
    assert [path for path in lying if b"open sesame" in path.read_bytes()] == []
    secrets.forget(fed.feed)
    assert secrets.password(fed.feed) is None
    assert fed.run().code == "sign_in_missing"
    assert fed.feed.state == "needs_you"


def test_a_file_of_passwords_that_cannot_be_read_is_not_written_anew(
    settings: Settings, feed_of: FeedOf
) -> None:
    fed = feed_of("imaps://ada@imap.example.org", "open sesame 42")
    kept, aside = settings.data_dir / FILE, settings.data_dir / "aside"
    kept.rename(aside)
    kept.mkdir()
    with pytest.raises(StorageUnavailable):
        FeedSecrets.of(fed.stores).keep(replace(fed.feed, feed_id="fee_other"), "another")
    kept.rmdir()
    aside.rename(kept)
    assert FeedSecrets.of(fed.stores).password(fed.feed) == "open sesame 42"


@pytest.mark.parametrize(
    "place",
    ["imap://ada@imap.example.org", "https://ada@example.org", "imaps://imap.example.org", "x"],
)
def test_mail_is_fetched_with_tls_but_from_this_machine(place: str) -> None:
    with pytest.raises(FetchTrouble) as refused:
        MailPlace.of(place)
    assert refused.value.code == "mailbox_place"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows what a process gave up")
def test_what_speaks_with_a_server_is_confined_and_its_password_is_not_shown() -> None:
    with hostile([b""]) as port:
        wire = MailPlace.of(f"imap://ada@127.0.0.1:{port}").connected()
        with mailbox_process.mailbox_process(wire, mailbox_process.WireCount()) as process:
            threading.Thread(
                target=list, args=(process.ask(SignIn("ada", "open sesame 42")),), daemon=True
            ).start()
            shown: dict[str, bytes] = {}

            def is_confined() -> bool:
                shown.update(_worker())
                return b"Seccomp:\t2" in shown.get("status", b"")

            until(is_confined)
    assert b"open sesame" not in shown["cmdline"] + shown["environ"]


def _worker() -> dict[str, bytes]:
    """What the system shows of the fetcher that comes from what this process started."""
    started: dict[bytes, dict[str, bytes]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            shown = {
                each: (folder / each).read_bytes() for each in ("cmdline", "status", "environ")
            }
            if started_process.STARTER.encode() in shown["cmdline"]:
                started[folder.name.encode()] = shown
    parents = {
        pid for pid, each in started.items() if b"PPid:\t%d\n" % os.getpid() in each["status"]
    }
    mine = [
        each
        for each in started.values()
        if parents & set(re.findall(rb"PPid:\t(\d+)", each["status"]))
    ]
    return mine[0] if mine else {}


LOGGED_IN = [b"* OK hello\r\n", b"TAG OK in\r\n"]
FOLDER = [
    *LOGGED_IN,
    b'* LIST () "/" INBOX\r\nTAG OK done\r\n',
    b"* STATUS INBOX (UIDVALIDITY 1 UIDNEXT 9 MESSAGES 3)\r\nTAG OK done\r\n",
    b"* 3 EXISTS\r\n* OK [UIDVALIDITY 1] x\r\n* OK [UIDNEXT 9] x\r\nTAG OK [READ-ONLY]\r\n",
]
SEARCHED = FOLDER
SIZED = b"* 1 FETCH (UID 1 RFC822.SIZE 40)\r\n* 2 FETCH (UID 2 RFC822.SIZE %d)\r\nTAG OK done\r\n"
HOSTILE: dict[str, tuple[list[bytes], set[str | None]]] = {
    "closes at once": ([], {"mailbox_unreachable"}),
    "says nothing": ([b""], {"mailbox_unreachable"}),
    "speaks no IMAP": (
        [b"HTTP/1.1 400 Bad\r\n\r\n"],
        {"mailbox_misbehaves", "mailbox_unreachable"},
    ),
    "says goodbye": ([b"* BYE full\r\n"], {"mailbox_misbehaves", "mailbox_unreachable"}),
    "an endless line": ([b"* OK " + b"x" * 3_000_000], {"mailbox_misbehaves"}),
    "refuses": ([LOGGED_IN[0], b"TAG NO no\r\n"], {"sign_in_refused"}),
    "hangs after the sign-in": (LOGGED_IN, {"mailbox_unreachable"}),
    "a list in no charset": (
        [*LOGGED_IN, b'* LIST () "/" "\xff\xfe&&"\r\nTAG OK done\r\n'],
        {"mailbox_misbehaves", "mailbox_unreachable"},
    ),
    "a status that is none": (
        [*FOLDER[:3], b"* STATUS INBOX (UIDNEXT x)\r\nTAG OK done\r\n"],
        {"mailbox_misbehaves", "mailbox_unreachable"},
    ),
    "a literal of 4 GB": (
        [*SEARCHED, SIZED % 40, b"* 1 FETCH (UID 1 BODY[] {4294967295}\r\n" + b"x" * 70_000],
        {"mailbox_misbehaves", "mailbox_unreachable"},
    ),
    "a mail that is said to be of 4 GB": (
        [
            *SEARCHED,
            SIZED % 4_294_967_295,
            b"* 1 FETCH (UID 1 BODY[] {3}\r\nabc)\r\nTAG OK done\r\n",
        ],
        {None, "mailbox_misbehaves", "mailbox_unreachable", "export_not_recognized"},
    ),
    "closes between two mails": ([*SEARCHED, SIZED % 40], {"mailbox_unreachable"}),
    "brackets without end": (
        [*LOGGED_IN, b"* LIST " + b"(" * 100_000 + b"\r\nTAG OK done\r\n"],
        {"mailbox_misbehaves"},
    ),
    "a number that is none of IMAP": (
        [*FOLDER[:3], b"* STATUS INBOX (UIDNEXT %s)\r\nTAG OK done\r\n" % (b"9" * 4_000)],
        {"mailbox_misbehaves"},
    ),
    "the same mail twice, and a smaller body": (
        [
            *SEARCHED,
            SIZED.replace(b"TAG OK done\r\n", b"") % 40 + SIZED % 40,
            b"* 1 FETCH (UID 1 BODY[] {3}\r\nabc)\r\n* 1 FETCH (UID 1 BODY[] {3}\r\nabd)\r\n"
            b"TAG OK done\r\n",
        ],
        {None, "mailbox_misbehaves", "mailbox_unreachable", "export_not_recognized"},
    ),
    "bodies of mails that nobody asked for": (
        [*SEARCHED, SIZED % 40, b"* 9 FETCH (UID 9 BODY[] {3}\r\nabc)\r\nTAG OK done\r\n"],
        {None, "mailbox_unreachable", "mailbox_misbehaves"},
    ),
    "a refusal of every command": ([*LOGGED_IN, *[b"TAG NO no\r\n"] * 20], {"mailbox_misbehaves"}),
}


def _asked(wire: socket.socket, lines: BufferedReader) -> bytes:
    """The tag of the next command; what the server can do is told whenever it is asked."""
    while True:
        tag, command, *_ = [*lines.readline().split(), b"", b""]
        if command != b"CAPABILITY":
            return tag
        wire.sendall(b"* CAPABILITY IMAP4rev1\r\n" + tag + b" OK done\r\n")


@contextmanager
def hostile(answers: list[bytes]) -> Generator[int]:
    """A server that gives these answers, one to each command, and then nothing; its port."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                wire, _ = listener.accept()
                with wire, wire.makefile("rb") as lines:
                    for number, answer in enumerate(answers):
                        tag = _asked(wire, lines) if number else b""
                        wire.sendall(answer.replace(b"TAG", tag))
                    if answers and answers[-1] in (b"", *LOGGED_IN):
                        ended.wait(60)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            ended.set()
    thread.join()


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_server_ends_its_own_run_only(
    feed_of: FeedOf, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(mailbox_process, "SILENCE_SECONDS", 2.0)
    monkeypatch.setattr(mailbox_process, "SEARCH_SILENCE_SECONDS", 2.0)
    answers, codes = HOSTILE[name]
    with hostile(answers) as port:
        fed = feed_of(f"imap://ada@127.0.0.1:{port}", PASSWORD)
        result = fed.run()
    assert result.code in codes
    assert fed.feed.state in ("resting", "needs_you", "waiting")
    assert fed.held().keys() <= {"messages"}  # what it calls a mail is one
