"""The tables of feeds: what keeps accounts current, which items it took, how its runs went.

Source: docs/contract/feeds.md.
"""

from personal_server.storage.tables import Cell, StoredRow, column

FOLDER_KIND = "folder"
"""The kind of a feed whose place is a folder of this machine (the others: `feed_kinds`)."""
KEEP, FOLLOW = "keep", "follow"
"""What becomes of records of what was deleted in a place (`FeedRow.deletions`)."""
FEED_ID = "fee_"
"""What the id of a feed begins with, and so that of a run that a feed records."""
UNSURE = "unsure"
"""The code of a mail whose record may be there or not: its import or deletion was begun."""


class FeedRow(StoredRow, table="feeds"):
    """A feed.

    `state` is a word of `FeedState`; `code` is what failed or what the owner is needed for, with
    `failures` in a row since `failing_since_ns`.  `holder` has the lease until `held_until_ns`.
    `layout` says what an item is, `account` the account that its owner named, `reached` how far
    the newest change lay that was imported (in nanoseconds of the place's own clock; of a mailbox
    how many looks there were).  `deletions` says what becomes of records whose item was deleted
    there (`KEEP`, `FOLLOW`), and `chosen` which parts of an account are fetched (none: all).
    `brought_at_ns` is the end of the last run that stored new records, `arrivals` how many did, and
    `longest_silence_ns` the longest time between two of them; `trouble` is what its owner was told
    last (a word of `FeedTrouble`).  `watched_by` waits at the place for changes until
    `watched_until_ns`.  `silent_since_ns` is since when the server that a run waits for has said
    nothing, where that is long.  `sign_in_ends_ns` is when the provider asks its owner to sign in
    again, and `provider` the one at which it signs in by tokens, as its owner named it.
    """

    by_subject = True

    feed_id: Cell[str] = column(key=True)
    name: Cell[str]
    kind: Cell[str]
    place: Cell[str]
    layout: Cell[str]
    account: Cell[str | None] = column(default=None)
    every_seconds: Cell[int]
    state: Cell[str]
    code: Cell[str | None] = column(default=None)
    failures: Cell[int] = column(default=0)
    failing_since_ns: Cell[int | None] = column(default=None)
    created_at_ns: Cell[int]
    succeeded_at_ns: Cell[int | None] = column(default=None)
    due_at_ns: Cell[int]
    holder: Cell[str | None] = column(default=None)
    held_until_ns: Cell[int | None] = column(default=None)
    reached: Cell[int | None] = column(default=None)
    connection_ids: Cell[tuple[str, ...]] = column(default=())
    deletions: Cell[str] = column(default=KEEP)
    chosen: Cell[tuple[str, ...]] = column(default=())
    brought_at_ns: Cell[int | None] = column(default=None)
    arrivals: Cell[int] = column(default=0)
    longest_silence_ns: Cell[int] = column(default=0)
    trouble: Cell[str | None] = column(default=None)
    watched_by: Cell[str | None] = column(default=None)
    watched_until_ns: Cell[int | None] = column(default=None)
    sign_in_ends_ns: Cell[int | None] = column(default=None)
    provider: Cell[str | None] = column(default=None)
    silent_since_ns: Cell[int | None] = column(default=None)


class FeedItemRow(StoredRow, table="feed_items"):
    """An item of a feed as it was last seen: a line of the ledger.

    `mark` is the state that `state` speaks of (a word of `ItemState`); `code` says why it was
    rejected, by which version (`reader`); `record_keys` are the records of an item of calendars or
    contacts, each as `STREAM/KEY`, and of a folder whose deletions are followed what
    `FollowedFolder.kept` says; `at_ns` is when it was first seen with that mark, and `since_ns`
    when its changes began that were not imported yet.
    """

    by_subject = True

    feed_id: Cell[str] = column(key=True)
    item: Cell[str] = column(key=True)
    mark: Cell[str]
    state: Cell[str]
    code: Cell[str | None] = column(default=None)
    reader: Cell[str]
    at_ns: Cell[int]
    since_ns: Cell[int]
    record_keys: Cell[tuple[str, ...]] = column(default=())


class FeedRunRow(StoredRow, table="feed_runs"):
    """The receipt of a run, or of several in a row that found nothing to do."""

    by_subject = True

    feed_id: Cell[str] = column(key=True)
    began_at_ns: Cell[int] = column(key=True)
    ended_at_ns: Cell[int]
    runs: Cell[int] = column(default=1)
    outcome: Cell[str]
    code: Cell[str | None] = column(default=None)
    seen: Cell[int] = column(default=0)
    new: Cell[int] = column(default=0)
    changed: Cell[int] = column(default=0)
    gone: Cell[int] = column(default=0)
    rejected: Cell[int] = column(default=0)
    settling: Cell[int] = column(default=0)
    records_new: Cell[int] = column(default=0)
    records_updated: Cell[int] = column(default=0)
    size_bytes: Cell[int] = column(default=0)
    commands: Cell[int] = column(default=0)


class FeedMailRow(StoredRow, table="feed_mails"):
    """A mail in a folder of an account, and the record that it is.

    Copies of a mail have `copy_of` in common (empty: not known), and one record.  `record_key` is
    empty for a mail that became none, of which `code` says why, or that nobody knows whether it did
    (`UNSURE`); `gone_at` is the number of the look that found it gone.
    """

    by_subject = True

    feed_id: Cell[str] = column(key=True)
    folder: Cell[str] = column(key=True)
    uid: Cell[int] = column(key=True)
    copy_of: Cell[str]
    record_key: Cell[str]
    labels: Cell[tuple[str, ...]] = column(default=())
    code: Cell[str | None] = column(default=None)
    gone_at: Cell[int | None] = column(default=None)


FEED_ROWS: tuple[type[StoredRow], ...] = (FeedRow, FeedItemRow, FeedRunRow, FeedMailRow)
