"""The logs, proven: signed heads each day, and whether every line still stands where it stood.

Rule: a chain shows what was changed, removed or put elsewhere in it; a head that its owner keeps
somewhere else shows it too when the whole chain was made anew.
Source: docs/contract/authorization-server.md 16.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec.structs import replace

from pdpp_kernel.values import DAY_NANOSECONDS
from personal_server.domain.log_chain import GENESIS, LogHead, LogLine, link_of

MOST_FAULTS = 100


class ChainedLogs(Protocol):
    """Logs as chains, and where they stood."""

    @property
    def names(self) -> Sequence[str]:
        """What they are called."""
        ...

    def lines(self, name: str) -> AbstractContextManager[Iterator[LogLine]]:
        """All lines, oldest first."""
        ...

    def commitments(self, name: str) -> Mapping[int, str]:
        """What follows from what is kept beside lines, by number; the lines hold the same."""
        ...

    def heads(self, name: str) -> list[LogHead]:
        """Where it stood at times, and where it was cut; oldest first."""
        ...

    def tail(self, name: str) -> tuple[int, bytes]:
        """Number and link of the newest line, 0 before there is one."""
        ...

    def keep(self, head: LogHead) -> None:
        """Write a signed head."""
        ...

    def signing_seed(self, propose: Callable[[int], bytes]) -> bytes:
        """The secret of the server's signatures, 32 bytes; made once."""
        ...


def signing_key(logs: ChainedLogs, random_bytes: Callable[[int], bytes]) -> Ed25519PrivateKey:
    """What the server signs with."""
    return Ed25519PrivateKey.from_private_bytes(logs.signing_seed(random_bytes))


def seal_logs(logs: ChainedLogs, key: Ed25519PrivateKey, now_ns: int) -> None:
    """Sign where each log stands, once a day in which it grew, and where it was cut."""
    for name in logs.names:
        heads = logs.heads(name)
        number, link = logs.tail(name)
        newest = heads[-1] if heads else None
        grew = number > 0 and link != GENESIS and (newest is None or newest.number < number)
        if grew and (newest is None or _day(newest.at_ns) < _day(now_ns)):
            heads.append(LogHead(name, number, link, now_ns))
        for head in heads:
            if head.signature is None:
                logs.keep(replace(head, signature=key.sign(head.signed_text)))


class ChainFault(msgspec.Struct, frozen=True):
    """What is wrong, at which line (1 is the first one ever written)."""

    number: int
    what: str


class ChainReport(msgspec.Struct, frozen=True):
    """How a log stands.

    Shapes: `unlinked` counts lines of before there was a chain; `faults` are at most 100; `head`
        is the newest that is signed.
    """

    log: str
    lines: int
    unlinked: int
    faults: tuple[ChainFault, ...]
    head: LogHead | None


def verify_log(
    logs: ChainedLogs, name: str, public: Ed25519PublicKey, kept: Sequence[LogHead] = ()
) -> ChainReport:
    """Follow the chain from its first line to its last.

    Shapes: `kept` are heads that the owner kept elsewhere.
    """
    own = logs.heads(name)
    walk = _Walk(own, [head for head in kept if head.log == name], logs.commitments(name))
    with logs.lines(name) as lines:
        walk.follow(lines)
    signed = [head for head in own if _is_signed(head, public)]
    return ChainReport(
        log=name,
        lines=walk.count,
        unlinked=walk.unlinked,
        faults=(*walk.faults, *_unsigned(own, signed))[:MOST_FAULTS],
        head=next((head for head in reversed(signed) if not head.is_cut), None),
    )


class _Walk:
    """Along the lines of a log, with what was found."""

    def __init__(
        self, own: Iterable[LogHead], kept: Iterable[LogHead], beside: Mapping[int, str]
    ) -> None:
        self.count = 0
        self.unlinked = 0
        self.faults: list[ChainFault] = []
        self._cuts = {head.number: head.link for head in own if head.is_cut}
        standing = [head for head in own if not head.is_cut]
        self._heads: Mapping[int, frozenset[bytes]] = _by_number([*standing, *kept])
        self._beside = beside
        self._number = 0
        self._link = GENESIS

    def follow(self, lines: Iterable[LogLine]) -> None:
        """Look at every line."""
        for line in lines:
            if not self.count:
                self._begin(line)
            elif line.number != self._number + 1:
                self._fault(
                    line.number, f"lines {self._number + 1} to {line.number - 1} are missing"
                )
            self._look_at(line)
        for number in sorted(self._heads):
            if number > self._number:
                self._fault(number, "the newest lines are missing, up to a signed head")

    def _begin(self, line: LogLine) -> None:
        """Where the oldest lines were forgotten, a head says what the first one follows from."""
        self._link = self._cuts.get(line.number - 1, GENESIS)

    def _look_at(self, line: LogLine) -> None:
        self.count += 1
        self._number = line.number
        beside = self._beside.get(line.number)
        if beside is not None and beside != line.members.get("commitment"):
            self._fault(
                line.number,
                ("the details kept beside the line are not those that were written with it"),
            )
        if line.link is None and self._link == GENESIS:
            self.unlinked += 1
            return
        if line.link is None or link_of(self._link, line.members) != line.link:
            self._fault(
                line.number, "the line was changed, or does not follow from the line before"
            )
        self._link = line.link or self._link
        if any(link != line.link for link in self._heads.get(line.number, ())):
            self._fault(line.number, "the line is not the one that the head was signed for")

    def _fault(self, number: int, what: str) -> None:
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(ChainFault(number, what))


def _by_number(heads: Iterable[LogHead]) -> Mapping[int, frozenset[bytes]]:
    found: dict[int, frozenset[bytes]] = {}
    for head in heads:
        found[head.number] = found.get(head.number, frozenset()) | {head.link}
    return found


def _unsigned(own: Iterable[LogHead], signed: Sequence[LogHead]) -> Iterator[ChainFault]:
    for head in own:
        if head.signature is not None and head not in signed:
            yield ChainFault(head.number, "the signature of the line's head is not this server's")


def _is_signed(head: LogHead, public: Ed25519PublicKey) -> bool:
    try:
        public.verify(head.signature or b"", head.signed_text)
    except InvalidSignature:
        return False
    return True


def _day(at_ns: int) -> int:
    return at_ns // DAY_NANOSECONDS


def render_head(head: LogHead) -> str:
    """A head in one line, to be kept elsewhere."""
    signature = (head.signature or b"").hex()
    what = "cut" if head.is_cut else "head"
    return f"{what} {head.log} {head.number} {head.link.hex()} {head.at_ns} {signature}"


def parse_head(text: str) -> LogHead:
    """A head as it was kept.  Raises: ValueError."""
    what, log, number, link, at_ns, signature = text.split()
    return LogHead(
        log=log,
        number=int(number),
        link=bytes.fromhex(link),
        at_ns=int(at_ns),
        is_cut=what == "cut",
        signature=bytes.fromhex(signature),
    )
