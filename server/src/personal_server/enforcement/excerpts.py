"""Evidence: where a search matched in a text, as a verbatim excerpt and a marked snippet.

Rule: only granted fields are given to this module; an excerpt is exactly a stretch of the stored
value, and marks are balanced and everything else escaped.
Source: docs/contract/resource-server.md 11.2, 11.4.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec

from pdpp_kernel.criteria import Term
from pdpp_kernel.wire_objects import Count, WireObject, Word
from personal_server.domain.search_words import (
    TextWords,
    ranges_of,
)
from personal_server.domain.spaced_text import spaced
from personal_server.domain.text_language import language_of

EXCERPT_CHARS = 200
SNIPPET_CHARS = 120
MAX_RANGES = 8

# A long text is looked at in stretches, each a little into the next, so that no phrase is cut.
STRETCH_CHARS = 200_000
_OVERLAP_CHARS = 4_000
_BLOCK_CHARS = 2_000
# A word without blanks is cut after so many.
_LONGEST_WORD_CHARS = 1_000
_LEAD_CHARS = 40
_SNIPPET_LEAD_CHARS = 24
_LOCATED_MATCHES = 64
_MAX_LOCATED = 128
_BLANK = re.compile(r"[ \t\n\r]")

Range = tuple[int, int]
MatchRange = Annotated[tuple[Count, Count], msgspec.Meta(min_length=2, max_length=2)]


class FieldMatches(NamedTuple):
    """The matches in one field.

    Shapes: `ranges` are matched tokens [start, end) in code points, ascending, of the first
        matches, those that touch as one; `terms` are the indexes of the terms that matched;
        `occurrences` counts those of the first stretch that has any; `found_at` says where which
        term begins, in code points.
    """

    field: str
    text: str
    terms: frozenset[int]
    occurrences: int
    ranges: tuple[Range, ...]
    found_at: tuple[tuple[int, int], ...] = ()


def find_matches(
    field: str, text: str, terms: Sequence[Term], *, is_spelled: bool = False
) -> FieldMatches | None:
    """Where the terms match in a text, or `None`; as they are spelled alone, if so asked.

    Of a long text one stretch is looked at closely, the first with a match; of the others it is
    asked only whether they hold what that one lacks.
    """
    language = None if is_spelled else language_of(text)
    if len(text) <= STRETCH_CHARS:  # of most
        return _find_within(field, text, (0, len(text)), language, terms)
    found: FieldMatches | None = None
    for start, end in _stretches(text):
        if found is None:
            found = _find_within(field, text, (start, end), language, terms)
        elif len(found.terms) < len(terms):
            words = TextWords(spaced(text[start:end]), language)
            matched = {n for n, term in enumerate(terms) if words.holds(term, field)}
            found = found._replace(terms=found.terms | matched)
        else:
            break
    return found


def _stretches(text: str) -> Iterator[Range]:
    start = end = 0
    while end < len(text):
        end = _behind_blank(text, start + STRETCH_CHARS, len(text))
        yield start, end
        start = _behind_blank(text, end - _OVERLAP_CHARS, len(text))


def _behind_blank(text: str, start: int, stop: int) -> int:
    """Where a word begins, soon behind a place, so that none is cut but endless ones."""
    longest = min(start + _LONGEST_WORD_CHARS, stop)
    blank = _BLANK.search(text, start, longest)
    return blank.end() if blank else longest


def _find_within(
    field: str, text: str, within: Range, language: str | None, terms: Sequence[Term]
) -> FieldMatches | None:
    blocks = _blocks(text, within)
    spread = [spaced(text[start:end]) for start, end in blocks]
    words = TextWords(" ".join(spread), language)
    matched: set[int] = set()
    places: set[int] = set()
    begun: dict[int, int] = {}
    count = 0
    for index, term in enumerate(terms):
        for each in term.alternatives_in(field):
            found, weight = words.found(each)
            for at in found[:_LOCATED_MATCHES]:
                places.update(range(at, at + len(each.tokens)))
                begun.setdefault(at, index)
            if weight:
                matched.add(index)
                count += weight
    if not matched:
        return None
    listed = sorted(places)
    located = _located(text, blocks, spread, listed, words.words)
    starts = dict(zip(listed, located, strict=False))
    found_at = tuple((starts[at][0], begun[at]) for at in sorted(begun) if at in starts)
    ranges = _apart(located)[:_MAX_LOCATED]
    return FieldMatches(field, text, frozenset(matched), count, ranges, found_at)


def strongest_first(found: Iterable[FieldMatches], title_field: str | None) -> list[FieldMatches]:
    """More different terms first, then more occurrences (the title's count double)."""

    def strength(each: FieldMatches) -> tuple[int, int]:
        doubled = each.occurrences * (2 if each.field == title_field else 1)
        return (-len(each.terms), -doubled)

    return sorted(found, key=strength)


class Excerpt(WireObject, kw_only=True):
    """A passage of a matching field, word for word.

    Shapes: a lean one has neither the last three members nor `object`, which the others say.
    """

    object: Literal["evidence_excerpt"] | None = None
    field_path: Word
    preview_text: Annotated[str, msgspec.Meta(max_length=EXCERPT_CHARS)]
    start_chars: Count
    match_ranges: Annotated[Sequence[MatchRange], msgspec.Meta(max_length=MAX_RANGES)]
    total_chars: Count
    end_chars: Count | None = None
    truncated: bool | None = None
    provenance: Literal["lexical_match", "semantic_match"] | None = None

    def lean(self) -> Excerpt:
        """The same passage without what follows from where it begins and how long it is."""
        return Excerpt(
            field_path=self.field_path,
            preview_text=self.preview_text,
            start_chars=self.start_chars,
            match_ranges=self.match_ranges,
            total_chars=self.total_chars,
        )


class Snippet(WireObject):
    """The short, escaped and marked form of an excerpt."""

    field: Word
    text: str


def render_excerpt(found: FieldMatches) -> Excerpt:
    """The passage of a field with most matches."""
    start, end = _window(found, EXCERPT_CHARS, _LEAD_CHARS)
    return Excerpt(
        object="evidence_excerpt",
        field_path=found.field,
        provenance="lexical_match",
        preview_text=found.text[start:end],
        start_chars=start,
        end_chars=end,
        match_ranges=_inside(found.ranges, start, end)[:MAX_RANGES],
        total_chars=len(found.text),
        truncated=end - start < len(found.text),
    )


def passage_excerpt(field: str, text: str, start: int, end: int) -> Excerpt | None:
    """The beginning of a passage that was found by meaning, if the text still has one there."""
    end = min(end, len(text), start + EXCERPT_CHARS)
    if start >= end:
        return None
    start, end = _at_blanks(text, start, end, (), (start, len(text)))
    return Excerpt(
        object="evidence_excerpt",
        field_path=field,
        provenance="semantic_match",
        preview_text=text[start:end],
        start_chars=start,
        end_chars=end,
        match_ranges=(),
        total_chars=len(text),
        truncated=end - start < len(text),
    )


def passage_snippet(found: Excerpt) -> Snippet:
    """The short and escaped form of a passage."""
    text = found.preview_text[:SNIPPET_CHARS]
    before = "…" if found.start_chars else ""
    after = "…" if found.start_chars + len(text) < found.total_chars else ""
    return Snippet(field=found.field_path, text=f"{before}{_escaped(text)}{after}")


def render_snippet(found: FieldMatches, excerpt: Excerpt) -> Snippet:
    """The short, escaped and marked form of its excerpt."""
    outer = excerpt.start_chars, excerpt.start_chars + len(excerpt.preview_text)
    start, end = _window(found, SNIPPET_CHARS, _SNIPPET_LEAD_CHARS, within=outer)
    parts = ["…"] if start > 0 else []
    at = start
    for begin, stop in _inside(found.ranges, start, end):
        parts.append(_escaped(found.text[at:begin]))
        parts.append(f"<mark>{_escaped(found.text[begin:stop])}</mark>")
        at = stop
    parts.append(_escaped(found.text[at:end]))
    if end < len(found.text):
        parts.append("…")
    return Snippet(field=found.field, text="".join(parts))


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)


def _blocks(text: str, within: Range) -> list[Range]:
    """A stretch of text in blocks that end at blanks, so that no token is cut."""
    found: list[Range] = []
    start, stop = within
    while start < stop:
        end = stop
        if end - start > _BLOCK_CHARS:
            end = _behind_blank(text, start + _BLOCK_CHARS, stop)
        found.append((start, end))
        start = end
    return found


def _located(
    text: str,
    blocks: Sequence[Range],
    spread: Sequence[str],
    places: Sequence[int],
    words_of_all: Sequence[str],
) -> list[Range]:
    """The stretches of the tokens at these positions; only their blocks are looked at closely."""
    found: list[Range] = []
    first, at = 0, 0
    for (start, end), block in zip(blocks, spread, strict=True):
        words = block.split() if len(blocks) > 1 else words_of_all
        after = first + len(words)
        inside: list[int] = []
        while at < len(places) and places[at] < after:
            inside.append(places[at] - first)
            at += 1
        if inside:
            located = ranges_of(text[start:end], inside, block, words)
            found += [(start + begin, start + stop) for begin, stop in located]
        first = after
        if at == len(places) or len(found) >= _MAX_LOCATED:
            break
    return found


def _apart(ranges: Sequence[Range]) -> tuple[Range, ...]:
    """Each stretch once, since one code point may hold several tokens; those that touch are one.

    Where each character is a token, what a reader sees as one match would be many.
    """
    found: list[Range] = []
    for begin, end in ranges:
        if found and begin == found[-1][1]:
            found[-1] = (found[-1][0], end)
        elif not found or begin > found[-1][1]:
            found.append((begin, end))
    return tuple(found)


def _window(found: FieldMatches, size: int, lead: int, within: Range | None = None) -> Range:
    """The stretch of at most `size` that tells most, beginning a little before the first match.

    Different terms count before many places of one, and more those that stand here fewer times.
    """
    low, high = within or (0, len(found.text))
    ranges = _inside(found.ranges, low, high)
    starts = dict.fromkeys(max(low, min(begin - lead, high - size)) for begin, _ in ranges)
    best, most = next(iter(starts), low), (-1.0, -1)
    several = starts if len(starts) > 1 else ()  # most texts have one place, or are short
    times = Counter(index for _, index in found.found_at) if several else Counter[int]()
    for start in several:
        terms_inside = {index for at, index in found.found_at if start <= at < start + size}
        count_inside = sum(start <= b and e <= start + size for b, e in ranges)
        value = (sum(1 / times[index] for index in sorted(terms_inside)), count_inside)
        if value > most:
            best, most = start, value
    start, end = best, min(high, best + size)
    return _at_blanks(found.text, start, end, ranges, (low, high))


def _at_blanks(text: str, start: int, end: int, ranges: Sequence[Range], bounds: Range) -> Range:
    """Move the cuts to blanks where that loses no match."""
    first = next((b for b, _ in ranges if b >= start), end)
    last = max((min(e, end) for b, e in ranges if b < end), default=start)
    if start > bounds[0]:
        blank = text.find(" ", start, min(first, start + _LEAD_CHARS))
        start = blank + 1 if blank >= 0 else start
    if end < bounds[1]:
        blank = text.rfind(" ", max(last, start + 1), end)
        end = blank if blank > start else end
    return start, end


def _inside(ranges: Iterable[Range], start: int, end: int) -> list[Range]:
    """The ranges within a stretch, cut at its ends."""
    return [(max(b, start), min(e, end)) for b, e in ranges if b < end and e > start]
