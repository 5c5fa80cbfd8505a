"""The text of a PDF, page by page."""

from __future__ import annotations

import logging
from io import BytesIO

from pypdf import PasswordType, PdfReader
from pypdf.errors import PyPdfError

from pdpp_kernel.source_item import TextState
from pdpp_sources.file_texts.draft import Draft, EnoughRead, NoText

logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)  # it quotes what it reads


def read_pdf(content: bytes, draft: Draft) -> None:
    """Lay the text of all pages to the draft; one that cannot be read costs itself.

    Raises: NoText, EnoughRead.
    """
    reader = _opened(content)
    for number in range(len(reader.pages)):
        draft.goes_on()
        try:
            page = reader.pages[number].extract_text()
        except (MemoryError, EnoughRead):
            raise
        except Exception:  # noqa: BLE001 (the library raises whatever a damaged page leads to)
            draft.is_damaged = True
        else:
            draft.add(page + "\n\n")


def _opened(content: bytes) -> PdfReader:
    """Raises: NoText."""
    try:
        reader = PdfReader(BytesIO(content))
        if reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED:
            raise NoText(TextState.ENCRYPTED)
    except (NotImplementedError, PyPdfError) as error:
        is_locked = b"/Encrypt" in content and isinstance(error, NotImplementedError)
        raise NoText(TextState.ENCRYPTED if is_locked else TextState.DAMAGED) from None
    return reader
