"""What a database says of itself: whose it is, what it knows of the clock, how its logs stand.

Rule: facts stand in the table `store`, one a name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, astuple
from typing import Any

import orjson

from personal_server.domain.log_chain import LogHead, LogLine
from personal_server.domain.stored import (
    BackupFailure,
    BackupProof,
    BackupSchedule,
    ClockNote,
    StoreCounts,
)
from personal_server.storage.authorization import AuditRow, GrantRow, OwnerRow, PackageRow
from personal_server.storage.sql.driver import Database
from personal_server.storage.sql.fixed_tables import (
    BackupRow,
    BlobUploadRow,
    ChangeRow,
    ConnectionRow,
    DeclarationRow,
    ErasureRow,
    FactRow,
    SealingKeyRow,
    SourceRow,
    StoreRow,
)
from personal_server.storage.sql.logs.authorization_transaction import AUDIT
from personal_server.storage.sql.logs.disclosure_rows import DisclosureRow
from personal_server.storage.sql.logs.disclosures import DISCLOSURES, kept_commitments
from personal_server.storage.sql.logs.log_chain import LogHeadRow
from personal_server.storage.sql.statements import (
    delete,
    ignoring,
    insert,
    listed,
    replacing,
    row_from,
    select,
    values_of,
)

OWNER, CLOCK = "subject_id", "clock"
_FIND_COUNTER = select(StoreRow, StoreRow.name, columns=(StoreRow.value,))
_FIND_FACT = select(FactRow, FactRow.name, columns=(FactRow.said,))
# every server and command that ever opened a file left a key in it
_FIRST_OPENED_BY = (
    f"SELECT {SealingKeyRow.subject_id} FROM {SealingKeyRow.table}"  # noqa: S608
    f" ORDER BY {SealingKeyRow.key_id} LIMIT 1"
)
# numbers of changes grow with the time they are written at, so that one of each source is read
_NEWEST_CHANGE = (
    f"SELECT {ChangeRow.written_at} FROM {ChangeRow.table}"  # noqa: S608
    f" WHERE {ChangeRow.source} = {SourceRow.table}.{SourceRow.source}"
    f" ORDER BY {ChangeRow.sequence} DESC LIMIT 1"
)
_NEWEST_WRITTEN = (
    f"SELECT max(({_NEWEST_CHANGE})) FROM {SourceRow.table}",  # noqa: S608
    f"SELECT max({AuditRow.at_ns}) FROM {AuditRow.table}",  # noqa: S608
    f"SELECT max({DisclosureRow.at_ns}) FROM {DisclosureRow.table}",  # noqa: S608
    f"SELECT max({SealingKeyRow.created_at}) FROM {SealingKeyRow.table}",  # noqa: S608
)
_HOLDS_ANYTHING = " UNION ALL ".join(
    f"SELECT 1 FROM {table.table}"  # noqa: S608
    for table in (DeclarationRow, ConnectionRow, OwnerRow, GrantRow)
)


_EPOCH = "epoch"
_PROOF = "proof"
_BACKUP_FAILURE = "backup_failure"
_SCHEDULE = "backup_schedule"
_ERASURES = select(
    ErasureRow,
    ErasureRow.subject_id,
    columns=(
        ErasureRow.erasure_id,
        ErasureRow.connection_id,
        ErasureRow.stream,
        ErasureRow.key_digest,
        ErasureRow.at,
    ),
)
_ERASURE_NAMES = ("id", "connection_id", "stream", "key_digest", "at_ns")
_ENDED_GRANTS = " UNION ALL ".join(
    f"SELECT {id_column}, {table.reason}, {table.revoked_at_ns} FROM {table.table}"  # noqa: S608
    f" WHERE subject_id = ?1 AND {table.revoked_at_ns} IS NOT NULL"
    for id_column, table in ((GrantRow.grant_id, GrantRow), (PackageRow.package_id, PackageRow))
)
_COUNTS = (
    f"SELECT (SELECT count(*) FROM {ErasureRow.table}),"  # noqa: S608
    f" (SELECT count(*) FROM {GrantRow.table} WHERE {GrantRow.revoked_at_ns} IS NOT NULL),"
    f" (SELECT count(*) FROM {PackageRow.table} WHERE {PackageRow.revoked_at_ns} IS NOT NULL)"
)
_BACKUPS = (
    f"SELECT {listed(BackupRow.table.columns)} FROM {BackupRow.table}"  # noqa: S608
    f" ORDER BY {BackupRow.made_at} DESC"
)
_FORGET_BACKUP = delete(BackupRow, BackupRow.backup_id)
_SOURCES = (
    f"SELECT {SourceRow.connection_id}, {SourceRow.stream}, {SourceRow.tables}"  # noqa: S608
    f" FROM {SourceRow.table} ORDER BY {SourceRow.connection_id}, {SourceRow.stream}"
)
_BLOBS = f"SELECT DISTINCT {BlobUploadRow.blob_id} FROM {BlobUploadRow.table} ORDER BY 1"  # noqa: S608
_BLOB_SIZES = (
    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM"  # noqa: S608
    f" (SELECT DISTINCT {BlobUploadRow.blob_id}, {BlobUploadRow.size_bytes} AS size_bytes"
    f" FROM {BlobUploadRow.table}) AS held"
)
_GRANTS = f"SELECT count(*) FROM {GrantRow.table}"  # noqa: S608


class SqlUpkeepStore:
    """Facts about one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def owner(self) -> str | None:
        """Files of before it was written say it by their first sealing key."""
        with self._database.read() as session:
            owner = session.value(_FIND_FACT, (OWNER,)) or session.value(_FIRST_OPENED_BY)
        return None if owner is None else str(owner)

    def claim(self, subject_id: str) -> str:
        """Of two who claim, one is told the other's."""
        with self._database.write() as session:
            session.run(ignoring(insert(FactRow)), (OWNER, subject_id))
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
        self._put(CLOCK, orjson.dumps(astuple(note)).decode())

    def renew_epoch(self, epoch: str) -> None:
        """Every follower starts over."""
        self._put(_EPOCH, epoch)

    def counted(self) -> StoreCounts:
        """Everything counted, line by line, and where its changes stand."""
        with self._database.read() as session:
            streams = tuple(
                (cid, stream, int(session.value(f"SELECT count(*) FROM r{number}")))  # noqa: S608
                for cid, stream, number in session.rows(_SOURCES)
            )
            return StoreCounts(
                str(session.value(_FIND_FACT, (_EPOCH,))),
                int(session.value(_FIND_COUNTER, ("sequence",))),
                int(session.value(_GRANTS)),
                streams,
                tuple(blob_id for (blob_id,) in session.rows(_BLOBS)),
            )

    def blob_sizes(self) -> tuple[int, int]:
        """How many blobs there are, and their bytes."""
        with self._database.read() as session:
            return session.rows(_BLOB_SIZES)[0]

    def ledger_size(self) -> tuple[int, ...]:
        """Grows with what a ledger has to be told."""
        with self._database.read() as session:
            return session.rows(_COUNTS)[0]

    def ledger_entries(self, subject_id: str) -> list[dict[str, object]]:
        """What was erased and ended."""
        with self._database.read() as session:
            erased = session.rows(_ERASURES, (subject_id,))
            ended = session.rows(_ENDED_GRANTS, (subject_id,))
        names = ("id", "reason", "at_ns")
        entries_by_kind = [("erasure", zip(_ERASURE_NAMES, line, strict=True)) for line in erased]
        entries_by_kind += [("ended", zip(names, line, strict=True)) for line in ended]
        return [{"kind": kind, **dict(members)} for kind, members in entries_by_kind]

    def keep_erasures(self, subject_id: str, entries: Iterable[Mapping[str, Any]]) -> None:
        """Note erasures that another store was asked for, under their own ids."""
        with self._database.write() as session:
            session.many(
                ignoring(insert(ErasureRow)),
                [(subject_id, *(entry[name] for name in _ERASURE_NAMES)) for entry in entries],
            )

    def backups(self) -> list[BackupRow]:
        """Those that are kept, newest first."""
        with self._database.read() as session:
            return [row_from(BackupRow, line) for line in session.rows(_BACKUPS)]

    def keep_backup(self, row: BackupRow) -> None:
        """Note that a backup was made."""
        with self._database.write() as session:
            session.run(insert(BackupRow), values_of(row))

    def forget_backup(self, backup_id: str) -> None:
        """It is kept no more."""
        with self._database.write() as session:
            session.run(_FORGET_BACKUP, (backup_id,))

    def proof(self) -> BackupProof | None:
        """How the last try to restore a backup went."""
        with self._database.read() as session:
            text = session.value(_FIND_FACT, (_PROOF,))
        return None if text is None else BackupProof(**orjson.loads(text))

    def keep_proof(self, proof: BackupProof) -> None:
        """Replace the note of the last proven restore."""
        self._put(_PROOF, orjson.dumps(asdict(proof)).decode())

    def backup_failure(self) -> BackupFailure | None:
        """Why scheduled backups fail now; None, if they do not."""
        with self._database.read() as session:
            text = session.value(_FIND_FACT, (_BACKUP_FAILURE,))
        found = None if text is None else orjson.loads(text)
        return None if found is None else BackupFailure(**found)

    def keep_backup_failure(self, failure: BackupFailure | None) -> None:
        """Replace it."""
        value = None if failure is None else asdict(failure)
        self._put(_BACKUP_FAILURE, orjson.dumps(value).decode())

    def backup_schedule(self) -> BackupSchedule | None:
        """What the owner asked for with a command."""
        with self._database.read() as session:
            text = session.value(_FIND_FACT, (_SCHEDULE,))
        schedule = None if text is None else orjson.loads(text)
        return None if schedule is None else BackupSchedule(**schedule)

    def keep_backup_schedule(self, schedule: BackupSchedule | None) -> None:
        """Replace it; `None` ends it."""
        value = None if schedule is None else asdict(schedule)
        self._put(_SCHEDULE, orjson.dumps(value).decode())

    def _put(self, name: str, value: str) -> None:
        with self._database.write() as session:
            session.run(replacing(FactRow), (name, value))

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
