"""The fixed tables of records.  Tables that hold the records themselves are made per source.

Rule: what the owner has is keyed by `subject_id` first; `source` is the number of one
(subject, connection, stream) in `sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from personal_server.storage.sql.driver import Session

Migration = str | Callable[[Session], None]


@dataclass(frozen=True, slots=True)
class SchemaModule:
    """The tables of one part of the program: migration i brings version i to i + 1."""

    name: str
    migrations: Sequence[Migration]


_V1 = (
    # name: subject_id, epoch, sequence, retained_from, tables (the last number given to tables)
    """CREATE TABLE store (name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID""",
    """CREATE TABLE declarations (
        subject_id TEXT, connector_key TEXT, version TEXT, source_kind TEXT NOT NULL,
        source_id TEXT NOT NULL, digest TEXT NOT NULL, raw BLOB NOT NULL,
        registered_at INTEGER NOT NULL, current INTEGER NOT NULL,
        PRIMARY KEY (subject_id, connector_key, version)) STRICT""",
    # how the streams of the current declarations are stored
    """CREATE TABLE layouts (
        subject_id TEXT, connector_key TEXT, stream TEXT, layout TEXT NOT NULL,
        PRIMARY KEY (subject_id, connector_key, stream)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE connections (
        subject_id TEXT, connection_id TEXT, connector_key TEXT NOT NULL, source_id TEXT NOT NULL,
        display_name TEXT, status TEXT NOT NULL, created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL, revoked_at INTEGER, state_updated_at INTEGER,
        PRIMARY KEY (subject_id, connection_id)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE runs (
        subject_id TEXT, connection_id TEXT, run_id TEXT NOT NULL, status TEXT NOT NULL,
        at INTEGER NOT NULL, succeeded_at INTEGER,
        PRIMARY KEY (subject_id, connection_id)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE bookmarks (
        subject_id TEXT, connection_id TEXT, stream TEXT, value TEXT NOT NULL,
        PRIMARY KEY (subject_id, connection_id, stream)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE rejections (
        number INTEGER PRIMARY KEY AUTOINCREMENT, subject_id TEXT NOT NULL,
        connection_id TEXT NOT NULL, receipt_id TEXT NOT NULL, stream TEXT NOT NULL,
        code TEXT NOT NULL, path TEXT, run_id TEXT, at INTEGER NOT NULL) STRICT""",
    "CREATE INDEX rejections_place ON rejections (subject_id, connection_id, number)",
    # `tables`: the number in the names of the tables that hold the records; `records`: how many
    """CREATE TABLE sources (
        source INTEGER PRIMARY KEY AUTOINCREMENT, subject_id TEXT NOT NULL,
        connection_id TEXT NOT NULL, stream TEXT NOT NULL, tables INTEGER NOT NULL,
        records INTEGER NOT NULL, layout TEXT NOT NULL,
        UNIQUE (subject_id, connection_id, stream)) STRICT""",
    # `was`, `now`: whether the record existed before and after; `was_at`, `now_at`: its
    # consent-time instants; `fields`: JSON array of the fields that got another value;
    # `prev`, `next`: the neighbouring changes of the same key
    """CREATE TABLE changes (
        source INTEGER, sequence INTEGER, key TEXT NOT NULL, was INTEGER NOT NULL, was_at ANY,
        now INTEGER NOT NULL, now_at ANY, fields TEXT, emitted_at INTEGER NOT NULL,
        written_at INTEGER NOT NULL, prev INTEGER, next INTEGER,
        PRIMARY KEY (source, sequence)) STRICT, WITHOUT ROWID""",
    # the last change of each key that is not there any more
    """CREATE TABLE gone (
        source INTEGER, key TEXT, sequence INTEGER NOT NULL,
        PRIMARY KEY (source, key)) STRICT, WITHOUT ROWID""",
    """CREATE TABLE blob_uploads (
        subject_id TEXT, connection_id TEXT, blob_id TEXT, size_bytes INTEGER NOT NULL,
        mime_type TEXT NOT NULL, uploaded_at INTEGER NOT NULL,
        PRIMARY KEY (subject_id, connection_id, blob_id)) STRICT, WITHOUT ROWID""",
    "CREATE INDEX blob_uploads_blob ON blob_uploads (blob_id)",
    """CREATE TABLE blob_references (
        source INTEGER, key TEXT, field TEXT, blob_id TEXT NOT NULL,
        PRIMARY KEY (source, key, field)) STRICT, WITHOUT ROWID""",
    "CREATE INDEX blob_references_blob ON blob_references (blob_id, source, key, field)",
    """CREATE TABLE sealing_keys (
        key_id INTEGER PRIMARY KEY AUTOINCREMENT, subject_id TEXT NOT NULL, secret BLOB NOT NULL,
        created_at INTEGER NOT NULL) STRICT""",
    """CREATE TABLE rankings (
        subject_id TEXT, ranking_id TEXT, expires_at INTEGER NOT NULL, hits TEXT NOT NULL,
        PRIMARY KEY (subject_id, ranking_id)) STRICT, WITHOUT ROWID""",
    # sources whose word index still holds words of erased records
    "CREATE TABLE erased (source INTEGER PRIMARY KEY) STRICT",
)

SCHEMA = SchemaModule("records", _V1)
