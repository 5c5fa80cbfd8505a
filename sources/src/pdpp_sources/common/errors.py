"""What can go wrong with an export as a whole, or with one record of it.

A fault of the whole export is raised (`ExportError`); a fault of one record is raised inside a
reader as `BadRecord` and leaves it as a `Skipped` item: one bad record never stops an import.
"""

from __future__ import annotations

from pdpp_kernel.texts import text_of


class ExportError(Exception):
    """The export cannot be read at all: a stable code, one sentence, and what to do next."""

    code = "export_unreadable"

    def __init__(self, sentence: str, next_step: str) -> None:
        super().__init__(sentence)
        self.sentence = text_of(sentence)
        self.next_step = next_step


class ExportNotFound(ExportError):
    """There is nothing at that path."""

    code = "export_not_found"


class ExportUnreadable(ExportError):
    """The path exists, but its content cannot be read."""

    code = "export_unreadable"


class ExportTruncated(ExportError):
    """The archive ends before its table of contents."""

    code = "export_truncated"


class ExportUnsafe(ExportError):
    """The archive is built to exhaust the reader (a zip bomb)."""

    code = "export_unsafe"


class ExportTooCostly(ExportError):
    """Reading it takes more time or memory than any export should."""

    code = "export_too_costly"


class ExportReaderFailed(ExportError):
    """An error in a reader itself ended its reading."""

    code = "export_reader_failed"


class ExportNotRecognized(ExportError):
    """No source knows this content."""

    code = "export_not_recognized"


class RecipeError(ExportError):
    """A recipe that cannot be used; each fault has a code of its own."""

    def __init__(self, code: str, sentence: str, next_step: str) -> None:
        super().__init__(sentence, next_step)
        self.code = code


class MemberDamaged(Exception):
    """The bytes of one file inside an export cannot be read to their end."""


class BadRecord(Exception):
    """One record cannot be used; `code` and `reason` go into the report, never a value."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason
