"""What a database says of itself: whose it is, what it knows of the clock, how its logs stand.

Rule: facts stand in the table `store`, one a name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import astuple

import orjson

from personal_server.domain.log_chain import LogHead, LogLine
from personal_server.storage.authorization import AuditRow, GrantRow, OwnerRow
from personal_server.storage.ports import ClockNote
from personal_server.storage.sql.authorization import AUDIT
from personal_server.storage.sql.disclosures import DISCLOSURES, DisclosureRow
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.fixed_tables import (
    ChangeRow,
    ConnectionRow,
    DeclarationRow,
    SealingKeyRow,
    StoreRow,
)
from personal_server.storage.sql.log_chain import LogHeadRow
from personal_server.storage.sql.statements import insert, select

OWNER, CLOCK = "subject_id", "clock"
_FIND_FACT = select(StoreRow, StoreRow.name, columns=(StoreRow.value,))
# every server and command that ever opened a file left a key in it
_FIRST_OPENED_BY = (
    f"SELECT {SealingKeyRow.subject_id} FROM {SealingKeyRow.table}"  # noqa: S608
    f" ORDER BY {SealingKeyRow.key_id} LIMIT 1"
)
_NEWEST_WRITTEN = (
    f"SELECT max({ChangeRow.written_at}) FROM {ChangeRow.table}",  # noqa: S608
    f"SELECT max({AuditRow.at_ns}) FROM {AuditRow.table}",  # noqa: S608
    f"SELECT max({DisclosureRow.at_ns}) FROM {DisclosureRow.table}",  # noqa: S608
    f"SELECT max({SealingKeyRow.created_at}) FROM {SealingKeyRow.table}",  # noqa: S608
)
_HOLDS_ANYTHING = " UNION ALL ".join(
    f"SELECT 1 FROM {table.table}"  # noqa: S608
    for table in (DeclarationRow, ConnectionRow, OwnerRow, GrantRow)
)


class SqlUpkeepStore:
    """Facts about one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def owner(self) -> str | None:
        """Files of before it was written say it by their first sealing key."""
        with self._database.read() as session:
            found = session.value(_FIND_FACT, (OWNER,)) or session.value(_FIRST_OPENED_BY)
        return None if found is None else str(found)

    def claim(self, subject_id: str) -> str:
        """Of two who claim, one is told the other's."""
        with self._database.write() as session:
            session.run(session.dialect.ignoring(insert(StoreRow)), (OWNER, subject_id))
            return str(session.value(_FIND_FACT, (OWNER,)))

    def clock_note(self) -> ClockNote | None:
        """A file of before it was written is judged by the newest instant in it."""
        with self._database.read() as session:
            text = session.value(_FIND_FACT, (CLOCK,))
            if text is not None:
                return ClockNote(*orjson.loads(text))
            newest = [session.value(statement) for statement in _NEWEST_WRITTEN]
        seen_ns = max((at_ns for at_ns in newest if at_ns is not None), default=None)
        return None if seen_ns is None else ClockNote(seen_ns)

    def keep_clock_note(self, note: ClockNote) -> None:
        """As one text, so that it is whole."""
        text = orjson.dumps(astuple(note)).decode()
        with self._database.write() as session:
            put = session.dialect.replacing(insert(StoreRow), StoreRow.table)
            session.run(put, (CLOCK, text))

    def holds_anything(self) -> bool:
        """Sources, grants or an owner who signed in."""
        with self._database.read() as session:
            return session.first(f"{_HOLDS_ANYTHING} LIMIT 1") is not None


LOGS = {log.name: log for log in (DISCLOSURES, AUDIT)}
SIGNING_SEED = "signing_seed"


class SqlLogs:
    """The logs of one subject as chains.  `name` is one of `names`."""

    names = tuple(LOGS)

    def __init__(self, database: Database, subject_id: str) -> None:
        self._database = database
        self._subject_id = subject_id

    @contextmanager
    def lines(self, name: str) -> Generator[Iterator[LogLine], None, None]:
        """All lines, oldest first, as they stand when the block begins."""
        with self._database.read() as session:
            yield LOGS[name].lines(session, self._subject_id)

    def heads(self, name: str) -> list[LogHead]:
        """Where it stood at times, and where it was cut; oldest first."""
        with self._database.read() as session:
            return LOGS[name].heads(session, self._subject_id)

    def tail(self, name: str) -> tuple[int, bytes]:
        """Number and link of the newest line, 0 before there is one."""
        with self._database.read() as session:
            return LOGS[name].tail(session, self._subject_id)

    def keep(self, head: LogHead) -> None:
        """Write a head, or the signature of one that has none."""
        log, subject_id = LOGS[head.log], self._subject_id
        row = LogHeadRow(
            log=head.log,
            number=head.number,
            link=head.link,
            at_ns=head.at_ns,
            is_cut=head.is_cut,
            signature=head.signature,
        )
        with self._database.write() as session:
            log.put_head(session, subject_id, row)
            log.sign(session, subject_id, head.number, head.signature or b"")

    def signing_seed(self, propose: Callable[[int], bytes]) -> bytes:
        """The secret that heads are signed with, 32 bytes; made once."""
        with self._database.read() as session:
            known = session.value(_FIND_FACT, (SIGNING_SEED,))
        if known is None:
            with self._database.write() as session:
                made = propose(32).hex()
                session.run(session.dialect.ignoring(insert(StoreRow)), (SIGNING_SEED, made))
                known = session.value(_FIND_FACT, (SIGNING_SEED,))
        return bytes.fromhex(str(known))
