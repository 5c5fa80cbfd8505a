"""What repeats stands in one stream at its first time only, and in another at every time.

    asked      `events` in November                  a weekly lesson that began in May is not there
    told       `first_times_only`, `shown_in: agenda`, whose records are its single times

Rule: it follows from request and access, whatever is stored.
Source: docs/contract/resource-server.md 2.3, 17 (role `occurrence-of`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource, ReadAuthority
from personal_server.enforcement.authorized_reads import occurrences_plan
from personal_server.enforcement.queries import ALWAYS, SearchQuery, Times


def first_times_only(
    authority: ReadAuthority,
    sources: Sequence[ReadableSource],
    fields: AbstractSet[str],
    times: Times = ALWAYS,
) -> Iterator[Warning]:
    """A warning for each asked stream that has first times only, where the request goes by time.

    Shapes: `fields` are those that the request names; where the other stream grants them all, the
        same can be asked of it (`shown_in`). A range of time names no field.
    """
    warned = set[tuple[str, str]]()
    for source in sources:
        if times == ALWAYS and source.declared.event_time_field not in fields:
            continue
        for other in authority.sources:
            pair = source.stream, other.stream
            if pair in warned or other in sources or occurrences_plan(source, other, ()) is None:
                continue
            warned.add(pair)
            shown_in = {"shown_in": other.stream} if fields <= {*other.fields} else {}
            yield Warning(
                "first_times_only",
                f"Of what repeats, '{source.stream}' has the first time only; "
                f"'{other.stream}' has every time.",
                detail={"stream": source.stream} | shown_in,
            )


def first_times_found(
    authority: ReadAuthority, sources: Sequence[ReadableSource], query: SearchQuery
) -> Iterator[Warning]:
    """The same of a search in a range of time that names its streams."""
    if query.times != ALWAYS and query.streams:
        fields = {each.field for each in query.filters}
        yield from first_times_only(authority, sources, fields, query.times)
