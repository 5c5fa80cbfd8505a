"""Field windows: a bounded stretch of one long text.

Rule: the store cuts the window; the whole value never passes here.
Source: docs/contract/resource-server.md 9.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pdpp_kernel.errors import FieldNotFound, FieldNotText, QueryNotFound
from pdpp_kernel.wire_objects import (
    ConnectionId,
    Count,
    Digest,
    RoutePath,
    WireObject,
    Word,
)
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.envelope import ReadResult
from personal_server.enforcement.ambiguity import ambiguous
from personal_server.enforcement.authorize import authorize_field_window
from personal_server.enforcement.authorized_reads import AuthorizedRead
from personal_server.enforcement.disclose import identity
from personal_server.enforcement.plans import FieldWindowPlan
from personal_server.enforcement.queries import FieldWindowQuery
from personal_server.enforcement.rows import FieldWindow, WindowOutcome
from personal_server.storage.ports.snapshots import ReadSnapshot


class WindowedField(WireObject, kw_only=True):
    """The field that a window is of."""

    path: Word
    type: Literal["string"]
    text_like: bool
    size_chars: Count
    digest: Digest
    mime_type: str | None = None


class TextWindow(WireObject):
    """A stretch of text, and where it stands in the whole."""

    text: str
    start_chars: Count
    end_chars: Count
    total_chars: Count
    limit_chars: Count
    complete: bool
    has_more: bool
    next_offset_chars: Count | None
    previous_offset_chars: Count | None
    match_start_chars: Count | None
    match_end_chars: Count | None


class ShownFieldWindow(WireObject, kw_only=True, tag_field="object", tag="field_window"):
    """A stretch of one field of one record."""

    stream: Word
    record_id: Word
    connection_id: ConnectionId
    connector_key: Word
    display_name: str | None = None
    grant_id: str | None = None
    url: RoutePath
    field: WindowedField
    window: TextWindow


def read_field_window(
    snapshot: ReadSnapshot, authority: ReadAuthority, query: FieldWindowQuery, url: str
) -> ReadResult:
    """One window.

    Raises: what `authorize_field_window` raises, NotFound, AmbiguousConnection, FieldNotFound,
        FieldNotText, QueryNotFound.
    """
    read = authorize_field_window(authority, query)
    window = _the_one(snapshot, authority, read.sources, snapshot.field_window(read.plan))
    _refuse_unreadable(window)
    source = next(s for s in read.sources if s.connection_id == window.connection_id)
    shown = ShownFieldWindow(
        stream=source.stream,
        record_id=query.key,
        **identity(authority, source),
        url=url,
        field=_field(source, query.field, window),
        window=_window(read, window),
    )
    return ReadResult(data=shown, disclosed=[Disclosed(source, (query.field,), 1, (query.key,))])


def _the_one(
    snapshot: ReadSnapshot,
    authority: ReadAuthority,
    sources: Sequence[ReadableSource],
    windows: Sequence[FieldWindow],
) -> FieldWindow:
    if not windows:
        from personal_server.reading.single_records import no_such_record  # noqa: PLC0415 (seldom)

        raise no_such_record(snapshot)
    if len(windows) > 1:
        holders = {window.connection_id for window in windows}
        holding = [s for s in sources if s.connection_id in holders]
        raise ambiguous(authority, holding, holding[0].stream)
    return windows[0]


def _refuse_unreadable(window: FieldWindow) -> None:
    match window.outcome:
        case WindowOutcome.NO_VALUE:
            raise FieldNotFound("The record has no value in this field.", param="field")
        case WindowOutcome.NOT_TEXT:
            raise FieldNotText(
                "The field holds no text. Fetch the whole record to read this field.", param="field"
            )
        case WindowOutcome.NO_MATCH:
            raise QueryNotFound("The field does not contain this text.", param="q")
        case WindowOutcome.FOUND:
            return


def _field(source: ReadableSource, name: str, window: FieldWindow) -> WindowedField:
    mime_type = source.declared.properties[name].schema.get("contentMediaType")
    return WindowedField(
        path=name,
        type="string",
        text_like=True,
        size_chars=window.total_chars,
        digest=f"sha256:{window.digest}",
        mime_type=mime_type if isinstance(mime_type, str) else None,
    )


def _window(read: AuthorizedRead[FieldWindowPlan], window: FieldWindow) -> TextWindow:
    start, limit = window.start_chars, read.plan.limit_chars
    end = start + len(window.text)
    more = end < window.total_chars
    return TextWindow(
        text=window.text,
        start_chars=start,
        end_chars=end,
        total_chars=window.total_chars,
        limit_chars=limit,
        complete=start == 0 and not more,
        has_more=more,
        next_offset_chars=end if more else None,
        previous_offset_chars=max(0, start - limit) if start else None,
        match_start_chars=window.match_start_chars,
        match_end_chars=window.match_end_chars,
    )
