"""Feeds with real folders and `pdpp import`: what falls in is in the records, whole and once."""

from __future__ import annotations

import errno
import mailbox
import os
import random
import signal
import sqlite3
import subprocess
import sysconfig
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any, BinaryIO, Protocol

import pytest

from pdpp_sources.export_files import open_file
from pdpp_sources.started_process import STARTS
from personal_server.app.feed_imports import FOLDER, ImportCommand
from personal_server.app.feeding import feed_engine, feed_store, stop_feeding
from personal_server.app.stores import Stores, open_stores
from personal_server.cli.feed_checks import FeedComparison, check_feed
from personal_server.feeds import feed_engine as engine_module
from personal_server.feeds import feed_ledger, feed_runs
from personal_server.feeds.feed_engine import FeedEngine
from personal_server.feeds.feed_runs import FolderRuns, RunResult
from personal_server.feeds.fetched_batches import FetchedBatches, FetchTrouble
from personal_server.feeds.followed_folders import EMPTIED, MOST_GONE
from personal_server.feeds.import_reports import TOO_SLOW
from personal_server.feeds.wanted_imports import WantedImport
from personal_server.feeds.watched_folders import FolderLayout, layout_of
from personal_server.settings import Settings, command_environment
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.feed_rows import FOLLOW, KEEP, FeedRow
from personal_server.storage.sql.care.feeds import SqlFeeds
from server.tests.app import hanging_import
from server.tests.app.http_server.served import until
from server.tests.app.importing_here import ImportHere
from server.tests.cli.import_machine import shared_reader
from server.tests.feeds.test_feed_states import a_feed
from tests.new_files import new_file

SECOND = 1_000_000_000
PDPP = str(Path(sysconfig.get_path("scripts")) / "pdpp")


def a_mail(number: int, to: str = "ada@example.org") -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = f"Bob <bob{number % 7}@example.org>"
    mail["To"] = to
    mail["Subject"] = f"Letter {number}"
    mail["Message-ID"] = f"<{number}@example.org>"
    mail["Date"] = "Mon, 02 Jan 2023 10:00:00 +0000"
    mail.set_content(f"What happened on day {number}.")
    return mail


def an_mbox(numbers: range) -> bytes:
    return b"".join(
        b"From bob@example.org Mon Jan  2 10:00:00 2023\n" + a_mail(n).as_bytes() + b"\n"
        for n in numbers
    )


@dataclass
class Fed:
    """A store with a feed of one folder."""

    stores: Stores
    engine: FeedEngine
    feed_id: str

    @property
    def feed(self) -> FeedRow:
        return feed_store(self.stores).feeds()[0]

    def run(self) -> RunResult:
        result = self.engine.run(self.feed_id, retries=True)
        assert result is not None
        return result

    def held(self) -> dict[str, int]:
        with self.stores.records.snapshot() as snapshot:
            return {e.stream: e.record_count for e in snapshot.stored_streams() if e.record_count}

    def check(self) -> FeedComparison:
        with shared_reader() as reader:
            return check_feed(self.feed, self.stores, reader, "UTC")


def past_what_came(fed: Fed) -> None:
    """The clock of the place moves on, so that what came before is not read again."""
    feed_store(fed.stores).change_feed(
        fed.feed_id, lambda feed: replace(feed, reached=time.time_ns() + SECOND)
    )


class NoRecords:
    def delete(self, account: str, stream: str, keys: Iterable[str]) -> int:
        raise AssertionError(account, stream, list(keys))


class Watch(Protocol):
    def __call__(self, folder: Path, *, apart: bool = False, deletions: str = KEEP) -> Fed:
        """A feed of this folder; `apart`: each import is a process, as under a server."""
        ...


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", time_zone="UTC")


@pytest.fixture
def watch(settings: Settings) -> Iterator[Watch]:
    with open_stores(settings, serving=False) as stores:

        def watched(folder: Path, *, apart: bool = False, deletions: str = KEEP) -> Fed:
            feed = a_feed(place=str(folder), layout=layout_of(folder), due_at_ns=stores.clock())
            feed_store(stores).add_feed(replace(feed, deletions=deletions))
            own, here = ImportCommand.of(settings), ImportHere.over(stores, settings)
            engine = feed_engine(settings, stores, own if apart else here)
            return Fed(stores, engine, feed.feed_id)

        yield watched


def aged(path: Path, content: bytes) -> Path:
    """A file that rests; its newest time is its change, which is now, so two looks are needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def settled(fed: Fed, monkeypatch: pytest.MonkeyPatch) -> RunResult:
    """Two looks, the second long after the first."""
    monkeypatch.setattr(feed_ledger, "SETTLED_AFTER_NS", 0)
    first = fed.run()
    return fed.run() if first.settling else first


def test_a_check_that_cannot_read_what_was_imported_says_so(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mbox = aged(tmp_path / "Downloads" / "mail.mbox", an_mbox(range(5)))
    fed = watch(mbox.parent)
    settled(fed, monkeypatch)
    assert fed.check().differences == []
    times, size_bytes = mbox.stat(), mbox.stat().st_size
    mbox.write_bytes(b"\0" * size_bytes)
    os.utime(mbox, ns=(times.st_atime_ns, times.st_mtime_ns))
    checked = fed.check()
    assert [(each.item, each.reason, each.code) for each in checked.differences] == [
        ("mail.mbox", "missing", "export_not_recognized")
    ]
    assert checked.is_short


def test_exports_are_imported_once_and_what_no_source_reads_is_named(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "Downloads"
    aged(folder / "mail.mbox", an_mbox(range(5)))
    aged(folder / "photo.bin", bytes(range(256)) * 9)
    fed = watch(folder)
    result = settled(fed, monkeypatch)
    assert (result.seen, result.records_new, result.rejected) == (2, 5, 1)
    assert fed.held() == {"messages": 5}
    assert [(e.item, e.reason, e.code) for e in fed.check().differences] == [
        ("photo.bin", "rejected", "export_not_recognized")
    ]
    again = fed.engine.run(fed.feed_id)
    assert again is not None
    assert (again.commands, again.new, again.changed) == (0, 0, 0)
    (folder / "mail.mbox").rename(folder / "letters.mbox")
    (folder / "photo.bin").unlink()
    renamed = fed.engine.run(fed.feed_id)
    assert renamed is not None
    assert (renamed.commands, renamed.gone) == (0, 1)
    assert [each.reason for each in fed.check().differences] == ["gone"]
    assert not fed.check().is_short
    folder.rename(tmp_path / "elsewhere")
    assert fed.run().code == "folder_gone"
    folder.mkdir()  # as the place of a drive that is not mounted
    feed_store(fed.stores).change_feed(fed.feed_id, lambda feed: replace(feed, state="waiting"))
    assert fed.run().code == "folder_gone"
    assert fed.held() == {"messages": 5}


def test_a_maildir_is_read_on_from_where_it_was_and_renames_are_renames(
    watch: Watch, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one whose mails were imported from an mbox before: none of them is new."""
    exported = aged(tmp_path / "export" / "mail.mbox", an_mbox(range(20)))
    box = mailbox.Maildir(tmp_path / "Maildir")
    for number in range(20):
        box.add(a_mail(number))
    fed = watch(tmp_path / "Maildir")
    assert fed.feed.layout == FolderLayout.MAILDIR
    importer = ImportHere.over(fed.stores, settings)
    importer("fee_other", WantedImport([exported], exported.parent))
    first = settled(fed, monkeypatch)
    assert (first.commands, first.records_new) == (1, 0)
    assert fed.held() == {"messages": 20}
    for name in os.listdir(tmp_path / "Maildir" / "new"):
        (tmp_path / "Maildir" / "new" / name).rename(tmp_path / "Maildir" / "cur" / f"{name}:2,S")
    box.add(a_mail(20, to="list@example.com"))
    past_what_came(fed)
    result = settled(fed, monkeypatch)
    assert (result.code, result.records_new, result.commands) == (None, 1, 1)
    assert fed.held() == {"messages": 21}
    assert len(fed.feed.connection_ids) == 1
    assert fed.check().differences == []


def test_a_database_in_use_is_read_consistently(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "profile"
    folder.mkdir()
    begun, ended = threading.Event(), threading.Event()
    database = folder / "places.sqlite"
    with closing(sqlite3.connect(database)) as places:
        places.execute("PRAGMA journal_mode=WAL")
        places.executescript(
            "CREATE TABLE moz_places (id INTEGER PRIMARY KEY, url TEXT, title TEXT, guid TEXT,"
            " visit_count INTEGER, last_visit_date INTEGER, description TEXT);"
            "CREATE TABLE moz_historyvisits (id INTEGER PRIMARY KEY, from_visit INTEGER,"
            " place_id INTEGER, visit_date INTEGER, visit_type INTEGER, session INTEGER);"
            "CREATE TABLE moz_bookmarks (id INTEGER PRIMARY KEY, type INTEGER, fk INTEGER,"
            " parent INTEGER, position INTEGER, title TEXT, dateAdded INTEGER,"
            " lastModified INTEGER, guid TEXT);"
        )

    def browse() -> None:
        with closing(sqlite3.connect(database)) as places:
            number = 0
            while not ended.is_set() and number < 400:
                number += 1
                at = 1_700_000_000_000_000 + number
                url = f"https://example.org/{number}"
                with places:
                    places.execute(
                        "INSERT INTO moz_places VALUES (?, ?, ?, ?, 1, ?, NULL)",
                        (number, url, f"Page {number}", f"guid{number}", at),
                    )
                    places.execute(
                        "INSERT INTO moz_historyvisits VALUES (?, 0, ?, ?, 1, 0)",
                        (number, number, at),
                    )
                begun.set()
                ended.wait(0.02)
            ended.wait(60)

    browsing = threading.Thread(target=browse)
    browsing.start()
    begun.wait(60)
    try:
        fed = watch(folder)
        assert fed.feed.layout == FolderLayout.PROFILE
        during = fed.run()
    finally:
        ended.set()
        browsing.join()
    assert during.code is None
    assert fed.held()["visits"] > 0
    fed.run()
    assert fed.check().differences == []


def test_files_that_are_still_written_are_imported_whole(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is appended to in pieces, some under a temporary name, while the engine looks."""
    monkeypatch.setattr(feed_ledger, "SETTLED_AFTER_NS", SECOND)
    monkeypatch.setattr(engine_module, "SETTLED_AFTER_NS", SECOND)
    folder, per_file, files = tmp_path / "Downloads", 40, 6
    folder.mkdir()
    aged(folder / "0.mbox", an_mbox(range(per_file)))
    fed = watch(folder, apart=True)
    feed_store(fed.stores).change_feed(fed.feed_id, lambda feed: replace(feed, every_seconds=0))

    def falls(number: int) -> None:
        chance = random.Random(number)
        content = an_mbox(range(number * per_file, (number + 1) * per_file))
        name = folder / f"{number}.mbox"
        path = name.with_name(f"{name.name}.part") if number % 2 else name
        with path.open("wb", buffering=0) as out:
            for begin in range(0, len(content), 2_000):
                out.write(content[begin : begin + 2_000])
                time.sleep(chance.random() * 0.8)
        if path != name:
            path.rename(name)

    writers = [threading.Thread(target=falls, args=(number,)) for number in range(1, files)]
    for each in writers:
        each.start()
    while any(each.is_alive() for each in writers):
        fed.engine.work()
        assert fed.held().get("messages", 0) % per_file == 0
        time.sleep(0.2)
    fed.engine.stop()
    deadline = time.monotonic() + 120
    while fed.held().get("messages") != per_file * files and time.monotonic() < deadline:
        fed.engine.work()
        time.sleep(0.2)
    fed.engine.stop()
    for thread in threading.enumerate():
        if thread.name == fed.feed_id:
            thread.join()
    assert fed.held() == {"messages": per_file * files}
    assert fed.check().differences == []


def test_a_run_that_is_killed_costs_nothing(
    watch: Watch, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At random points; the import it began may outlive it, and none runs beside that."""
    folder, chance = tmp_path / "Downloads", random.Random(4)
    for number in range(4):
        aged(folder / f"{number}.mbox", an_mbox(range(number * 300, (number + 1) * 300)))
    fed = watch(folder, apart=True)
    environ = command_environment(settings)
    for _ in range(4):
        feed_store(fed.stores).change_feed(
            fed.feed_id, lambda feed: replace(feed, state="waiting", holder=None)
        )
        process = subprocess.Popen(
            [PDPP, "feed", "run", fed.feed_id],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(chance.uniform(1.0, 9.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
    feed_store(fed.stores).change_feed(
        fed.feed_id, lambda feed: replace(feed, state="waiting", holder=None)
    )
    monkeypatch.setattr(feed_ledger, "SETTLED_AFTER_NS", 0)
    deadline = time.monotonic() + 120
    while fed.engine.run(fed.feed_id) is None and time.monotonic() < deadline:
        time.sleep(0.5)
    fed.run()
    assert fed.held() == {"messages": 1_200}
    assert fed.check().differences == []


def test_a_stop_ends_an_import_and_gives_the_feed_back(
    watch: Watch, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_ledger, "SETTLED_AFTER_NS", 0)
    folder = tmp_path / "Downloads"
    aged(folder / "mail.mbox", an_mbox(range(50)))
    fed = watch(folder, apart=True)
    fed.engine.run(fed.feed_id)  # it settles
    importer = ImportCommand.of(settings)
    engine = feed_engine(settings, fed.stores, importer)
    feed_store(fed.stores).change_feed(
        fed.feed_id, lambda feed: replace(feed, due_at_ns=fed.stores.clock())
    )
    engine.work()
    while not any(folder.parent.glob("data/feeds/*.lock")):
        time.sleep(0.01)
    stop_feeding(engine, importer)
    assert (fed.feed.state, fed.feed.holder) == ("waiting", None)


def test_what_an_import_says_beside_its_report_is_in_no_log(
    settings: Settings, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = aged(tmp_path / "mail.mbox", an_mbox(range(1)))
    with open_stores(settings, serving=False):
        STARTS.leave()  # the next one writes where this test looks
        report = ImportCommand.of(settings)("fee_1", WantedImport([path], tmp_path))
    STARTS.leave()
    assert report["imports"]
    assert capfd.readouterr().err == ""


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def test_an_import_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    hangs = hanging_import.__name__
    slow = ImportCommand(tmp_path / "feeds", {}, module=hangs, least_seconds=2.0)
    path = tmp_path / "mail.mbox"
    assert slow("fee_1", WantedImport([path], tmp_path)) == {"error": {"code": TOO_SLOW}}
    child = int((tmp_path / "child").read_text())
    until(lambda: not is_alive(child))
    with closing(new_file(tmp_path / "records.db")) as database:
        batches = FetchedBatches(slow, tmp_path, "mail", SqlFeeds(database, "owner"))
        with pytest.raises(FetchTrouble):  # nothing that was fetched counts as stored
            batches.take(a_feed(), "mail", path, RunResult())
    assert (
        slow("fee_1", WantedImport([path], tmp_path))["error"]["code"] == TOO_SLOW
    )  # its lock is free


def test_of_several_items_the_slow_one_costs_itself_only(watch: Watch, tmp_path: Path) -> None:
    folder, asked = tmp_path / "Downloads", list[list[str]]()
    for name in ("a", "slow", "z"):
        aged(folder / f"{name}.mbox", an_mbox(range(1)))
        os.utime(folder / f"{name}.mbox", (1, 1))

    def importer(feed_id: str, wanted: WantedImport) -> Mapping[str, Any]:
        del feed_id
        asked.append([each.stem for each in wanted.paths])
        if "slow" in asked[-1]:
            return {"error": {"code": TOO_SLOW}}
        return {"imports": []}

    fed = watch(folder)
    store = feed_store(fed.stores)
    clock = iter(range(fed.stores.clock(), fed.stores.clock() + 10**15, 10**14))
    records = NoRecords()
    staging = tmp_path / "staging"
    runs = FolderRuns(store, importer, records, staging, "1", lambda: next(clock), open_file)
    runs.run(fed.feed, retries=False)  # they settle
    first = runs.run(fed.feed, retries=False)
    assert (first.code, first.needs_owner, first.rejected) == (TOO_SLOW, False, 0)
    second = runs.run(replace(fed.feed, code=first.code), retries=False)
    assert (second.code, second.rejected) == (None, 1)
    assert asked == [["a", "slow", "z"], ["a"], ["slow"], ["z"]]
    states = {line.item: (line.state, line.code) for line in store.feed_items(fed.feed_id)}
    assert states["slow.mbox"] == ("rejected", TOO_SLOW)
    assert {states[f"{name}.mbox"] for name in "az"} == {("stored", None)}


def test_the_owner_s_log_says_when_a_feed_is_stale_and_when_it_is_well(
    watch: Watch, tmp_path: Path
) -> None:
    folder = tmp_path / "Downloads"
    folder.mkdir()
    fed = watch(folder)
    folder.rmdir()
    for _ in range(4):
        fed.run()
    folder.mkdir()
    fed.run()
    with fed.stores.authorization.read() as reader:
        events = [(row.event, dict(row.detail)) for row in reader.rows(AuditRow)]
    assert events == [
        ("feed.stale", {"feed": fed.feed_id, "rule": "failing", "code": "folder_gone"}),
        ("feed.recovered", {"feed": fed.feed_id}),
    ]


def test_a_link_in_the_place_of_the_folder_is_not_followed(
    watch: Watch, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write beside the folder could lead the feed to any folder of its owner."""
    folder, private = tmp_path / "shared" / "exports", tmp_path / "private"
    aged(private / "mail.mbox", an_mbox(range(5)))
    folder.mkdir(parents=True)
    fed = watch(folder)
    folder.rmdir()
    folder.symlink_to(private)
    assert settled(fed, monkeypatch).code == "folder_gone"
    # the link came after the look
    importer = ImportHere.over(fed.stores, settings)
    report = importer(fed.feed_id, WantedImport([folder / "mail.mbox"], folder))
    assert report.get("imports", []) == []
    assert fed.held() == {}


@pytest.mark.parametrize("trick", ["a folder on the way", "a link", "a pipe"])
def test_what_took_the_place_of_a_mail_since_the_look_is_not_followed(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trick: str
) -> None:
    """Whoever may deliver to a maildir could have other files of its owner read as mails."""
    private = mailbox.Maildir(tmp_path / "private")
    box = mailbox.Maildir(tmp_path / "Maildir")
    box.add(a_mail(0))
    fed = watch(tmp_path / "Maildir")
    settled(fed, monkeypatch)
    past_what_came(fed)
    new, seen = tmp_path / "Maildir" / "new", feed_runs.decide
    for number in (1, 2):
        box.add(a_mail(number))
    names = sorted(each.name for each in new.iterdir())
    for number, name in enumerate(names, 7):
        (tmp_path / "private" / "new" / name).write_bytes(a_mail(number).as_bytes())
    assert len(private) == len(names)

    def swapping(*asked: Any) -> Any:
        decision = seen(*asked)
        if decision.taken and trick == "a folder on the way":
            new.rename(tmp_path / "Maildir" / "before")
            new.symlink_to(tmp_path / "private" / "new")
        elif decision.taken:
            (new / names[0]).unlink()
            if trick == "a pipe":
                os.mkfifo(new / names[0])
            else:
                (new / names[0]).symlink_to(tmp_path / "private" / "new" / names[0])
        return decision

    monkeypatch.setattr(feed_runs, "decide", swapping)
    assert settled(fed, monkeypatch).code in (None, "export_not_recognized")
    with fed.stores.records.snapshot() as snapshot:
        (account,) = snapshot.connections()
        rows = snapshot.export(account.connection_id, "messages")
        assert {row.data["subject"] for row in rows} <= {f"Letter {number}" for number in range(3)}


@pytest.mark.parametrize(
    ("number", "code", "mails"), [(errno.ENOSPC, "internal_error", 1), (errno.EIO, None, 2)]
)
def test_a_disk_that_is_full_while_new_mails_are_copied_is_told(
    watch: Watch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    code: str | None,
    mails: int,
) -> None:
    """All of the maildir is read where a mail cannot be: of a full disk that would not tell."""
    box = mailbox.Maildir(tmp_path / "Maildir")
    box.add(a_mail(0))
    fed = watch(tmp_path / "Maildir")
    settled(fed, monkeypatch)
    past_what_came(fed)
    box.add(a_mail(1))
    staged = list[Path]()

    def fail(_mail: object, copy: BinaryIO) -> None:
        staged.append(Path(copy.name))
        raise OSError(number, "no copy")

    with monkeypatch.context() as during:
        during.setattr(feed_runs.shutil, "copyfileobj", fail)
        assert settled(fed, during).code == code
    assert staged
    assert not any(path.exists() for path in staged)
    assert fed.held() == {"messages": mails}
    assert (settled(fed, monkeypatch).code, fed.held()) == (None, {"messages": 2})


def a_vault(folder: Path, names: Iterable[str]) -> None:
    (folder / ".obsidian").mkdir(parents=True, exist_ok=True)
    for name in names:
        aged(folder / f"{name}.md", f"About {name}.".encode())


def noted(fed: Fed) -> set[str]:
    with fed.stores.records.snapshot() as snapshot:
        (account,) = [each.connection_id for each in snapshot.connections()]
        return {str(each.data["path"]) for each in snapshot.export(account, "notes")}


def test_notes_that_went_from_a_vault_go_where_that_is_followed(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was there before; never what another import brought into the account."""
    vault = tmp_path / "Vault"
    a_vault(vault, "abcd")
    fed = watch(vault, deletions=FOLLOW)
    settled(fed, monkeypatch)
    others = aged(tmp_path / "Other" / "of another.md", b"Other")
    (account,) = fed.feed.connection_ids
    ImportHere.over(fed.stores, Settings(data_dir=tmp_path / "data", time_zone="UTC"))(
        "fee_other", WantedImport([others], others.parent, account)
    )
    (vault / "a.md").rename(vault / "other.md")
    (vault / "b.md").unlink()
    result = settled(fed, monkeypatch)
    assert (result.code, result.records_new, result.records_deleted) == (None, 1, 2)
    assert noted(fed) == {"c.md", "d.md", "other.md", "of another.md"}
    assert [each.reason for each in fed.check().differences] == ["extra 1"]
    assert not fed.check().is_short
    # a note that cannot be read keeps all that was here
    aged(vault / "c.md", b"\0" * 9 * 1024 * 1024)
    (vault / "d.md").unlink()
    assert settled(fed, monkeypatch).records_deleted == 0
    aged(vault / "c.md", b"Again")
    assert settled(fed, monkeypatch).records_deleted == 1
    assert noted(fed) == {"c.md", "other.md", "of another.md"}


def test_a_vault_that_is_nearly_emptied_asks_its_owner_first(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, names = tmp_path / "Vault", [f"n{number}" for number in range(MOST_GONE + 2)]
    a_vault(vault, names)
    fed = watch(vault, deletions=FOLLOW)
    settled(fed, monkeypatch)
    for name in names[1:]:
        (vault / f"{name}.md").unlink()
    fed.engine.run(fed.feed_id)
    looked = fed.engine.run(fed.feed_id)
    assert looked is not None
    assert (looked.code, looked.needs_owner, looked.records_deleted) == (EMPTIED, True, 0)
    assert len(noted(fed)) == len(names)
    feed_store(fed.stores).change_feed(fed.feed_id, lambda feed: replace(feed, state="waiting"))
    asked = fed.run()
    assert (asked.code, asked.records_deleted) == (None, len(names) - 1)
    assert noted(fed) == {"n0.md"}
    assert fed.check().differences == []


@dataclass(slots=True)
class Meanwhile(ImportHere):
    """An import during which something happens once."""

    happens: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    ends_early: bool = False
    refused_by: Callable[[], object] | None = None

    def __call__(self, feed_id: str, wanted: WantedImport) -> Mapping[str, Any]:
        while self.happens:
            self.happens.pop()()
        report = ImportHere.__call__(self, feed_id, wanted)
        if self.ends_early:
            self.ends_early = False
            return {}
        if self.refused_by is not None:
            self.refused_by()
            self.refused_by = None
            return {**report, "errors": [{"path": str(wanted.within), "code": "export_truncated"}]}
        return report


def test_a_vault_that_changes_or_vanishes_while_it_is_read_loses_nothing(
    watch: Watch, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, away = tmp_path / "Vault", tmp_path / "unmounted"
    a_vault(vault, "abc")
    fed = watch(vault, deletions=FOLLOW)
    settled(fed, monkeypatch)
    importer = Meanwhile(settings.data_dir / FOLDER, {}, fed.stores)
    fed.engine = feed_engine(settings, fed.stores, importer)
    importer.happens = [(vault / "a.md").unlink]
    aged(vault / "d.md", b"About d")
    assert settled(fed, monkeypatch).records_deleted == 0
    assert settled(fed, monkeypatch).records_deleted == 1
    aged(vault / "e.md", b"About e")
    importer.ends_early = True  # it stores, and nobody learns that it did
    aged(vault / "lost.md", b"About it")
    assert settled(fed, monkeypatch).code == "import_interrupted"
    (vault / "lost.md").unlink()
    assert "lost.md" in noted(fed)
    settled(fed, monkeypatch)
    assert "lost.md" not in noted(fed)
    with (settings.data_dir / FOLDER / f"{fed.feed_id}.names").open("ab") as names:
        names.write("cin_half/notes/a\nxé".encode()[:-1])  # another was killed while it wrote
    aged(vault / "brief.md", b"About it")
    importer.refused_by = (vault / "brief.md").unlink  # it stores, is refused, and all is another
    settled(fed, monkeypatch)
    assert "brief.md" in noted(fed)
    settled(fed, monkeypatch)
    assert "brief.md" not in noted(fed)
    aged(vault / "f.md", b"About f")
    importer.happens = [lambda: vault.rename(away)]
    vanished = settled(fed, monkeypatch)
    assert (vanished.code, vanished.needs_owner) == ("folder_gone", False)
    assert fed.run().code == "folder_gone"
    away.rename(vault)
    settled(fed, monkeypatch)
    assert noted(fed) == {"b.md", "c.md", "d.md", "e.md", "f.md"}
    assert fed.check().differences == []


def test_a_rotating_maildir_is_read_whole_and_once(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mails are delivered, read, marked and cleared out between looks and while it is read."""
    monkeypatch.setattr(feed_ledger, "SETTLED_AFTER_NS", 0)
    box, draw = mailbox.Maildir(tmp_path / "Maildir"), random.Random(7)
    keys = [box.add(a_mail(number)) for number in range(5)]
    fed = watch(tmp_path / "Maildir")
    for number in range(5, 40):
        keys.append(box.add(a_mail(number)))
        for key in draw.sample(keys, 2):
            mail = box.get_message(key)
            mail.set_subdir(draw.choice(["cur", "new"]))
            mail.set_flags(draw.choice(["", "S", "FS"]))
            box[key] = mail
        if number % 5 == 0:
            settled(fed, monkeypatch)
            box.discard(keys.pop(draw.randrange(len(keys))))
    settled(fed, monkeypatch)
    assert fed.held() == {"messages": 40}
    assert not fed.check().is_short


def test_exports_on_a_drive_that_vanishes_while_they_are_read_are_no_refused_ones(
    watch: Watch, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, away = tmp_path / "Downloads", tmp_path / "unmounted"
    aged(folder / "a.mbox", an_mbox(range(5)))
    fed = watch(folder)
    settled(fed, monkeypatch)
    importer = Meanwhile(settings.data_dir / FOLDER, {}, fed.stores)
    fed.engine = feed_engine(settings, fed.stores, importer)
    aged(folder / "b.mbox", an_mbox(range(5, 9)))

    def unmounted() -> None:
        folder.rename(away)
        folder.mkdir()

    importer.happens = [unmounted]
    vanished = settled(fed, monkeypatch)
    assert (vanished.code, vanished.needs_owner, vanished.rejected) == ("folder_gone", False, 0)
    folder.rmdir()
    away.rename(folder)
    fed.engine.run(fed.feed_id)  # by itself: nobody asks
    assert fed.held() == {"messages": 9}
    assert fed.check().differences == []
