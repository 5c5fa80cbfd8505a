"""Which files that were looked at say more now: pictures and scans, once Tesseract is there."""

from __future__ import annotations

from pdpp_kernel.source_item import Data, TextState
from pdpp_kernel.system import picture_languages


def are_read(kind: str) -> bool:
    """Whether the words of pictures of a kind are read on this machine."""
    return picture_languages.reads(kind)


def are_due(state: object, kind: str, reference: Data) -> bool:
    """Whether a file of a kind, whose text has that state, is to be read again.

    A PDF that has the state of a file without text was not looked through for pictures.
    """
    if state == TextState.OTHER_KIND:
        return are_read(kind)
    if state == TextState.PICTURES_UNREAD:
        return picture_languages.language_folder() is not None
    name = str(reference.get("filename") or "").lower()
    is_pdf = kind == "application/pdf" or name.endswith(".pdf")
    return state == TextState.EMPTY and is_pdf and bool(reference.get("size_bytes"))
