"""What values, words and days mean, in the plainest way."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from personal_server.domain.language_names import LANGUAGE_CODES
from personal_server.domain.stop_words import STOP_WORDS
from personal_server.domain.text_language import language_of
from personal_server.domain.word_forms import family_of, forms, stems
from tests.properties.worlds import Json

SCALARS = {"string", "integer", "number", "boolean"}


def kind_of(prop: Json) -> str | None:
    named_type: Any = prop["type"]
    types: list[str] = [named_type] if isinstance(named_type, str) else named_type
    named = [t for t in types if t != "null"]
    if len(named) != 1 or named[0] not in SCALARS:
        return None
    return prop.get("format", "string") if named[0] == "string" else named[0]


def nanoseconds(text: str) -> int | None:
    match = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)", text)
    if match is None:
        return None
    base, fraction, offset = match.groups()
    try:
        moment = datetime.fromisoformat(base + ("+00:00" if offset == "Z" else offset))
    except ValueError:
        return None
    whole = moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    seconds = whole.days * 86400 + whole.seconds
    return seconds * 10**9 + int(((fraction or "") + "0" * 9)[:9])


def day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else None
    except ValueError:
        return None


def moment(text: str | None) -> int | None:
    """The instant of a time; a date counts as 00:00:00Z, and nothing has none."""
    if text is None:
        return None
    return nanoseconds(f"{text}T00:00:00Z" if day(text) else text)


def comparable(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "date-time":
        return nanoseconds(value)
    if kind == "date":
        return day(value)
    return value


def rendered_time(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.000Z"


def letters(text: str) -> list[str]:
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    words: list[str] = []
    current = ""
    for character in folded:
        category = unicodedata.category(character)[0]
        if category == "M":
            continue
        if "CJK" in unicodedata.name(character, ""):
            words += [current, character]
            current = ""
        elif category in "LN":
            current += character
        else:
            words.append(current)
            current = ""
    return [word for word in [*words, current] if word]


@dataclass(frozen=True)
class Term:
    words: tuple[str, ...]
    prefix: bool = False
    quoted: bool = False
    others: tuple[Term, ...] = ()
    # what stands before and behind a colon, and the fields that it turned out to mean
    named: tuple[str, str] | None = None
    fields: tuple[str, ...] = ()
    said: str = field(default="", compare=False)

    @property
    def forms(self) -> frozenset[str]:
        """What a word, or its stem, has to be where other forms of a word are meant too."""
        literal = self.quoted or self.prefix or len(self.words) != 1
        if literal:
            return frozenset()
        found = forms(self.words[0])
        stemmed = {f"{name}~{stem}" for name, stems in found.stems.items() for stem in stems}
        return frozenset({*found.words, *stemmed})


@dataclass(frozen=True)
class Said:
    """The words of a text and beside each its stem, with its family of languages."""

    words: list[str]
    stems: list[str]


def said(text: str) -> Said:
    words = letters(text)
    return Said(words, stemmed(words, text))


def stemmed(words: list[str], text: str) -> list[str]:
    language = language_of(text)
    family = family_of(language or "")
    return [f"{family}~{stem}" if stem else "" for stem in stems(words, language)]


@dataclass(frozen=True)
class Wanted:
    terms: list[Term]
    excluded: list[Term]
    ignored: list[str] = field(default_factory=list[str])

    @property
    def alternatives(self) -> list[Term]:
        return [each for term in self.terms for each in (term, *term.others)]


def wanted_of(text: str) -> Wanted:
    if text.startswith('"'):
        return Wanted([Term(tuple(letters(text)), quoted=True, said=text)], [])
    if " OR " in text:
        first, other = (_term_of(piece) for piece in text.split(" OR "))
        others = () if other == first else (other,)
        said = first.said if first == other else text
        return Wanted([replace(first, others=others, said=said)], [])
    pieces = re.findall(r'[^\s"]*"[^"]*"|\S+', text)
    found = [_term_of(piece) for piece in pieces if piece[0] != "-"]
    excluded = [_term_of(piece[1:]) for piece in pieces if piece[0] == "-"]
    terms = list(dict.fromkeys(term for term in found if term.words))
    if not terms:  # then nothing is left out of nothing
        terms, excluded = excluded, []
    said = [term for term in terms if not _says_nothing(term, text)]
    if not said:
        return Wanted(terms, excluded)
    return Wanted(said, excluded, [t.said for t in terms if t not in said])


def _says_nothing(term: Term, text: str) -> bool:
    code = LANGUAGE_CODES.get(language_of(text) or "")
    common = {each for word in STOP_WORDS.get(code or "", "").split() for each in letters(word)}
    return not (term.prefix or term.quoted or term.named) and set(term.words) <= common


def _term_of(piece: str) -> Term:
    quoted = piece.endswith('"')
    name, colon, value = piece.partition(":")
    named = (name, value.strip('"')) if colon and letters(value) else None
    is_prefix = piece.endswith("*") and len(piece) > 2
    bare = re.sub(r"['’]s?$", "", piece)
    return Term(tuple(letters(bare)), is_prefix, quoted, (), named, said=piece)


def value_of(term: Term) -> Term:
    """What a named piece looks for in the fields it names."""
    assert term.named is not None
    value = term.named[1]
    is_prefix = value.endswith("*") and len(value) > 2 and not term.quoted
    return Term(tuple(letters(value)), is_prefix, term.quoted)


def hits_in(text: Said, term: Term, name: str) -> int:
    each_one = [each for each in (term, *term.others) if not each.fields or name in each.fields]
    return sum(_hits_of_one(text, each) for each in each_one)


def places_in(text: Said, term: Term, name: str) -> list[tuple[int, int]]:
    """Where a term begins and ends among the words of a field."""
    found: list[tuple[int, int]] = []
    for each in (term, *term.others):
        if not each.words or (each.fields and name not in each.fields):
            continue
        size = len(each.words)
        for at in range(len(text.words) - size + 1):
            here = Said(text.words[at : at + size], text.stems[at : at + size])
            if _hits_of_one(here, each):
                found.append((at, at + size))
    return found


def _hits_of_one(text: Said, term: Term) -> int:
    words, sought = text.words, term.forms
    if sought:
        return sum(each in sought for each in (*words, *text.stems))
    count = 0
    size = len(term.words)
    for at in range(len(words) - size + 1):
        window = tuple(words[at : at + size])
        exact = window == term.words
        if exact or (
            term.prefix and window[:-1] == term.words[:-1] and window[-1].startswith(term.words[-1])
        ):
            count += 1
    return count


def bm25(counts: list[int], length: int, frequencies: list[int]) -> float:
    total = 0.0
    for count, frequency in zip(counts, frequencies, strict=True):
        weight = math.log(1 + (1_000_000 - frequency + 0.5) / (frequency + 0.5))
        total += weight * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / 128))
    return -round(total, 6)


# Buckets: 10 ----------------------------------------------------------------------------------
def first_day(found: date, granularity: str) -> date:
    match granularity:
        case "week":
            return found - timedelta(days=found.isoweekday() - 1)
        case "month":
            return found.replace(day=1)
        case "quarter":
            return found.replace(month=3 * ((found.month - 1) // 3) + 1, day=1)
        case "year":
            return found.replace(month=1, day=1)
        case _:
            return found
