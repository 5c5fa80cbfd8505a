"""Lexical search by its definition: every visible record's tokens, one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from pdpp_kernel.criteria import Term, WordQuery
from pdpp_kernel.record import StoredRecord
from pdpp_kernel.values import event_instant_ns
from personal_server.domain.search_words import tokens
from personal_server.domain.text_language import language_of
from personal_server.domain.word_forms import family_of, forms, stems
from personal_server.enforcement.plans import SearchPlan
from personal_server.enforcement.rows import Candidate, Matches
from personal_server.enforcement.scopes import Scope
from personal_server.storage.record_changes import latest_change
from personal_server.storage.row_rules import granted_lexical_fields, holds

Words = Mapping[str, "Said"]


def search(plan: SearchPlan, visible: Mapping[int, Sequence[StoredRecord]]) -> Matches:
    """`visible` holds the visible rows of each scope, by the scope's identity."""
    found: list[Candidate] = []
    truncated: set[tuple[str, str]] = set()
    frequencies = [0] * len(plan.words.terms)
    for scope in plan.scopes:
        texts = [(row, _words(row, scope)) for row in visible[id(scope)]]
        asked = plan.words_in(scope)
        for place, term in enumerate(asked.terms):
            frequencies[place] += sum(_total(term, words) > 0 for _, words in texts)
        matching = [
            (row, words)
            for row, words in texts
            if asked.is_met(_held(asked, words))
            and not any(_total(term, words) for term in asked.excluded)
            and all(holds(condition, row.data) for condition in plan.conditions_on(scope))
        ]
        matching.sort(key=lambda each: recency(each[0], scope), reverse=True)
        if len(matching) > plan.window:
            truncated.add((scope.connection_id, scope.stream.name))
        found += [_candidate(*each, scope, plan) for each in matching[: plan.window]]
    limit = plan.frequency_limit if found else 0
    return Matches(tuple(found), tuple(min(n, limit) for n in frequencies), frozenset(truncated))


def holds_all(row: StoredRecord, scope: Scope, words: WordQuery) -> bool:
    """Whether a record is a hit, as far as its words and the values they name go."""
    plan = SearchPlan((scope,), words)
    asked, texts = plan.words_in(scope), _words(row, scope)
    return (
        asked.is_met(_held(asked, texts))
        and not any(_total(term, texts) for term in asked.excluded)
        and all(holds(condition, row.data) for condition in plan.conditions_on(scope))
    )


def _held(asked: WordQuery, words: Words) -> set[int]:
    return {n for n, term in enumerate(asked.terms) if _total(term, words)}


def count_terms(plan: SearchPlan, visible: Mapping[int, Sequence[StoredRecord]]) -> tuple[int, ...]:
    counts = [0] * len(plan.words.terms)
    for scope in plan.scopes:
        texts = [_words(row, scope) for row in visible[id(scope)]]
        for place, term in enumerate(plan.words_in(scope).terms):
            counts[place] += sum(_total(term, words) > 0 for words in texts)
    return tuple(min(count, plan.frequency_limit) for count in counts)


def recency(row: StoredRecord, scope: Scope) -> tuple[bool, int]:
    """How new a record is when only the newest are ranked.

    Records without an event time are the oldest where the stream has one that may be known.
    """
    name = scope.stream.event_time_field
    if name is None or name not in scope.fields:
        return (True, row.created.emitted_at_ns)
    own = _own_event_time(row, scope)
    return (own is not None, row.created.emitted_at_ns if own is None else own)


def _own_event_time(row: StoredRecord, scope: Scope) -> int | None:
    """The instant of the event-time field, if that field is granted and has one."""
    name = scope.stream.event_time_field
    if name is None or name not in scope.fields:
        return None
    kind = scope.stream.properties[name].kind
    return event_instant_ns(row.data.get(name), kind) if kind is not None else None


class Said(NamedTuple):
    """The words of a text, and the stem of each with its family of languages, where it has one."""

    words: Sequence[str] = ()
    stems: Sequence[str] = ()


def said(text: str) -> Said:
    words, language = tokens(text), language_of(text)
    family = family_of(language or "")
    marked = [f"{family}~{stem}" if stem else "" for stem in stems(words, language)]
    return Said(words, marked)


def occurrences(term: Term, text: Said, field: str) -> int:
    """At how many places of a text a term stands; an inflected word and its stem each count."""
    if term.others:
        each_one = [replace(each, others=()) for each in term.alternatives]
        return sum(occurrences(each, text, field) for each in each_one)
    if not term.tokens or (term.fields and field not in term.fields):
        return 0
    if term.inflected:
        meant = forms(term.tokens[0])
        stemmed = {f"{name}~{stem}" for name, each in meant.stems.items() for stem in each}
        sought = {*meant.words, *stemmed}
        return sum(each in sought for each in (*text.words, *text.stems))
    size = len(term.tokens)
    starts = range(len(text.words) - size + 1)
    return sum(_matches(term, text.words[at : at + size]) for at in starts)


def _matches(term: Term, words: Sequence[str]) -> bool:
    *head, last = term.tokens
    same = words[-1].startswith(last) if term.prefix else words[-1] == last
    return same and list(words[:-1]) == head


def _words(row: StoredRecord, scope: Scope) -> Words:
    values = {name: row.data.get(name) for name in granted_lexical_fields(scope)}
    return {name: said(text) for name, text in values.items() if isinstance(text, str)}


def _total(term: Term, words: Words) -> int:
    return sum(occurrences(term, each, field) for field, each in words.items())


def _candidate(row: StoredRecord, words: Words, scope: Scope, plan: SearchPlan) -> Candidate:
    asked = plan.words_in(scope)
    weighty = {name: each for name, each in words.items() if name in scope.stream.weighty_fields}
    if asked.least is None:
        counts = [_total(term, words) + _total(term, weighty) for term in asked.terms]
    else:
        others = {name: text for name, text in words.items() if name not in weighty}
        counts = [
            (_total(term, others) > 0) + 2 * (_total(term, weighty) > 0) for term in asked.terms
        ]
    own = _own_event_time(row, scope)
    changed = latest_change(row.created, row.field_changes, scope.fields)
    return Candidate(
        row.connection_id,
        row.stream,
        row.key,
        tuple(counts),
        sum(len(each.words) for each in words.values()),
        changed.emitted_at_ns if own is None else own,
    )
