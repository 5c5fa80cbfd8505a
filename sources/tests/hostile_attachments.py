"""Files that come with a message and cost far more to read than their size tells."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable


def _document(*pieces: tuple[str, int]) -> Callable[[], bytes]:
    """A document of pieces, each so many times."""
    return lambda: _zipped({"word/document.xml": "".join(piece * n for piece, n in pieces)})


def _zipped(parts: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return packed.getvalue()


def _pdf(*objects: str | bytes, trailer: str = "") -> bytes:
    """A PDF of these objects, the first of which is its catalog."""
    written, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(written))
        body = each.encode() if isinstance(each, str) else each
        written += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    begins = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    written += b"".join(b"%010d 00000 n \n" % place for place in places)
    written += f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R {trailer} >>\n".encode()
    return bytes(written) + b"startxref\n%d\n%%%%EOF\n" % begins


_CATALOG = "<< /Type /Catalog /Pages 2 0 R >>"


def _page_of(stream: bytes, facts: str = "", resources: str = "") -> bytes:
    """A PDF of one page with that content."""
    page = f"<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << {resources} >> >>"
    body = f"<< /Length {len(stream)} {facts} >>\nstream\n".encode() + stream + b"\nendstream"
    return _pdf(_CATALOG, "<< /Type /Pages /Kids [3 0 R] /Count 1 >>", page, body, body)


def _many_objects() -> bytes:
    kids = " ".join(f"{number} 0 R" for number in range(3, 100_003))
    pages = f"<< /Type /Pages /Kids [{kids}] /Count 100000 >>"
    return _pdf(_CATALOG, pages, *["<< /Type /Page /Parent 2 0 R >>"] * 100_000)


def _deep_pages() -> bytes:
    nested = (f"<< /Type /Pages /Kids [{n} 0 R] /Count 1 >>" for n in range(3, 50_003))
    return _pdf(_CATALOG, *nested, "<< /Type /Page >>")


def _many_cells() -> bytes:
    shared = f"<sst><si><t>{'x' * 1_000_000}</t></si></sst>"
    row = '<c t="s"><v>0</v></c>' * 300_000
    sheet = f"<worksheet><row>{row}</row></worksheet>"
    return _zipped(
        {
            "xl/workbook.xml": "<workbook/>",
            "xl/sharedStrings.xml": shared,
            "xl/worksheets/sheet1.xml": sheet,
        }
    )


def _nested_mails() -> bytes:
    heads = (
        f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n'
        'Content-Type: message/rfc822; name="a.eml"\n\n'
        for n in range(2_000)
    )
    return "".join(heads).encode()


_ENTITIES = '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "' + "&a;" * 10 + '">]><a>'
_KEY = f"<{'00' * 32}>"
_ENCRYPTION = (
    f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O {_KEY} /U {_KEY} >> /ID [<00> <00>]"
)
_FONT = "/Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >>"
_NESTED_FORM = "/XObject << /X 4 0 R >>"
ATTACHED: list[tuple[str, str, Callable[[], bytes]]] = [
    ("zip bomb", "a.docx", _document(("<a>", 1), (" ", 300_000_000), ("</a>", 1))),
    ("zip bomb within bounds", "a.docx", _document(("<a>", 1), ("<t>", 5_000_000))),
    ("200 MB of entities", "a.docx", _document((_ENTITIES, 1), ("&b;", 66_000_000), ("</a>", 1))),
    (
        "entities within bounds",
        "a.docx",
        _document((_ENTITIES, 1), ("&b;", 5_000_000), ("</a>", 1)),
    ),
    (
        "a million attributes",
        "a.docx",
        lambda: _zipped(
            {"word/document.xml": "<a " + "".join(f"a{n}='' " for n in range(900_000)) + "/>"}
        ),
    ),
    (
        "200,000 files in a document",
        "a.docx",
        lambda: _zipped({f"{n}": "" for n in range(200_000)}),
    ),
    ("one string in 300,000 cells", "a.xlsx", _many_cells),
    ("200,000 nested div", "a.html", lambda: b"<html>" + b"<div>" * 200_000),
    ("scripts without end", "a.html", lambda: b"<html>" + b"<script>" * 2_000_000),
    ("a million groups", "a.rtf", lambda: b"{\\rtf1" + b"{\\b x" * 1_000_000),
    ("2,000 mails in mails", "a.eml", _nested_mails),
    (
        "a million lines of an event",
        "a.ics",
        lambda: b"BEGIN:VCALENDAR\nBEGIN:VEVENT\n" + b"URL:x\n" * 1_000_000,
    ),
    ("20 MB of blanks", "a.txt", lambda: b" " * 20_000_000 + b"x"),
    ("PDF of 100,000 objects", "a.pdf", _many_objects),
    ("PDF of 50,000 nested pages", "a.pdf", _deep_pages),
    (
        "PDF of pages in themselves",
        "a.pdf",
        lambda: _pdf(_CATALOG, "<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 9 >>"),
    ),
    (
        "PDF of forms in themselves",
        "a.pdf",
        lambda: _page_of(
            b"/X Do /X Do",
            "/Type /XObject /Subtype /Form /Resources << /XObject << /X 5 0 R >> >>",
            _NESTED_FORM,
        ),
    ),
    ("PDF of a million open lists", "a.pdf", lambda: _page_of(b"[" * 1_000_000)),
    (
        "PDF of a million operators",
        "a.pdf",
        lambda: _page_of(b"BT /F 9 Tf (x) Tj ET " * 1_000_000, "", _FONT),
    ),
    (
        "PDF that unpacks to 1 GB",
        "a.pdf",
        lambda: _page_of(
            zlib.compress(zlib.compress(bytes(1_000_000_000), 9), 9),
            "/Filter [/FlateDecode /FlateDecode]",
        ),
    ),
    (
        "PDF whose table leads to itself",
        "a.pdf",
        lambda: _pdf(_CATALOG, trailer="/Prev 9"),
    ),
    (
        "PDF of brackets",
        "a.pdf",
        lambda: b"%PDF-1.4\n1 0 obj\n" + b"<<" * 500_000 + b"\ntrailer << /Root 1 0 R >>\n%%EOF",
    ),
    (
        "encrypted PDF",
        "a.pdf",
        lambda: _pdf(
            _CATALOG,
            trailer=_ENCRYPTION,
        ),
    ),
]
