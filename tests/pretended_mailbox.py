"""A mailbox for tests that no real server would be asked to hold.

Its mails are made as they are asked for, and it changes and ends as it is told.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_FETCH = re.compile(rb"UID FETCH (\S+) (.*)", re.IGNORECASE)
_PIECE_BYTES = 256 * 1024


def a_letter(uidvalidity: int, uid: int) -> bytes:
    """A mail of a folder."""
    return (
        f"From: Bob <bob@example.org>\r\nTo: ada@example.org\r\nSubject: Letter {uid}\r\n"
        f"Message-ID: <{uid}.{uidvalidity}@example.org>\r\n"
        "Date: Mon, 02 Jan 2023 10:00:00 +0000\r\n\r\n"
        f"What happened on day {uid}.\r\n"
    ).encode()


@dataclass
class PretendedMailbox:
    """What it holds, and how it behaves.

    Shapes: `folders` say how many mails each has, whose UIDs are 1 to that number; a connection is
        closed before the answer to its command of the number `ends_at`; `uidvalidity` is asked
        whenever a folder is told of; `letter` makes a mail by that and its UID; with `half` a
        connection ends behind so many bytes of a body; `before` is called with each command.
    """

    folders: Mapping[str, int]
    can: str = "IMAP4rev1"
    ends_at: int | None = None
    uidvalidity: Callable[[], int] = lambda: 1
    letter: Callable[[int, int], bytes] = a_letter
    half: int | None = None
    before: Callable[[str], object] = lambda _: None
    commands: list[str] = field(default_factory=list[str])
    bodies: list[int] = field(default_factory=list[int])
    port: int = 0
    _opened: tuple[int, int] = (0, 1)

    @property
    def place(self) -> str:
        """Where a feed finds it."""
        return f"imap://ada@127.0.0.1:{self.port}"

    def converse(self, wire: socket.socket) -> None:
        """One connection."""
        with wire, wire.makefile("rb") as lines, suppress(OSError):
            wire.sendall(b"* OK hello\r\n")
            for number, line in enumerate(lines, 1):
                if number == self.ends_at:
                    return
                tag, _, command = line.strip().partition(b" ")
                self.commands.append(command.decode())
                self.before(command.decode())
                said = bytearray()
                for each in self._answers(command):
                    said += each
                    if len(said) >= _PIECE_BYTES:
                        wire.sendall(said)
                        said.clear()
                    if self.half is not None and b"BODY[]" in each:
                        wire.sendall(said[: said.index(b"\r\n") + 2 + self.half])
                        return
                wire.sendall(said + tag + b" OK done\r\n")

    def _answers(self, command: bytes) -> Iterator[bytes]:
        word = command.split(b" ")[0].upper()
        if word == b"CAPABILITY":
            yield f"* CAPABILITY {self.can}\r\n".encode()
        elif word == b"LIST":
            for name in self.folders:
                yield f'* LIST () "/" "{name}"\r\n'.encode()
        elif word == b"STATUS":
            name = command.split(b'"')[1].decode()
            count, now = self.folders[name], self.uidvalidity()
            yield (
                f'* STATUS "{name}" (MESSAGES {count} UIDNEXT {count + 1} UIDVALIDITY {now}'
                " UNSEEN 0)\r\n"
            ).encode()
        elif word == b"EXAMINE":
            name = command.split(b'"')[1].decode()
            self._opened = count, now = self.folders[name], self.uidvalidity()
            yield f"* {count} EXISTS\r\n* OK [UIDVALIDITY {now}] x\r\n".encode()
            yield f"* OK [UIDNEXT {count + 1}] x\r\n".encode()
        elif command.upper().startswith(b"UID SEARCH"):
            yield from self._search(command)
        elif match := _FETCH.match(command):
            yield from self._fetch(self._named(match[1]), match[2].upper())

    def _named(self, words: bytes) -> Iterator[int]:
        for each in words.split(b","):
            first, _, last = each.partition(b":")
            yield from range(int(first), min(int(last or first), self._opened[0]) + 1)

    def _search(self, command: bytes) -> Iterator[bytes]:
        first = int(command.split(b" ")[-1].partition(b":")[0])
        if b"RETURN" in command:
            yield b"* ESEARCH UID ALL %d:%d\r\n" % (first, self._opened[0])
            return
        yield b"* SEARCH"
        yield from (b" %d" % uid for uid in range(first, self._opened[0] + 1))
        yield b"\r\n"

    def _fetch(self, uids: Iterator[int], asked: bytes) -> Iterator[bytes]:
        for uid in uids:
            letter = self.letter(self._opened[1], uid)
            begin = b"* %d FETCH (UID %d FLAGS (\\Seen)" % (uid, uid)
            if b"RFC822.SIZE" in asked:
                head = letter.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
                yield begin + b" RFC822.SIZE %d BODY[HEADER.FIELDS (MESSAGE-ID)] {%d}\r\n" % (
                    len(letter),
                    len(head),
                )
                yield head + b")\r\n"
            elif b"BODY.PEEK[]" in asked:
                self.bodies.append(uid)
                skipped = int(match[1]) if (match := re.search(rb"\[\]<(\d+)\.", asked)) else 0
                rest = letter[skipped:]
                part = b"<%d>" % skipped if match else b""
                yield begin + b" BODY[]" + part + b" {%d}\r\n" % len(rest) + rest + b")\r\n"
            else:
                yield begin + b")\r\n"


@contextmanager
def pretended(mailbox: PretendedMailbox) -> Generator[PretendedMailbox]:
    """It listens while the block runs, to one connection at a time."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        mailbox.port = listener.getsockname()[1]

        def serve() -> None:
            with suppress(OSError):
                while True:
                    mailbox.converse(listener.accept()[0])

        threading.Thread(target=serve, daemon=True).start()
        yield mailbox
        listener.shutdown(socket.SHUT_RDWR)
