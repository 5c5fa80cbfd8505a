"""Warnings about an account that takes no part in a read, or less of one, with the reason."""

from __future__ import annotations

from pdpp_kernel.errors import FieldNotGranted, InvalidFilter, UnknownField
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadableSource

# Why an account is left out where no error says it.
MODE_NOT_AVAILABLE = "mode_not_available"
NO_EVENT_TIME = "no_event_time"
DECLARED_OTHERWISE = "declared_otherwise"
"""It could answer on its own, but not together with the first account."""
# The code of a reason, and how it is said; other reasons have their code alone.
_WHY_SKIPPED = {
    UnknownField.code: "it has no field of a name that was asked for",
    FieldNotGranted.code: "this access does not include a field that was asked for",
    InvalidFilter.code: "its field does not take this filter",
    MODE_NOT_AVAILABLE: "nothing in it can be searched",
    DECLARED_OTHERWISE: "its field of that name is of another kind",
    NO_EVENT_TIME: "this access includes no time of it",
}


def skipped(source: ReadableSource, reason: str) -> Warning:
    """The warning for a selected source that cannot take part, with its owner's label."""
    why = _WHY_SKIPPED.get(reason)
    left_out = f"One of the selected accounts is left out: {why}."
    message = left_out if why else "One of the selected accounts cannot take part in this read."
    return _warning(message, source.connection_id, source.stream, reason, source.display_name)


def without_related(connection_id: str, stream: str, reason: str) -> Warning:
    """The warning for a source that takes part without its related records of a stream."""
    message = "The records of one of the selected accounts come without these related ones."
    return _warning(message, connection_id, stream, reason)


def _warning(
    message: str, connection_id: str, stream: str, reason: str, label: str | None = None
) -> Warning:
    return Warning(
        "source_skipped_not_applicable",
        message,
        connection_id=connection_id,
        display_name=label,
        detail={"stream": stream, "reason": reason},
    )
