"""Servers that speak IMAP in their own way, as reports about other programs tell of them."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from personal_server.settings import Settings
from personal_server.storage.sql.care.feed_mails import SqlFeedMails
from server.tests.app.test_feeding import Fed, a_mail
from server.tests.app.test_mailbox_runs import FeedOf, by_itself, feed_of, mails_held
from tests.dovecot import PASSWORD

__all__ = ["feed_of"]
_UIDS = re.compile(rb"UID FETCH ([\d:,]+) ")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", time_zone="UTC")


@dataclass(slots=True)
class OddServer:
    """One folder of mails by UID, and how this server says things.

    Shapes: `bodies` is what it answers in the place of a body; `listed` its folders as it lists
        them, `opened` what it can open; without `tells_next` there is no UIDNEXT.
    """

    mails: dict[int, bytes]
    bodies: Mapping[int, bytes | None] = field(default_factory=dict[int, bytes | None])
    listed: tuple[bytes, ...] = (b'"INBOX"',)
    opened: frozenset[bytes] = frozenset({b"INBOX"})
    tells_next: bool = True
    port: int = field(default=0, init=False)
    asked: list[bytes] = field(default_factory=list[bytes], init=False)

    def answer(self, command: bytes) -> Iterator[bytes]:
        """Untagged lines; the last may be a refusal."""
        word = command.split()[0].upper()
        if word == b"CAPABILITY":
            yield b"* CAPABILITY IMAP4rev1\r\n"
        elif word == b"LIST":
            yield from (b'* LIST (\\HasNoChildren) "/" ' + each + b"\r\n" for each in self.listed)
        elif word in (b"STATUS", b"EXAMINE"):
            name = command.partition(b'"')[2].rpartition(b'"')[0]
            if name not in self.opened:
                yield b"NO there is none"
                return
            count = len(self.mails) if name == b"INBOX" else 0
            marks = b"UIDVALIDITY 7"
            next_uid = max(self.mails, default=0) + 1
            if word == b"STATUS":
                marks += b" UIDNEXT %d" % next_uid if self.tells_next else b""
                yield b'* STATUS "%s" (MESSAGES %d %s)\r\n' % (name, count, marks)
                return
            yield b"* %d EXISTS\r\n* OK [%s] x\r\n" % (count, marks)
            if self.tells_next:
                yield b"* OK [UIDNEXT %d] x\r\n" % next_uid
        elif command.upper().startswith(b"UID SEARCH"):
            yield b"* SEARCH %s\r\n" % b" ".join(b"%d" % uid for uid in self.mails)
        elif command.upper().startswith(b"UID FETCH"):
            yield from self._fetched(command)

    def _fetched(self, command: bytes) -> Iterator[bytes]:
        match = _UIDS.match(command)
        assert match is not None
        for number, (uid, raw) in enumerate(self.mails.items(), 1):
            if not any(_within(uid, each) for each in match[1].split(b",")):
                continue
            if b"BODY.PEEK[]" not in command:
                yield b"* %d FETCH (UID %d FLAGS () RFC822.SIZE %d)\r\n" % (number, uid, len(raw))
            elif uid in self.bodies:
                yield self.bodies[uid] or b""
            else:
                yield b"* %d FETCH (UID %d BODY[] {%d}\r\n%s)\r\n" % (number, uid, len(raw), raw)


def _within(uid: int, part: bytes) -> bool:
    first, _, last = part.partition(b":")
    return int(first) <= uid <= int(last or first)


@contextmanager
def serving(server: OddServer) -> Generator[OddServer]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.port = listener.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    wire, _ = listener.accept()
                    with suppress(OSError, ValueError), wire, wire.makefile("rb") as lines:
                        wire.sendall(b"* OK hello\r\n")
                        for line in lines:
                            tag, _, command = line.strip().partition(b" ")
                            server.asked.append(command)
                            answers = list(server.answer(command)) if command else []
                            refused = bool(answers) and answers[-1].startswith(b"NO ")
                            end = answers.pop() if refused else b"OK done"
                            wire.sendall(b"".join(answers) + tag + b" " + end + b"\r\n")

        threading.Thread(target=serve, daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


def a_raw(number: int) -> bytes:
    return a_mail(number).as_bytes().replace(b"\n", b"\r\n")


def held_by(fed: Fed) -> int:
    return sum(fed.held().values())


def codes_of(fed: Fed) -> dict[int, str | None]:
    mails = SqlFeedMails(fed.stores.database, fed.stores.configuration.subject_id)
    return {row.uid: row.code for row in mails.mails_of(fed.feed_id, "INBOX", 0, 99)}


@pytest.mark.parametrize(
    "body",
    [
        b"* 2 FETCH (UID 2 BODY[] NIL)\r\n",
        b'* 2 FETCH (UID 2 BODY[] "")\r\n',
        b"* 2 FETCH (FLAGS ())\r\n",
        b"",
    ],
)
def test_a_mail_that_a_server_does_not_give_is_named_and_costs_itself_only(
    feed_of: FeedOf, body: bytes
) -> None:
    with serving(OddServer({n: a_raw(n) for n in (1, 2, 3)}, {2: body})) as server:
        fed = feed_of(f"imap://ada@127.0.0.1:{server.port}", PASSWORD)
        first = by_itself(fed)
        assert (first.code, first.new, first.rejected) == (None, 2, 1)
        assert fed.held() == {"messages": 2}
        assert codes_of(fed) == {1: None, 2: "unreadable_mail", 3: None}
        server.asked.clear()
        again = by_itself(fed)
        assert (again.code, again.new, again.rejected) == (None, 0, 0)
        assert not [each for each in server.asked if b"BODY.PEEK[]" in each]


def test_mails_are_found_where_a_server_tells_no_next_number(feed_of: FeedOf) -> None:
    mails = {n: a_raw(n) for n in (1, 2, 3)}
    with serving(OddServer(mails, tells_next=False)) as server:
        fed = feed_of(f"imap://ada@127.0.0.1:{server.port}", PASSWORD)
        assert (by_itself(fed).new, fed.held()) == (3, {"messages": 3})
        server.asked.clear()
        assert by_itself(fed).new == 0
        assert not [each for each in server.asked if b"BODY.PEEK[]" in each]
        del mails[1]
        mails[4] = a_raw(4)  # as many as before
        assert (by_itself(fed).new, fed.held()) == (1, {"messages": 4})
        assert len(mails_held(fed)) == 4


@pytest.mark.parametrize(
    "name", [b"Trash.[Airmail]/x", b"[Gmail]/Starred", b"Project 2020 Mails", b"Archive[2020]/May"]
)
def test_a_folder_whose_name_a_server_does_not_quote_is_found(feed_of: FeedOf, name: bytes) -> None:
    server = OddServer({1: a_raw(1)}, listed=(b'"INBOX"', name), opened=frozenset({b"INBOX", name}))
    with serving(server):
        fed = feed_of(f"imap://ada@127.0.0.1:{server.port}", PASSWORD)
        assert (by_itself(fed).code, fed.held()) == (None, {"messages": 1})
        assert any(each.startswith(b'EXAMINE "%s"' % name) for each in server.asked)
