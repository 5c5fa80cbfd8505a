"""Words of pictures and scans, read in the confined process, where Tesseract is installed."""

from __future__ import annotations

import zlib
from io import BytesIO

import pytest

from pdpp_kernel.source_item import FileText, TextState
from pdpp_sources.file_texts import pdf, picture_text
from pdpp_sources.file_texts.reader import read_text
from pdpp_sources.reader_process import CostlyPlaces, ReaderProcess
from sources.tests.specimens import documents

needs_tesseract = pytest.mark.skipif(
    picture_text.language_folder() is None, reason="the extra ocr, and tesseract-ocr-eng"
)
PNG_HEAD = b"\x89PNG\r\n\x1a\n"


def scan(form: str, *lines: str, size: tuple[int, int] = (900, 200), **more: object) -> bytes:
    from PIL import Image, ImageDraw, ImageFont  # noqa: PLC0415 (of the extra)

    pages = [Image.new("L", size, 255) for _ in lines]
    for page, line in zip(pages, lines, strict=True):
        ImageDraw.Draw(page).text((40, 60), line, fill=0, font=ImageFont.load_default(48))
    out = BytesIO()
    rest = {"save_all": True, "append_images": pages[1:]} if len(pages) > 1 else {}
    pages[0].save(out, form, **rest, **more)
    return out.getvalue()


def said(content: bytes, kind: str, name: str) -> FileText:
    with ReaderProcess(CostlyPlaces()) as process:
        return process.text_of(BytesIO(content), len(content), kind, name)


@needs_tesseract
@pytest.mark.parametrize(
    ("form", "kind"), [("PNG", "image/png"), ("JPEG", "image/jpeg"), ("PDF", "application/pdf")]
)
def test_a_scan_is_read_in_the_confined_process(form: str, kind: str) -> None:
    text = said(scan(form, "Invoice of the bakery"), kind, f"scan.{form.lower()}")
    assert text.state is TextState.READ
    assert "Invoice of the bakery" in str(text.text)


@needs_tesseract
def test_each_page_of_a_fax_is_read() -> None:
    text = read_text(scan("TIFF", "First page", "Second page"), "image/tiff", "fax.tif")
    assert text.state is TextState.READ
    assert str(text.text).index("First page") < str(text.text).index("Second page")


@needs_tesseract
def test_a_picture_without_words_is_empty() -> None:
    assert read_text(scan("PNG", ""), "image/png", "white.png") == FileText(TextState.EMPTY)


@needs_tesseract
def test_a_picture_of_too_many_pixels_is_told_and_not_unpacked() -> None:
    huge = scan("PNG", "", size=(50_000, 1_000))
    assert read_text(huge, "image/png", "huge.png").state is TextState.TOO_COSTLY


@needs_tesseract
def test_a_picture_of_too_many_pixels_in_a_pdf_costs_its_page_alone() -> None:
    picture = zlib.compress(bytes(50_000 * 1_000 // 8))
    page = b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources %s >>"
    words = b"BT /F1 12 Tf 72 720 Td (The other page) Tj ET"
    kind = b"<< /Subtype /Image /Width 50000 /Height 1000 /BitsPerComponent 1"
    kind += b" /ColorSpace /DeviceGray /Filter /FlateDecode /Length %d >>" % len(picture)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [4 0 R 6 0 R] /Count 2 >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        page % (5, b"<< /XObject << /I 8 0 R >> >>"),
        b"<< /Length 5 >>\nstream\n/I Do\nendstream",
        page % (7, b"<< /Font << /F1 3 0 R >> >>"),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(words), words),
        kind + b"\nstream\n" + picture + b"\nendstream",
    ]
    text = said(documents.pdf_of(objects), "application/pdf", "a.pdf")
    assert text == FileText(TextState.TOO_COSTLY, "The other page")


@needs_tesseract
def test_a_scan_that_lies_among_the_words_of_a_page_is_read() -> None:
    from PIL import Image  # noqa: PLC0415 (of the extra)

    with Image.open(BytesIO(scan("PNG", "Invoice"))) as picture:
        grey = picture.tobytes().hex().encode()
    content = b"q 900 0 0 200 0 0 cm BI /W 900 /H 200 /BPC 8 /CS /G /F /AHx ID " + grey + b"> EI Q"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 900 200] /Contents 4 0 R >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    text = read_text(documents.pdf_of(objects), "application/pdf", "a.pdf")
    assert text == FileText(TextState.READ, "Invoice")


@needs_tesseract
@pytest.mark.parametrize("content", [PNG_HEAD, PNG_HEAD + b"\x00" * 1000, b"\xff\xd8\xff" * 99])
def test_a_damaged_picture_is_told(content: bytes) -> None:
    assert read_text(content, "image/png", "a.png").state is TextState.DAMAGED


def page_with(resources: bytes, words: bytes, *objects: bytes) -> bytes:
    """A PDF of one page."""
    return documents.pdf_of(
        [
            b"<< /Type /Catalog /Pages 2 0 R >>",
            b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            b" /Resources %s >>" % resources,
            b"<< /Length %d >>\nstream\n%s\nendstream" % (len(words), words),
            *objects,
        ]
    )


def picture_of(side: int) -> bytes:
    """A white picture in a PDF."""
    content = zlib.compress(b"\xff" * (side * side))
    head = b"<< /Subtype /Image /Width %d /Height %d /BitsPerComponent 8" % (side, side)
    head += b" /ColorSpace /DeviceGray /Filter /FlateDecode /Length %d >>" % len(content)
    return head + b"\nstream\n" + content + b"\nendstream"


@pytest.mark.parametrize(
    ("side", "state"), [(200, TextState.PICTURES_UNREAD), (20, TextState.NO_WORDS)]
)
def test_without_tesseract_a_scan_is_told_to_be_unread(
    side: int, state: TextState, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "language_folder", lambda: None)
    scanned = page_with(b"<< /XObject << /I 5 0 R >> >>", b"/I Do", picture_of(side))
    assert read_text(scanned, "application/pdf", "scan.pdf") == FileText(state)


def test_without_tesseract_a_mail_with_a_picture_is_told_to_be_read_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(picture_text, "language_folder", lambda: None)
    mail = b'Subject: a\nContent-Type: multipart/mixed; boundary="b"\n\n--b\n\nwords\n--b\n'
    mail += b"Content-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--b--\n"
    text = read_text(mail, "message/rfc822", "a.eml")
    assert (text.state, "words" in str(text.text)) == (TextState.PICTURES_UNREAD, True)


@needs_tesseract
def test_a_scan_without_words_is_not_one_that_was_not_read() -> None:
    blank = page_with(b"<< /XObject << /I 5 0 R >> >>", b"/I Do", picture_of(200))
    assert read_text(blank, "application/pdf", "a.pdf") == FileText(TextState.NO_WORDS)


def test_without_tesseract_a_picture_is_of_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture_text, "language_folder", lambda: None)
    assert read_text(PNG_HEAD, "image/png", "a.png").state is TextState.OTHER_KIND
