"""`python -m bench.fed_mailbox [--edits N] [--only mails|edits] [--server NAME]`: a mailbox.

Against Debian's dovecot (root, `dovecot-imapd`), or its courier, which tells nothing of changes
(no CONDSTORE; `.ci/courier` unpacks it), or over JMAP against its cyrus (`.ci/cyrus`), with `pdpp`
as processes that follow it:

  mails  4,150 public mails: imported as one mbox by one server, fetched over IMAP by another. The
         records of both are compared by stream, key and value, and what the first one then fetches
         of the same account has to be nothing new. Then what an idle poll costs, counted by a wire
         that stands between.
  edits  random edits (new, move, delete, flags, rename of a folder, a folder made anew) in bursts;
         in each burst runs are cut off by the wire and killed with signal 9. Then `pdpp feed check`
         has to find no difference, and a counter that knows nothing of feeds (imaplib on one side,
         `pdpp export` on the other) the same mails with the same marks.

It ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import imaplib
import mailbox as mailboxes
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from bench.fed_terminal import FedTerminal
from bench.samples import mailbox
from bench.site import Site
from personal_server.app.feeding import feed_store
from personal_server.app.stores import open_stores
from personal_server.settings import Settings
from tests.courier import CourierServer, courier_server
from tests.cyrus import CyrusServer, cyrus_server
from tests.dovecot import PASSWORD, USER, MailServer, mail_server

JUNK = "Junk"
BURST = 100
Server = MailServer | CourierServer | CyrusServer
Opened = Callable[[], AbstractContextManager[Server]]
SERVERS: dict[str, Opened] = {
    "dovecot": mail_server,
    "courier": courier_server,
    "cyrus": cyrus_server,
}
OF_ITS_PLACE = ("mailbox", "labels", "labelled", "size_bytes", "blob_ref")
"""Fields that an mbox has other values of: folder and marks, and what counts the ends of lines,
which are two signs on the way of a mail, also within an attached text."""
ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
"""What an mbox writes before such a line, and is in no mail."""
MARKS = {"Unread": r"\Seen", "Starred": r"\Flagged"}


@dataclass
class Wire:
    """A wire between `pdpp` and the mail server: it counts, and may be cut.

    Shapes: `left` is how many bytes the server may still say before it is cut.
    """

    target: int
    received: int = 0
    sent: int = 0
    commands: int = 0
    left: int | None = None
    port: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        """Listen, until the program ends."""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> None:
        """Count anew."""
        self.received = self.sent = self.commands = 0

    def _accept(self) -> None:
        while True:
            near, _ = self._listener.accept()
            far = socket.create_connection(("127.0.0.1", self.target))
            threading.Thread(target=self._carry, args=(near, far, True), daemon=True).start()
            threading.Thread(target=self._carry, args=(far, near, False), daemon=True).start()

    def _carry(self, begin: socket.socket, end: socket.socket, is_asking: bool) -> None:
        with suppress(OSError):
            while chunk := begin.recv(4_096):
                if is_asking:
                    self.sent += len(chunk)
                    self.commands += chunk.count(b"\r\n")
                else:
                    self.received += len(chunk)
                    if self.left is not None:
                        self.left -= len(chunk)
                        if self.left < 0:
                            break
                end.sendall(chunk)
        for each in (begin, end):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


@dataclass
class Owner(FedTerminal):
    """The owner at a terminal, with one server's data."""

    wire: Wire
    feed: str = USER

    def follow(self, *options: str) -> None:
        """Add the account."""
        place = ["--host", "127.0.0.1", "--port", str(self.wire.port)]
        self.pdpp("feed", "add-mailbox", USER, *place, *options, typed=f"{PASSWORD}\n")

    def run(self) -> dict[str, Any]:
        """Run the feed, once an import that outlived a killed one has ended."""
        while True:
            result = self.pdpp("feed", "run", self.feed)["result"]
            if result is not None:
                return result
            time.sleep(0.2)

    def killed(self, after_seconds: float) -> None:
        """Run the feed, and end it with signal 9."""
        process = subprocess.Popen(
            self.site.command("pdpp", "feed", "run", self.feed),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        with suppress(subprocess.TimeoutExpired):
            process.wait(after_seconds)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.take_back()

    def take_back(self) -> None:
        """Wait for no lease of a process that was killed: two minutes each would be all we see."""
        settings = Settings(data_dir=self.site.data_dir)
        with open_stores(settings, serving=False) as stores:
            store = feed_store(stores)
            for each in store.feeds():
                store.change_feed(each.feed_id, lambda e: replace(e, state="waiting", holder=None))

    def records(self) -> dict[tuple[str, str], dict[str, Any]]:
        """All records, by stream and key."""
        return {(line["stream"], line["key"]): line["data"] for line in self.lines()}


@dataclass
class JmapOwner(Owner):
    """One whose account is followed over JMAP."""

    def follow(self, *options: str) -> None:
        """Add the account."""
        place = [f"http://127.0.0.1:{self.wire.port}/", "--user", USER]
        self.pdpp("feed", "add-jmap", *place, *options, typed=f"{PASSWORD}\n")


def owner_of(folder: Path, server: Server) -> Owner:
    """The owner of an account there."""
    if isinstance(server, CyrusServer):
        return JmapOwner(Site(folder), Wire(server.http))
    return Owner(Site(folder), Wire(server.port))


def signed_in(server: Server) -> imaplib.IMAP4:
    """The owner's own mail program."""
    client = imaplib.IMAP4("127.0.0.1", server.port)
    client.login(USER, PASSWORD)
    return client


def main() -> int:
    """Both; 1 where anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--edits", type=int, default=1_000)
    parser.add_argument("--only", choices=("mails", "edits"))
    parser.add_argument("--server", choices=SERVERS, default="dovecot")
    options = parser.parse_args()
    faults, opened = 0, SERVERS[options.server]
    with tempfile.TemporaryDirectory() as name:
        if options.only != "edits":
            faults += _mails(Path(name) / "mails", opened)
        if options.only != "mails":
            faults += _edits(Path(name) / "edits", opened, options.edits)
    return 1 if faults else 0


def _mails(folder: Path, opened: Opened) -> int:
    folder.mkdir()
    sample = mailbox()
    box = mailboxes.mbox(sample.path)
    with opened() as server:
        client = signed_in(server)
        for key in box.keys():  # noqa: SIM118 (it is no mapping)
            raw = re.sub(rb"\r?\n", b"\r\n", ESCAPED.sub(rb"\1", box.get_bytes(key)))
            client.append("INBOX", "", "", raw)
        client.logout()
        imported, fed = owner_of(folder / "imported", server), owner_of(folder / "fed", server)
        imported.pdpp("import", str(sample.path))
        fed.follow()
        begun = time.monotonic()
        first = fed.run()
        seconds = time.monotonic() - begun
        print(f"{len(box)} mails of {sample.title}")
        wire = fed.wire
        mail_bytes = sum(len(box.get_bytes(key)) for key in box.keys())  # noqa: SIM118
        print(
            f"first sync: {first['seen']} seen, {first['records_new']} new records,"
            f" {seconds:.0f} s, {first['commands']} commands,"
            f" {wire.received + wire.sent} bytes on the wire for {mail_bytes} of mail"
        )
        ours, theirs = (_with_threads(each.records()) for each in (imported, fed))
        other = [
            key for key in ours.keys() & theirs.keys() if _told(ours[key]) != _told(theirs[key])
        ]
        alone = len(ours.keys() - theirs.keys()), len(theirs.keys() - ours.keys())
        print(
            f"import of the mbox: {len(ours)} records; by the feed: {len(theirs)}; only by either:"
            f" {alone}; other values: {len(other)}"
        )
        imported.follow("--connection", "E-mail")
        after = imported.run()
        print(f"fed after the import: {after['records_new']} new records of {after['seen']} mails")
        wire.reset()
        idle = fed.run()
        print(
            f"idle poll, all compared as its owner asks: {idle['commands']} commands,"
            f" {wire.received + wire.sent} bytes (its receipt: {idle['commands']},"
            f" {idle['size_bytes']})"
        )
        checked = fed.pdpp("feed", "check", USER)
        print(
            f"feed check: {len(checked['differences'])} differences of {checked['records']} records"
        )
    return sum(alone) + len(other) + after["records_new"] + len(checked["differences"])


def _with_threads(
    records: dict[tuple[str, str], dict[str, Any]],
) -> dict[tuple[str, str], dict[str, Any]]:
    """Each thread by the first of its records: where several turn out to be one, the id that stays
    is that of those that were stored already, and so another where records come in batches.
    """
    first: dict[str, str] = {}
    for (_, key), data in sorted(records.items()):
        if "thread_id" in data:
            first.setdefault(data["thread_id"], key)
    return {
        name: data | ({"thread_id": first[data["thread_id"]]} if "thread_id" in data else {})
        for name, data in records.items()
    }


def _told(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in OF_ITS_PLACE}


@dataclass
class Account:
    """The account as its owner changes it."""

    server: Server
    draw: random.Random
    folders: list[str] = field(default_factory=list[str])
    written: int = 0
    renamed: int = 0
    done: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        """Its folders, by the names that the server gives them."""
        named = ("Work", "Old", "Trips", JUNK)
        self.folders = ["INBOX", *(f"{self.server.root}{each}" for each in named)]

    @property
    def edited(self) -> list[str]:
        """Folders that are renamed and made anew."""
        return [each for each in self.folders if each not in ("INBOX", self.folders[-1])]

    def edit(self, client: imaplib.IMAP4) -> None:
        """Do one thing."""
        acts = [self.write] * 6 + [self.mark] * 4 + [self.move] * 3 + [self.delete] * 2
        acts += [self.rename] if self.draw.random() < 0.3 else []
        acts += [self.make_anew] if self.draw.random() < 0.3 else []
        act = self.draw.choice(acts)
        act(client)
        self.done[act.__name__] = self.done.get(act.__name__, 0) + 1

    def write(self, client: imaplib.IMAP4) -> None:
        """A mail comes."""
        self.written += 1
        mail = EmailMessage()
        mail["From"], mail["To"] = "Bob <bob@example.org>", USER
        mail["Subject"] = f"Letter {self.written}"
        mail["Message-ID"] = f"<letter-{self.written}@example.org>"
        mail["Date"] = "Mon, 02 Jan 2023 10:00:00 +0000"
        mail.set_content("What happened. " * self.draw.randrange(1, 400))
        client.append(
            self.draw.choice(self.folders), "", "", mail.as_bytes().replace(b"\n", b"\r\n")
        )

    def _some(self, client: imaplib.IMAP4) -> bytes | None:
        client.select(self.draw.choice(self.folders))
        _, (found,) = client.uid("SEARCH", "ALL")
        uids = (found or b"").split()
        return self.draw.choice(uids) if uids else None

    def mark(self, client: imaplib.IMAP4) -> None:
        """A mail is read, starred, or neither any more."""
        if uid := self._some(client):
            how = self.draw.choice(("+FLAGS", "-FLAGS"))
            client.uid("STORE", uid.decode(), how, f"({self.draw.choice(list(MARKS.values()))})")

    def move(self, client: imaplib.IMAP4) -> None:
        """To another folder."""
        if uid := self._some(client):
            client.uid("COPY", uid.decode(), self.draw.choice(self.folders))
            self._expunge(client, uid)

    def delete(self, client: imaplib.IMAP4) -> None:
        """For good."""
        if uid := self._some(client):
            self._expunge(client, uid)

    def _expunge(self, client: imaplib.IMAP4, uid: bytes) -> None:
        client.uid("STORE", uid.decode(), "+FLAGS", r"(\Deleted)")
        client.expunge()

    def rename(self, client: imaplib.IMAP4) -> None:
        """A folder gets another name."""
        old = self.draw.choice(self.edited)
        self.renamed += 1
        new = f"{self.server.root}Folder{self.renamed}"
        client.select("INBOX")
        client.rename(old, new)
        self.folders[self.folders.index(old)] = new

    def make_anew(self, client: imaplib.IMAP4) -> None:
        """A folder with the same name and mails, and another UIDVALIDITY."""
        name, aside = self.draw.choice(self.edited), f"{self.server.root}Aside"
        client.select("INBOX")
        client.rename(name, aside)
        client.create(name)
        client.select(aside)
        client.copy("1:*", name)
        client.select("INBOX")
        client.delete(aside)

    def mails(self) -> dict[str, frozenset[str]]:
        """What lies there outside of junk: subject, and which marks it has."""
        found: dict[str, frozenset[str]] = {}
        client = signed_in(self.server)
        for folder in self.folders:
            _, (count,) = client.select(folder, readonly=True)
            if folder == self.folders[-1] or count == b"0":
                continue
            _, answers = client.fetch("1:*", "(FLAGS BODY.PEEK[HEADER.FIELDS (SUBJECT)])")
            for each in answers:
                if isinstance(each, tuple):
                    subject = each[1].decode().partition(":")[2].strip()
                    flags = each[0].decode()
                    found[subject] = frozenset(
                        label
                        for label, flag in MARKS.items()
                        if (flag in flags) != (label == "Unread")
                    )
        client.logout()
        return found


def _edits(folder: Path, opened: Opened, edits: int) -> int:
    folder.mkdir()
    draw, faults, cuts, kills = random.Random(35), 0, 0, 0
    with opened() as server:
        account = Account(server, draw)
        client = signed_in(server)
        for name in account.folders:
            client.create(name)
        for _ in range(200):
            account.write(client)
        client.logout()
        owner = owner_of(folder / "site", server)
        owner.follow("--deletions", "follow")
        for begin in range(0, edits, BURST):
            for part in range(4):  # the account goes on changing between runs that fail
                client = signed_in(server)
                for _ in range(begin + part * BURST // 4, begin + (part + 1) * BURST // 4):
                    account.edit(client)
                client.logout()
                if part % 2:
                    owner.wire.left = draw.randrange(300, 60_000)
                    cuts += owner.run()["code"] is not None
                    owner.wire.left = None
                else:
                    owner.killed(draw.uniform(0.8, 4.0))
                    kills += 1
            codes = [owner.run()["code"] for _ in range(3)]  # two looks find what is gone
            checked = owner.pdpp("feed", "check", USER)
            there = account.mails()
            here = {
                data["subject"]: frozenset(data["labels"]) & MARKS.keys()
                for (stream, _), data in owner.records().items()
                if stream == "messages"
            }
            wrong = len(checked["differences"]) + sum(
                there.get(each) != here.get(each) for each in there.keys() | here.keys()
            )
            faults += wrong
            print(
                f"{begin + BURST} edits, {cuts} cuts, {kills} kills: {len(there)} mails there,"
                f" {len(here)} here; check: {len(checked['differences'])} differences; wrong:"
                f" {wrong} (the last runs: {codes})",
                flush=True,
            )
    print(f"edits: {account.done}")
    return faults


if __name__ == "__main__":
    sys.exit(main())
