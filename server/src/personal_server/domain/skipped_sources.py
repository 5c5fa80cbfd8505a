"""The warning for an account that was asked for and cannot take part in a read, with the reason."""

from __future__ import annotations

from personal_server.domain.answer_warnings import Warning

# Why an account takes no part, where one does not; anything else is said without a reason.
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
    return Warning(
        "source_skipped_not_applicable",
        f"One of the selected accounts is left out: {why}."
        if why
        else "One of the selected accounts cannot take part in this read.",
        connection_id=connection_id,
        detail={"stream": stream, "reason": reason},
    )
