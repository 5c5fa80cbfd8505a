"""What the reference expects of searches."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from tests.properties import relaxed
from tests.properties.meaning import (
    Said,
    Term,
    Wanted,
    bm25,
    hits_in,
    moment,
    places_in,
    said,
    value_of,
    wanted_of,
)
from tests.properties.reference import (
    Error,
    Json,
    Reader,
    Refused,
    Row,
    Source,
    caseless_test,
    filter_errors,
    filter_test,
    filtered,
    part_test,
)
from tests.properties.requests import Ask
from tests.properties.timeline import (
    bounds,
    instant_of,
    is_within,
    named_sources,
    time_of,
)
from tests.properties.unspaced import unspaced
from tests.properties.worlds import DATED


@dataclass
class Found:
    """One expected hit."""

    row: Row
    score: float
    matched: set[str]
    terms: list[Term]
    words: list[str] | None = None
    duplicates: int = 0
    held: list[tuple[Term, float, int]] = field(default_factory=list[tuple[Term, float, int]])
    """Where some words are enough each of them, what it weighs, and how it is held."""


@dataclass
class Expected:
    """All hits in their order, what is told of words that were relaxed, who is folded, and which
    words name who wrote.
    """

    hits: list[Found]
    relaxed: Json | None = None
    near: list[Json] = field(default_factory=list[Json])
    folded: list[Found] = field(default_factory=list[Found])
    authors: list[Term] = field(default_factory=list[Term])


def expected_search(reader: Reader, ask: Ask) -> Expected:
    bounds(ask)
    sources = named_sources(reader, ask)
    if ask.filters and len(ask.streams) != 1:
        raise Refused((400, "invalid_request", "filter"))
    usable: list[Source] = []
    errors: list[Error] = []
    is_ranged = is_timed(ask)
    searched = [s for s in sources if searchable(s)]
    if is_ranged and searched:
        searched = sources = [s for s in searched if time_of(s) is not None]
    for source in searched or sources:
        found = filter_errors(reader, [source], ask.filters)
        errors += found
        if not found:
            usable.append(source)
    if errors and not usable:
        raise Refused(*errors)
    sources = [s for s in usable if searchable(s)]
    wanted = wanted_of(ask.scalars["q"])
    found = Expected(_ranked(reader, sources, ask, wanted))
    is_relaxed = ask.scalars.get("exact") != "true" and "sort" not in ask.scalars
    exact = len(found.hits)
    if len(found.hits) < relaxed.FEW and is_relaxed and sources:
        _relax(reader, sources, ask, wanted, found)
    if "sort" not in ask.scalars:
        kept = _folded(found.hits[:exact])
        found.folded = [hit for hit in found.hits[:exact] if not any(hit is each for each in kept)]
        found.hits = kept + found.hits[exact:]
    return found


def _relax(
    reader: Reader, sources: list[Source], ask: Ask, wanted: Wanted, found: Expected
) -> None:
    """11.7: wider questions, one after the other, until there are enough hits."""
    exact = len(found.hits)
    texts = [list(_words(row).values()) for source in sources for row in reader.visible(source)]
    parts = None if exact else unspaced(wanted.terms)
    terms = wanted.terms if parts is None else parts
    wider = relaxed.relaxed(terms, texts, exact)
    found.authors = _authors(reader, sources, terms)
    if parts is not None:
        wider.steps.insert(0, relaxed.Wider(parts, [term.said for term in parts], None))
    asked: list[relaxed.Wider] = []
    for step in wider.steps:
        if len(found.hits) >= relaxed.FEW:
            break
        asked.append(step)
        known = {_place(hit.row) for hit in found.hits}
        more = _ranked(reader, sources, ask, Wanted(step.terms, wanted.excluded), step)
        more = [hit for hit in more if _place(hit.row) not in known]
        found.hits += more if step.least is None else more[:100]
    found.near = wider.near
    if exact and len(found.hits) == exact:
        return
    told: Json = {"words": len(terms), "exact_count": exact}
    if asked and asked[-1].least is not None:
        told["least"] = asked[-1].least
    if wider.absent:
        told["absent"] = wider.absent
    if wider.spelled:
        told["spelled"] = wider.spelled
    found.relaxed = told


def _place(row: Row) -> tuple[str, str, str]:
    return (row.source.connection, row.source.stream, row.key)


def is_timed(ask: Ask) -> bool:
    """Whether only records that have a time take part."""
    return not ask.scalars.keys().isdisjoint({"since", "until", "sort"})


def searchable(source: Source) -> list[str]:
    named = source.raw["query"].get("search", {}).get("lexical_fields", [])
    return [name for name in named if name in source.fields]


def _ranked(
    reader: Reader,
    sources: list[Source],
    ask: Ask,
    asked: Wanted,
    step: relaxed.Wider | None = None,
) -> list[Found]:
    is_ranged = is_timed(ask)
    least = None if step is None else step.least
    frequencies = [0] * len(asked.terms)
    matching: list[tuple[list[int], int, Found]] = []
    for source in sources:
        wanted, tests = read_in(source, asked)
        heavy = _weighty(source)
        kept = {row.key for row in filtered(reader, [source], ask.filters)}
        for row in reader.visible(source):
            words = _words(row)
            counts = [_hits(words, term) for term in wanted.terms]
            for i, count in enumerate(counts):
                frequencies[i] += count > 0
            if not holds_wanted(row, wanted, tests, least) or row.key not in kept:
                continue
            if step is not None and not _is_told(step, counts):
                continue
            if is_ranged and not is_within(row, ask):
                continue
            doubled = {name: each for name, each in words.items() if name in heavy}
            weighted = [c + _hits(doubled, t) for c, t in zip(counts, wanted.terms, strict=True)]
            if least is not None:
                others = {name: each for name, each in words.items() if name not in heavy}
                weighted = [
                    (_hits(others, t) > 0) + 2 * (_hits(doubled, t) > 0) for t in wanted.terms
                ]
            fields = {
                n
                for n, w in words.items()
                if any(hits_in(w, t, n) for t in wanted.terms if t.words)
            }
            held = None if step is None else _held(step, wanted, counts)
            hit = Found(row, 0.0, fields, wanted.alternatives, held)
            matching.append((weighted, sum(len(w.words) for w in words.values()), hit))
    for weighted, length, hit in matching:
        if step is not None and least is not None:
            hit.score = _partial(reader, hit.row, matching, weighted, length, frequencies)
            weights = map(_weight, frequencies)
            hit.held = list(zip(step.terms, weights, weighted, strict=True))
            continue
        hit.score = bm25(weighted, length, frequencies)
        if step is None:
            wanted, _ = read_in(hit.row.source, asked)
            hit.score = round(hit.score - _nearness(hit.row, wanted, frequencies), 6)
    found = [hit for _, _, hit in matching]
    if "sort" in ask.scalars:
        return sorted(found, key=_place_in_time, reverse=ask.scalars["sort"] == "newest")
    return sorted(found, key=hit_place)


def _is_told(step: relaxed.Wider, counts: list[int]) -> bool:
    """Whether one of the rarest terms is held, where one is asked for."""
    held = [term for term, count in zip(step.terms, counts, strict=True) if count]
    return not step.telling or any(term in step.telling for term in held)


def _partial(
    reader: Reader,
    row: Row,
    matching: list[tuple[list[int], int, Found]],
    counts: list[int],
    length: int,
    frequencies: list[int],
) -> float:
    """11.7: BM25 with other constants, and what the neighbours hold that is lacking here."""
    weights = list(map(_weight, frequencies))
    score = round(-sum(w * _share(n, length) for w, n in zip(weights, counts, strict=True)), 6)
    lacking = [not count for count in counts]
    known = {_place(hit.row): (held, words) for held, words, hit in matching}
    gained = 0.0
    for share, other in zip((0.6, 0.4), beside(reader, row), strict=True):
        if other is None or _place(other) not in known:
            continue
        held, words = known[_place(other)]
        worth = share * _share(1, words)
        found = [no and n in (1, 3) for no, n in zip(lacking, held, strict=True)]
        gained += sum(w * worth for w, yes in zip(weights, found, strict=True) if yes)
        lacking = [no and not yes for no, yes in zip(lacking, found, strict=True)]
    return round(score - gained, 6)


def _weight(frequency: int) -> float:
    return math.log(1 + 10_000 / (frequency + 0.5))


def _share(count: int, length: int) -> float:
    return count * 2.2 / (count + 1.2 * (0.7 + 0.3 * length / 128))


def _nearness(row: Row, wanted: Wanted, frequencies: list[int]) -> float:
    """11.3: what neighbouring terms gain that stand near each other in one field."""
    weights = [math.log(1 + (1_000_000 - n + 0.5) / (n + 0.5)) for n in frequencies]
    gained = 0.0
    for i in range(len(weights) - 1):
        gaps = [
            second - first_end + 1 if second >= first_end else first - second_end + 2
            for name, text in _words(row).items()
            for first, first_end in places_in(text, wanted.terms[i], name)
            for second, second_end in places_in(text, wanted.terms[i + 1], name)
            if second >= first_end or second_end <= first
        ]
        if gaps and min(gaps) <= 8:
            gained += 2.2 * min(weights[i : i + 2]) / min(gaps)
    return gained


def _folded(hits: list[Found]) -> list[Found]:
    """11.3: those that say what a better one of their source says are counted there."""
    kept: list[Found] = []
    for hit in hits:
        same = [
            each
            for each in kept
            if (each.row.source.connection, each.row.source.stream)
            == (hit.row.source.connection, hit.row.source.stream)
            and _say_the_same(_content(each.row), _content(hit.row))
        ]
        if same:
            same[0].duplicates += 1
        else:
            kept.append(hit)
    return kept


def _content(row: Row) -> list[str]:
    roles = {n: p.get("x_pdpp_role") for n, p in row.source.properties.items()}
    if "author" not in roles.values():
        return []
    said_there = _words(row).items()
    return [w for n, t in said_there if roles[n] not in ("author", "recipient") for w in t.words]


def _say_the_same(one: list[str], other: list[str]) -> bool:
    if not one or not other:
        return False
    if one == other:
        return True
    sets = set(one), set(other)
    if min(map(len, sets)) >= 20:
        numbers = [{w for w in each if not w.isalpha()} for each in sets]
        shared = 100 * len(sets[0] & sets[1]) >= 85 * len(sets[0] | sets[1])
        return shared and (numbers[0] <= numbers[1] or numbers[1] <= numbers[0])
    tail = 0
    while tail < min(len(one), len(other)) and one[-1 - tail] == other[-1 - tail]:
        tail += 1
    begun = one[: len(one) - tail] + other[: len(other) - tail]
    is_most = tail >= 3 and 100 * tail >= 75 * max(len(one), len(other))
    return max(map(len, sets)) < 20 and is_most and all(w.isalpha() for w in begun)


def _held(step: relaxed.Wider, wanted: Wanted, counts: list[int]) -> list[str]:
    """The terms that a record holds, as they were written; values that it has are met."""
    terms = zip(wanted.terms, step.written, counts, strict=True)
    return [written for term, written, count in terms if count or not term.words]


def expected_context(reader: Reader, row: Row) -> Json | None:
    """11.4: the visible neighbours in the same conversation, and how they begin."""
    named = zip(("before", "after"), beside(reader, row), strict=True)
    return {name: _beginning(found) for name, found in named if found is not None} or None


def beside(reader: Reader, row: Row) -> tuple[Row | None, Row | None]:
    """The visible neighbours of a record in its conversation."""
    source, cursor = row.source, row.source.raw.get("cursor_field")
    shared = next(
        (n for n, p in source.properties.items() if p.get("x_pdpp_role") == "conversation"), None
    )
    if shared not in source.fields or cursor not in source.fields or row.data.get(shared) is None:
        return None, None
    alike = [each for each in reader.visible(source) if each.data.get(shared) == row.data[shared]]
    placed = sorted(
        (at, each.key, each) for each in alike if (at := moment(each.data.get(cursor))) is not None
    )
    keys = [key for _, key, _ in placed]
    if row.key not in keys:
        return None, None
    place, rows = keys.index(row.key), [each for _, _, each in placed]
    return rows[place - 1] if place else None, next(iter(rows[place + 1 :]), None)


def conversation(row: Row) -> tuple[object, ...] | None:
    """Which conversation a record is in, if that and its place there are granted."""
    source, cursor = row.source, row.source.raw.get("cursor_field")
    for name, declared in source.properties.items():
        if declared.get("x_pdpp_role") == "conversation":
            value, at = row.data.get(name), row.data.get(cursor or "")
            is_placed = name in source.fields and cursor in source.fields
            if is_placed and value is not None and moment(at) is not None:
                return (source.connection, source.stream, value)
    return None


def spoken(row: Row) -> str:
    """What a record says."""
    search = row.source.raw["query"]["search"]
    named = search.get("semantic_fields", []) + search["lexical_fields"]
    texts = [row.data[n] for n in named if n in row.source.fields and row.data.get(n) is not None]
    return next((text for text in texts if text.strip()), "")


def _beginning(row: Row) -> Json:
    said = spoken(row)
    return {"record_id": row.key} | ({"text": said[:80]} if said else {})


NOTHING = Term(())
Tests = list[tuple[str, Any]]


def read_in(source: Source, asked: Wanted) -> tuple[Wanted, Tests]:
    """What a query means in a source: terms in their places, and what fields have to be."""
    values = [_value_test(source, term) for term in asked.terms]
    if None not in values:
        values = [None for _ in values]
    terms = [
        _in_fields(source, term) if value is None else NOTHING
        for term, value in zip(asked.terms, values, strict=True)
    ]
    excluded = [_in_fields(source, term) for term in asked.excluded]
    return Wanted(terms, excluded), [value for value in values if value is not None]


def _meant(source: Source, name: str) -> list[str]:
    role = {"from": "author", "to": "recipient"}.get(name.lower())
    of_role = [n for n, p in source.properties.items() if role and p.get("x_pdpp_role") == role]
    return [n for n in of_role if n in source.fields] or [n for n in source.fields if n == name]


def _value_test(source: Source, term: Term) -> tuple[str, Any] | None:
    if term.named is None or term.others:
        return None
    names, value = _meant(source, term.named[0]), term.named[1]
    named = source.raw["query"].get("search", {}).get("lexical_fields", [])
    if not names or set(names) & set(named) or source.kind(names[0]) is None:
        return None
    name = names[0]
    if source.kind(name) == "string":
        test = part_test("starts_with", value[:-1]) if term.prefix else caseless_test(value)
    else:
        test = filter_test(source, name, None, value)
    return None if test is None else (name, test)


def _in_fields(source: Source, term: Term) -> Term:
    others = tuple(_in_fields(source, each) for each in term.others)
    if term.named is not None:
        fields = [n for n in _meant(source, term.named[0]) if n in searchable(source)]
        if fields:
            return replace(value_of(term), fields=tuple(fields), others=others, named=term.named)
    words = Term(term.words, term.prefix, term.quoted, named=term.named)
    return replace(words, others=others)


def _authors(reader: Reader, sources: list[Source], terms: list[Term]) -> list[Term]:
    """11.6: bare words that more records hold where it says who wrote than in their texts."""
    writing = [each for each in sources if _authors_of(each) & set(searchable(each))]
    names = {name for each in writing for name in _authors_of(each)}
    records = [
        (_authors_of(source), _words(row)) for source in writing for row in reader.visible(source)
    ]
    found: list[Term] = []
    for term in terms:
        if not term.forms or term.others or relaxed.is_strict(term):
            continue
        held = [{n for n, each in texts.items() if hits_in(each, term, n)} for _, texts in records]
        pairs = list(zip(records, held, strict=True))
        by_author = sum(bool(fields & authors) for (authors, _), fields in pairs)
        in_text = sum(bool(fields - names) for fields in held)
        has_text = any({*searchable(each)} - names for each in writing)
        if has_text and min(by_author, relaxed.COMMON + 1) > in_text:
            found.append(term)
    return found


def _authors_of(source: Source) -> set[str]:
    return {n for n, p in source.properties.items() if p.get("x_pdpp_role") == "author"}


def _weighty(source: Source) -> set[str]:
    heavy = ("primary-title", "author")
    return {n for n, p in source.properties.items() if p.get("x_pdpp_role") in heavy}


def _words(row: Row) -> dict[str, Said]:
    names = [n for n in searchable(row.source) if row.data.get(n) is not None]
    return {name: said(row.data[name]) for name in names}


def _hits(words: dict[str, Said], term: Term) -> int:
    return sum(hits_in(each, term, name) for name, each in words.items()) if term.words else 0


def holds_wanted(row: Row, wanted: Wanted, tests: Tests, least: int | None = None) -> bool:
    words = _words(row)
    held = [not term.words or _hits(words, term) > 0 for term in wanted.terms]
    if least is None:
        is_enough = all(held)
    else:
        strict = [h for h, term in zip(held, wanted.terms, strict=True) if relaxed.is_strict(term)]
        is_enough = all(strict) and sum(held) >= least
    return (
        is_enough
        and not any(_hits(words, term) for term in wanted.excluded)
        and all(test(row.data.get(name)) for name, test in tests)
    )


def holds_all(row: Row, text: str) -> bool:
    """Whether every term stands in a granted searchable field."""
    return holds_wanted(row, *read_in(row.source, wanted_of(text)))


def _place_in_time(hit: Found) -> tuple[Any, ...]:
    row = hit.row
    return (instant_of(row), row.key, row.source.connection, row.source.stream)


def hit_place(hit: Found) -> tuple[Any, ...]:
    row = hit.row
    text = row.data.get(DATED.get(row.source.stream, ""))
    at = moment(text)
    when = row.emitted_s * 10**9 if at is None else at
    return (hit.score, -when, row.source.connection, row.source.stream, row.key)


def first_page(hits: list[Found], limit: int) -> list[Found]:
    best: dict[str, Found] = {}
    for hit in hits:
        best.setdefault(hit.row.source.connection, hit)
    if len(best) > limit:
        return hits[:limit]
    chosen = list(best.values())
    for hit in hits:
        if len(chosen) >= limit:
            break
        if not any(hit is each for each in chosen):
            chosen.append(hit)
    return [hit for hit in hits if any(hit is each for each in chosen)]
