from pathlib import Path

import pytest

from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import as_zip


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


RICH = """\
BEGIN:VCARD
VERSION:3.0
N:Lovelace;Ada;Augusta King;Dr.;Countess
FN:Ada Lovelace
TEL;TYPE=CELL,VOICE;TYPE=pref:+44 1
TEL;WORK;FAX:+44 2
item1.TEL:+44 3
item1.X-ABLabel:_$!<Main>!$_
item2.EMAIL;TYPE=INTERNET:ada@example.org
item2.X-ABLabel:Letters
EMAIL;TYPE=home:augusta@example.org
ADR;TYPE=HOME:;;12 St James's Square;London;;SW1Y;England
ORG:Analytical Engines;Notes
ORG:Royal Society
TITLE:Analyst
ROLE:Writer
RELATED;TYPE=friend;VALUE=text:Charles Babbage
item3.X-ABRELATEDNAMES:William King
item3.X-ABLabel:_$!<Spouse>!$_
X-ASSISTANT:Mr. Byron
ANNIVERSARY:18350708
item4.X-ABDATE;VALUE=date-and-or-time:1833-06-05
item4.X-ABLabel:Met Babbage
IMPP;X-SERVICE-TYPE=Skype:skype:ada.l
IMPP:xmpp:ada@example.org
X-ICQ:123
END:VCARD
"""


def test_kinds_names_people_days_and_messengers_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.vcf").write_text(RICH)
    (card,) = records_of(read_path(tmp_path), "contacts")
    assert (card["middle_name"], card["name_prefix"], card["name_suffix"]) == (
        "Augusta King",
        "Dr.",
        "Countess",
    )
    assert card["phones"] == ["+44 1", "+44 2", "+44 3"]
    assert card["phones_by_kind"] == ["mobile: +44 1", "work, fax: +44 2", "main: +44 3"]
    assert card["emails_by_kind"] == ["letters: ada@example.org", "home: augusta@example.org"]
    assert card["addresses_by_kind"] == ["home: 12 St James's Square, London, SW1Y, England"]
    assert card["organizations"] == ["Analytical Engines, Notes", "Royal Society"]
    assert card["job_titles"] == ["Analyst", "Writer"]
    assert card["related_people"] == [
        "friend: Charles Babbage",
        "spouse: William King",
        "assistant: Mr. Byron",
    ]
    assert card["anniversaries"] == ["anniversary: 1835-07-08", "met babbage: 1833-06-05"]
    assert card["instant_messages"] == ["skype: ada.l", "xmpp: ada@example.org", "icq: 123"]


@pytest.mark.parametrize(
    "photo",
    [
        "PHOTO;ENCODING=b;TYPE=JPEG:/9j/4",
        "PHOTO:data:image/png;base64,=",
        "PHOTO;ENCODING=b;TYPE=JPEG:not base 64 at all!",
    ],
)
def test_a_picture_that_cannot_be_decoded_costs_only_itself(tmp_path: Path, photo: str) -> None:
    (tmp_path / "a.vcf").write_text(CARD.format(photo) + CARD.format("TEL:1"))
    items = read_path(tmp_path)
    first, _ = records_of(items, "contacts")
    assert "photo" not in first
    assert skips_of(items) == ["missing_attachment"]


def test_a_picture_elsewhere_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "a.vcf").write_text(CARD.format("PHOTO;VALUE=uri:https://example.org/ada.jpg"))
    assert skips_of(read_path(tmp_path)) == []


def test_line_ends_may_be_doubled(tmp_path: Path) -> None:
    (tmp_path / "a.vcf").write_text(RICH.replace("\n", "\r\r\n"), newline="")
    (card,) = records_of(read_path(tmp_path), "contacts")
    assert card["job_titles"] == ["Analyst", "Writer"]


def test_soft_line_ends_that_are_folded_too_cut_no_letter(tmp_path: Path) -> None:
    """As Samsung's phones write them: a blank begins the line behind a soft line end."""
    head = ";CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:"
    name = f"N{head}=D0=9F=D1=83=D0=\n =BF=D0=BA=D0=B8=D0=BD;=D0=92=D0=B0=D1=81=\n =D1=8F;;;\n"
    shown = f"FN{head}=D0=92=D0=B0=D1=81=\n =D1=8F =D0=9F=D1=83=D0=BF=D0=BA=D0=B8=D0=BD\n"
    card = f"BEGIN:VCARD\nVERSION:2.1\n{name}{shown}TEL;CELL:+70005551234\nEND:VCARD\n"
    (tmp_path / "a.vcf").write_text(card)
    (found,) = records_of(read_path(tmp_path))
    names = (found["display_name"], found["family_name"], found["given_name"])
    assert names == ("Вася Пупкин", "Пупкин", "Вася")


def test_properties_under_names_of_programs_are_read(tmp_path: Path) -> None:
    item = "X-ANDROID-CUSTOM:vnd.android.cursor.item/"
    lines = [
        f"{item}nickname;Countess;1;;;;",
        f"{item}relation;Ann Byron;8;;;;",
        f"{item}contact_event;2010-05-01;1;;;;",
        f"{item}contact_event;1815-12-10;3;;;;",
        f"{item}unheard_of;x;;;;",
        "X-MS-TEL;TYPE=CALLBACK:+4930123",
        "X-MS-IMADDRESS:ada@example.org",
    ]
    (tmp_path / "a.vcf").write_text(CARD.format("\r\n".join(lines)), newline="")
    (found,) = records_of(read_path(tmp_path))
    assert found["nicknames"] == ["Countess"]
    assert found["related_people"] == ["mother: Ann Byron"]
    assert found["anniversaries"] == ["anniversary: 2010-05-01"]
    assert found["birthday"] == "1815-12-10"
    assert found["phones"] == ["+4930123"]
    assert found["instant_messages"] == ["ada@example.org"]


def test_a_label_that_lists_types_is_those_types(tmp_path: Path) -> None:
    lines = [
        'a.TEL;TYPE="WORK,VOICE":1\na.X-ABLABEL:VOICE',
        "b.TEL;TYPE=pref:2\nb.X-ABLABEL:WORK\\;VOICE\\;PREF",
        "c.TEL;TYPE=CELL:3\nc.X-ABLabel:Boat\\; summer",
    ]
    card = "\n".join(["BEGIN:VCARD", "VERSION:3.0", "FN:X", *lines, "END:VCARD"])
    (tmp_path / "a.vcf").write_text(card)
    (found,) = records_of(read_path(tmp_path), "contacts")
    assert found["phones_by_kind"] == ["work: 1", "work: 2", "boat; summer: 3"]


def test_a_group_that_is_called_as_a_property_is_one(tmp_path: Path) -> None:
    lines = ["PHONE.WORK:0704189993", "EMAIL.HOME:a@example.org", "PHONE.NOTE:kept"]
    card = "\n".join(["BEGIN:VCARD", "VERSION:3.0", "FN:X", *lines, "END:VCARD"])
    (tmp_path / "a.vcf").write_text(card)
    (found,) = records_of(read_path(tmp_path), "contacts")
    assert found["phones_by_kind"] == ["work: 0704189993"]
    assert found["emails"] == ["a@example.org"]
    assert found["note"] == "kept"
