"""The ledger beside the backups: what was deleted since, so that a restored one deletes it again.

Source: docs/backup.md.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pdpp_kernel.errors import ConnectionNotFound
from personal_server.app.backup_schedule import schedule_of
from personal_server.app.stores import Stores
from personal_server.granting.audit import SERVER
from personal_server.granting.pauses import EndedAccess
from personal_server.granting.revocations import end_access
from personal_server.settings import Settings
from personal_server.storage.sql.records.writes import key_digest
from personal_server.upkeep.ledger import NAME as LEDGER
from personal_server.upkeep.ledger import Entry, add_to_ledger, read_ledger

_log = logging.getLogger(__name__)


def keep_ledger(stores: Stores, settings: Settings) -> None:
    """Bring the ledger beside the data, and beside scheduled backups, up to date."""
    entries = stores.upkeep.ledger_entries(stores.configuration.subject_id)
    schedule = schedule_of(stores, settings)
    folders = [settings.data_dir] + ([Path(schedule.folder)] if schedule is not None else [])
    for folder in folders:
        if folder.is_dir():
            add_to_ledger(folder / LEDGER, entries)


class LedgerKeeper:
    """Keeps the ledger, and reads nothing but counts while nothing is erased or ended."""

    def __init__(self, stores: Stores, settings: Settings) -> None:
        self._stores = stores
        self._settings = settings
        self._size: tuple[int, ...] | None = None

    def keep(self) -> None:
        """Write what is new."""
        size = self._stores.upkeep.ledger_size()
        if size != self._size:
            keep_ledger(self._stores, self._settings)
            self._size = size


def apply_ledger(stores: Stores, ledger: dict[str, Entry]) -> tuple[int, list[EndedAccess]]:
    """Erase what the ledger says was erased, and this store does not know of.

    Shapes: how many erasures that were, and what access was ended without its knowledge.
    """
    subject_id = stores.configuration.subject_id
    known = {str(each["id"]) for each in stores.upkeep.ledger_entries(subject_id)}
    unknown = [entry for name, entry in ledger.items() if name not in known]
    erasures = [entry for entry in unknown if entry["kind"] == "erasure"]
    if erasures:  # a disk that takes no writes is no hindrance where nothing is to be erased
        _erase(stores, erasures)
        stores.upkeep.keep_erasures(subject_id, erasures)
    ended = [entry for entry in unknown if entry["kind"] == "ended"]
    return len(erasures), [EndedAccess(e["id"], e["reason"], e["at_ns"]) for e in ended]


def catch_up_with_ledger(stores: Stores, settings: Settings) -> None:
    """A copy of the database that was put back by hand is older than the ledger beside it."""
    erased, ended = apply_ledger(stores, read_ledger(settings.data_dir / LEDGER))
    if erased or ended:
        _log.warning(
            "the database is older than %s beside it: %d erasures and %d ends were made again",
            LEDGER,
            erased,
            len(ended),
        )
        with stores.authorization.write() as writer:
            for each in ended:
                end_access(writer, each.held_id, each.reason, SERVER, each.at_ns)


def _erase(stores: Stores, erasures: Iterable[Entry]) -> None:
    keys: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in erasures:
        connection_id, stream = entry["connection_id"], entry["stream"]
        with suppress(ConnectionNotFound):
            if stream is None:
                stores.records.erase_connection(connection_id, entry["at_ns"])
            elif entry["key_digest"] is None:
                stores.records.delete_stream(connection_id, stream, entry["at_ns"])
            else:
                keys[connection_id, stream].add(entry["key_digest"])
    for (connection_id, stream), digests in keys.items():
        for key in _keys_with(stores, connection_id, stream, digests):
            with suppress(ConnectionNotFound):
                stores.records.delete_record(connection_id, stream, key, stores.clock())


def _keys_with(stores: Stores, connection_id: str, stream: str, digests: set[str]) -> list[str]:
    subject_id = stores.configuration.subject_id
    with stores.records.snapshot(None) as snapshot:
        rows = snapshot.export(connection_id, stream)
        return [row.key for row in rows if key_digest(subject_id, row.key) in digests]
