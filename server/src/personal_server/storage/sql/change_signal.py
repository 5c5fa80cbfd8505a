"""Something changed: one thread looks for all who wait, and only once somebody does."""

from __future__ import annotations

import threading

from pdpp_kernel.errors import PersonalServerError
from personal_server.storage.authorization_rows import AuditRow
from personal_server.storage.sql.driver import Database, Line
from personal_server.storage.sql.fixed_tables import StoreRow

LOOK_SECONDS = 1.0
# Changes that come faster are told together.
GATHER_SECONDS = 0.02
_HEADS = (
    f"SELECT (SELECT {StoreRow.value} FROM {StoreRow.table} WHERE {StoreRow.name} = 'sequence'),"  # noqa: S608
    f" (SELECT {AuditRow.event_id} FROM {AuditRow.table}"
    f" ORDER BY subject_id DESC, {AuditRow.event_id} DESC LIMIT 1)"
)


class DatabaseSignal:
    """The newest change and the newest audit event, looked at when somebody may have written."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._told = threading.Condition()
        self._closing = threading.Event()
        self._heads: Line | None = None
        self._watching: threading.Thread | None = None
        self._count = 0

    @property
    def count(self) -> int:
        """As the port has it."""
        self._watch()
        return self._count

    def wait(self, last_seen: int, timeout_seconds: float) -> int:
        """As the port has it."""
        self._watch()
        with self._told:
            self._told.wait_for(
                lambda: self._count > last_seen or self._closing.is_set(), timeout_seconds
            )
            return self._count

    def close(self) -> None:
        """End the thread, before the database is closed, and every wait."""
        self._closing.set()
        with self._told:
            self._told.notify_all()
        if self._watching is not None:
            self._watching.join()

    def _watch(self) -> None:
        with self._told:
            if self._watching is None and not self._closing.is_set():
                self._heads = self._look()
                self._watching = threading.Thread(target=self._keep_looking, daemon=True)
                self._watching.start()

    def _keep_looking(self) -> None:
        while not self._closing.is_set():
            if self._database.await_write(LOOK_SECONDS):
                heads = self._look()
                if heads not in (None, self._heads):
                    self._heads = heads
                    with self._told:
                        self._count += 1
                        self._told.notify_all()
                self._closing.wait(GATHER_SECONDS)

    def _look(self) -> Line | None:
        """What cannot be looked at now is looked at again; who reads it is told why."""
        try:
            with self._database.read(LOOK_SECONDS) as session:
                return session.first(_HEADS)
        except PersonalServerError:
            return None
