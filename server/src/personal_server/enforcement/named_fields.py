"""Named fields: what `name:value` in a query means in one source, and where `C++` has to stand.

Rule: a name means granted fields of the source, or nothing: one that is declared and not granted is
read as one that nobody knows, as words.
Source: docs/contract/resource-server.md 11.2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from msgspec.structs import replace

from pdpp_kernel.criteria import Condition, Term, WordQuery
from pdpp_kernel.declaration import Stream
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import ValueKind
from personal_server.domain.search_words import value_term
from personal_server.enforcement.filter_values import parsed_value

# Words that name a role, whatever the fields are called.
ROLE_WORDS = {"from": "author", "to": "recipient"}
_ASKS_FOR_NO_WORD = Term(())


def words_in(words: WordQuery, stream: Stream, granted: Sequence[str]) -> WordQuery:
    """What a query looks for in a source: terms of its fields.

    Shapes: as many terms as in `words`, in their order; one that `conditions_in` has in its place
        asks for no word.
    """
    if all(each.named is None and not each.others for each in (*words.terms, *words.excluded)):
        return words  # of most, which are read for every hit
    conditions = _conditions(words, stream, granted)
    terms = tuple(
        _in_fields(term, stream, granted) if condition is None else _ASKS_FOR_NO_WORD
        for term, condition in zip(words.terms, conditions, strict=True)
    )
    excluded = tuple(_in_fields(term, stream, granted) for term in words.excluded)
    return replace(words, terms=terms, excluded=excluded)


def conditions_in(
    words: WordQuery, stream: Stream, granted: Sequence[str]
) -> tuple[Condition, ...]:
    """The values that a query names of fields that are not searched, and each literal (`C++`),
    which a searched field has to contain.
    """
    if not any(each.named or each.literal for each in words.terms):
        return ()  # of most, and of all the neighbours of a word
    found = _conditions(words, stream, granted)
    terms = [_in_fields(term, stream, granted) for term in words.terms]
    found += [_literal_condition(term, stream, granted) for term in terms]
    return tuple(condition for condition in found if condition is not None)


def _literal_condition(term: Term, stream: Stream, granted: Sequence[str]) -> Condition | None:
    """That one of the fields that a term is looked for in contains its literal, if it has one."""
    fields = term.fields or tuple(name for name in stream.lexical_fields if name in granted)
    if not term.literal or term.others or not fields:
        return None
    sought = Condition(fields[0], ValueKind.STRING, Operator.CONTAINS, term.literal)
    return replace(sought, any_of=tuple((replace(sought, field=name),) for name in fields))


def _conditions(words: WordQuery, stream: Stream, granted: Sequence[str]) -> list[Condition | None]:
    """For each term a condition or `None`; without any other term there is none."""
    found = [_condition(term, stream, granted) for term in words.terms]
    return found if None in found else [None for _ in found]


def _condition(term: Term, stream: Stream, granted: Sequence[str]) -> Condition | None:
    """What a term that stands by itself says of a field that is not searched, if it can."""
    if term.named is None or term.others:
        return None
    names = _named(term.named.name, stream, granted)
    if not names or set(names) & set(stream.lexical_fields):
        return None
    field = stream.properties[names[0]]
    if field.kind is ValueKind.STRING and not term.named.quoted and term.prefix:
        beginning = term.named.value[:-1]
        return Condition(field.name, field.kind, Operator.STARTS_WITH, beginning)
    value = None if field.kind is None else parsed_value(field.kind, term.named.value)
    if field.kind is None or value is None:
        return None
    is_string = field.kind is ValueKind.STRING
    return Condition(field.name, field.kind, Operator.EQ, value, caseless=is_string)


def _in_fields(term: Term, stream: Stream, granted: Sequence[str]) -> Term:
    """A term and the others in its place, each in the searched fields that it names."""
    if term.named is None and not term.others:
        return term
    first, *others = (_alternative(each, stream, granted) for each in term.alternatives)
    quoted = term.quoted or (first.quoted and not others)
    return dataclasses.replace(first, others=tuple(others), said=term.said, quoted=quoted)


def _alternative(term: Term, stream: Stream, granted: Sequence[str]) -> Term:
    words = dataclasses.replace(term, named=None, others=())
    if term.named is None:
        return words
    names = _named(term.named.name, stream, granted)
    searched = tuple(name for name in stream.lexical_fields if name in names)
    sought = value_term(term.named)
    return dataclasses.replace(sought, fields=searched, said=term.said) if searched else words


def _named(name: str, stream: Stream, granted: Sequence[str]) -> tuple[str, ...]:
    """The granted fields that a name means: those of a role, else the one that is called so."""
    role = ROLE_WORDS.get(name.lower())
    fields = stream.fields_with_role(role) if role else ()
    return tuple(n for n in fields if n in granted) or ((name,) if name in granted else ())
