"""Blobs: who holds which bytes (`blob_files` keeps these beside the database).

Rule: bytes are in place before their upload is committed, and leave only after nobody holds them;
both happen inside a write transaction, so that no two processes disagree.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from pdpp_kernel.errors import DamagedRecord
from personal_server.domain.stored import BlobUpload, IncomingBlob
from personal_server.storage.damage import MEND_RECORDS
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import BlobReferenceRow, BlobUploadRow, SourceRow
from personal_server.storage.sql.records.blob_files import (
    PREFIX,
    blob_path,
    digest_of,
    remove_files,
)
from personal_server.storage.sql.records.received_blobs import received
from personal_server.storage.sql.statements import delete, exists, select
from personal_server.storage.sql.store_part import StorePart

_UPLOAD = (BlobUploadRow.subject_id, BlobUploadRow.connection_id, BlobUploadRow.blob_id)
_IS_HELD_BY_SUBJECT = exists(BlobUploadRow, BlobUploadRow.blob_id, BlobUploadRow.subject_id)
_IS_HELD_BY_ANY = exists(BlobUploadRow, BlobUploadRow.blob_id)
_FORGET_UPLOAD = delete(BlobUploadRow, *_UPLOAD)
# the columns of a `BlobUpload`, in the order of its members
_FIND_UPLOAD = select(
    BlobUploadRow,
    *_UPLOAD,
    columns=(
        BlobUploadRow.blob_id,
        BlobUploadRow.connection_id,
        BlobUploadRow.size_bytes,
        BlobUploadRow.mime_type,
        BlobUploadRow.uploaded_at,
    ),
)
_IS_REFERENCED = (
    f"SELECT 1 FROM {BlobReferenceRow.table} b"  # noqa: S608
    f" JOIN {SourceRow.table} s ON s.{SourceRow.source} = b.{BlobReferenceRow.source}"
    f" WHERE b.{BlobReferenceRow.blob_id} = ? AND s.{SourceRow.subject_id} = ?"
    f" AND s.{SourceRow.connection_id} = ? LIMIT 1"
)


class BlobsPart(StorePart):
    """Blobs of a subject."""

    def receive_blob(
        self,
        connection_id: str,
        chunks: Iterable[bytes],
        mime_type: str,
        now_ns: int,
        max_bytes: int,
    ) -> tuple[BlobUpload, bool]:
        """One that comes alone."""
        blob = IncomingBlob(chunks, mime_type, max_bytes)
        return self.receive_blobs(connection_id, [blob], now_ns)[0]

    def receive_blobs(
        self, connection_id: str, blobs: Iterable[IncomingBlob], now_ns: int
    ) -> list[tuple[BlobUpload, bool]]:
        """Bytes are read before the transaction, which gives them their names."""
        row_key = (self.subject_id, connection_id)
        return received(self._database, self._blob_directory, row_key, blobs, now_ns)

    def open_blob(self, blob_id: str) -> BinaryIO | None:
        """Whichever connection of the subject holds them, once they are read and found whole."""
        with self._database.read() as session:
            is_held = session.first(_IS_HELD_BY_SUBJECT, (blob_id, self.subject_id))
        if is_held is None:
            return None
        try:
            content = blob_path(self._blob_directory, blob_id).open("rb")
        except FileNotFoundError:
            return None
        try:
            if digest_of(content) != blob_id.removeprefix(PREFIX):
                self._database.damage.note(blob_id, "blobs")
                raise DamagedRecord(MEND_RECORDS, param="blob_id")
            content.seek(0)
        except BaseException:
            content.close()
            raise
        return content

    def blob_upload(self, connection_id: str, blob_id: str) -> BlobUpload | None:
        """Of this connection only, whoever else holds the same bytes."""
        with self._database.read() as session:
            line = session.first(_FIND_UPLOAD, (self.subject_id, connection_id, blob_id))
        return None if line is None else BlobUpload(*line)


def forget_unreferenced(
    session: Session, subject_id: str, connection_id: str, blob_ids: Iterable[str]
) -> set[str]:
    """Drop uploads of a connection that none of its records references any more."""
    dropped: set[str] = set()
    for blob_id in blob_ids:
        if not is_referenced(session, subject_id, connection_id, blob_id):
            session.run(_FORGET_UPLOAD, (subject_id, connection_id, blob_id))
            dropped.add(blob_id)
    return dropped


def remove_unheld(database: Database, directory: Path, blob_ids: Iterable[str]) -> None:
    """Remove the files of blobs that no connection holds."""
    candidates = list(blob_ids)
    if not candidates:
        return
    with database.write() as session:
        remove_files(
            blob_path(directory, blob_id)
            for blob_id in candidates
            if not session.first(_IS_HELD_BY_ANY, (blob_id,))
        )


def is_referenced(session: Session, subject_id: str, connection_id: str, blob_id: str) -> bool:
    """Whether a record of the connection refers to it."""
    return session.first(_IS_REFERENCED, (blob_id, subject_id, connection_id)) is not None
