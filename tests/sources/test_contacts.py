from pathlib import Path

import pytest

from tests.sources.reading import read_path, records_of, skips_of
from tests.sources.specimens import SPECIMENS
from tests.sources.specimens.files import as_zip


def test_cards_of_every_version(tmp_path: Path) -> None:
    items = read_path(as_zip(SPECIMENS["contacts"], tmp_path / "export.zip"))
    old, new = records_of(items, "contacts")
    assert old["display_name"] == "Jürgen Müller"
    assert old["note"] == "first line\nsecond line"
    assert old["photo"]["size_bytes"] == 6
    assert new["emails"] == ["ada@example.org"]
    assert new["organization"] == "Analytical Engines, Ltd, Notes"
    assert new["addresses"] == ["12 St James's Square, London, SW1Y, England"]
    assert new["categories"] == ["friends", "mathematics"]
    assert skips_of(items) == ["bad_record"]


CARD = "BEGIN:VCARD\r\nVERSION:2.1\r\nFN:Ada\r\n{}\r\nEND:VCARD\r\n"


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("NOTE:bread, butter\\; and\r\n  jam\\n", "bread, butter; and jam"),
        ("NOTE;ENCODING=8BIT:plain", "plain"),
        ("NOTE;CHARSET=ISO-8859-1;QUOTED-PRINTABLE:f=FCnf=\r\n Brote", "fünf Brote"),
        ("no line of a card\r\nitem1.NOTE:kept", "kept"),
        ("NOTE;ENCODING=QUOTED-PRINTABLE:=FC", "ü"),
        ("NOTE;ENCODING=QUOTED-PRINTABLE;ENCODING=8BIT:a", "a"),
        ("NOTE;CHARSET=none;ENCODING=QUOTED-PRINTABLE:a", "a"),
    ],
)
def test_lines_as_phones_write_them(tmp_path: Path, line: str, note: str) -> None:
    (tmp_path / "a.vcf").write_text(
        CARD.format(line) + CARD.format("NOTE:next").replace("Ada", "Bea"), newline=""
    )
    items = read_path(tmp_path)
    assert [each["note"] for each in records_of(items, "contacts")] == [note, "next"]
    assert skips_of(items) == []


@pytest.mark.parametrize(
    ("line", "birthday", "month"),
    [
        ("BDAY:1985-04-12", "1985-04-12", 4),
        ("BDAY:19850412", "1985-04-12", 4),
        ("BDAY:1985-04-12T00:00:00Z", "1985-04-12", 4),
        ("BDAY:--0412", "--04-12", 4),
        ("BDAY:--04-12", "--04-12", 4),
        ("BDAY;X-APPLE-OMIT-YEAR=1604:1604-04-12", "--04-12", 4),
        ("BDAY;VALUE=text:circa 1800", "circa 1800", None),
    ],
)
def test_birthdays_in_every_spelling(
    tmp_path: Path, line: str, birthday: str, month: int | None
) -> None:
    (tmp_path / "a.vcf").write_text(CARD.format(line))
    (contact,) = records_of(read_path(tmp_path), "contacts")
    assert (contact["birthday"], contact["birth_month"]) == (birthday, month)


def test_a_picture_whose_comma_is_escaped_is_a_picture(tmp_path: Path) -> None:
    (tmp_path / "a.vcf").write_text(CARD.format("PHOTO:data:image/png;base64\\,iVBORw0KGgo="))
    (contact,) = records_of(read_path(tmp_path), "contacts")
    assert contact["photo"]["mime_type"] == "image/png"
