"""What is refused of an export, as the process that reads it said."""

from __future__ import annotations

from collections.abc import Mapping

from pdpp_kernel.texts import parse_text
from pdpp_sources.common.errors import (
    ExportError,
    ExportNotFound,
    ExportNotRecognized,
    ExportTooCostly,
    ExportTruncated,
    ExportUnreadable,
    ExportUnsafe,
    RecipeError,
)
from pdpp_sources.reader_messages import Refused

_REFUSALS: Mapping[str, type[ExportError]] = {
    name.code: name
    for name in (
        ExportNotFound,
        ExportUnreadable,
        ExportTruncated,
        ExportUnsafe,
        ExportTooCostly,
        ExportNotRecognized,
    )
}


def refusal(reply: Refused) -> ExportError:
    """The error that a reply stands for."""
    sentence, next_step = parse_text(reply.sentence), parse_text(reply.next_step)
    if reply.code not in _REFUSALS:
        return RecipeError(reply.code, sentence, next_step)
    return _REFUSALS[reply.code](sentence, next_step)


def too_costly() -> ExportTooCostly:
    """The rest of an export cannot be read within the limits."""
    return ExportTooCostly(
        "Reading the rest would take more time or memory than any export should.",
        (
            "The records read so far are stored. Import the other files of the export "
            "one by one, or download the export again."
        ),
    )
