"""Blobs that come: several at once, so that the disk is waited for once for all of them.

Rule: bytes are whole and on the disk, and have their name, before their uploads are committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path

from personal_server.domain.stored import BlobUpload, IncomingBlob
from personal_server.storage.sql.driver import Database, Session
from personal_server.storage.sql.fixed_tables import BlobUploadRow
from personal_server.storage.sql.records.blob_files import (
    keep_on_disk,
    put_in_place,
    receive_file,
)
from personal_server.storage.sql.statements import exists, replacing
from personal_server.storage.sql.store_part import writable

IS_HELD = exists(
    BlobUploadRow, BlobUploadRow.subject_id, BlobUploadRow.connection_id, BlobUploadRow.blob_id
)
# So many are in scratch files at once, and get their names while others wait to write.
_AT_ONCE = 100


def received(
    database: Database,
    directory: Path,
    row_key: tuple[str, str],
    incoming: Iterable[IncomingBlob],
    now_ns: int,
) -> list[tuple[BlobUpload, bool]]:
    """The uploads of a connection, which `row_key` tells, and whether it did not hold them yet.

    Those that it is known to hold are left out.
    """
    with database.read() as session:
        writable(session, *row_key)
        waiting = iter([blob for blob in incoming if not _is_held(session, row_key, blob.blob_id)])
    uploads: list[tuple[BlobUpload, bool]] = []
    while some := list(islice(waiting, _AT_ONCE)):
        with ExitStack() as scratches:
            files: list[tuple[Path, BlobUpload]] = []
            for blob in some:
                scratch, blob_id, size = receive_file(directory, blob.chunks, blob.max_bytes)
                scratches.callback(partial(scratch.unlink, missing_ok=True))
                upload = BlobUpload(blob_id, row_key[1], size, blob.mime_type, now_ns)
                files.append((scratch, upload))
            keep_on_disk([scratch for scratch, _ in files])
            with database.write() as session:
                writable(session, *row_key)
                uploads += _noted(session, row_key, [upload for _, upload in files])
                put_in_place(directory, [(scratch, upload.blob_id) for scratch, upload in files])
    return uploads


def _is_held(session: Session, row_key: tuple[str, str], blob_id: str | None) -> bool:
    return blob_id is not None and session.first(IS_HELD, (*row_key, blob_id)) is not None


def _noted(
    session: Session, row_key: tuple[str, str], uploads: Sequence[BlobUpload]
) -> list[tuple[BlobUpload, bool]]:
    noted: list[tuple[BlobUpload, bool]] = []
    for upload in uploads:
        is_held = _is_held(session, row_key, upload.blob_id)
        line = (
            *row_key,
            upload.blob_id,
            upload.size_bytes,
            upload.mime_type,
            upload.uploaded_at_ns,
        )
        session.run(replacing(BlobUploadRow), line)
        noted.append((upload, not is_held))
    return noted
