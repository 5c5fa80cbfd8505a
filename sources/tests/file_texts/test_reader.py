"""What files say, told by content before name, and why others say nothing."""

from __future__ import annotations

import random

import pytest

from pdpp_kernel.source_item import FileText, TextState
from pdpp_sources.file_texts.draft import LONGEST_TEXT_CHARS
from pdpp_sources.file_texts.reader import MOST_LEVELS, read_text
from sources.tests.specimens import documents

OCTETS = "application/octet-stream"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SAID = {
    "a.docx": (
        documents.DOCX,
        "Lease of the bakery\nRent\t800\nSigned\nin Ulm\n\nof 1999",
    ),
    "a.xlsx": (
        documents.XLSX,
        "Costs\nDay\tFlour\tPaid\n2024-03-15\t12.5\tTRUE\t2024-03-15 18:00:00",
    ),
    "a.pptx": (documents.PPTX, "The plan\n\nThe end\n\nSpeak slowly"),
    "a.odt": (documents.ODT, "Recipe\nSalt   and\twater"),
    "a.ods": (documents.ODS, "Ann\t42"),
    "a.odp": (documents.ODP, "First\n\nLast"),
    "a.rtf": (documents.RTF, "Grüße €😀\nsecond\tline\nbold{x}"),
    "a.pdf": (documents.PDF, "A bill of 12 March\n\nPage two"),
    "a.html": (documents.HTML, "Käse\n\nund Brot"),
    "a.ics": (
        documents.ICS,
        "Dinner, at last\nBegins: 2024-03-01 19:30 Europe/Rome\nWith: Ann B. <ann@example.org>\n"
        "Bring\nwine and bread",
    ),
    "a.eml": (
        documents.EML,
        "From: Ann <ann@example.org>\nTo: bob@example.org\nDate: Fri, 1 Mar 2024 10:00:00 +0000\n"
        "Subject: the bill\n\nsee below\n\nAttached: note.txt\nthe note itself",
    ),
    "a.txt": ("Grüße\r\nund Küsse".encode(), "Grüße\nund Küsse"),
    "a.csv": ("a;b\r\n1;ü\r\n".encode("cp1252"), "a;b\n1;ü"),
    "a.json": (b'{"a": [1, 2]}', '{"a": [1, 2]}'),
    "wide.txt": ("Grüße".encode("utf-16"), "Grüße"),
}


@pytest.mark.parametrize("name", sorted(SAID))
def test_it_reads_what_a_file_says(name: str) -> None:
    content, said = SAID[name]
    assert read_text(content, OCTETS, name) == FileText(TextState.READ, said)


@pytest.mark.parametrize(
    "name", ["a.docx", "a.xlsx", "a.pptx", "a.odt", "a.rtf", "a.pdf", "a.html"]
)
def test_a_wrong_name_and_a_wrong_kind_do_not_matter(name: str) -> None:
    content, said = SAID[name]
    for kind, misnamed in ((OCTETS, None), ("application/x-thing", "scan.bin")):
        assert read_text(content, kind, misnamed) == FileText(TextState.READ, said)


def test_the_report_of_a_mail_that_could_not_be_delivered_is_text() -> None:
    found = read_text(b"Status: 5.1.1\n", "message/delivery-status", None)
    assert found == FileText(TextState.READ, "Status: 5.1.1")


def test_a_text_that_begins_as_the_name_of_bitmaps_is_text() -> None:
    assert read_text(b"BMW, invoice of May", OCTETS, "a").state is TextState.READ


NOTHING = {
    "nothing in it": (b"", "text/plain", "a.txt", TextState.EMPTY),
    "nothing in a document": (b"", "application/msword", "a.doc", TextState.EMPTY),
    "a PDF that is none": (b"Content-Type: x", "application/pdf", "a.pdf", TextState.DAMAGED),
    "blanks only": (b" \n\t\n ", "text/plain", "a.txt", TextState.EMPTY),
    "a PDF without text": (documents.pdf(""), "application/pdf", "a.pdf", TextState.NO_WORDS),
    "a picture": (b"GIF89a\0\0", "image/gif", "a.gif", TextState.OTHER_KIND),
    "a picture called text": (
        b"\x89PNG\r\n\x1a\n\0\0",
        "text/plain",
        "a.txt",
        TextState.OTHER_KIND,
    ),
    "some bytes": (b"\x01\xff\xfe\x00", OCTETS, None, TextState.OTHER_KIND),
    "bytes that are no text": (b"abc \xff\xfe def", OCTETS, "a.bin", TextState.OTHER_KIND),
    "a zip of no document": (
        documents.package({"a.txt": "x"}),
        OCTETS,
        "a.zip",
        TextState.OTHER_KIND,
    ),
    "a document of 1997": (OLE, "application/msword", "a.doc", TextState.OTHER_KIND),
    "an encrypted document": (OLE, WORD, "a.docx", TextState.ENCRYPTED),
    "an encrypted open document": (documents.ENCRYPTED_ODT, OCTETS, "a.odt", TextState.ENCRYPTED),
    "an encrypted PDF": (documents.ENCRYPTED_PDF, OCTETS, "a.pdf", TextState.ENCRYPTED),
    "a PDF cut short": (documents.PDF[:60], OCTETS, "a.pdf", TextState.DAMAGED),
    "a document cut short": (documents.DOCX[:-40], OCTETS, "a.docx", TextState.DAMAGED),
    "a document of broken XML": (documents.docx("<w:p>"), OCTETS, "a.docx", TextState.DAMAGED),
}


@pytest.mark.parametrize("name", sorted(NOTHING))
def test_it_says_why_a_file_says_nothing(name: str) -> None:
    content, kind, filename, state = NOTHING[name]
    assert read_text(content, kind, filename) == FileText(state)


def test_what_could_be_read_before_the_damage_is_kept() -> None:
    broken = documents.PDF.replace(b"(Page two) Tj", b"(Page two Tj ")
    found = read_text(broken, OCTETS, "a.pdf")
    assert found == FileText(TextState.DAMAGED, "A bill of 12 March")


def test_a_text_without_end_is_cut() -> None:
    found = read_text(b"word " * LONGEST_TEXT_CHARS, "text/plain", "a.txt")
    assert found.state is TextState.CUT
    assert LONGEST_TEXT_CHARS - 1 <= len(found.text or "") <= LONGEST_TEXT_CHARS


def test_entities_are_never_resolved() -> None:
    bomb = '<!DOCTYPE a [<!ENTITY a "x"><!ENTITY b "&a;&a;">]><a>&b;</a>'
    content = documents.package({"word/document.xml": bomb})
    assert read_text(content, OCTETS, "a.docx") == FileText(TextState.DAMAGED)


def test_a_document_that_unpacks_out_of_proportion_is_not_unpacked() -> None:
    content = documents.docx("<w:p/>", footnotes=" " * 40_000_000)
    assert read_text(content, OCTETS, "a.docx") == FileText(TextState.TOO_COSTLY)


def test_mails_in_mails_are_read_so_far_and_no_further() -> None:
    mail = "Subject: innermost\n\nthe core"
    for level in range(MOST_LEVELS + 3):
        kind = f'Subject: s\nContent-Type: multipart/mixed; boundary="b{level}"\n\n'
        inner = f'Content-Type: application/octet-stream; name="inner.eml"\n\n{mail}\n'
        mail = f"{kind}--b{level}\n{inner}--b{level}--\n"
    found = read_text(mail.encode(), "message/rfc822", "outer.eml")
    assert found.state is TextState.READ
    assert (found.text or "").count("Attached: inner.eml") == MOST_LEVELS + 1
    assert "the core" not in (found.text or "")


@pytest.mark.parametrize("name", sorted(SAID))
def test_no_damage_ends_more_than_the_text(name: str) -> None:
    content, chance = SAID[name][0], random.Random(name)
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(chance.randint(1, 6)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        cut = bytes(damaged[: chance.randint(1, len(damaged))])
        for each in (bytes(damaged), cut):
            found = read_text(each, OCTETS, name)
            assert (found.text is None) or found.text.strip() == found.text != ""
            assert (found.state is TextState.READ) <= (found.text is not None)
