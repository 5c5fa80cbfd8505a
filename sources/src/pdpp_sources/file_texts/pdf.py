"""The text of a PDF, page by page."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from pypdf import PageObject, PasswordType, PdfReader
from pypdf.errors import PyPdfError

from pdpp_kernel.source_item import TextState
from pdpp_kernel.system.picture_languages import language_folder
from pdpp_sources.file_texts.draft import Draft, EnoughRead, NoText
from pdpp_sources.file_texts.picture_text import words_of

if TYPE_CHECKING:
    from PIL.Image import Image

_SMALLEST_SIDE = 100  # smaller ones are marks and lines
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
            if not page.strip() and language_folder() is not None:
                page = "\n".join(map(words_of, _pictures(reader.pages[number])))
        except (MemoryError, EnoughRead, NoText):
            raise
        except Exception:  # noqa: BLE001 (the library raises whatever a damaged page leads to)
            draft.is_damaged = True
        else:
            draft.add(page + "\n\n")


def _pictures(page: PageObject) -> Iterator[Image]:
    """The pictures of a page without text: a scan."""
    for held in page.images:
        picture: Image | None = cast("Any", held).image
        if picture is not None and min(picture.size) >= _SMALLEST_SIDE:
            yield picture


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
