"""Languages: the catalogues of texts, which one a reader gets, and how values read in it.

Rule: English is the source; another language is one file `catalogues/TAG.po`, offered while it
translates at least nine texts in ten; a text without a translation is shown in English.  A page is
rendered by one `PageReader`, in the owner's zone.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from functools import cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from typing import cast
from zoneinfo import ZoneInfo

import msgspec
from babel import Locale
from babel.dates import format_interval, format_skeleton
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal
from markupsafe import Markup, escape

from pdpp_kernel.texts import (
    CatalogueText,
    Date,
    Day,
    DaySpan,
    Joined,
    Minute,
    Size,
    Text,
    local_moment,
    moment_of,
    scaled,
)
from personal_server.console.isolation import isolated, named
from personal_server.console.words import DeclaredName
from personal_server.domain.local_days import UTC_NAMES

SOURCE = "en"
CATALOGUES = files("personal_server.console") / "catalogues"
_LOCALES = {SOURCE: "en_GB"}
"""Locales whose dates read as the source writes them."""
_SKELETONS = {
    "day": "yMMMd",
    "month": "yMMM",
    "year": "y",
    "named_day": "yMMMEd",
    "short_day": "E",
    "short_month": "MMM",
}
# Of at most eight parts, since a tag is looked up part by part (RFC 5646 4.4.1 needs six).
_TAG = re.compile(r"([A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8}){0,7})(?:;q=([01](?:\.[0-9]{0,3})?))?\Z")
_MOST_TAGS = 20
OFFERED_SHARE = 0.9
"""What part of the texts a catalogue has to translate for its language to be offered."""


class Language(msgspec.Struct, frozen=True):
    """A language: its tag, its own name, how it writes figures, and its texts."""

    tag: str
    name: str
    locale: Locale
    texts: NullTranslations


def language_of(tag: str, texts: NullTranslations | None = None) -> Language:
    """A language with these texts; without any the source's."""
    locale = Locale.parse(_LOCALES.get(tag, tag), sep="-" if "-" in tag else "_")
    name = Locale.parse(tag, sep="-").get_display_name() or tag
    return Language(tag, name, locale, texts or NullTranslations())


def catalogue(tag: str) -> Catalog:
    """What the file of a language says."""
    return read_po(io.BytesIO((CATALOGUES / f"{tag}.po").read_bytes()), locale=tag)


def catalogue_tags() -> list[str]:
    """The languages that have a file."""
    names = (entry.name for entry in CATALOGUES.iterdir())
    return sorted(name.removesuffix(".po") for name in names if name.endswith(".po"))


def lacking(catalog: Catalog) -> list[str]:
    """The texts that a catalogue does not translate, or translates from an older text."""
    return [
        str(entry.id if isinstance(entry.id, str) else entry.id[0])
        for entry in catalog
        if entry.id
        and (entry.fuzzy or not entry.string or not all(cast("tuple[str, ...]", entry.string)))
    ]


def is_offered(catalog: Catalog) -> bool:
    """Whether a catalogue translates enough for its language to be offered."""
    return (len(catalog) - len(lacking(catalog))) / len(catalog) >= OFFERED_SHARE


def translations(catalog: Catalog) -> GNUTranslations:
    """A catalogue as texts are looked up in it; a text that it does not translate stays English."""
    for text in lacking(catalog):  # else an empty plural would be shown
        catalog.delete(text)
    packed = io.BytesIO()
    write_mo(packed, catalog)
    packed.seek(0)
    return GNUTranslations(packed)


@cache
def languages() -> Mapping[str, Language]:
    """Every language that can be read, by its tag; the source first."""
    offered = {SOURCE: language_of(SOURCE)}
    for tag in catalogue_tags():
        catalog = catalogue(tag)
        if is_offered(catalog):
            offered[tag] = language_of(tag, translations(catalog))
    return offered


def negotiated(accepted: str, offered: Mapping[str, Language]) -> Language:
    """The offered language that a browser likes best; the source for what makes no sense.

    Shapes: `accepted` is the value of `Accept-Language`.
    """
    liked: list[tuple[float, str]] = []
    for each in accepted.split(",")[:_MOST_TAGS]:
        match = _TAG.match(each.strip().replace(" ", ""))
        if match is not None and float(match[2] or 1) > 0:
            liked.append((float(match[2] or 1), match[1].lower()))
    for _, tag in sorted(liked, key=lambda pair: -pair[0]):
        while tag:
            if tag in offered:
                return offered[tag]
            tag = tag.rpartition("-")[0]
    return offered[SOURCE]


class PageReader(msgspec.Struct, frozen=True):
    """Whoever reads a page: their language, and the zone in which they live."""

    language: Language
    zone: ZoneInfo

    def text(self, value: Text) -> str:
        """A value as plain text."""
        match value:
            case CatalogueText():
                values = {name: self._beside(member) for name, member in value.values.items()}
                return self._said(value) % values
            case Joined():
                return value.glue.join(map(self._beside, value.parts))
            case Minute():
                return self._minute(value.at_ns, self.zone)
            case Day() | Date():
                return self._date(self._day(value))
            case DaySpan():
                first, last = (self._day(minute).day for minute in (value.first, value.last))
                return format_interval(first, last, _SKELETONS["day"], locale=self.language.locale)
            case Size():
                amount, unit = scaled(value.size_bytes)
                pattern = "#,##0.0" if value.decimals else "#,##0"
                return f"{format_decimal(amount, pattern, self.language.locale)} {unit}"
            case int() if not isinstance(value, bool):
                return format_decimal(value, locale=self.language.locale)
            case _:
                return str(value)

    def html(self, value: Text) -> Markup:
        """A value as it stands on a page: moments tell UTC where one points at them."""
        match value:
            case DeclaredName():
                return isolated(self.text(value))
            case CatalogueText():
                values = {name: self.apart(member) for name, member in value.values.items()}
                return escape(self._said(value)) % values
            case Joined():
                return escape(value.glue).join(map(self.apart, value.parts))
            case Minute() | Day():
                exact = f"{moment_of(value.at_ns):%Y-%m-%dT%H:%M:%SZ}"
                return Markup('<time datetime="{}" title="{}">{}</time>').format(
                    exact, self._minute(value.at_ns, UTC), self.text(value)
                )
            case DaySpan(Day() as first, Day() as last):
                exact = " – ".join(self._minute(minute.at_ns, UTC) for minute in (first, last))
                return Markup('<span title="{}">{}</span>').format(exact, self.text(value))
            case _:
                return value if isinstance(value, Markup) else escape(self.text(value))

    def apart(self, value: Text) -> Markup:
        """The same beside other words: what is no text of ours is isolated from them."""
        return isolated(value) if type(value) is str else self.html(value)

    def _beside(self, value: Text) -> str:
        return named(value) if type(value) is str else self.text(value)

    def known(self, value: Text) -> Text:
        """A text of another room, which the catalogue holds as it stands or with its values."""
        return self.said(value) if type(value) is str else value

    def _day(self, value: Day | Date) -> Date:
        """The day that it is where the reader lives."""
        if isinstance(value, Date):
            return value
        return Date(local_moment(value.at_ns, self.zone).date())

    def _said(self, value: CatalogueText) -> str:
        num = value.values.get("num")
        return self.said(value.text, value.plural, num if isinstance(num, int) else 0)

    def said(self, text: str, plural: str | None = None, num: int = 0) -> str:
        """A text of the catalogue, its values still open."""
        texts = self.language.texts
        return texts.gettext(text) if plural is None else texts.ngettext(text, plural, num)

    def _minute(self, at_ns: int, zone: tzinfo) -> str:
        local = local_moment(at_ns, zone)
        mark = " UTC" if _is_utc(zone) else ""
        return f"{self._date(Date(local.date()))}, {local:%H:%M}{mark}"

    def _date(self, value: Date) -> str:
        moment = datetime(value.day.year, value.day.month, value.day.day, tzinfo=UTC)
        return format_skeleton(_SKELETONS[value.unit], moment, locale=self.language.locale)


def _is_utc(zone: tzinfo) -> bool:
    return zone is UTC or (isinstance(zone, ZoneInfo) and zone.key in UTC_NAMES)
