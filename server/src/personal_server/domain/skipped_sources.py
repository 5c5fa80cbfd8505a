"""Warnings about an account that takes no part in a read, or less of one, with the reason."""

from __future__ import annotations

from personal_server.domain.answer_warnings import Warning

# The code of a reason, and how it is said; other reasons have their code alone.
_WHY_SKIPPED = {
    "unknown_field": "it has no field of a name that was asked for",
    "field_not_granted": "this access does not include a field that was asked for",
    "invalid_filter": "its field does not take this filter",
    "mode_not_available": "nothing in it can be searched",
    "declared_otherwise": "its field of that name is of another kind",
    "no_event_time": "this access includes no time of it",
}


def skipped(connection_id: str, stream: str, reason: str) -> Warning:
    """The warning for a selected source that cannot take part."""
    why = _WHY_SKIPPED.get(reason)
    left_out = f"One of the selected accounts is left out: {why}."
    message = left_out if why else "One of the selected accounts cannot take part in this read."
    return _warning(message, connection_id, stream, reason)


def without_related(connection_id: str, stream: str, reason: str) -> Warning:
    """The warning for a source that takes part without its related records of a stream."""
    message = "The records of one of the selected accounts come without these related ones."
    return _warning(message, connection_id, stream, reason)


def _warning(message: str, connection_id: str, stream: str, reason: str) -> Warning:
    return Warning(
        "source_skipped_not_applicable",
        message,
        connection_id=connection_id,
        detail={"stream": stream, "reason": reason},
    )
