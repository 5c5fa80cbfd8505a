"""Every refusal says what a file is and lacks, and the `--as` that reads it, if one does.

The `--as` is tried here each time that it is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pdpp_kernel.source_item import SourceRecord
from pdpp_sources.common.errors import ExportError
from pdpp_sources.common.export import open_export
from pdpp_sources.registry import SOURCES, reading_as, readings, source_named, unread_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_folder

_AS = re.compile(r"`--as (\w+)`")


def refusal(path: Path, connector_key: str | None = None) -> ExportError | None:
    """What a path is refused with, or None."""
    source = source_named(connector_key) if connector_key else None
    try:
        with open_export(path) as export:
            _ = reading_as(export, source) if source else readings(export)
    except ExportError as refused:
        return refused
    return None


def named_in(refused: ExportError) -> str | None:
    """The source that a refusal names."""
    found = _AS.search(f"{refused.sentence} {refused.next_step}")
    return found[1] if found else None


def finds(path: Path, connector_key: str) -> bool:
    """Whether a source that is asked for by name reads a record."""
    source = source_named(connector_key)
    assert source is not None
    with open_export(path) as export:
        return any(isinstance(item, SourceRecord) for item in reading_as(export, source).items())


EVENT = b"BEGIN:VEVENT\nUID:1\nDTSTART:20240105T090000Z\nSUMMARY:Bake\nEND:VEVENT\n"
CARD = b"BEGIN:VCARD\nVERSION:3.0\nFN:Ada\nEND:VCARD\n"
PAYMENT = (
    b"<OFX><STMTTRNRS><STMTRS><CURDEF>EUR<BANKACCTFROM><ACCTID>1</BANKACCTFROM><BANKTRANLIST>"
    b"<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20240105<TRNAMT>-3.10<FITID>1<NAME>Tea</STMTTRN>"
    b"</BANKTRANLIST></STMTRS></STMTTRNRS></OFX>"
)
CHAT = b"[05.01.24, 09:00:00] Ada: rye\n[05.01.24, 09:01:00] Ann: or wheat?\n"
LETTER = b"Dear Ada,\n\nthank you for the bread.\n"

# What is refused, and the source that reads it all the same.
REFUSED: dict[str, tuple[bytes, str | None]] = {
    "calendar.dat": (b"BEGIN:VCALENDAR\n" + EVENT + b"END:VCALENDAR\n", "calendar"),
    "saved.ics": (b"Saved by hand\n" + EVENT, "calendar"),
    "zones.ics": (b"BEGIN:VTIMEZONE\nTZID:Here\nEND:VTIMEZONE\n", None),
    "cards.txt": (b"My people\n" + CARD, "contacts"),
    "cards.bak": (CARD, "contacts"),
    "statement.txt": (b"Here it is, as you asked.\n" + PAYMENT, "bank"),
    "mail.txt": (b"Subject: Bread\nTo: ada@example.org\n\nRye?\n", "mail"),
    "chat.txt": (LETTER * 20 + CHAT, "whatsapp"),
    "letter.txt": (LETTER, "table"),
    "paper.pdf": (b"%PDF-1.7\n", None),
    "loaf.png": (b"\x89PNG\r\n\x1a\n", None),
    "sheet.xls": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None),
    "walk.gpx": (b"Saved by hand\n<gpx><trk></trk></gpx>\n", None),
    "page.html": (b"<!DOCTYPE html>\n<p>Rye</p>\n", None),
    "facts.xml": (b"<facts><bread/></facts>\n", None),
    "numbers.json": (b"[1, 2, 3]\n", None),
    "messages.html": (b'<html><div class="page_body chat_page"><div class="history">\n', None),
    "posts.html": (b'<html><div class="_3-95 _a6-g"><div class="_2ph_ _a6-h">\n', None),
    "colons.txt": (b"[12.01.24, 21 05 00] Ann  hello\r\n[12.01.24, 21 06 00] Bo  yes\r\n", None),
    "tweets.js": (b'window.YTD.tweets.part0 = [\n  {"tweet":{"id":"1"}}\n]\n', None),
    "noise.bin": (bytes(range(256)), None),
    "nothing.csv": (b"", None),
    "wide.txt": ("Ada Byron".encode("utf-16"), None),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_refusal_says_what_it_is_and_names_the_source_that_reads_it(
    name: str, tmp_path: Path
) -> None:
    content, works = REFUSED[name]
    path = tmp_path / name
    path.write_bytes(content)
    refused = refusal(path)
    assert refused is not None
    assert refused.sentence
    assert refused.next_step
    assert "ikeness" not in f"{refused.sentence} {refused.next_step}"  # our word, not theirs
    assert named_in(refused) == works
    assert works is None or finds(path, works)


def test_reasons_are_told_apart(tmp_path: Path) -> None:
    reasons: set[str] = set()
    for name, (content, _) in REFUSED.items():
        (tmp_path / name).write_bytes(content)
        refused = refusal(tmp_path / name)
        assert refused is not None
        reasons.add(refused.sentence)
    alike = {"calendar.dat": "saved.ics", "cards.txt": "cards.bak"}
    assert len(reasons) == len(REFUSED) - len(alike)


def _spoilt() -> Iterator[tuple[str, str, Files]]:
    """Each file of each source, called otherwise, behind a line, and cut."""
    for key, files in SPECIMENS.items():
        for name, content in files.items():
            if content:
                yield key, name, {"export.dat": content}
                yield key, name, {Path(name).name: b"Saved on Monday\n\n" + content}
                yield key, name, {Path(name).name: content[: len(content) // 3]}


@pytest.mark.parametrize(("key", "name", "files"), list(_spoilt()))
def test_what_is_left_of_any_export_is_read_or_refused_with_a_way_that_works(
    key: str, name: str, files: Files, tmp_path: Path
) -> None:
    (path,) = as_folder(files, tmp_path).iterdir()
    refused = refusal(path)
    works = named_in(refused) if refused else None
    assert refused is None or (refused.sentence and refused.next_step)
    assert works is None or finds(path, works)


@pytest.mark.parametrize("key", sorted(SPECIMENS))
def test_a_source_that_finds_nothing_says_which_one_does(key: str, tmp_path: Path) -> None:
    path = as_folder(SPECIMENS[key], tmp_path)
    for source in SOURCES:
        refused = refusal(path, source.connector_key)
        if refused is not None:
            assert source.connector_key != key
            works = named_in(refused)
            assert works is not None
            assert finds(path, works)


def test_a_file_left_in_a_folder_is_told_by_who_would_read_it(tmp_path: Path) -> None:
    files = {name: content for name, (content, _) in REFUSED.items()}
    with open_export(as_folder(files | {"note.md": b"# Rye"}, tmp_path)) as export:
        left = unread_of(export, [each.export for each in readings(export)])
    works = {
        (f"as_{key}", name) for name, (_, key) in REFUSED.items() if key not in (None, "table")
    }
    assert works == {(s, n) for s, names in left.items() if s.startswith("as_") for n in names}
