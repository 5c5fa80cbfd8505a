"""Blobs: who holds which bytes (`blob_files` keeps these beside the database).

Rule: bytes are in place before their upload is committed, and leave only after nobody holds them;
both happen inside a write transaction, so that no two processes disagree.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

import orjson

from pdpp_kernel.errors import DamagedRecord
from personal_server.domain.stored import BlobUpload
from personal_server.enforcement.plans import BlobPlan
from personal_server.enforcement.rows import BlobReference
from personal_server.storage.damage import MEND_RECORDS
from personal_server.storage.sql.compiler import Statement, Where
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import BlobReferenceRow, BlobUploadRow, SourceRow
from personal_server.storage.sql.records.blob_files import (
    PREFIX,
    blob_path,
    digest_of,
    put_in_place,
    receive_file,
    remove_files,
    stray_files,
)
from personal_server.storage.sql.source_tables import Reader
from personal_server.storage.sql.statements import delete, exists, replacing, select
from personal_server.storage.sql.store_part import StorePart, writable
from personal_server.storage.tables import ColumnKind

_UPLOAD = (BlobUploadRow.subject_id, BlobUploadRow.connection_id, BlobUploadRow.blob_id)
_IS_HELD = exists(BlobUploadRow, *_UPLOAD)
_IS_HELD_BY_SUBJECT = exists(BlobUploadRow, BlobUploadRow.blob_id, BlobUploadRow.subject_id)
_IS_HELD_BY_ANY = exists(BlobUploadRow, BlobUploadRow.blob_id)
_ALL_HELD = f"SELECT DISTINCT {BlobUploadRow.blob_id} FROM {BlobUploadRow.table}"  # noqa: S608
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
_OLD_UPLOADS = (
    f"SELECT {BlobUploadRow.connection_id}, {BlobUploadRow.blob_id} FROM {BlobUploadRow.table}"  # noqa: S608
    f" WHERE {BlobUploadRow.subject_id} = ? AND {BlobUploadRow.uploaded_at} < ?"
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
        """Bytes are read before the transaction, which gives them their name."""
        with self._database.read() as session:
            writable(session, self.subject_id, connection_id)
        scratch, blob_id, size = receive_file(self._blob_directory, chunks, max_bytes)
        upload = BlobUpload(blob_id, connection_id, size, mime_type, now_ns)
        try:
            with self._database.write() as session:
                writable(session, self.subject_id, connection_id)
                row_key = (self.subject_id, connection_id, blob_id)
                held_blob = session.first(_IS_HELD, row_key)
                put_in_place(self._blob_directory, scratch, blob_id)
                session.run(
                    replacing(BlobUploadRow),
                    (*row_key, size, mime_type, now_ns),
                )
        finally:
            scratch.unlink(missing_ok=True)
        return upload, held_blob is None

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


def blob(reader: Reader, plan: BlobPlan) -> tuple[BlobReference, ...]:
    """References of visible records, where the connection holds the bytes.

    Whether it does is asked last: a blob that nothing visible refers to costs what none costs.
    """
    references: list[BlobReference] = []
    key, name = f"b.{BlobReferenceRow.key}", f"b.{BlobReferenceRow.field}"
    for scoped in reader.places(plan.scopes):
        source, scope = scoped.source, scoped.scope
        granted = [field for field in scope.stream.blob_fields if field in scope.fields]
        if not granted:
            continue
        visible = scoped.visible()
        listed = reader.session.dialect.values("?", ColumnKind.TEXT)
        where = Where(
            (f"b.{BlobReferenceRow.source} = ?", f"b.{BlobReferenceRow.field} IN {listed}"),
            (source.source, orjson.dumps(granted).decode()),
        )
        of_blob = Where((f"{BlobReferenceRow.blob_id} = ?",), (plan.blob_id,))
        tables = [f"{BlobReferenceRow.table} b", scoped.compiler.lines()]
        first, second = tables
        inside, behind = of_blob & where & visible, Where()
        if visible.index:  # records that are picked lead to all their references
            first, second = second, first
            inside, behind = where & visible, of_blob
        ordered, blob_id = reader.session.dialect.ordered_join, f"b.{BlobReferenceRow.blob_id}"
        referring = Statement(
            f"WITH shown AS MATERIALIZED (SELECT r.id, {key}, {name}, {blob_id}"  # noqa: S608
            f" FROM {first} {ordered} {second} ON r.k = {key}{inside.sql})"
            f" SELECT id, {BlobReferenceRow.field} FROM shown{behind.sql}"
            f" ORDER BY {BlobReferenceRow.key}, {BlobReferenceRow.field}",
            inside.params + behind.params,
        )
        lines = reader.lines(source, referring)
        if lines and not _is_held(reader, source.connection_id, plan.blob_id):
            continue
        rows = reader.rows_by_id(scoped, scoped.compiler.with_ids([line[0] for line in lines]))
        for row_id, field in lines:
            row = rows.get(row_id)
            reference = None if row is None else row.data.get(field)
            if row is not None and isinstance(reference, dict):
                place_of = (source.connection_id, source.stream, row.key, field)
                references.append(BlobReference(*place_of, cast("dict[str, object]", reference)))
    return tuple(references)


def _is_held(reader: Reader, connection_id: str, blob_id: str) -> bool:
    row_key = (reader.subject_id, connection_id, blob_id)
    return reader.session.first(_IS_HELD, row_key) is not None


def forget_unreferenced(
    session: Session, subject_id: str, connection_id: str, blob_ids: Iterable[str]
) -> set[str]:
    """Drop uploads of a connection that none of its records references any more."""
    dropped: set[str] = set()
    for blob_id in blob_ids:
        if not _is_referenced(session, subject_id, connection_id, blob_id):
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


def unheld_blobs(database: Database, directory: Path) -> set[str]:
    """Blobs in the directory that no connection holds."""
    with database.read() as session:
        held_ids = {blob_id for (blob_id,) in session.run(_ALL_HELD)}
    return {PREFIX + path.name for path in directory.glob("??/*")} - held_ids


def _unreferenced(session: Session, subject_id: str, before_ns: int) -> list[tuple[str, str]]:
    """(connection, blob) of old uploads without a reference."""
    old = session.rows(_OLD_UPLOADS, (subject_id, before_ns))
    return [pair for pair in old if not _is_referenced(session, subject_id, *pair)]


def _is_referenced(session: Session, subject_id: str, connection_id: str, blob_id: str) -> bool:
    return session.first(_IS_REFERENCED, (blob_id, subject_id, connection_id)) is not None
