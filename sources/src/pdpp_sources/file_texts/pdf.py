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
from pdpp_sources.file_texts.picture_text import check_size, words_of

if TYPE_CHECKING:
    from PIL.Image import Image

_SMALLEST_SIDE = 100  # smaller ones are marks and lines
logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)  # it quotes what it reads


def read_pdf(content: bytes, draft: Draft) -> None:
    """Lay the text of all pages to the draft; one that cannot be read costs itself.

    Raises: NoText, EnoughRead.
    """
    reader, too_large, has_words = _opened(content), None, False
    for number in range(len(reader.pages)):
        draft.goes_on()
        try:
            page = reader.pages[number].extract_text()
            if not page.strip():
                page = _words_of_pictures(reader.pages[number], draft)
        except (MemoryError, EnoughRead):
            raise
        except NoText as reason:  # of its picture; the other pages are read
            too_large = reason
        except Exception:  # noqa: BLE001 (the library raises whatever a damaged page leads to)
            draft.is_damaged = True
        else:
            draft.add(page + "\n\n")
            has_words |= bool(page.strip())
    if too_large is not None:
        raise too_large
    if not has_words and not draft.is_damaged:
        raise NoText(TextState.NO_WORDS)


def _words_of_pictures(page: PageObject, draft: Draft) -> str:
    """The words of a scan, which a draft is told of where they cannot be read. Raises: NoText."""
    if language_folder() is not None:
        return "\n".join(map(words_of, _pictures(page)))
    draft.has_unread_pictures |= _has_pictures(page)
    return ""


def _has_pictures(page: PageObject) -> bool:
    """Whether a page shows pictures as large as a scan; of one among its words that is unknown."""
    try:
        places = [[each] if isinstance(each, str) else each for each in page.images.keys()]  # noqa: SIM118 (not those of a mapping)
        sizes = [min(_size_of(page, place)) for place in places]
    except ImportError:  # what opens pictures is missing, and one lies among the words
        return True
    return any(size == 0 or size >= _SMALLEST_SIDE for size in sizes)


def _pictures(page: PageObject) -> Iterator[Image]:
    """The pictures of a page without text: a scan. Raises: NoText, where one is too large."""
    for key in page.images.keys():  # noqa: SIM118 (not those of a mapping)
        check_size(*_size_of(page, [key] if isinstance(key, str) else key))
        picture: Image | None = cast("Any", page.images[key]).image
        if picture is not None and min(picture.size) >= _SMALLEST_SIDE:
            yield picture


def _size_of(page: PageObject, path: list[str]) -> tuple[int, int]:
    """How wide and high a picture says it is, in pixels; of one among the page's words nothing."""
    resource: Any = page
    for name in path:
        if name not in (found := resource.get("/Resources", {}).get("/XObject", {})):
            return 0, 0
        resource = found[name]
    return resource["/Width"], resource["/Height"]


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
