"""Blobs that nobody came back for: uploads without a record, and files without an upload."""

from __future__ import annotations

from pathlib import Path

from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import BlobUploadRow
from personal_server.storage.sql.records.blob_files import PREFIX, remove_files, stray_files
from personal_server.storage.sql.records.blobs import (
    forget_unreferenced,
    is_referenced,
    remove_unheld,
)
from personal_server.storage.sql.store_part import StorePart

_ALL_HELD = f"SELECT DISTINCT {BlobUploadRow.blob_id} FROM {BlobUploadRow.table}"  # noqa: S608
_OLD_UPLOADS = (
    f"SELECT {BlobUploadRow.connection_id}, {BlobUploadRow.blob_id} FROM {BlobUploadRow.table}"  # noqa: S608
    f" WHERE {BlobUploadRow.subject_id} = ? AND {BlobUploadRow.uploaded_at} < ?"
)


class SweepPart(StorePart):
    """The sweeping of a subject's blobs."""

    def sweep_blobs(self, before_ns: int) -> int:
        """Files that interrupted calls left behind go with them.

        One that cannot be removed is told when everything else is done.
        """
        with self._database.write() as session:
            old = _unreferenced(session, self.subject_id, before_ns)
            for connection_id, blob_id in old:
                forget_unreferenced(session, self.subject_id, connection_id, [blob_id])
        strays = stray_files(self._blob_directory, before_ns)
        file_names = {PREFIX + path.name for path in strays}
        remove_unheld(self._database, self._blob_directory, {b for _, b in old} | file_names)
        remove_files(path for path in strays if path.parent == self._blob_directory)
        return len(old)


def unheld_blobs(database: Database, directory: Path) -> set[str]:
    """Blobs in the directory that no connection holds."""
    with database.read() as session:
        held_ids = {blob_id for (blob_id,) in session.run(_ALL_HELD)}
    return {PREFIX + path.name for path in directory.glob("??/*")} - held_ids


def _unreferenced(session: Session, subject_id: str, before_ns: int) -> list[tuple[str, str]]:
    """(connection, blob) of old uploads without a reference."""
    old = session.rows(_OLD_UPLOADS, (subject_id, before_ns))
    return [pair for pair in old if not is_referenced(session, subject_id, *pair)]
