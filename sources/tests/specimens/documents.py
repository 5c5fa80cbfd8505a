"""Documents as programs and printers write them, in as few bytes as show it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
    ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"'
    ' xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"'
)


def package(parts: Mapping[str, str]) -> bytes:
    """A zip of parts."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return packed.getvalue()


def docx(body: str, **beside: str) -> bytes:
    """A document of Word whose body is that."""
    whole = f"<w:document {W}><w:body>{body}</w:body></w:document>"
    parts = {f"word/{name}.xml": content for name, content in beside.items()}
    return package({"word/document.xml": whole} | parts)


DOCX = docx(
    '<w:p><w:pPr><w:tabs><w:tab w:val="left"/></w:tabs></w:pPr>'
    "<w:r><w:t>Lease of the </w:t></w:r><w:r><w:t>bakery</w:t></w:r></w:p>"
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Rent</w:t></w:r></w:p></w:tc>"
    "<w:tc><w:p><w:r><w:t>800</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    "<w:p><w:del><w:r><w:delText>struck out</w:delText></w:r></w:del>"
    "<w:r><w:t>Signed</w:t><w:br/><w:t>in Ulm</w:t></w:r></w:p>",
    footnotes=f"<w:footnotes {W}><w:p><w:r><w:t>of 1999</w:t></w:r></w:p></w:footnotes>",
)
XLSX = package(
    {
        "xl/workbook.xml": f'<workbook {S} {R}><sheets><sheet name="Costs" sheetId="1"'
        ' r:id="rId9"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": '<Relationships><Relationship Id="rId9"'
        ' Target="worksheets/sheet1.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet {S}><numFmts><numFmt numFmtId="164"'
        ' formatCode="d/m/yyyy"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>'
        '<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="22"/></cellXfs></styleSheet>',
        "xl/sharedStrings.xml": f"<sst {S}><si><t>Flour</t></si>"
        "<si><r><t>Day</t></r><rPh><t>aloud</t></rPh></si></sst>",
        "xl/worksheets/sheet1.xml": f'<worksheet {S}><sheetData><row><c t="s"><v>1</v></c>'
        '<c t="s"><v>0</v></c><c t="inlineStr"><is><t>Paid</t></is></c></row>'
        '<row><c s="1"><v>45366</v></c><c s="0"><f>1+1</f><v>12.5</v></c><c t="b"><v>1</v></c>'
        '<c s="2"><v>45366.75</v></c></row></sheetData></worksheet>',
    }
)
SLIDE = f"<p:sld xmlns:p='p' {A}><a:p><a:r><a:t>{{}}</a:t></a:r></a:p></p:sld>"
PPTX = package(
    {
        "ppt/presentation.xml": "<p/>",
        "ppt/slides/slide10.xml": SLIDE.format("The end"),
        "ppt/slides/slide2.xml": SLIDE.format("The plan"),
        "ppt/notesSlides/notesSlide1.xml": SLIDE.format("Speak slowly"),
    }
)


def open_document(body: str, manifest: str = "") -> bytes:
    """A document of LibreOffice whose body is that."""
    content = f"<office:document-content {ODF}><office:body>{body}</office:body>"
    parts = {"mimetype": "application/vnd.oasis.opendocument.text"}
    parts["META-INF/manifest.xml"] = f"<manifest>{manifest}</manifest>"
    return package(parts | {"content.xml": content + "</office:document-content>"})


ODT = open_document(
    "<text:tracked-changes><text:p>struck out</text:p></text:tracked-changes>"
    '<text:h>Recipe</text:h><text:p>Salt<text:s text:c="3"/>and<text:tab/>water</text:p>'
)
ODS = open_document(
    '<table:table table:name="T"><table:table-row><table:table-cell><text:p>Ann</text:p>'
    "</table:table-cell><table:table-cell><text:p>42</text:p></table:table-cell>"
    "<table:table-cell/></table:table-row></table:table>"
)
ODP = open_document(
    "<draw:page><text:p>First</text:p></draw:page><draw:page><text:p>Last</text:p></draw:page>"
)
ENCRYPTED_ODT = open_document("", "<file-entry><encryption-data/></file-entry>")
RTF = (
    rb"{\rtf1\ansi\ansicpg1252{\fonttbl{\f0 Arial;}}{\*\generator Secret;}{\info{\title Hidden}}"
    rb"\pard Gr\'fc\'dfe \u8364?\u-10179?\u-8704?\par second\tab line\line{\b bold}\{x\}}"
)
HTML = (
    "<html><head><meta charset='iso-8859-15'><title>t</title></head><body><p>Käse</p>"
    "<script>var hidden = '<p>';</script><p>und Brot</p></body></html>"
).encode("latin-1")
ICS = (
    b"BEGIN:VCALENDAR\r\nBEGIN:VTIMEZONE\r\nTZID:Europe/Rome\r\nBEGIN:STANDARD\r\n"
    b"DTSTART:19701025T030000\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\nBEGIN:VEVENT\r\n"
    b"SUMMARY:Dinner\\, at last\r\nDTSTART;TZID=Europe/Rome:20240301T193000\r\n"
    b'ATTENDEE;CN="Ann B.":mailto:ann@example.org\r\nDESCRIPTION:Bring\\nwine and\r\n  bread\r\n'
    b"BEGIN:VALARM\r\nDESCRIPTION:Alarm\r\nEND:VALARM\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n"
)


def pdf(*pages: str, encrypted: str = "") -> bytes:
    """A PDF whose pages say that, one line each, with its table of objects."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, said in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({said}) Tj ET".encode()
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
    return pdf_of(objects, encrypted)


def pdf_of(objects: list[bytes], trailer: str = "") -> bytes:
    """A PDF of these objects, the first of which is its catalog."""
    written, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, each in enumerate(objects, 1):
        places.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    begins = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    written += b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    written += f"trailer\n<< /Size {size} /Root 1 0 R {trailer} >>\n".encode()
    return bytes(written) + b"startxref\n%d\n%%%%EOF\n" % begins


PDF = pdf("A bill of 12 March", "Page two")
_UNKNOWN_KEY = f"<{'00' * 32}>"
ENCRYPTED_PDF = pdf(
    "hidden",
    encrypted=f"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O {_UNKNOWN_KEY} /U {_UNKNOWN_KEY}"
    " >> /ID [<00> <00>]",
)
EML = (
    b"From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: the bill\n"
    b"Date: Fri, 1 Mar 2024 10:00:00 +0000\nMIME-Version: 1.0\n"
    b'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\nsee below\n'
    b'--b\nContent-Type: text/plain; name="note.txt"\n\nthe note itself\n--b--\n'
)
