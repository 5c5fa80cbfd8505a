"""The text of a picture or a scan, where Tesseract is installed (the extra `ocr`).

The library runs in the reading process and starts no program, so the calls that this process may
make stay as few; it reads its languages from the system's folder alone. Measured with one language:
1.3 s of processor time and 76 MB for a page of A4 at 200 dots an inch.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from pdpp_kernel.source_item import TextState
from pdpp_kernel.system.picture_languages import language_folder, languages_in
from pdpp_sources.file_texts.draft import Draft, NoText

if TYPE_CHECKING:
    from PIL.Image import Image

MARKS = (b"\x89PNG\r\n", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*")
_BITMAP = re.compile(rb"BM.{4}\x00{4}", re.DOTALL)  # by two letters a text may begin, too
_MOST_PIXELS = 40_000_000
_LONGEST_SIDE = 3_000  # a larger picture is read smaller
_MOST_PAGES = 100


def is_picture(content: bytes) -> bool:
    """Whether a file begins as one of the pictures that are read."""
    is_webp = content.startswith(b"RIFF") and content[8:12] == b"WEBP"
    return content.startswith(MARKS) or is_webp or _BITMAP.match(content) is not None


def read_picture(content: bytes, draft: Draft) -> None:
    """Lay the words of a picture to the draft, of all its pages. Raises: NoText, EnoughRead."""
    if language_folder() is None:
        draft.has_unread_pictures = True
        raise NoText(TextState.OTHER_KIND)
    from PIL import Image, ImageSequence  # noqa: PLC0415 (of the extra)

    Image.MAX_IMAGE_PIXELS = None  # counted here
    with Image.open(BytesIO(content)) as picture:
        for number, page in enumerate(ImageSequence.Iterator(picture)):
            if number >= _MOST_PAGES:
                raise NoText(TextState.CUT)
            draft.goes_on()
            draft.add(words_of(page) + "\n\n")


def check_size(width: int, height: int) -> None:
    """Raises: NoText, where a picture has more pixels than are unpacked."""
    if width * height > _MOST_PIXELS:
        raise NoText(TextState.TOO_COSTLY)


def words_of(picture: Image) -> str:
    """The words of one page. Raises: NoText, where it is too large."""
    check_size(picture.width, picture.height)
    with suppress(ValueError):  # of a JPEG, which is unpacked no larger than it is read
        picture.draft("L", (_LONGEST_SIDE, _LONGEST_SIDE))
    grey = picture.convert("L")
    grey.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
    engine = _engine()
    engine.SetImage(grey)
    try:
        return engine.GetUTF8Text()
    finally:
        engine.Clear()


@lru_cache(maxsize=1)
def _engine() -> Any:
    from tesserocr import PSM, PyTessBaseAPI  # noqa: PLC0415 (of the extra)

    folder = language_folder()
    assert folder is not None  # noqa: S101 (asked before)
    languages = "+".join(languages_in(folder))
    # what the library would tell goes to a file that this process may not write, else to nobody
    variables = {"debug_file": "", "tessedit_do_invert": "0"}
    return PyTessBaseAPI(path=str(folder), lang=languages, psm=PSM.AUTO, variables=variables)
