"""The text of office documents: of Microsoft's and of LibreOffice's, which are XML in a zip.

No library is needed for words alone, and one that builds whole trees would have to be kept from
every trick of XML. So the parts that hold text stream through expat as it comes with Python: memory
holds one element, and a part with a document type is refused, so that no entity is ever resolved.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from xml.parsers import expat

from pdpp_kernel.source_item import TextState
from pdpp_sources.common.archive import check_directory, safe_entries
from pdpp_sources.common.errors import ExportUnsafe
from pdpp_sources.file_texts.draft import Draft, NoText
from pdpp_sources.file_texts.office_package import (
    Attributes,
    ElementWords,
    OfficePackage,
    OfficePart,
)
from pdpp_sources.file_texts.workbooks import read_workbook

MARK = b"PK\x03\x04"
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error, ValueError)


def read_office(content: bytes, draft: Draft) -> None:
    """Lay the text of a document to the draft. Raises: NoText, EnoughRead."""
    stream = BytesIO(content)
    try:
        check_directory(stream, len(content))
        with zipfile.ZipFile(stream) as archive:
            entries, refused = safe_entries(archive)
            names = {entry.filename for entry in entries}
            reader = next((read for mark, read in _READERS if mark in names), None)
            if reader is None:
                raise NoText(TextState.OTHER_KIND if not refused else TextState.DAMAGED)
            reader(OfficePackage(archive, names, draft), draft)
    except ExportUnsafe:
        raise NoText(TextState.TOO_COSTLY) from None
    except (expat.ExpatError, NotImplementedError, RuntimeError, *_DAMAGE):
        raise NoText(TextState.DAMAGED) from None


_DOCUMENT = "word/document.xml"
_BESIDE = r"word/(?:footnotes|endnotes|comments|header|footer)\d*\.xml"


def _read_document(package: OfficePackage, draft: Draft) -> None:
    for name in [_DOCUMENT, *package.numbered(_BESIDE)]:
        package.walk(name, ElementWords(draft, "t"))
        draft.add("\n")


def _read_slides(package: OfficePackage, draft: Draft) -> None:
    for kind in ("slides/slide", "notesSlides/notesSlide"):
        for name in package.numbered(rf"ppt/{kind}\d+\.xml"):
            package.walk(name, ElementWords(draft, "t"))
            draft.add("\n")


def _read_open_document(package: OfficePackage, draft: Draft) -> None:
    """Also its tables and slides: all are one part."""
    encryption = _Encryption()
    package.walk("META-INF/manifest.xml", encryption)
    if encryption.is_there:
        raise NoText(TextState.ENCRYPTED)
    package.walk("content.xml", ElementWords(draft, "p", "h"))


class _Encryption(OfficePart):
    """Whether a manifest says that parts are encrypted."""

    is_there = False

    def begins(self, tag: str, _: Attributes, /) -> None:
        """See the base."""
        self.is_there = self.is_there or tag == "encryption-data"


_READERS: tuple[tuple[str, Callable[[OfficePackage, Draft], None]], ...] = (
    (_DOCUMENT, _read_document),
    ("xl/workbook.xml", read_workbook),
    ("ppt/presentation.xml", _read_slides),
    ("content.xml", _read_open_document),
)
