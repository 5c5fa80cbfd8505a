"""What is refused of an export, as the process that reads it said."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from pdpp_kernel.source_item import Skipped, SourceItem
from pdpp_kernel.texts import message, parse_text
from pdpp_sources.common.errors import (
    ExportError,
    ExportNotFound,
    ExportNotRecognized,
    ExportReaderFailed,
    ExportTooCostly,
    ExportTruncated,
    ExportUnreadable,
    ExportUnsafe,
    RecipeError,
)
from pdpp_sources.common.resume_point import READER_FAILED
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


def reader_failed(package: str | None) -> ExportReaderFailed:
    """An error in the reader itself, of another package where one is named, ended the reading."""
    if package is None:
        return ExportReaderFailed(
            "An error in the program ended the reading of this export.",
            "The records read so far are stored. Report the error that is printed with this.",
        )
    return ExportReaderFailed(
        message(
            "An error in the reader of the package %(package)s ended the reading of this export.",
            package=package,
        ),
        (
            "The records read so far are stored. Mend the reader or remove the package; "
            "with --as another source reads the export."
        ),
    )


def with_package(item: SourceItem, package: str) -> SourceItem:
    """An item of a reader of another package, which is named where it failed."""
    if not isinstance(item, Skipped) or item.code != READER_FAILED:
        return item
    reason = message(
        "an error in the reader of the package %(package)s ended reading here", package=package
    )
    return replace(item, reason=reason)
