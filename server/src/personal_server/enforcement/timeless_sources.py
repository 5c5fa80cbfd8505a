"""What an answer in the order or range of time says of the sources that have no time to go by.

Source: docs/contract/resource-server.md 7.9, 8.
"""

from __future__ import annotations

from collections.abc import Iterable

from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource
from personal_server.domain.envelope import MAX_NAMED_CONNECTIONS
from personal_server.domain.skipped_sources import NO_EVENT_TIME, skipped


def without_time(
    sources: Iterable[ReadableSource], others: Iterable[ReadableSource], named: tuple[str, ...]
) -> list[Warning]:
    """A warning for each stream that the request names, else one that names all.

    Shapes: `others` are all that were looked at, among them those that have a time.
    """
    timeless = list(sources)
    if named:
        return [skipped(source, NO_EVENT_TIME) for source in timeless]
    if not timeless:
        return []
    names = sorted({source.stream for source in timeless})
    streams = names[:MAX_NAMED_CONNECTIONS]
    left_out = {source.order for source in timeless}
    shown = {source.stream for source in others if source.order not in left_out}
    partly = [name for name in streams if name in shown]
    labels = [f"{name} (of some accounts)" if name in shown else name for name in streams]
    omitted = len(names) - len(streams)
    more = f" and {omitted} more" if omitted else ""
    also = ({"partly": partly} if partly else {}) | ({"omitted": omitted} if omitted else {})
    return [
        Warning(
            "source_skipped_not_applicable",
            (
                "Left out, because this access includes no time of these streams: "
                f"{', '.join(labels)}{more}."
            ),
            detail={"streams": streams, "reason": NO_EVENT_TIME} | also,
        )
    ]
