"""What stored rows mean: visibility, change, dates.  Pure, and the same for every backend.

Rule: these definitions are those of docs/contract/resource-server.md 4.3, 7.2 and 8; a backend that
computes them another way (indexes, SQL) must give the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pdpp_kernel.criteria import Condition, Term, WordQuery
from pdpp_kernel.operators import Takes
from pdpp_kernel.record import JsonObject
from pdpp_kernel.values import (
    Comparable,
    ValueKind,
    comparable,
    event_instant_ns,
)
from personal_server.domain.search_words import TextWords, Vocabulary, text_words
from personal_server.enforcement.scopes import Scope
from personal_server.storage.folding import fold
from personal_server.storage.record_changes import canonical_json

TIME_KINDS = (ValueKind.DATE, ValueKind.INSTANT)
# How many steps a number is cut into, where nobody says how wide they are.
MOST_STEPS = 20


def window_kind(scope: Scope) -> ValueKind | None:
    """How the constrained field is compared; `None` when it cannot be, and nothing is visible."""
    if scope.window is None:
        return None
    declared = scope.stream.properties.get(scope.window.field)
    return declared.kind if declared is not None and declared.kind in TIME_KINDS else None


def in_window(data: JsonObject, scope: Scope) -> bool:
    """Source: docs/contract/resource-server.md 4.3, `in_window`."""
    if scope.window is None:
        return True
    kind = window_kind(scope)
    if kind is None:
        return False
    return scope.window.holds(event_instant_ns(data.get(scope.window.field), kind))


def is_in(data: JsonObject, scope: Scope) -> bool:
    """Source: docs/contract/resource-server.md 4.3, `visible`, by time and content."""
    return in_window(data, scope) and all(holds(condition, data) for condition in scope.only)


def holds(condition: Condition, data: JsonObject) -> bool:
    """Whether a record satisfies a condition; null values satisfy none but `exists` false."""
    if condition.any_of:
        return any(all(holds(one, data) for one in each) for each in condition.any_of)
    operator, values = condition.operator, condition.values
    value = comparable(data.get(condition.field), condition.kind)
    if value is None and operator.takes is not Takes.PRESENCE:
        return False
    if condition.caseless or operator.takes is Takes.PART:
        return operator.holds(fold(str(value)), [fold(str(value)) for value in values])
    return operator.holds(value, values)


def foreign_value(text: str, kind: ValueKind | None) -> Comparable | None:
    """The comparable of a key's string form in a foreign-key field of that kind."""
    match kind:
        case ValueKind.INTEGER | ValueKind.NUMBER:
            return int(text) if _is_canonical_integer(text) else None
        case ValueKind.BOOLEAN:
            return {"true": True, "false": False}.get(text)
        case None:
            return None
        case _:
            return comparable(text, kind)


def _is_canonical_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(text)) == text


def granted_lexical_fields(scope: Scope) -> tuple[str, ...]:
    """Fields whose words may be matched in this scope."""
    return tuple(name for name in scope.stream.lexical_fields if name in scope.fields)


def words_of(
    data: JsonObject, fields: Iterable[str], vocabulary: Vocabulary | None = None
) -> dict[str, TextWords]:
    """The words of each text that a record has in these fields."""
    return {
        name: text_words(text, vocabulary)
        for name in fields
        if isinstance(text := data.get(name), str)
    }


def holds_words(texts: Mapping[str, TextWords], words: WordQuery) -> bool:
    """Whether texts hold enough terms in one of them or another, and none excluded."""
    met = {index for index, term in enumerate(words.terms) if holds_term(texts, term)}
    return words.is_met(met) and not any(holds_term(texts, term) for term in words.excluded)


def holds_term(texts: Mapping[str, TextWords], term: Term) -> bool:
    """Whether one of the texts holds it."""
    return any(text.holds(term, name) for name, text in texts.items())


def stored_text(value: object) -> str:
    """A stored time value as it stands in the record."""
    return value if isinstance(value, str) else canonical_json(value).decode()
