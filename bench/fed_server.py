"""`python -m bench.fed_server [--mails N] [--idle SECONDS] [--arrivals N]`: what following costs.

Against Debian's dovecot (root, `dovecot-imapd`), with `pdpp serve` as a process:

  memory  a mailbox of N small mails (100,000) is fetched for the first time, beside five that
          are followed: the most that the server with all processes that it started held beyond
          the most that these held at rest, while the five were polled.  Then what an idle poll of
          so many mails costs.
  idle    five mailboxes, polled every minute and waited at with IDLE: processor time of the
          server and of all that it started, also of what ended meanwhile; commands and bytes of
          a poll.
  arrival N mails (20) come one by one: seconds from the end of APPEND to the result of a tool
          over `/mcp` that has the mail.

Memory is proportional (PSS), so that pages that processes share count once.
"""

from __future__ import annotations

import argparse
import imaplib
import json
import os
import pwd
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median

from bench.clients import HostedCaller
from bench.fed_mailbox import Owner, Wire
from bench.process_family import family, held_bytes, share_bytes
from bench.site import Site
from personal_server.app.feed_imports import ImportCommand
from personal_server.app.feeding import feed_engine, feed_store
from personal_server.app.stores import open_stores
from personal_server.feeds.feed_runs import RunResult
from personal_server.settings import Settings
from personal_server.storage.sql.care.feed_mails import SqlFeedMails
from tests.dovecot import PASSWORD, USER, MailServer, mail_server

BOUND_BYTES, BOUND_SHARE = 40 * 1024**2, 0.01
MOST_COMMANDS, MOST_BYTES = 20, 50_000
SETTLING_SECONDS, LOOK_SECONDS = 60, 0.2
FEEDS, FEW = 5, 100
ARRIVED_SECONDS, ASKED_EVERY_SECONDS = 10.0, 0.2


def main() -> int:
    """All three; 1 past a bound."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mails", type=int, default=100_000)
    parser.add_argument("--idle", type=int, default=600)
    parser.add_argument("--arrivals", type=int, default=20)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="bench-fed-") as name:
        if options.mails:
            wrong += _memory(Path(name) / "memory", options.mails)
        if options.idle:
            wrong += _idle(Path(name) / "idle", options.idle)
        if options.arrivals:
            wrong += _arrivals(Path(name) / "arrivals", options.arrivals)
    return 1 if wrong else 0


def _memory(folder: Path, mails: int) -> int:
    folder.mkdir()
    with mail_server() as server:
        _by_user(server)
        _fill(server, "all", mails)
        with imaplib.IMAP4("127.0.0.1", server.port) as client:  # it reads all once for its index
            client.login("all@example.org", PASSWORD)
            client.select("INBOX", readonly=True)
            client.fetch("1:*", "(RFC822.SIZE)")
        owner = Owner(Site(folder / "site"), Wire(server.port))
        owner.pdpp("feed", "list")  # makes the data directory
        with owner.site.serving() as running:
            time.sleep(SETTLING_SECONDS)
            bare = held_bytes(running.pid)
            for number in range(FEEDS):
                _fill(server, f"box{number}", FEW)
                _follow(owner, f"box{number}")
            while _mails(owner) < FEEDS * FEW:
                time.sleep(LOOK_SECONDS)
            time.sleep(SETTLING_SECONDS)
            idle = _most_at_rest(running.pid)
            print(f"without feeds: {bare / 2**20:.0f} MB; {FEEDS} at rest: {idle / 2**20:.0f} MB")
            _follow(owner, "all")
            most, most_alone, seen = idle, 0, 0
            begun = told = time.monotonic()
            while seen < mails + FEEDS * FEW:
                time.sleep(LOOK_SECONDS)
                most = max(most, held_bytes(running.pid))
                most_alone = max(most_alone, share_bytes(running.pid))
                if time.monotonic() - told > 20:
                    told = time.monotonic()
                    seen = _mails(owner)
                    print(
                        f"{seen - FEEDS * FEW} of {mails} mails, {told - begun:.0f} s"
                        f" ({_state(owner, 'all@example.org')}): server"
                        f" {most_alone / 2**20:.0f} MB, with all that it started"
                        f" {most / 2**20:.0f} MB at most",
                        flush=True,
                    )
        polled = _poll(owner, "all@example.org")
    print(
        f"{mails} mails: server and all that it started grew by {(most - idle) / 2**20:.0f} MB at"
        f" most beside {FEEDS} feeds, {(most - bare) / 2**20:.0f} MB beyond a server without any"
    )
    print(f"an idle poll of it: {polled.commands} commands, {polled.size_bytes} bytes")
    is_polite = polled.commands <= MOST_COMMANDS and polled.size_bytes <= MOST_BYTES
    return most - idle > BOUND_BYTES or not is_polite


def _most_at_rest(pid: int) -> int:
    """What a server and all that it started hold while each feed is polled once or twice."""
    most, end = 0, time.monotonic() + 1.5 * SETTLING_SECONDS
    while time.monotonic() < end:
        most = max(most, held_bytes(pid))
        time.sleep(LOOK_SECONDS)
    return most


def _poll(owner: Owner, name: str) -> RunResult:
    """A run that nobody asked for, in this process."""
    settings = Settings(data_dir=owner.site.data_dir)
    owner.take_back()
    with open_stores(settings, serving=False) as stores:
        row = next(each for each in feed_store(stores).feeds() if each.name == name)
        found = feed_engine(settings, stores, ImportCommand.of(settings)).run(row.feed_id)
    return found or RunResult()


def _idle(folder: Path, seconds: int) -> int:
    folder.mkdir()
    with mail_server() as server:
        _by_user(server)
        wire = Wire(server.port)
        owner = Owner(Site(folder / "site"), wire)
        for number in range(FEEDS):
            _fill(server, f"box{number}", FEW)
            _follow(owner, f"box{number}")
            owner.pdpp("feed", "run", f"box{number}@example.org")
        with owner.site.serving() as running:
            time.sleep(SETTLING_SECONDS + 60)
            wire.reset()
            before = _processor_seconds(running.pid)
            time.sleep(seconds)
            used = _processor_seconds(running.pid) - before
        polls = FEEDS * seconds / 60
        share = used / seconds
        carried = wire.sent + wire.received
    states = [(each["state"], each["code"]) for each in owner.pdpp("feed", "list")]
    print(
        f"{FEEDS} mailboxes, {seconds} s: {share:.2%} of a core, {used / polls * 1000:.0f} ms a"
        f" poll; {wire.commands / polls:.1f} commands and {carried / polls:.0f} bytes"
        f" a poll ({states})"
    )
    return share > BOUND_SHARE


def _arrivals(folder: Path, count: int) -> int:
    folder.mkdir()
    took: list[float] = []
    with mail_server() as server, imaplib.IMAP4("127.0.0.1", server.port) as client:
        client.login(USER, PASSWORD)
        owner = Owner(Site(folder / "site"), Wire(server.port))
        client.append("INBOX", "", "", _letter(0))
        owner.follow()
        owner.run()
        token, _ = owner.site.grant("arrivals", "--source", "mail")
        with owner.site.serving():
            caller = HostedCaller(owner.site.origin, token)
            for number in range(1, count + 1):
                time.sleep(ARRIVED_SECONDS)  # as mail comes, not at once behind the one before
                client.append("INBOX", "", "", _letter(number))
                came = time.monotonic()
                while f"Letter {number}." not in _newest(caller):
                    time.sleep(ASKED_EVERY_SECONDS)
                took.append(time.monotonic() - came)
    print(
        f"{count} mails, one by one: visible over /mcp after {median(took):.1f} s (median),"
        f" {max(took):.1f} s at most"
    )
    return median(took) > ARRIVED_SECONDS


def _letter(number: int) -> bytes:
    return (
        f"From: Bob <bob@example.org>\r\nTo: {USER}\r\nSubject: Letter {number}.\r\n"
        f"Message-ID: <{number}.arrival@example.org>\r\n"
        f"Date: Mon, 02 Jan 2023 10:{number // 60:02}:{number % 60:02} +0000\r\n\r\nHello.\r\n"
    ).encode()


def _newest(caller: HostedCaller) -> str:
    """The newest mails, as a tool shows them."""
    return json.dumps(caller.call("query_records", {"stream": "messages", "limit": 3}))


def _follow(owner: Owner, user: str) -> None:
    place = ["--host", "127.0.0.1", "--port", str(owner.wire.port)]
    owner.pdpp(
        "feed",
        "add-mailbox",
        f"{user}@example.org",
        *place,
        "--connection",
        user,
        typed=f"{PASSWORD}\n",
    )


def _by_user(server: MailServer) -> None:
    """Give each user a mailbox."""
    server.stop()
    config = server.folder / "dovecot.conf"
    config.write_text(config.read_text().replace("/mail:LAYOUT", "/mail/%n:LAYOUT"))
    server.start()


def _fill(server: MailServer, user: str, mails: int) -> None:
    nobody = pwd.getpwnam("nobody")
    place = server.folder / "mail" / user
    for name in ("cur", "new", "tmp"):
        (place / name).mkdir(parents=True)
    for number in range(mails):
        text = (
            f"From: Bob <bob@example.org>\r\nTo: {user}@example.org\r\nSubject: Letter {number}\r\n"
            f"Message-ID: <{number}.{user}@example.org>\r\n"
            f"Date: Mon, 02 Jan 2023 10:{number // 60 % 60:02}:{number % 60:02} +0000\r\n\r\n"
            f"What happened on day {number}.\r\n"
        )
        # dovecot hashes the last characters of a name: what differs has to stand there
        name = f"{1_700_000_000 + number}.host.{number:07}:2,S"
        (place / "cur" / name).write_bytes(text.encode())
    for folder, _, files in os.walk(place):
        for name in (folder, *(os.path.join(folder, each) for each in files)):
            os.chown(name, nobody.pw_uid, nobody.pw_gid)


def _mails(owner: Owner) -> int:
    """How many the ledger knows."""
    with open_stores(Settings(data_dir=owner.site.data_dir), serving=False) as stores:
        mails = SqlFeedMails(stores.database, stores.configuration.subject_id)
        rows = feed_store(stores).feeds()
        return sum(sum(mails.mail_counts(row.feed_id).values()) for row in rows)


def _state(owner: Owner, name: str) -> str:
    """What a feed does now, and what failed."""
    with open_stores(Settings(data_dir=owner.site.data_dir), serving=False) as stores:
        row = next(each for each in feed_store(stores).feeds() if each.name == name)
    return row.state if row.code is None else f"{row.state}, {row.code}"


def _processor_seconds(pid: int) -> float:
    """Of a process and of all its children, also of those that ended."""
    ticks = 0
    for each in family(pid):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
