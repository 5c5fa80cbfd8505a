"""Blobs, sealing keys and rankings in SQLite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import BinaryIO

import orjson

from personal_server.domain.values import NANOSECONDS
from personal_server.storage.sqlite.blobs import (
    blob_path,
    forget_unreferenced,
    put_in_place,
    receive,
    remove_unheld,
    stray_files,
    unreferenced,
)
from personal_server.storage.sqlite.committing import writable
from personal_server.storage.sqlite.part import SqlitePart
from personal_server.storage.stored import BlobUpload, RankedHit, SealingKey

# Rankings that ended this long before a new one will are removed.
FORGOTTEN = 3_600 * NANOSECONDS


class SqliteBlobs(SqlitePart):
    """Blobs of a subject."""

    def receive_blob(
        self,
        connection_id: str,
        chunks: Iterable[bytes],
        mime_type: str,
        now_ns: int,
        max_bytes: int,
    ) -> tuple[BlobUpload, bool]:
        """See the port."""
        with self._database.read() as session:
            writable(session, self.subject_id, connection_id)
        scratch, blob_id, size = receive(self._blob_directory, chunks, max_bytes)
        upload = BlobUpload(blob_id, connection_id, size, mime_type, now_ns)
        try:
            with self._database.write() as session:
                writable(session, self.subject_id, connection_id)
                place = (self.subject_id, connection_id, blob_id)
                known = session.first(
                    "SELECT 1 FROM blob_uploads"
                    " WHERE subject_id = ? AND connection_id = ? AND blob_id = ?",
                    place,
                )
                put_in_place(self._blob_directory, scratch, blob_id)
                session.run(
                    "INSERT OR REPLACE INTO blob_uploads VALUES (?, ?, ?, ?, ?, ?)",
                    (*place, size, mime_type, now_ns),
                )
        finally:
            scratch.unlink(missing_ok=True)
        return upload, known is None

    def open_blob(self, blob_id: str) -> BinaryIO | None:
        """See the port."""
        with self._database.read() as session:
            held = session.first(
                "SELECT 1 FROM blob_uploads WHERE blob_id = ? AND subject_id = ?",
                (blob_id, self.subject_id),
            )
        if held is None:
            return None
        try:
            return blob_path(self._blob_directory, blob_id).open("rb")
        except FileNotFoundError:
            return None

    def blob_upload(self, connection_id: str, blob_id: str) -> BlobUpload | None:
        """See the port."""
        with self._database.read() as session:
            line = session.first(
                "SELECT blob_id, connection_id, size_bytes, mime_type, uploaded_at"
                " FROM blob_uploads WHERE subject_id = ? AND connection_id = ? AND blob_id = ?",
                (self.subject_id, connection_id, blob_id),
            )
        return None if line is None else BlobUpload(*line)

    def sweep_blobs(self, before_ns: int) -> int:
        """See the port.  Files that interrupted calls left behind go with them."""
        with self._database.write() as session:
            old = unreferenced(session, self.subject_id, before_ns)
            for connection_id, blob_id in old:
                forget_unreferenced(session, self.subject_id, connection_id, [blob_id])
        strays = stray_files(self._blob_directory, before_ns)
        for path in strays:
            if path.parent == self._blob_directory:
                path.unlink(missing_ok=True)
        named = {f"blob_sha256_{path.name}" for path in strays}
        remove_unheld(self._database, self._blob_directory, {b for _, b in old} | named)
        return len(old)


class SqliteServer(SqlitePart):
    """What the server keeps for itself."""

    def sealing_keys(self) -> tuple[SealingKey, ...]:
        """See the port."""
        with self._database.read() as session:
            lines = session.rows(
                "SELECT key_id, secret, created_at FROM sealing_keys WHERE subject_id = ?"
                " ORDER BY key_id DESC",
                (self.subject_id,),
            )
        return tuple(SealingKey(*line) for line in lines)

    def add_sealing_key(self, secret: bytes, now_ns: int) -> SealingKey:
        """See the port."""
        with self._database.write() as session:
            key_id = session.value(
                "INSERT INTO sealing_keys (subject_id, secret, created_at) VALUES (?, ?, ?)"
                " RETURNING key_id",
                (self.subject_id, secret, now_ns),
            )
        return SealingKey(key_id, secret, now_ns)

    def put_ranking(self, ranking_id: str, hits: Sequence[RankedHit], expires_at_ns: int) -> None:
        """See the port."""
        text = orjson.dumps([(h.connection_id, h.stream, h.key, h.score) for h in hits]).decode()
        with self._database.jot() as session:
            session.run("DELETE FROM rankings WHERE expires_at < ?", (expires_at_ns - FORGOTTEN,))
            session.run(
                "INSERT OR REPLACE INTO rankings VALUES (?, ?, ?, ?)",
                (self.subject_id, ranking_id, expires_at_ns, text),
            )

    def ranking(self, ranking_id: str, now_ns: int) -> tuple[RankedHit, ...] | None:
        """See the port."""
        with self._database.read() as session:
            text = session.value(
                "SELECT hits FROM rankings"
                " WHERE subject_id = ? AND ranking_id = ? AND expires_at > ?",
                (self.subject_id, ranking_id, now_ns),
            )
        return None if text is None else tuple(RankedHit(*hit) for hit in orjson.loads(text))
