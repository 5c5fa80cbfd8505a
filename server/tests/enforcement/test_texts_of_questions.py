"""What was asked has a text of its own, to which cursors are bound (`request_digest`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from pdpp_kernel.criteria import Condition, Order
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.vectors import Passage
from personal_server.enforcement.queries import (
    AggregateQuery,
    ChangesQuery,
    RecordsQuery,
    SearchQuery,
    TimelineQuery,
)

ASKED = (AggregateQuery, ChangesQuery, RecordsQuery, SearchQuery, TimelineQuery, Condition, Order)


class Holder(msgspec.Struct):
    """Holds what has no text of its own."""

    kept: tuple[Passage, ...] | None


def structs_in(hint: Any, met: frozenset[object] = frozenset()) -> Iterator[type[msgspec.Struct]]:
    """The structs that a type is made of, itself among them; a condition may hold conditions."""
    if hint in met:
        return
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
        for member in get_type_hints(hint).values():
            yield from structs_in(member, met | {hint})
    for part in get_args(hint):
        yield from structs_in(part, met)


@pytest.mark.parametrize("asked", ASKED)
def test_no_part_of_a_question_looks_like_another(asked: type[msgspec.Struct]) -> None:
    assert not [kind for kind in structs_in(asked) if issubclass(kind, Unprinted)]


def test_a_part_without_a_text_of_its_own_would_be_found() -> None:
    assert [kind for kind in structs_in(Holder) if issubclass(kind, Unprinted)] == [Passage]
