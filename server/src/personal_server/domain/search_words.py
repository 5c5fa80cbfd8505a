"""Search tokens: how text becomes the words that are matched, and where they stand in it.

Rule: every code point is folded on its own, so that tokens keep their place in the source text
and the same text gives the same tokens on every store.
Source: docs/contract/resource-server.md 11.2 (NFKC, case folding, removal of combining marks;
maximal runs of letters and digits; characters of scripts without word spaces are tokens of their
own).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache, cached_property
from typing import NamedTuple
from unicodedata import category

from pdpp_kernel.criteria import NamedPiece, Term, WordQuery
from personal_server.domain.language_names import LANGUAGE_CODES
from personal_server.domain.spaced_text import FOLDED_LETTERS, spaced
from personal_server.domain.stop_words import STOP_WORDS
from personal_server.domain.text_language import language_of
from personal_server.domain.word_forms import forms, stems

MIN_PREFIX_CHARS = 2
_NAME = r"[A-Za-z_][A-Za-z0-9_-]{0,127}"
# A quoted stretch (the last one may end with the text), which a name may stand before, or a run
# without blanks and quotes.
_PIECE = re.compile(rf'(-?{_NAME}:)?"([^"]*)(?:"|\Z)|([^\s"]+)')
_NAMED = re.compile(rf"({_NAME}):(.+)", re.DOTALL)
_WORD = re.compile(r"\S+")
_APOSTROPHE = re.compile("['\u2019\u02bc]")
# Beside those of the Snowball lists, by ISO 639-1.
_QUESTION_WORDS = {
    "da": "hvornår hvem hvorfor hvordan hvilken hvilke",
    "de": "wann wer wen wem wessen warum wieso weshalb wohin woher wieviel",
    "en": "whose",
    "es": "cuándo quién quiénes dónde cómo cuál cuáles cuánto cuánta cuántos cuántas",
    "fr": "quand quoi où comment pourquoi quel quelle quels quelles combien",
    "it": "quando quali cosa",
    "nl": "wanneer waar waarom welke welk hoeveel",
    "pt": "onde quais quanto quantos porque",
}
# Beside those of the English list, whose parts would be other words alone (`haven`, `won`).
_CONTRACTIONS = """
    ain't aren't couldn't didn't doesn't hadn't hasn't haven't isn't mightn't mustn't needn't shan't
    shouldn't wasn't weren't won't wouldn't i'm you're we're they're i've you've we've they've i'd
    you'd he'd she'd we'd they'd i'll you'll he'll she'll we'll they'll could've should've would've
"""
# `C++`, `C#`, `.NET`: the signs are part of the name. What ends a sentence behind it is none.
_WITH_SIGNS = re.compile(r"[^\w.]*(\w+(?:#|\+{1,2})|\.[^\W\d_]{2,})[.,;:!?)\]]*")
# What stands at an apostrophe and is no part of the word: `Gina's`, `l'eau`, `dell'anno`.
_POSSESSIVE = re.compile(r"(.*\w)['\u2019\u02bc]s?\W*", re.IGNORECASE | re.DOTALL)
_ELIDED = re.compile(
    r"\W*(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu|quoiqu|un|gl|degl|quest|quell"
    r"|(?:[ds]?a|de|ne|su)?ll)['\u2019\u02bc](\w.+)",
    re.IGNORECASE | re.DOTALL,
)


class TokenSpan(NamedTuple):
    """A token and the stretch of source text [start, end) that it came from, in code points."""

    token: str
    start: int
    end: int


def parse_words(text: str) -> WordQuery:
    """What a person types: its terms, in order; pieces without a letter or digit are none.

    No text is a syntax error: quotes make phrases, a final `*` a prefix, a `-` before a word leaves
    out, `OR` between two terms joins them, a name and a colon before a word or phrase may name
    fields, and every other sign separates words.  Equal terms count once: saying a word again makes
    no search longer.
    """
    alternatives: list[list[Term]] = []
    excluded: list[Term] = []
    is_joining = False
    pieces = list(_pieces(text))
    for index, (sign, term) in enumerate(pieces):
        if sign == "-":
            excluded.append(term)
        elif is_joining:
            alternatives[-1].append(term)
            is_joining = False
        elif sign == "OR" and {pieces[at][0] for at in _beside(index, pieces)} == {""}:
            is_joining = True
        else:
            alternatives.append([term])
    signs = ("-",) if excluded and not alternatives else ()
    if not alternatives:  # then nothing is left out of nothing
        alternatives, excluded = [[term] for term in excluded], []
    joined = dict.fromkeys(_any_of(tuple(dict.fromkeys(terms))) for terms in alternatives)
    # which language it is matters to common words alone, and may take the model that tells it
    common = _common_words(language_of(text)) if any(map(says_little, joined)) else frozenset[str]()
    sought = tuple(term for term in joined if not _says_nothing(term, common)) or tuple(joined)
    ignored = (*signs, *(term.said for term in joined if term not in sought), *_pictures(text))
    left_out = tuple(dict.fromkeys(excluded))
    return WordQuery(sought, left_out, ignored=ignored, phrase=_phrase(pieces))


def _pictures(text: str) -> tuple[str, ...]:
    """The emoji and other signs with a picture that stand by themselves in a query."""
    if text.isascii():
        return ()
    pieces = dict.fromkeys(each for each in text.split() if not tokens(each))
    return tuple(each for each in pieces if any(category(sign) == "So" for sign in each))


def _phrase(pieces: Sequence[tuple[str, Term]]) -> Term | None:
    """All pieces as one phrase, where each is a plain word and there are several."""
    phrase_words = [word for _, term in pieces for word in tokens(term.said)]
    is_plain = all(not (sign or term.prefix or term.quoted or term.named) for sign, term in pieces)
    return Term(tuple(phrase_words)) if is_plain and len(pieces) > 1 else None


def _says_nothing(term: Term, common: frozenset[str]) -> bool:
    """Whether a bare term is made of words that every text holds, and joined to no other."""
    is_bare = not (term.quoted or term.prefix or term.others or term.named)
    return is_bare and (common.issuperset(term.tokens) or " ".join(term.tokens) in common)


@cache
def _common_words(language: str | None) -> frozenset[str]:
    """The words that every text of a language holds, and those that questions begin with.

    Shapes: a contraction is its tokens with a blank between them.
    """
    code = LANGUAGE_CODES.get(language or "", "")
    listed = f"{STOP_WORDS.get(code, '')} {_QUESTION_WORDS.get(code, '')}"
    contracted = _CONTRACTIONS.split() if code == "en" else ()
    return frozenset((*tokens(listed), *(" ".join(tokens(each)) for each in contracted)))


@cache
def _common_words_anywhere() -> frozenset[str]:
    return frozenset(word for name in LANGUAGE_CODES for word in _common_words(name))


def says_little(term: Term) -> bool:
    """Whether a bare term is a common word of some language, be it not that of its query."""
    return _says_nothing(term, _common_words_anywhere())


def _any_of(terms: tuple[Term, ...]) -> Term:
    text = " OR ".join(term.said for term in terms)
    quoted = any(term.quoted for term in terms)
    return replace(terms[0], others=terms[1:], said=text, quoted=quoted)


def _beside(index: int, pieces: Sequence[object]) -> tuple[int, ...]:
    """The places before and behind one that stands between two."""
    return (index - 1, index + 1) if 0 < index < len(pieces) - 1 else ()


def _pieces(text: str) -> Iterator[tuple[str, Term]]:
    """Terms with the sign that they stand behind: `-` before a word or phrase, and `OR` itself."""
    minus_at = -1
    for match in _PIECE.finditer(text):
        name, quoted, bare = match.groups()
        start = match.start()
        begins = start == 0 or text[start - 1].isspace()
        if bare == "-" and begins:
            minus_at = match.end()
            continue
        sign = "-" if minus_at == start else ""
        if bare is None:
            sign = "-" if begins and name and name[0] == "-" else sign
            term = _quoted_term(name, quoted)
        elif begins and bare[0] == "-" and bare[1].isalnum():
            sign, term = "-", _bare_term(bare[1:])
        else:
            sign, term = "OR" if bare == "OR" else sign, _bare_term(bare)
        if term.tokens:
            yield sign, replace(term, said=match.group())


class Vocabulary:
    """The words of texts by their stems: each is stemmed once, however many texts hold it."""

    def __init__(self) -> None:
        self._known: dict[str, set[str]] = {}
        self._by_stem: dict[tuple[str | None, str], list[str]] = {}

    def learn(self, words: Set[str], language: str) -> None:
        """Know words of a text in that language."""
        seen_words = self._known.setdefault(language, set())
        new = frozenset(words).difference(seen_words)  # which walks the fewer of them
        seen_words |= new
        for word, stem in zip(new, stems(new, language), strict=True):
            if stem:
                self._by_stem.setdefault((language, stem), []).append(word)

    def with_stem(self, stem: str, language: str | None) -> Sequence[str]:
        """Known words of that stem."""
        return self._by_stem.get((language, stem), ())


class TextWords:
    """The words of a text, or of a stretch of it, and where a term stands among them.

    `spread` has blanks between its words; `language` is that of the whole text
    (`word_forms.language_of`).  Of texts that share a `vocabulary` each word is stemmed once.
    """

    def __init__(
        self, spread: str, language: str | None, vocabulary: Vocabulary | None = None
    ) -> None:
        self._spread = spread
        self._language = language
        self._vocabulary = vocabulary

    @property
    def chars(self) -> int:
        """How long the text is, in code points."""
        return len(self._spread)

    @cached_property
    def length(self) -> int:
        """How many words there are."""
        return sum(self.counts.values())

    @cached_property
    def words(self) -> list[str]:
        """The words of the text, in its order."""
        return self._spread.split()

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How often each word stands here."""
        return Counter(self._spread.split())

    @cached_property
    def _stemmed(self) -> Vocabulary | None:
        """That knows the words of this text, where many terms are looked for in many texts."""
        if self._vocabulary is not None and self._language is not None:
            self._vocabulary.learn(self.counts.keys(), self._language)
        return self._vocabulary

    @cached_property
    def _stems(self) -> list[str]:
        """The stem of each word, in their order."""
        return stems(self.words, self._language)

    @cached_property
    def _single_spaced(self) -> str:
        return f" {' '.join(self._spread.split())} "

    def places(self, term: Term) -> list[int]:
        """The positions at which a term begins, but for its others; they may overlap."""
        if not term.tokens:  # asks for a value of a field instead
            return []
        words = self.words
        *head, last = term.tokens
        if term.inflected:
            return sorted({*self._inflected_places(last)})
        if term.prefix:
            ends = [i for i, word in enumerate(words) if word.startswith(last)]
        else:
            ends = [i for i, word in enumerate(words) if word == last]
        size = len(head)
        return [i - size for i in ends if i >= size and list(words[i - size : i]) == head]

    def found(self, term: Term) -> tuple[list[int], int]:
        """Its places, and how much it weighs: one where word and stem both match weighs twice."""
        if term.inflected and self._vocabulary is None:
            found = self._inflected_places(term.tokens[-1])
            return sorted({*found}), len(found)
        return self.places(term), self._weight(term)

    def _inflected_places(self, word: str) -> list[int]:
        """Where a word or another form of it stands; twice where word and stem both match."""
        inflected, found = forms(word), list[int]()
        for spelling in inflected.words:
            if spelling in self._spread:  # most texts that are looked at hold not all of the terms
                found += _indexes(self.words, spelling)
        if self._language is not None:
            for stem in {*inflected.stems_in(self._language)}.intersection(self._stems):
                found += _indexes(self._stems, stem)
        return found

    def holds(self, term: Term, field: str) -> bool:
        """Whether a term, or another in its place, stands here, in the text of that field."""
        return self.occurrences(term, field) > 0

    def occurrences(self, term: Term, field: str) -> int:
        """How much a term weighs here: its places, those twice where word and stem both match."""
        return sum(self._weight(alternative) for alternative in term.alternatives_in(field))

    def _weight(self, term: Term) -> int:
        if not term.tokens:
            return 0
        if term.inflected:
            return self._inflected(term.tokens[-1])
        if len(term.tokens) == 1 and not term.prefix:
            return self.counts.get(term.tokens[0], 0)
        # sought in one string, which is many times quicker than word by word
        sought, text = f" {' '.join(term.tokens)}{'' if term.prefix else ' '}", self._single_spaced
        count, at = 0, text.find(sought)
        while at >= 0:
            count, at = count + 1, text.find(sought, at + 1)
        return count

    def _inflected(self, word: str) -> int:
        known, language = self._stemmed, self._language
        if known is None:
            return len(self._inflected_places(word))
        inflected = forms(word)
        counted = [self.counts.get(word, 0) for word in inflected.words]
        for stem in inflected.stems_in(language):
            counted += [self.counts.get(word, 0) for word in known.with_stem(stem, language)]
        return sum(counted)


def text_words(text: str, vocabulary: Vocabulary | None = None) -> TextWords:
    """The words of a whole text."""
    return TextWords(spaced(text), language_of(text), vocabulary)


def tokens(text: str) -> list[str]:
    """The tokens of a text, in order."""
    return spaced(text).split()


def _indexes(words: Sequence[str], word: str) -> list[int]:
    """Where a word stands among words."""
    found: list[int] = []
    for _ in range(words.count(word)):
        found.append(words.index(word, found[-1] + 1 if found else 0))
    return found


def ranges_of(
    text: str, places: Sequence[int], spread: str, words: Sequence[str]
) -> list[tuple[int, int]]:
    """The stretches [start, end) of the tokens at some places, ascending.

    `spread` has blanks between the words of the text (`spaced`); `words` are these.
    """
    folded = FOLDED_LETTERS
    if not text.isascii() and any(len(folded[code_point]) != 1 for code_point in {*map(ord, text)}):
        found = spans(text)
        return [(found[place].start, found[place].end) for place in places]
    # each letter keeps its place, so that only these tokens are looked for
    spread = f" {spread} "
    starts: dict[int, int] = {}
    for word in {words[place] for place in places}:
        at = 0
        for place in _indexes(words, word):
            starts[place] = at = spread.index(f" {word} ", at)
            at += 1
    return [(starts[place], starts[place] + len(words[place])) for place in places]


def spans(text: str) -> list[TokenSpan]:
    """The tokens of a text with their places."""
    if text.isascii():  # folded one for one, so places stay
        return [TokenSpan(m.group(), m.start(), m.end()) for m in _WORD.finditer(spaced(text))]
    spans: list[TokenSpan] = []
    letters, start, end = "", 0, 0
    for index, code_point in enumerate(map(ord, text)):
        folded = FOLDED_LETTERS[code_point]
        end = index + 1 if letters and not folded else end
        for letter in folded:
            if letter != " ":
                start = start if letters else index
                letters, end = letters + letter, index + 1
            elif letters:
                spans.append(TokenSpan(letters, start, end))
                letters = ""
    if letters:
        spans.append(TokenSpan(letters, start, end))
    return spans


def text_without(text: str, terms: Set[Term]) -> str:
    """A text without these bare terms and the punctuation around them.

    In: "When did Ada, my aunt, leave?" and `ada`. Out: "When did my aunt, leave?"
    """
    return " ".join(piece for piece in text.split() if _bare_term(piece) not in terms)


def value_term(piece: NamedPiece) -> Term:
    """What a named piece looks for in its fields: a named word is meant as much as a quoted one."""
    if piece.quoted:
        return Term(tuple(tokens(piece.value)), quoted=True)
    return replace(_bare_term(piece.value), named=None, quoted=True)


def _quoted_term(name: str | None, quoted: str) -> Term:
    words = tuple(tokens(quoted))
    if not name or not words:
        return Term(words, quoted=True)
    name = name.lstrip("-")[:-1]
    piece = NamedPiece(name, quoted, quoted=True)
    return Term((*tokens(name), *words), named=piece, quoted=True)


def _bare_term(text: str) -> Term:
    signed = _WITH_SIGNS.fullmatch(text)
    if signed and len(tokens(signed[1])) == 1:
        return Term(tuple(tokens(signed[1])), literal=signed[1], quoted=True)
    words = tuple(tokens(_without_apostrophe(text)))
    letters = sum(map(len, words))
    prefix = text.endswith("*") and letters >= MIN_PREFIX_CHARS
    match = _NAMED.fullmatch(text)
    piece = NamedPiece(match[1], match[2]) if match and tokens(match[2]) else None
    return Term(words, prefix, inflected=len(words) == 1 and not prefix, named=piece)


def _without_apostrophe(text: str) -> str:
    """A bare term without the ending of its possessive, and without an article before it.

    What is left is found wherever it stands: `Gina` in a text that says `Gina's`, too.
    """
    if not _APOSTROPHE.search(text):
        return text
    owned = _POSSESSIVE.fullmatch(text)
    text = owned[1] if owned else text
    elided = _ELIDED.fullmatch(text)
    return elided[1] if elided else text
