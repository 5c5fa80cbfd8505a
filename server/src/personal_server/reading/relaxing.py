"""Relaxing a search: what is asked when too few records hold all its words, and what is said of it.

Rule: the words are counted, their spellings looked up and the wider questions answered among
visible records alone, each by itself and up to a limit; phrases in quotation marks, excluded words
and conditions stay as they are.  What a record says stands in near words only.
Source: docs/contract/resource-server.md 11.7; docs/decisions.md C37.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import replace

from pdpp_kernel.criteria import NamedPiece, Term, WordQuery
from pdpp_kernel.wire_objects import Count, WireObject, Word
from personal_server.domain.search_words import says_little
from personal_server.domain.spelling import Spellings, likeliest, near_spellings, slips
from personal_server.domain.unspaced_words import parted
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.scopes import Scope
from personal_server.storage.ports.snapshots import (
    READ_DEADLINE_SECONDS,
    ReadSnapshot,
)
from personal_server.storage.row_rules import granted_lexical_fields

# So many hits are enough.
FEW_HITS = 3
# So many words are looked for together, the rarest of more.
MOST_TERMS = 12
# A word that more records hold says too little by itself.
COMMON = 1_000
# The words of which one is enough are the rarest, as long as no more records hold them together.
MOST_HOLDERS = 2_000
# For so many words that nothing holds, near ones are looked up.
MOST_MISSPELLED = 4
# Each step has this share of the time of a read, shared out among the sources.
STEP_SHARE = 1 / 5

AsWritten = Annotated[Sequence[Word], msgspec.Meta(max_length=32)]


class RelaxedSearch(WireObject):
    """Why fewer words than all may stand in a hit; words are as the caller wrote them."""

    component: ClassVar = "RelaxedSearch"

    words: Count
    exact_count: Count
    least: Count | None = None
    absent: AsWritten | None = None
    spelled: AsWritten | None = None


class NearWord(WireObject):
    """A visible word near one that no visible record holds, and how many records hold it.

    `searched`: it was looked for in the other's place.
    """

    component: ClassVar = "NearWord"

    word: Word
    value: Word
    count: Count
    searched: bool = False


class Relaxation(msgspec.Struct, frozen=True):
    """The wider questions, the narrowest first, and what is said whatever they find.

    `authors` are the terms that name who wrote, where it is searched by meaning, too.
    """

    questions: tuple[WordQuery, ...] = ()
    absent: tuple[str, ...] = ()
    near: tuple[NearWord, ...] = ()
    spelled: tuple[str, ...] = ()
    parts: WordQuery | None = None
    authors: tuple[Term, ...] = ()

    def told(self, words: WordQuery, exact_count: int, asked: int) -> RelaxedSearch:
        """What stands in `meta.relaxed`, after so many of the questions were asked."""
        least = self.questions[asked - 1].least if asked else None
        return RelaxedSearch(
            words=len((self.parts or words).terms),
            exact_count=exact_count,
            least=least,
            absent=self.absent or None,
            spelled=self.spelled or None,
        )


# What goes in, what comes out.  A person asks "invoice harbor energy october", and two records hold
# all four words or fewer than `FEW_HITS` do.
#
#   counts of each word among visible records: invoice 40, harbor 0, energy 12, october 300
#   near words of what nothing holds:          harbor → harbour (12 records, one letter away)
#   questions, the narrowest first:
#     1. invoice harbour energy october    all words, with the spelling that occurs
#     2. one of these four                 the records that hold most weight stand first
#   said beside the hits: `harbor` was read as `harbour`
#
# The caller asks one question after the other and stops at the first that finds something.  Words
# in quotation marks, excluded words and `field:value` are in every question: whoever wrote them
# meant them.  Each count and each question is answered from visible records alone, so that neither
# the words suggested nor the number of questions tells what is hidden.


def relaxation(snapshot: ReadSnapshot, plan: SearchPlan, exact_count: int) -> Relaxation:
    """What else to ask where too few records hold all the words of a plan.

    Where some do, every word stands in one, and one word of two would only be less. Of what is
    written without blanks, and stands nowhere, its words are asked for.
    """
    if not exact_count and (parts := parted(plan.words)) is not None:
        wider = relaxation(snapshot, replace(plan, words=parts), 0)
        return replace(wider, questions=(parts, *wider.questions), parts=parts)
    terms = plan.words.terms
    is_enough = exact_count > 0 and sum(not is_strict(term) for term in terms) <= 2
    if is_enough and plan.meaning is None:
        return Relaxation()
    counts = _count(snapshot, plan, terms, COMMON + 1)
    if counts is None:
        return Relaxation()
    counts = tuple(
        COMMON if is_named(term) else count for term, count in zip(terms, counts, strict=True)
    )
    authors = _authors(snapshot, plan, dict(zip(terms, counts, strict=True)))
    if is_enough:
        return Relaxation(authors=authors)
    missing = [term for term, count in zip(terms, counts, strict=True) if not count]
    spellings = _spellings(snapshot, plan, missing)
    meant = {term: near for term, near in spellings.items() if near.taken is not None}
    known = [
        (meant[term].as_term(term), meant[term].count) if term in meant else (term, count)
        for term, count in zip(terms, counts, strict=True)
        if count or term in meant
    ]
    return Relaxation(
        _questions(plan.words, known, is_respelled=bool(meant)),
        tuple(written(term) for term in missing if term not in meant),
        tuple(each for term, near in spellings.items() for each in near.told(term)),
        tuple(written(term) for term in meant),
        authors=authors,
    )


def _authors(
    snapshot: ReadSnapshot, plan: SearchPlan, counts: Mapping[Term, int]
) -> tuple[Term, ...]:
    """The words that more records hold where they say who wrote them than in their texts.

    Those that no visible record holds are not asked for: hidden ones may hold them.

        400 records say that `Ada` wrote them, 12 name her in their texts       →  a name
        3 are by a sender called `Violin Shop`, 40 write of a `violin`          →  a word
    """
    scopes = tuple(scope for scope in plan.scopes if _searched_authors(scope))
    searched = frozenset(name for scope in scopes for name in granted_lexical_fields(scope))
    texts = tuple(sorted(searched.difference(*map(_searched_authors, scopes))))
    bare = [term for term, count in counts.items() if count and term.inflected and not term.others]
    if plan.meaning is None or not texts or not bare:
        return ()
    as_authors = [
        dataclasses.replace(term, named=NamedPiece("from", term.tokens[0])) for term in bare
    ]
    in_texts = [dataclasses.replace(term, fields=texts) for term in bare]
    both = _count(snapshot, replace(plan, scopes=scopes), (*as_authors, *in_texts), COMMON + 1)
    if both is None:
        return ()
    by_term = zip(bare, both[: len(bare)], both[len(bare) :], strict=True)
    return tuple(term for term, by_author, in_text in by_term if by_author > in_text)


def _searched_authors(scope: Scope) -> AbstractSet[str]:
    authors = scope.stream.fields_with_role("author")
    return frozenset(authors).intersection(granted_lexical_fields(scope))


def is_strict(term: Term) -> bool:
    """Whether no record does without it: it stands in quotation marks, or names fields."""
    return is_named(term) or term.quoted


def is_named(term: Term) -> bool:
    """Whether it may mean values of fields, which are no words that records hold."""
    return any(each.named is not None for each in term.alternatives)


def written(term: Term) -> str:
    """A term as its caller wrote it."""
    return term.said or " ".join(term.tokens)


class _Near(msgspec.Struct, frozen=True):
    """The near words of a term that occur, with their counts."""

    spellings: Spellings
    counts: Mapping[str, int]

    @property
    def taken(self) -> str | None:
        """The one that is looked for in its place."""
        return self.spellings.words[0] if self.spellings.is_clear else None

    @property
    def count(self) -> int:
        """How many records hold that one."""
        return self.counts[self.spellings.words[0]]

    def as_term(self, term: Term) -> Term:
        """The term, with the near word in place of its own."""
        return term if self.taken is None else dataclasses.replace(term, tokens=(self.taken,))

    def told(self, term: Term) -> list[NearWord]:
        """The one that was taken, or all that may be meant."""
        listed = self.spellings.words if self.taken is None else (self.taken,)
        searched = self.taken is not None
        return [
            NearWord(word=written(term), value=near, count=self.counts[near], searched=searched)
            for near in listed
        ]


def _spellings(
    snapshot: ReadSnapshot, plan: SearchPlan, missing: Sequence[Term]
) -> dict[Term, _Near]:
    """For words that may be mistyped: bare ones, of letters only."""
    bare = [term for term in missing if term.inflected and not term.others]
    bare = bare[:MOST_MISSPELLED]
    asked = {term: near_spellings(term.tokens[0]) for term in bare}
    near = _occurring(snapshot, plan, asked, is_inflected=False)
    # Of `remialer` texts may say remailers only.  All forms of all near words are too many to ask.
    unlike = [term for term in bare if term not in near or not near[term].spellings.is_slip]
    slipped = {term: slips(term.tokens[0]) for term in unlike}
    forms = _occurring(snapshot, plan, slipped, is_inflected=True)
    return near | {term: _likelier(term, near.get(term), found) for term, found in forms.items()}


def _likelier(term: Term, as_written: _Near | None, in_forms: _Near) -> _Near:
    """A word by another letter beside those by a slip that occur in other forms."""
    if as_written is None or not in_forms.spellings.is_slip:
        return as_written or in_forms
    counts = dict(in_forms.counts) | {
        word: max(count, in_forms.counts.get(word, 0)) for word, count in as_written.counts.items()
    }
    listed = {*in_forms.spellings.words, *as_written.spellings.words}
    return _Near(likeliest(term.tokens[0], {word: counts[word] for word in listed}), counts)


def _occurring(
    snapshot: ReadSnapshot,
    plan: SearchPlan,
    asked: Mapping[Term, Sequence[str]],
    *,
    is_inflected: bool,
) -> dict[Term, _Near]:
    """Of the near words of each term those that records hold, perhaps in another form."""
    listed = tuple(dict.fromkeys(word for words in asked.values() for word in words))
    if not listed:
        return {}
    terms = tuple(Term((word,), inflected=is_inflected) for word in listed)
    found = _count(snapshot, plan, terms, COMMON)
    if found is None:
        return {}
    counts = dict(zip(listed, found, strict=True))
    near: dict[Term, _Near] = {}
    for term, words in asked.items():
        spellings = likeliest(term.tokens[0], {word: counts[word] for word in words})
        if spellings.words:
            near[term] = _Near(spellings, counts)
    return near


def _questions(
    words: WordQuery, known: Sequence[tuple[Term, int]], *, is_respelled: bool
) -> tuple[WordQuery, ...]:
    """All the words, if some are spelled otherwise, then some of them.

    None where what cannot be left out is held by no record, or too much.
    """
    strict = [term for term in words.terms if is_strict(term)]
    if {*strict} - {term for term, _ in known} or len(strict) > MOST_TERMS:
        return ()
    found: list[WordQuery] = []
    if is_respelled and len(known) == len(words.terms):
        found.append(replace(words, terms=tuple(dict.fromkeys(term for term, _ in known))))
    bare = [each for each in known if not is_strict(each[0])]
    bare.sort(key=lambda each: (says_little(each[0]), each[1]))
    if bare and len(words.terms) - len(strict) > 1:
        found.append(_some_words(words, known, bare[:MOST_TERMS]))
    return tuple(found)


def _some_words(
    words: WordQuery, known: Sequence[tuple[Term, int]], rarest: Sequence[tuple[Term, int]]
) -> WordQuery:
    """What stays, and one of the rarest words that can be left out; the others only add weight."""
    telling, holders = {rarest[0][0]}, rarest[0][1]
    for term, count in rarest[1:]:
        holders += count
        if count > COMMON or holders > MOST_HOLDERS or says_little(term):
            break
        telling.add(term)
    others = {term for term, _ in rarest}
    kept = dict.fromkeys(term for term, _ in known if is_strict(term) or term in others)
    places = tuple(position for position, term in enumerate(kept) if term in telling)
    strict = sum(map(is_strict, kept))
    return replace(
        words, terms=tuple(map(_strictly, kept)), least=strict + 1, telling=places, phrase=None
    )


def _strictly(term: Term) -> Term:
    """What names fields is as strict as what stands in quotation marks."""
    return dataclasses.replace(term, quoted=True) if is_strict(term) else term


def _count(
    snapshot: ReadSnapshot, plan: SearchPlan, terms: tuple[Term, ...], limit: int
) -> tuple[int, ...] | None:
    """How many visible records hold each term, whatever else is asked of them."""
    words = WordQuery(terms)
    asked = replace(plan, words=words, frequency_limit=limit, seconds_each=step_seconds(plan))
    return snapshot.count_terms(asked)


def step_seconds(plan: SearchPlan) -> float:
    """How long one source may take for one step."""
    return READ_DEADLINE_SECONDS * STEP_SHARE / max(1, len(plan.scopes))
