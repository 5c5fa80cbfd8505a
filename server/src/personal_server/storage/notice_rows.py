"""The tables of notices to the owner: what stands, by which channels it is told, and when.

Source: docs/contract/authorization-server.md 13.8, 18.
"""

from personal_server.storage.authorization_rows import AuthorizationRow
from personal_server.storage.tables import Cell, StoredRow, column


class NoticeRow(AuthorizationRow, table="notices"):
    """A cause that stands: `name` and `at_ns` are what its sentence names.

    `told` is when each channel was told of it, by the channel's id.
    """

    kind: Cell[str] = column(key=True)
    about: Cell[str] = column(key=True)
    name: Cell[str]
    at_ns: Cell[int]
    noticed_at_ns: Cell[int]
    told: Cell[dict[str, int]] = column(default_factory=dict[str, int])


class NoticeChannelRow(AuthorizationRow, table="notice_channels"):
    """Where the owner is told: `kind` is `desktop`, `webhook` or `push`, `address` a URL of these.

    `secret` is sealed: what a webhook is signed with, or the two keys of a browser.  `told` is when
    each kind of notice was told here last.  After `failures` in a row nothing is sent before
    `due_at_ns`; `outcome` is of the last attempt, at `tried_at_ns`.
    """

    channel_id: Cell[str] = column(key=True)
    kind: Cell[str]
    name: Cell[str]
    address: Cell[str] = column(default="")
    secret: Cell[bytes | None] = column(default=None)
    created_at_ns: Cell[int]
    told: Cell[dict[str, int]] = column(default_factory=dict[str, int])
    test_asked: Cell[bool] = column(default=False)
    failures: Cell[int] = column(default=0)
    failing_since_ns: Cell[int | None] = column(default=None)
    due_at_ns: Cell[int] = column(default=0)
    tried_at_ns: Cell[int | None] = column(default=None)
    outcome: Cell[str | None] = column(default=None)


class NoticeSettingsRow(AuthorizationRow, table="notice_settings"):
    """When and of what the owner is told; the table has at most one row a subject.

    Quiet hours are minutes since midnight of the owner's zone; `kinds_off` are kinds that are not
    told; `push_key` is the sealed key that browsers know this server by.
    """

    quiet_from: Cell[int | None] = column(default=None)
    quiet_until: Cell[int | None] = column(default=None)
    kinds_off: Cell[tuple[str, ...]] = column(default=())
    push_key: Cell[bytes | None] = column(default=None)


NOTICE_ROWS: tuple[type[StoredRow], ...] = (NoticeRow, NoticeChannelRow, NoticeSettingsRow)
