"""Contacts: vCard files of any version, with their pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial

from msgspec.structs import replace

from pdpp_kernel.person_fields import PersonForm
from pdpp_kernel.source_item import (
    LARGEST_BLOB_BYTES,
    Data,
    Skipped,
    SourceItem,
    SourceRecord,
    blob_of_bytes,
    stable_id,
)
from pdpp_sources.common.components import cut_components
from pdpp_sources.common.declaration import (
    StreamForm,
    blob,
    caseless,
    declaration,
    integer,
    key,
    moment,
    names,
    person,
    plain,
    text,
    word,
)
from pdpp_sources.common.errors import BadRecord
from pdpp_sources.common.export import Export, ExportMember
from pdpp_sources.common.source import (
    Claim,
    beginning_at,
    claim,
    each_member,
    matching,
    one_record,
    without_repeats,
)
from pdpp_sources.common.text import one_line, or_none
from pdpp_sources.common.times import from_iso
from pdpp_sources.vcards import CardProperty, properties

_APPLE_LABEL = re.compile(r"^_\$!<(.*)>!\$_$")
# Kinds that say nothing, and those that people call otherwise.
_NO_KINDS = frozenset({"pref", "voice", "internet", "x400", "intl", "postal", "parcel", "dom"})
_TYPES = _NO_KINDS | {
    "home",
    "work",
    "cell",
    "fax",
    "pager",
    "main",
    "other",
    "msg",
    "video",
    "car",
}
_KIND_NAMES = {"cell": "mobile", "msg": "messages"}
_SERVICES = {
    "IMPP": "",
    "X-SOCIALPROFILE": "",
    "X-AIM": "aim",
    "X-ICQ": "icq",
    "X-JABBER": "jabber",
    "X-MSN": "msn",
    "X-YAHOO": "yahoo",
    "X-SKYPE": "skype",
    "X-SKYPE-USERNAME": "skype",
    "X-GOOGLE-TALK": "google talk",
    "X-GTALK": "google talk",
    "X-GADUGADU": "gadu-gadu",
    "X-GROUPWISE": "groupwise",
    "X-QQ": "qq",
    "X-TWITTER": "twitter",
    "X-TELEGRAM": "telegram",
}
_RELATIONS = {
    "RELATED": "related",
    "X-ABRELATEDNAMES": "related",
    "X-SPOUSE": "spouse",
    "X-EVOLUTION-SPOUSE": "spouse",
    "X-KADDRESSBOOK-X-SPOUSESNAME": "spouse",
    "X-CHILDREN": "child",
    "X-MANAGER": "manager",
    "X-EVOLUTION-MANAGER": "manager",
    "X-KADDRESSBOOK-X-MANAGERSNAME": "manager",
    "X-ASSISTANT": "assistant",
    "X-EVOLUTION-ASSISTANT": "assistant",
    "X-KADDRESSBOOK-X-ASSISTANTSNAME": "assistant",
}
_DAYS = {
    "ANNIVERSARY": "anniversary",
    "X-ANNIVERSARY": "anniversary",
    "X-EVOLUTION-ANNIVERSARY": "anniversary",
    "X-KADDRESSBOOK-X-ANNIVERSARY": "anniversary",
    "X-ABDATE": "day",
    "DEATHDATE": "died",
}
_DAY = re.compile(r"(\d{4}|-)-?(0[1-9]|1[0-2])-?([0-3]\d)(?:T.*)?$")
_VCARD = re.compile(rb"^\s*(\xef\xbb\xbf)?BEGIN:VCARD", re.IGNORECASE)
CONTACTS = StreamForm(
    "contacts",
    "Your contacts",
    "Names, addresses, numbers, birthdays and notes of the people you know.",
    [
        key(),
        caseless(text("display_name", "Full name", title=True)),
        caseless(plain("given_name", "Given name")),
        caseless(plain("middle_name", "Further given names")),
        caseless(word("family_name", "Family name")),
        plain("name_prefix", "What stands before the name, as Dr."),
        plain("name_suffix", "What stands after the name, as Jr."),
        names("nicknames", "Other names"),
        person(
            names("emails", "E-mail addresses"),
            PersonForm.ADDRESS,
            named_by="display_name",
            card=True,
        ),
        names("emails_by_kind", "The same, each as its kind and the address: work: ada@…"),
        person(
            names("phones", "Telephone numbers"),
            PersonForm.NUMBER,
            named_by="display_name",
            card=True,
        ),
        names("phones_by_kind", "The same, each as its kind and the number: mobile, work: +49…"),
        person(
            names("instant_messages", "Names in messengers and networks: skype: ada"),
            PersonForm.HANDLE,
            named_by="display_name",
            card=True,
        ),
        text("reachable_at", "All addresses, numbers and names in messengers, to search in"),
        caseless(text("organization", "Company or organization")),
        text("job_title", "What they do there"),
        names("organizations", "All organizations of theirs"),
        names("job_titles", "All they do there"),
        names("addresses", "Postal addresses"),
        names("addresses_by_kind", "The same, each as its kind and the address: home: 12 St …"),
        names("related_people", "Family, assistants and others: spouse: Ann Byron"),
        names("anniversaries", "Days to remember but the birthday: wedding: 2010-05-01"),
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
            position_text, position = member.where(piece.offset), member.offset + piece.offset
            if piece.raw is not None and piece.name:
                build = partial(_contact, piece.raw, position_text, position)
                yield from one_record(position_text, position, build)
            elif piece.name:
                yield Skipped(position_text, *piece.fault, position)


def _contact(raw: bytes, position_text: str, position: int) -> Iterator[SourceItem]:
    card = _Card(properties(raw))
    name_parts = (card.first_parts("N") + [None] * 5)[:5]
    emails, phones = card.texts("EMAIL"), card.texts("TEL")
    display = card.text("FN") or or_none(" ".join(filter(None, name_parts[1::-1])))
    organizations, titles = card.joined("ORG"), [*card.texts("TITLE"), *card.texts("ROLE")]
    organization, handles = next(iter(organizations), None), card.handles()
    shown_name = display or organization or next(iter([*emails, *phones]), None)
    if shown_name is None:
        raise BadRecord("bad_record", "the contact card has no name")
    uid = card.text("UID")
    data: Data = {
        "id": stable_id("person", uid)
        if uid
        else stable_id("person", shown_name, *emails, *phones),
        "display_name": shown_name,
        "given_name": name_parts[1],
        "middle_name": name_parts[2],
        "family_name": name_parts[0],
        "name_prefix": name_parts[3],
        "name_suffix": name_parts[4],
        "nicknames": card.texts("NICKNAME"),
        "emails": emails,
        "emails_by_kind": card.by_kind("EMAIL"),
        "phones": phones,
        "phones_by_kind": card.by_kind("TEL"),
        "instant_messages": handles,
        "reachable_at": or_none(" ".join([*emails, *phones, *handles])),
        "organization": organization,
        "job_title": next(iter(titles), None),
        "organizations": organizations,
        "job_titles": titles,
        "addresses": card.joined("ADR") or card.texts("LABEL"),
        "addresses_by_kind": card.by_kind("ADR") or card.by_kind("LABEL"),
        "related_people": card.related(),
        "anniversaries": card.anniversaries(),
        **_birthday(card.all("BDAY")[:1]),
        "note": card.text("NOTE"),
        "urls": card.texts("URL"),
        "categories": [category for p in card.all("CATEGORIES") for category in p.listed],
        "updated_at": _instant(card.text("REV")),
    }
    yield from _with_photo(
        SourceRecord("contacts", data, position), card.all("PHOTO"), position_text
    )


class _Card:
    """The properties of one card, asked by name."""

    def __init__(self, card: list[CardProperty]) -> None:
        self._card = card
        # Apple names the kind of a property in another one of the same group.
        self._labels = {entry.group: entry.text for entry in card if entry.name == "X-ABLABEL"}

    def all(self, name: str) -> list[CardProperty]:
        return [entry for entry in self._card if entry.name == name and entry.value.strip()]

    def texts(self, name: str) -> list[str]:
        texts = (_bare(entry.text) for entry in self.all(name))
        return list(dict.fromkeys(filter(None, texts)))

    def joined(self, name: str) -> list[str]:
        """The parts of each, in one line."""
        texts = (one_line(", ".join(filter(None, entry.parts))) for entry in self.all(name))
        return list(dict.fromkeys(filter(None, texts)))

    def by_kind(self, name: str) -> list[str]:
        """Each with its kinds before it, as far as the card names them."""
        structured = name == "ADR"
        pairs = [
            _labelled(
                self._kinds_of(entry),
                ", ".join(filter(None, entry.parts)) if structured else _bare(entry.text),
            )
            for entry in self.all(name)
        ]
        return list(dict.fromkeys(filter(None, pairs)))

    def handles(self) -> list[str]:
        """Names in messengers, with the messenger before each."""
        handles: list[str] = []
        for entry in self._card:
            service = _SERVICES.get(entry.name)
            if service is None or not entry.value.strip():
                continue
            scheme, _, address = entry.text.strip().partition(":")
            handle = (
                address
                if address and scheme.isalnum() and not address.startswith("//")
                else entry.text
            )
            service_name = entry.parameters.get("X-SERVICE-TYPE") or service
            service_name = service_name or self._kind_or(entry, scheme if address else "")
            handles.append(_labelled(filter(None, [service_name.lower()]), handle))
        return list(dict.fromkeys(handles))

    def related(self) -> list[str]:
        """People, each with who they are to this one."""
        names: list[str] = []
        for entry in self._card:
            kind = _RELATIONS.get(entry.name)
            if kind is not None and entry.value.strip():
                kinds = self._kinds_of(entry) or [kind]
                names.append(_labelled(kinds, entry.text.strip()))
        return list(dict.fromkeys(names))

    def anniversaries(self) -> list[str]:
        """Days, each with what it is."""
        days: list[str] = []
        for entry in self._card:
            kind = _DAYS.get(entry.name)
            if kind is not None and entry.value.strip():
                day = _birthday([entry])["birthday"]
                days.append(_labelled(self._kinds_of(entry) or [kind], day))
        return list(dict.fromkeys(days))

    def _kind_or(self, entry: CardProperty, otherwise: str) -> str:
        return next(iter(self._kinds_of(entry)), otherwise)

    def _kinds_of(self, entry: CardProperty) -> list[str]:
        """The kinds of a property: what its owner called it, else its types.

        In: a label `Boat; summer`. Out: that. In: `WORK;VOICE`, which is a list of types. Out:
        `work`. In: `VOICE`, which says nothing, and the type `CELL`. Out: `mobile`.
        """
        label = _APPLE_LABEL.sub(r"\1", self._labels.get(entry.group, "")) if entry.group else ""
        words = [*map(str.strip, label.lower().split(";"))]
        if len(words) > 1 and not _TYPES.issuperset(words):
            words = [label.strip().lower()]  # what a program wrote there is no list of types
        for named in (words, entry.kinds):
            kinds = [_KIND_NAMES.get(kind, kind) for kind in named if kind not in ("", *_NO_KINDS)]
            if kinds:
                return list(dict.fromkeys(kinds))
        return []

    def text(self, name: str) -> str | None:
        return next((entry.text.strip() for entry in self.all(name)), None)

    def first_parts(self, name: str) -> list[str | None]:
        return [or_none(part) for entry in self.all(name)[:1] for part in entry.parts]


def _bare(value: str) -> str:
    return one_line(value).removeprefix("tel:").removeprefix("mailto:")


def _labelled(kinds: Iterable[str], value: str) -> str:
    kind = ", ".join(kinds)
    return one_line(f"{kind}: {value}" if kind else value)


def _with_photo(
    record: SourceRecord, photos: list[CardProperty], position_text: str
) -> Iterator[SourceItem]:
    """The card with its first picture; one that cannot be had costs the picture alone."""
    codes: list[str] = []
    for photo in photos:
        if not photo.is_inline:
            continue
        content = photo.binary
        if content and len(content) <= LARGEST_BLOB_BYTES:
            blob = blob_of_bytes(content, photo.image_type, None, "/photo")
            yield replace(record, data=record.data | {"photo": blob.value}, blobs=(blob,))
            return
        codes.append("attachment_too_large" if content else "missing_attachment")
    yield record
    for code in codes[:1]:
        yield Skipped(
            position_text, code, "the contact was imported without the picture", record.position
        )


def _birthday(written: list[CardProperty]) -> Data:
    """A day, if it is written as one; Apple writes a year that is to be left out as 1604."""
    text = written[0].text.strip() if written else None
    match = _DAY.match(text or "")
    if match is None:
        return {"birthday": text, "birth_month": None}
    year, month, day = match.groups()
    if year == written[0].parameters.get("X-APPLE-OMIT-YEAR"):
        year = "-"
    return {"birthday": f"{year}-{month}-{day}", "birth_month": int(month)}


def _instant(value: str | None) -> str | None:
    try:
        return from_iso(value) if value else None
    except BadRecord:
        return None
