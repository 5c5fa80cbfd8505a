"""JMAP accounts against a real Cyrus, and against a double that misbehaves."""

from __future__ import annotations

import base64
import dataclasses
import imaplib
import json
import random
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import InvalidState
from personal_server.app.account_sign_ups import StoredSignUps
from personal_server.app.feed_secrets import FeedSecrets
from personal_server.app.feeding import feed_engine, feed_store, jmap_runs
from personal_server.app.stores import open_stores
from personal_server.cli.feed_checks import FeedComparison, check_mailbox
from personal_server.feeds.feed_kinds import JMAP, MAILBOX
from personal_server.feeds.feed_runs import PutOff, RunResult
from personal_server.feeds.feed_states import FeedState
from personal_server.feeds.fetched_batches import FetchedBatches
from personal_server.feeds.wanted_accounts import WantedAccount
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.settings import Settings
from personal_server.storage.feed_rows import FOLLOW, FeedRow
from server.tests.app.importing_here import ImportHere
from server.tests.app.test_feeding import Fed, a_mail, aged, an_mbox
from server.tests.app.test_mailbox_runs import again
from server.tests.cli.import_machine import shared_reader
from server.tests.feeds.test_feed_states import a_feed
from tests.cyrus import CyrusServer, cyrus_server, needs_cyrus
from tests.dovecot import PASSWORD

FeedOf = Callable[..., Fed]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", time_zone="UTC")


@pytest.fixture
def feed_of(settings: Settings) -> Iterator[FeedOf]:
    with open_stores(settings, serving=False) as stores:

        def fed(place: str, password: str = PASSWORD, deletions: str = "keep") -> Fed:
            feed = a_feed(kind=JMAP, layout=JMAP, place=place, due_at_ns=stores.clock())
            feed_store(stores).add_feed(dataclasses.replace(feed, deletions=deletions))
            FeedSecrets.of(stores).keep(feed, password)
            importer = ImportHere.over(stores, settings)
            return Fed(stores, feed_engine(settings, stores, importer), feed.feed_id)

        yield fed


@pytest.fixture(scope="module")
def cyrus() -> Iterator[CyrusServer]:
    with cyrus_server() as found:
        yield found


def by_itself(fed: Fed) -> RunResult:
    """A run that nobody asked for."""
    again(fed)
    result = fed.engine.run(fed.feed_id)
    assert result is not None
    return result


def put(client: imaplib.IMAP4, folder: str, numbers: range) -> None:
    client.create(folder)
    for number in numbers:
        client.append(folder, "", "", a_mail(number).as_bytes().replace(b"\n", b"\r\n"))


def compared(fed: Fed, settings: Settings) -> FeedComparison:
    runs = jmap_runs(settings, fed.stores, ImportHere.over(fed.stores, settings))
    with shared_reader() as reader:
        return check_mailbox(fed.feed, fed.stores, reader, "UTC", runs)


@needs_cyrus
def test_an_account_that_was_imported_before_has_nothing_new_and_stays_current(
    cyrus: CyrusServer, settings: Settings, feed_of: FeedOf, tmp_path: Path
) -> None:
    with cyrus.signed_in("ada") as client:
        put(client, "INBOX", range(20))
        put(client, "Work/Bills", range(20, 30))
        put(client, "Junk", range(30, 33))
    fed = feed_of(cyrus.place("ada"))
    exported = aged(tmp_path / "export" / "mail.mbox", an_mbox(range(30)))
    ImportHere.over(fed.stores, settings)("fee_other", WantedImport([exported], exported.parent))
    first = fed.run()
    assert (first.code, first.seen, first.new, first.records_new) == (None, 30, 30, 0)
    assert fed.held() == {"messages": 30}
    assert compared(fed, settings).differences == []
    idle = by_itself(fed)
    assert (idle.new, idle.records_new, idle.code) == (0, 0, None)
    assert idle.commands == 1
    assert idle.size_bytes < 2_000
    with cyrus.signed_in("ada") as client:
        client.select("INBOX", readonly=True)
        assert client.search(None, "SEEN")[1] == [b""]  # nothing was marked as read
        client.select("INBOX")
        client.copy("1", "Work/Bills")
        client.store("1", "+FLAGS", r"(\Deleted)")
        client.store("2", "+FLAGS", r"(\Seen \Flagged Invoices)")
        client.expunge()
        put(client, "INBOX", range(40, 41))
    moved = by_itself(fed)
    assert (moved.code, moved.records_new) == (None, 1)
    assert fed.held() == {"messages": 31}
    assert compared(fed, settings).differences == []


def held(fed: Fed) -> Counter[tuple[str, str, tuple[str, ...]]]:
    """The mails that the records hold: subject, mailbox, labels."""
    found: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    with fed.stores.records.snapshot() as snapshot:
        for account in fed.feed.connection_ids:
            for record in snapshot.export(account, "messages"):
                labels: Any = record.data.get("labels") or ()
                words = tuple(sorted(str(each) for each in labels))
                found[str(record.data["subject"]), str(record.data["mailbox"]), words] += 1
    return found


_take = FetchedBatches.take


def killed_after(
    batches: FetchedBatches, feed: FeedRow, name: str, path: Path, result: RunResult
) -> None:
    """What is stored stays, and nothing is written of it."""
    _take(batches, feed, name, path, result)
    raise PutOff


@dataclass
class CutWire:
    """A wire to a server that is cut once so many bytes came over it; never, where it is none."""

    to: int
    port: int = 0
    left: int | None = None
    _listener: socket.socket = field(init=False)

    def start(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        with near, socket.create_connection(("127.0.0.1", self.to)) as far:
            there = threading.Thread(target=self._carry, args=(near, far, False), daemon=True)
            there.start()
            self._carry(far, near, True)
            there.join()

    def _carry(self, source: socket.socket, sink: socket.socket, is_counted: bool) -> None:
        with suppress(OSError):
            while chunk := source.recv(4_096):
                if is_counted and self.left is not None:
                    self.left -= len(chunk)
                    if self.left < 0:
                        break
                sink.sendall(chunk)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def wire(cyrus: CyrusServer) -> Iterator[CutWire]:
    found = CutWire(cyrus.http)
    found.start()
    yield found
    found.stop()


_LABELS = {"$flagged": "Starred", "$answered": "Answered", "$forwarded": "Forwarded"}


def in_account(cyrus: CyrusServer, user: str) -> Counter[tuple[str, str, tuple[str, ...]]]:
    """What is there, as a plain client of JMAP is told it, each mail in its first folder."""
    signed = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()

    def asked(name: str, **members: object) -> dict[str, Any]:
        body = {
            "using": ["urn:ietf:params:jmap:core", "urn:ietf:params:jmap:mail"],
            "methodCalls": [[name, {"accountId": user, **members}, "c"]],
        }
        request = Request(
            f"http://127.0.0.1:{cyrus.http}/jmap/",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", "Authorization": f"Basic {signed}"},
        )
        with urlopen(request) as answer:  # noqa: S310 (on loopback)
            return json.load(answer)["methodResponses"][0][1]

    boxes = {each["id"]: each for each in asked("Mailbox/get", ids=None)["list"]}
    ids = asked("Email/query", filter=None, limit=4_000)["ids"]
    wanted = ["subject", "mailboxIds", "keywords"]
    found: Counter[tuple[str, str, tuple[str, ...]]] = Counter()
    for each in asked("Email/get", ids=ids, properties=wanted)["list"]:
        inside = [boxes[name] for name in each["mailboxIds"]]
        names = [
            "INBOX" if box["role"] == "inbox" else box["name"]
            for box in inside
            if box["role"] not in ("junk", "trash")
        ]
        keywords: list[str] = [one for one in each["keywords"] if one != "$seen"]
        words = [_LABELS.get(one, one) for one in keywords]
        words += [] if "$seen" in each["keywords"] else ["Unread"]
        if names:
            first = min(names, key=lambda name: (name != "INBOX", name))
            found[each["subject"], first, tuple(sorted(words))] += 1
    return found


def edited(client: imaplib.IMAP4, chance: random.Random, number: int, folders: list[str]) -> None:
    """One edit of the account, as its owner's own mail program makes them."""
    kind = chance.choice(("new", "new", "mark", "mark", "move", "copy", "delete", "folder"))
    name = chance.choice(folders)
    count = int(client.select(f'"{name}"')[1][0] or 0)
    if kind == "new" or (kind != "folder" and not count):
        put(client, name, range(number, number + 1))
        return
    if kind == "folder":
        own = [each for each in folders if each.startswith("F")]
        if number % 3 and own:
            client.select("INBOX")
            gone = chance.choice(own)
            folders.remove(gone)
            if number % 3 == 1:
                client.rename(gone, f"F{number}")
                folders.append(f"F{number}")
            else:
                client.delete(gone)
        else:
            client.create(f"F{number}")
            folders.append(f"F{number}")
        return
    which = str(chance.randrange(1, count + 1))
    if kind == "mark":
        sign = chance.choice("+-")
        client.store(which, f"{sign}FLAGS", chance.choice((r"(\Seen)", r"(\Flagged later)")))
    elif kind == "copy":
        client.copy(which, chance.choice(folders))
    else:
        if kind == "move":
            client.copy(which, chance.choice(folders))
        client.store(which, "+FLAGS", r"(\Deleted)")
        client.expunge()


@needs_cyrus
@pytest.mark.parametrize(
    ("edits", "seed"),
    [(30, 1), pytest.param(1_000, 2, marks=[pytest.mark.long, pytest.mark.timeout(1_200)])],
)
def test_after_random_edits_and_cuts_the_records_are_those_of_the_account(
    cyrus: CyrusServer,
    wire: CutWire,
    settings: Settings,
    feed_of: FeedOf,
    monkeypatch: pytest.MonkeyPatch,
    *,
    edits: int,
    seed: int,
) -> None:
    chance, user = random.Random(seed), f"eve{edits}"
    fed = feed_of(f"jmap://{user}@127.0.0.1:{wire.port}/", deletions=FOLLOW)
    folders = ["INBOX", "Archive", "Junk", "Sent"]
    cuts = kills = 0
    with cyrus.signed_in(user) as client:
        for number in range(edits):
            edited(client, chance, number, folders)
            if number % 10 != 9:
                continue
            with monkeypatch.context() as patch:
                if chance.random() < 0.3:
                    patch.setattr(FetchedBatches, "take", killed_after)
                wire.left = chance.choice((None, chance.randrange(6_000)))
                again(fed)
                result = fed.engine.run(fed.feed_id)
                cuts += result is not None and result.code == "mailbox_unreachable"
                kills += result is None
                wire.left = None
        again(fed)
        fed.run()  # its owner wants what went deleted, though it is more than half
        codes = [by_itself(fed).code for _ in range(3)]
        assert codes == [None] * 3
        assert held(fed) == in_account(cyrus, user)
    print(f"{edits} edits, {cuts} cuts, {kills} kills, {fed.held()}")
    assert compared(fed, settings).differences == []


@needs_cyrus
def test_an_account_is_signed_in_to_on_a_page_and_its_mailboxes_chosen(
    cyrus: CyrusServer, settings: Settings
) -> None:
    with cyrus.signed_in("grace") as client:
        put(client, "INBOX", range(3))
        put(client, "Work", range(3, 5))
    wanted = WantedAccount(
        address="grace@example.org",
        password="open sesame 42",
        kinds=frozenset({MAILBOX}),
        jmap=f"http://127.0.0.1:{cyrus.http}/",
        user="grace",
    )
    with open_stores(settings, serving=False) as stores:
        sign_ups = StoredSignUps(stores)
        tried = len(cyrus.sign_ins)
        with pytest.raises(InvalidState) as refused:
            sign_ups.add(wanted)
        assert refused.value.members["feed_code"] == "sign_in_refused"
        assert cyrus.sign_ins[tried:] == ["open sesame 42"]
        assert feed_store(stores).feeds() == []
        (feed,) = sign_ups.add(replace(wanted, password=PASSWORD))
        assert (feed.kind, feed.state) == (JMAP, FeedState.PAUSED)
        usual = [(each.name, each.mails) for each in sign_ups.folders(feed) if each.is_usual]
        assert usual[0] == ("INBOX", 3)
        assert ("Work", 2) in usual
        sign_ups.choose(feed, ["Work"], FOLLOW)
        engine = feed_engine(settings, stores, ImportHere.over(stores, settings))
        fed = Fed(stores, engine, feed.feed_id)
        by_itself(fed)
        assert fed.held() == {"messages": 2}
        assert sign_ups.items(feed) == 2
