"""The fixed tables of records.

Tables that hold the records themselves are made per source (`layout`).

Rule: what the owner has is keyed by `subject_id` first; `source` is the number of one
(subject, connection, stream) in `sources`.
"""

from personal_server.storage.tables import Bits, Cell, StoredRow, column


class StoreRow(StoredRow, table="store"):
    """A number about the store.

    `sequence` (the newest change), `retained_from` and `forgotten_until` (the number and the time
    to which history was cut), `tables` (the last number given to tables of records).
    """

    name: Cell[str] = column(key=True)
    value: Cell[int | float | None]


class FactRow(StoredRow, table="facts"):
    """A text about the store: `epoch`, whose it is, what upkeep notes."""

    name: Cell[str] = column(key=True)
    said: Cell[str]


class DeclarationRow(StoredRow, table="declarations", rowid=True):
    """An accepted revision of a source declaration."""

    subject_id: Cell[str] = column(key=True)
    connector_key: Cell[str] = column(key=True)
    version: Cell[str] = column(key=True)
    source_kind: Cell[str]
    source_id: Cell[str]
    digest: Cell[str]
    raw: Cell[bytes]
    registered_at: Cell[int]
    current: Cell[bool]


class LayoutRow(StoredRow, table="layouts"):
    """How a stream of the current declaration is stored."""

    subject_id: Cell[str] = column(key=True)
    connector_key: Cell[str] = column(key=True)
    stream: Cell[str] = column(key=True)
    layout: Cell[str]


class ConnectionRow(StoredRow, table="connections"):
    """A connection; `state_updated_at` is of its bookmarks."""

    subject_id: Cell[str] = column(key=True)
    connection_id: Cell[str] = column(key=True)
    connector_key: Cell[str]
    source_id: Cell[str]
    display_name: Cell[str | None]
    status: Cell[str]
    created_at: Cell[int]
    updated_at: Cell[int]
    revoked_at: Cell[int | None]
    state_updated_at: Cell[int | None] = column(default=None)


class RunRow(StoredRow, table="runs"):
    """The newest word about the runs of a connection."""

    subject_id: Cell[str] = column(key=True)
    connection_id: Cell[str] = column(key=True)
    run_id: Cell[str]
    status: Cell[str]
    at: Cell[int]
    succeeded_at: Cell[int | None]


class BookmarkRow(StoredRow, table="bookmarks"):
    """Where a collector stands in a stream."""

    subject_id: Cell[str] = column(key=True)
    connection_id: Cell[str] = column(key=True)
    stream: Cell[str] = column(key=True)
    value: Cell[object]


class RejectionRow(StoredRow, table="rejections"):
    """The receipt of a refused line."""

    number: Cell[int] = column(numbered=True, default=0)
    subject_id: Cell[str]
    connection_id: Cell[str]
    receipt_id: Cell[str]
    stream: Cell[str]
    code: Cell[str]
    path: Cell[str | None]
    run_id: Cell[str | None]
    at: Cell[int]


class SourceRow(StoredRow, table="sources"):
    """Where the records of a (connection, stream) are.

    `tables` is the number in the names of the tables that hold them, `records` how many they are;
    `unindexed_below` stands while the word index does not know every line (`SourceTables`).
    """

    source: Cell[int] = column(numbered=True, default=0)
    subject_id: Cell[str] = column(unique="place")
    connection_id: Cell[str] = column(unique="place")
    stream: Cell[str] = column(unique="place")
    tables: Cell[int]
    records: Cell[int]
    layout: Cell[str]
    unindexed_below: Cell[int | None] = column(default=None)


class ChangeRow(StoredRow, table="changes"):
    """A change of a record.

    `was` and `now` say whether it existed before and after, `was_at` and `now_at` are its
    consent-time instants; `fields` got another value; `prev` and `next` are the neighbouring
    changes of the same key.  `was_held` is what it held before of what grants may be limited by
    (`render_held`), null where that was not noted.
    """

    source: Cell[int] = column(key=True)
    sequence: Cell[int] = column(key=True)
    key: Cell[str]
    was: Cell[bool]
    was_at: Cell[int | float | None]
    now: Cell[bool]
    now_at: Cell[int | float | None]
    fields: Cell[tuple[str, ...] | None]
    emitted_at: Cell[int]
    written_at: Cell[int]
    prev: Cell[int | None]
    next: Cell[int | None]
    was_held: Cell[str | None] = column(default=None)


class GoneRow(StoredRow, table="gone"):
    """The last change of a key that is not there any more."""

    source: Cell[int] = column(key=True)
    key: Cell[str] = column(key=True)
    sequence: Cell[int]


class BlobUploadRow(StoredRow, table="blob_uploads"):
    """Bytes that a connection holds."""

    subject_id: Cell[str] = column(key=True)
    connection_id: Cell[str] = column(key=True)
    blob_id: Cell[str] = column(key=True)
    size_bytes: Cell[int]
    mime_type: Cell[str]
    uploaded_at: Cell[int]


class BlobReferenceRow(StoredRow, table="blob_references"):
    """A field of a record that refers to bytes."""

    source: Cell[int] = column(key=True)
    key: Cell[str] = column(key=True)
    field: Cell[str] = column(key=True)
    blob_id: Cell[str]


class SealingKeyRow(StoredRow, table="sealing_keys"):
    """A server key that seals cursors."""

    key_id: Cell[int] = column(numbered=True, default=0)
    subject_id: Cell[str]
    secret: Cell[bytes]
    created_at: Cell[int]


class EraRow(StoredRow, table="eras"):
    """Changes above `start` (up to the next row's) were written since that process first wrote.

    A copy that is put back and written to has another era after its end, so that what was followed
    past that end is known to be of another history.
    """

    start: Cell[int] = column(key=True)
    era: Cell[str]


class ErasureRow(StoredRow, table="erasures"):
    """What its owner erased: a connection, a stream of it, or one record.

    `key_digest` tells the record without its key.
    """

    subject_id: Cell[str] = column(key=True)
    erasure_id: Cell[str] = column(key=True)
    connection_id: Cell[str]
    stream: Cell[str | None]
    key_digest: Cell[str | None]
    at: Cell[int]


class BackupRow(StoredRow, table="backups"):
    """A backup that was made and, as far as is known, is kept.

    `sequence` is the newest change in it.
    """

    backup_id: Cell[str] = column(key=True)
    path: Cell[str]
    made_at: Cell[int]
    sequence: Cell[int]
    size_bytes: Cell[int]
    sealed: Cell[bool]
    scheduled: Cell[bool]


class RebuildRow(StoredRow, table="rebuilds"):
    """Further tables of a source: being filled to take the place of its own, or being emptied.

    `position` is the id of the last line copied; changes up to `since` are in the copy.
    """

    source: Cell[int] = column(key=True)
    tables: Cell[int] = column(key=True)
    layout: Cell[str]
    position: Cell[int | None]
    since: Cell[int]
    copied: Cell[int]
    emptying: Cell[bool]


class ThreadMarkRow(StoredRow, table="thread_marks"):
    """A mark that a record left, by which records that come later join its thread.

    `mark` is a digest; `at` as in `domain.source_item.ThreadLinks`.
    """

    source: Cell[int] = column(key=True)
    mark: Cell[str] = column(key=True)
    at: Cell[int] = column(key=True)
    thread: Cell[str] = column(key=True)


class MentionRow(StoredRow, table="mentions"):
    """An identity that a field of a record has (`domain.persons`).

    `place` counts the entries of the field; `name` is the one that stands with it.
    """

    source: Cell[int] = column(key=True)
    field: Cell[str] = column(key=True)
    key: Cell[str] = column(key=True)
    place: Cell[int] = column(key=True)
    kind: Cell[str]
    value: Cell[str]
    name: Cell[str | None]


class CorrectionRow(StoredRow, table="person_corrections"):
    """What the owner said of persons: two identities are one's, or one is nobody else's.

    For the latter the two are the same.
    """

    subject_id: Cell[str] = column(key=True)
    kind: Cell[str] = column(key=True)
    value: Cell[str] = column(key=True)
    other_kind: Cell[str] = column(key=True)
    other_value: Cell[str] = column(key=True)


class ErasedRow(StoredRow, table="erased", rowid=True):
    """A source whose word index still holds words of erased records."""

    source: Cell[int] = column(key=True)


class PassageRow(StoredRow, table="passages"):
    """A passage of a field as a vector (`pdpp_kernel.vectors`): code points from `start` to `stop`.

    `tables` and `id` say whose record it is, as in the tables of its source; `place` counts the
    passages of the field.
    """

    tables: Cell[int] = column(key=True)
    field: Cell[str] = column(key=True)
    id: Cell[int] = column(key=True)
    place: Cell[int] = column(key=True)
    start: Cell[int]
    stop: Cell[int]
    vector: Cell[bytes]


class PassageSignsRow(StoredRow, table="passage_signs"):
    """The signs of a passage's vector, a bit each: so little that all can be looked at."""

    tables: Cell[int] = column(key=True)
    field: Cell[str] = column(key=True)
    id: Cell[int] = column(key=True)
    place: Cell[int] = column(key=True)
    signs: Cell[Bits]


class PassageBlockRow(StoredRow, table="passage_blocks"):
    """The signs of all passages of a field whose records have ids from `first` to `last`.

    They follow from the vectors, and go when one of these comes or goes.
    """

    tables: Cell[int] = column(key=True)
    field: Cell[str] = column(key=True)
    last: Cell[int] = column(key=True)
    first: Cell[int]
    ids: Cell[bytes]
    signs: Cell[bytes]


class PassageIndexRow(StoredRow, table="passage_indexes"):
    """How far the passages of a source were made.

    Of these `fields`, for every record with an id from `position` on (null: none yet, the newest
    come first) and for every change up to `since`.
    """

    tables: Cell[int] = column(key=True)
    fields: Cell[tuple[str, ...]]
    position: Cell[int | None]
    since: Cell[int]
