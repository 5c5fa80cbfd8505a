"""The tables of the disclosure log."""

from personal_server.storage.tables import Cell, StoredRow, column


class DisclosureRow(StoredRow, table="disclosures"):
    """An entry of the log with its number."""

    by_subject = True
    number: Cell[int] = column(key=True)
    disclosure_id: Cell[str]
    at_ns: Cell[int]
    request_id: Cell[str]
    outcome: Cell[str]
    error_code: Cell[str | None]
    token_kind: Cell[str]
    client_id: Cell[str | None]
    grant_id: Cell[str | None]
    package_id: Cell[str | None]
    channel: Cell[str]
    tool: Cell[str | None]
    route: Cell[str]
    connector_key: Cell[str | None]
    connection_id: Cell[str | None]
    stream: Cell[str | None]
    fields: Cell[tuple[str, ...]]
    record_count: Cell[int]
    size_bytes: Cell[int]
    link: Cell[bytes | None] = column(default=None)
    commitment: Cell[str | None] = column(default=None)


class DisclosureDetailRow(StoredRow, table="disclosure_details"):
    """What lies beside the line of that number: deleting it breaks no chain."""

    by_subject = True
    number: Cell[int] = column(key=True)
    at_ns: Cell[int]
    connection_id: Cell[str | None]
    stream: Cell[str | None]
    salt: Cell[bytes]
    asked: Cell[str]
    keys: Cell[tuple[str, ...]]


class DisclosureShareRow(StoredRow, table="disclosure_shares"):
    """What was served on a UTC day, counted from 1970, to a client, of a stream.

    Shapes: `client_id` is empty for the owner's tokens, `stream` for what named none.
    """

    by_subject = True
    day: Cell[int] = column(key=True)
    client_id: Cell[str] = column(key=True)
    stream: Cell[str] = column(key=True)
    record_count: Cell[int]
    answer_count: Cell[int]
