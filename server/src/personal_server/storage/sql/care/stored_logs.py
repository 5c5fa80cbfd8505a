"""How the logs of a database stand: their chains, heads, and what heads are signed with."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager

from personal_server.domain.log_chain import LogHead, LogLine
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.fixed_tables import FactRow
from personal_server.storage.sql.logs.authorization_transaction import AUDIT
from personal_server.storage.sql.logs.disclosures import DISCLOSURES, kept_commitments
from personal_server.storage.sql.logs.log_chain import LogHeadRow
from personal_server.storage.sql.statements import ignoring, insert, select

_FIND_FACT = select(FactRow, FactRow.name, columns=(FactRow.said,))
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

    def commitments(self, name: str) -> Mapping[int, str]:
        """What follows from what is kept beside lines, by their numbers."""
        if name != DISCLOSURES.name:
            return {}
        with self._database.read() as session:
            return dict(kept_commitments(session, self._subject_id))

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
            seed = session.value(_FIND_FACT, (SIGNING_SEED,))
        if seed is None:
            with self._database.write() as session:
                proposed = propose(32).hex()
                session.run(ignoring(insert(FactRow)), (SIGNING_SEED, proposed))
                seed = session.value(_FIND_FACT, (SIGNING_SEED,))
        return bytes.fromhex(str(seed))
