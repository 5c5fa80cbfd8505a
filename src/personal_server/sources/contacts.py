"""Contacts: vCard files of any version, with their pictures."""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from personal_server.domain.source_item import (
    LARGEST_BLOB_BYTES,
    Data,
    Skipped,
    SourceItem,
    SourceRecord,
    blob_of_bytes,
    stable_id,
)
from personal_server.sources.common.components import cut_components
from personal_server.sources.common.declaration import (
    StreamForm,
    blob,
    declaration,
    integer,
    key,
    moment,
    names,
    plain,
    text,
    word,
)
from personal_server.sources.common.errors import BadRecord
from personal_server.sources.common.export import Export, ExportMember
from personal_server.sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from personal_server.sources.common.text import decoded, one_line, or_none, printable
from personal_server.sources.common.times import from_iso

_DATA_URI = re.compile(r"^data:([\w/+.-]*)[^,]*;base64\\?,", re.IGNORECASE)
_NO_SEPARATOR = "\0"
_ESCAPE = re.compile(r'\\([\\;,:nN"])')
_QUOTED = "quoted-printable"
_ENCODINGS = frozenset({"QUOTED-PRINTABLE", "BASE64", "B", "8BIT"})
_BLANKS = (" ", "\t")
_LONGEST_HEAD = 8_000
_HEAD = re.compile(rf'((?:[^":]|"[^"]{{0,1000}}+"){{1,{_LONGEST_HEAD}}}+):')
_PARAMETER = re.compile(r'(?:[^";]|"[^"]*+")++')
_DAY = re.compile(r"(\d{4}|-)-?(0[1-9]|1[0-2])-?([0-3]\d)(?:T.*)?$")
_VCARD = re.compile(rb"^\s*(\xef\xbb\xbf)?BEGIN:VCARD", re.IGNORECASE)
CONTACTS = StreamForm(
    "contacts",
    "Your contacts",
    "Names, addresses, numbers, birthdays and notes of the people you know.",
    [
        key(),
        text("display_name", "Full name", title=True),
        plain("given_name", "Given name"),
        word("family_name", "Family name"),
        names("nicknames", "Other names"),
        names("emails", "E-mail addresses"),
        names("phones", "Telephone numbers"),
        text("reachable_at", "All e-mail addresses and numbers, to search in"),
        text("organization", "Company or organization"),
        text("job_title", "What they do there"),
        names("addresses", "Postal addresses"),
        plain("birthday", "YYYY-MM-DD, --MM-DD without the year, or as written"),
        integer("birth_month", "Month of the birthday, 1 to 12"),
        text("note", "Notes about the person"),
        names("urls", "Web addresses"),
        names("categories", "Groups and labels"),
        moment("updated_at", "When it was last changed"),
        blob("photo", "Picture"),
    ],
    views={"names": ("Names only", ["id", "display_name", "organization"])},
)


class ContactsSource:
    """Reads every vCard of every file."""

    connector_key = "contacts"
    declaration: Data = declaration(
        "contacts", "Contacts", "People of your address books.", [CONTACTS]
    )
    how_to_export = (
        "Google: takeout.google.com or contacts.google.com > Export > vCard. Apple: select all, "
        "then File > Export > Export vCard. Outlook and phones: any .vcf file or folder of them."
    )

    def recognize(self, export: Export) -> Claim | None:
        """Claim what begins as a vCard."""
        suffixes = (".vcf", ".vcard", ".txt", "")
        return claim(matching(export, _VCARD.match, *suffixes), "it begins as a vCard")

    def read(self, export: Export, start: int = 0) -> Iterator[SourceItem]:
        """Yield one record for each card."""
        return beginning_at(start, without_repeats(each_member(export, _read_member)))


def _read_member(member: ExportMember) -> Iterator[SourceItem]:
    with member.open() as stream:
        for piece in cut_components(stream, frozenset({"VCARD"})):
            where, position = member.where(piece.offset), member.offset + piece.offset
            if piece.raw is not None and piece.name:
                yield from one_record(where, position, partial(_contact, piece.raw, position))
            elif piece.name:
                yield Skipped(where, *piece.fault, position)


def _contact(raw: bytes, position: int) -> Iterator[SourceRecord]:
    named = _Card(properties(raw))
    name_parts = named.first_parts("N")
    emails, phones = named.texts("EMAIL"), named.texts("TEL")
    display = named.text("FN") or or_none(" ".join(filter(None, name_parts[1:2] + name_parts[:1])))
    organization = or_none(", ".join(filter(None, named.first_parts("ORG"))))
    shown = display or organization or next(iter([*emails, *phones]), None)
    if shown is None:
        raise BadRecord("bad_record", "the card names nobody")
    uid = named.text("UID")
    data: Data = {
        "id": stable_id("person", uid) if uid else stable_id("person", shown, *emails, *phones),
        "display_name": shown,
        "given_name": name_parts[1] if len(name_parts) > 1 else None,
        "family_name": name_parts[0] if name_parts else None,
        "nicknames": named.texts("NICKNAME"),
        "emails": emails,
        "phones": phones,
        "reachable_at": or_none(" ".join([*emails, *phones])),
        "organization": organization,
        "job_title": named.text("TITLE") or named.text("ROLE"),
        "addresses": [one_line(", ".join(filter(None, p.parts))) for p in named.all("ADR")],
        **_birthday(named.all("BDAY")[:1]),
        "note": named.text("NOTE"),
        "urls": named.texts("URL"),
        "categories": [each for p in named.all("CATEGORIES") for each in p.listed],
        "updated_at": _instant(named.text("REV")),
    }
    yield _with_photo(SourceRecord("contacts", data, position), named.all("PHOTO"))


class _Card:
    """The properties of one card, asked by name."""

    def __init__(self, card: list[CardProperty]) -> None:
        self._card = card

    def all(self, name: str) -> list[CardProperty]:
        return [each for each in self._card if each.name == name and each.value.strip()]

    def texts(self, name: str) -> list[str]:
        found = (one_line(each.text).removeprefix("tel:") for each in self.all(name))
        return list(dict.fromkeys(filter(None, found)))

    def text(self, name: str) -> str | None:
        return next((each.text.strip() for each in self.all(name)), None)

    def first_parts(self, name: str) -> list[str | None]:
        return [or_none(part) for each in self.all(name)[:1] for part in each.parts]


def _with_photo(record: SourceRecord, photos: list[CardProperty]) -> SourceRecord:
    for photo in photos:
        content = photo.binary
        if content and len(content) <= LARGEST_BLOB_BYTES:
            made = blob_of_bytes(content, photo.image_type, None, "/photo")
            return replace(record, data=record.data | {"photo": made.value}, blobs=(made,))
    return record


def _birthday(written: list[CardProperty]) -> Data:
    """A day, if it is written as one; Apple writes a year that is to be left out as 1604."""
    text = written[0].text.strip() if written else None
    found = _DAY.match(text or "")
    if found is None:
        return {"birthday": text, "birth_month": None}
    year, month, day = found.groups()
    if year == written[0].parameters.get("X-APPLE-OMIT-YEAR"):
        year = "-"
    return {"birthday": f"{year}-{month}-{day}", "birth_month": int(month)}


def _instant(value: str | None) -> str | None:
    try:
        return from_iso(value) if value else None
    except BadRecord:
        return None


@dataclass(frozen=True, slots=True)
class CardProperty:
    """One property: its name without group, its parameters, its value with its escapes."""

    name: str
    value: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def text(self) -> str:
        """The value with its escapes undone."""
        return self._split(_NO_SEPARATOR)[0]

    @property
    def parts(self) -> list[str]:
        """The components of a structured value."""
        return [part.strip() for part in self._split(";")]

    @property
    def listed(self) -> list[str]:
        """The entries of a list."""
        return [entry for each in self._split(",") if (entry := each.strip())]

    @property
    def binary(self) -> bytes | None:
        """The bytes of an inline picture."""
        inline = _DATA_URI.match(self.value)
        encoded = self.parameters.get("ENCODING", "").upper() in ("B", "BASE64")
        if not inline and not encoded:
            return None
        packed = self.value[inline.end() :] if inline else self.value
        try:
            return binascii.a2b_base64("".join(packed.split()))
        except ValueError:
            return None

    @property
    def image_type(self) -> str:
        """The MIME type of an inline picture."""
        inline = _DATA_URI.match(self.value)
        kind = (inline.group(1) if inline else self.parameters.get("TYPE", "jpeg")).lower()
        return kind if kind.startswith("image/") else f"image/{re.sub(r'[^a-z0-9.+-]', '', kind)}"

    def _split(self, separator: str) -> list[str]:
        parts = _SPLITS[separator](self.value)
        return [_ESCAPE.sub(_unescaped, each).replace("\r\n", "\n") for each in parts]


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape.group(1) in "nN" else escape.group(1)


def _splits(separator: str) -> Callable[[str], list[str]]:
    """Cut a value where the separator stands without a backslash."""
    pieces = re.compile(rf"((?:[^\\{separator}]|\\.|\\\Z)*+)(?:{separator}|\Z)", re.DOTALL)

    def split(value: str) -> list[str]:
        *found, rest = pieces.findall(value)
        return found if found and not rest else [*found, rest]

    return split


_SPLITS = {each: _splits(each) for each in (_NO_SEPARATOR, ";", ",")}


def properties(raw: bytes) -> list[CardProperty]:
    """The properties of a card in their order; lines that are none are passed over."""
    lines = _logical_lines(decoded(raw))
    return [found for line in lines if (found := _property(line)) is not None]


def _logical_lines(text: str) -> Iterator[str]:
    """Lines put together again: folded ones, and of vCard 2.1 those that end in a soft break."""
    pieces: list[str] = []
    quoted = False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if pieces and line and quoted and pieces[-1].endswith("="):
            pieces.append(f"\n{line}")
        elif pieces and line[:1] in _BLANKS:
            pieces.append(line[1:])
        else:
            yield "".join(pieces)
            pieces, quoted = [line] if line else [], _QUOTED in line[:_LONGEST_HEAD].lower()
    yield "".join(pieces)


def _property(line: str) -> CardProperty | None:
    """One logical line (RFC 6350, section 3.3). Parameters without a name are of vCard 2.1."""
    head = _HEAD.match(line)
    if head is None:
        return None
    name, *written = _PARAMETER.findall(head.group(1))
    parameters: dict[str, str] = {}
    for each in written:
        key, _, values = each.partition("=")
        alone = not values and key.upper() in _ENCODINGS
        key, values = ("ENCODING", key) if alone else (key, values)
        first = values[1:].partition('"')[0] if values[:1] == '"' else values.partition(",")[0]
        parameters.setdefault(key.upper(), first)
    value = line[head.end() :]
    if parameters.get("ENCODING", "").lower() == _QUOTED:
        value = decoded(binascii.a2b_qp(value.encode()), parameters.get("CHARSET"))
    return CardProperty(name.rpartition(".")[2].upper(), printable(value), parameters)
