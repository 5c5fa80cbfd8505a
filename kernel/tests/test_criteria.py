"""What conditions, metrics, groupings and words say of themselves."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pdpp_kernel.criteria import (
    Condition,
    Granularity,
    Grouping,
    GroupOrder,
    NamedPiece,
    Term,
    WordQuery,
)
from pdpp_kernel.operators import Operator
from pdpp_kernel.values import ValueKind

RAIN, SNOW, WIND = (Term((word,)) for word in ("rain", "snow", "wind"))
NO_WORD = Term(())


def test_a_condition_has_its_value_first_and_then_the_further_ones() -> None:
    several = Condition("n", ValueKind.INTEGER, Operator.IN, 3, (1, 2))
    assert several.values == (3, 1, 2)


def test_a_condition_is_decided_by_its_field_and_by_those_of_all_its_alternatives() -> None:
    one = Condition("n", ValueKind.INTEGER, Operator.EQ, 3)
    other = Condition("m", ValueKind.INTEGER, Operator.EQ, 3)
    either = Condition("a", ValueKind.INTEGER, Operator.EQ, 3, any_of=((one, other), (one,)))
    assert (one.fields, either.fields) == (("n",), ("a", "n", "m", "n"))


def test_nothing_is_caseless_a_list_or_quoted_unless_told_otherwise() -> None:
    assert not Condition("n", ValueKind.INTEGER, Operator.EQ, 3).caseless
    assert not Grouping("n", ValueKind.INTEGER).is_list
    assert not NamedPiece("from", "ada").quoted
    assert (RAIN.prefix, RAIN.inflected, RAIN.quoted) == (False, False, False)


@pytest.mark.parametrize("granularity", Granularity)
def test_hours_of_the_day_and_weekdays_come_round_again(granularity: Granularity) -> None:
    is_cyclic = granularity in (Granularity.HOUR_OF_DAY, Granularity.WEEKDAY)
    grouping = Grouping("at", ValueKind.INSTANT, granularity)
    assert granularity.is_cyclic == is_cyclic
    assert grouping.is_time_line == (not is_cyclic)
    assert grouping.has_natural_order


def test_groups_by_value_have_no_order_of_their_own_and_steps_of_a_number_have() -> None:
    by_value = Grouping("n", ValueKind.INTEGER)
    by_step = Grouping("n", ValueKind.INTEGER, bin_width=Decimal(0))
    assert (by_value.is_time_line, by_value.has_natural_order) == (False, False)
    assert (by_step.is_time_line, by_step.has_natural_order) == (False, True)


@pytest.mark.parametrize(
    ("order", "is_by_key", "is_descending"),
    [
        (GroupOrder.KEY, True, False),
        (GroupOrder.KEY_DOWN, True, True),
        (GroupOrder.VALUE, False, False),
        (GroupOrder.VALUE_DOWN, False, True),
    ],
)
def test_an_order_of_groups_is_by_key_or_value_up_or_down(
    order: GroupOrder, is_by_key: bool, is_descending: bool
) -> None:
    assert (order.is_by_key, order.is_descending) == (is_by_key, is_descending)


@pytest.mark.parametrize(
    "term",
    [
        Term(("heat", "pump")),
        Term(("rain",), prefix=True),
        Term(("rain",), inflected=True),
        Term(("rain",), others=(SNOW,)),
        Term(("rain",), fields=("title",)),
        Term(("rain",), named=NamedPiece("from", "ada")),
        NO_WORD,
    ],
)
def test_only_one_word_as_it_is_written_is_plain(term: Term) -> None:
    assert RAIN.is_plain
    assert not term.is_plain


def test_how_a_term_was_written_does_not_make_it_another() -> None:
    assert Term(("rain",), said="Rain", quoted=True) == RAIN


def test_of_the_alternatives_those_stand_in_a_field_that_name_it_or_none() -> None:
    titled = Term(("snow",), fields=("title",))
    term = Term(("rain",), others=(titled,))
    assert term.alternatives == (term, titled)
    assert term.alternatives_in("title") == (term, titled)
    assert term.alternatives_in("body") == (term,)


def test_all_terms_have_to_match_but_those_that_ask_for_no_word() -> None:
    words = WordQuery((RAIN, NO_WORD, SNOW))
    assert words.asked == (RAIN, SNOW)
    assert words.is_met({0, 2})
    assert not words.is_met({0})


def test_where_some_are_enough_no_more_have_to_match() -> None:
    words = WordQuery((RAIN, SNOW, WIND), least=2)
    assert words.needed == 2
    assert [words.is_met(held) for held in ({0}, {0, 2}, {0, 1, 2})] == [False, True, True]


def test_a_term_that_asks_for_no_word_counts_as_met() -> None:
    words = WordQuery((RAIN, NO_WORD, WIND), least=2)
    assert words.needed == 1
    assert [words.is_met(held) for held in (set[int](), {2})] == [False, True]


def test_words_in_quotation_marks_are_never_left_out() -> None:
    quoted = Term(("snow",), quoted=True)
    words = WordQuery((RAIN, quoted, Term((), quoted=True)), least=2)
    assert words.quoted == {1}
    assert [words.is_met(held) for held in ({0}, {1}, {0, 1})] == [False, True, True]


def test_a_term_alone_stands_in_its_own_fields_or_in_any() -> None:
    titled = Term(("snow",), fields=("title",))
    assert (titled.alternatives_in("title"), titled.alternatives_in("body")) == ((titled,), ())
    assert RAIN.alternatives_in("body") == (RAIN,)


def test_where_some_words_are_enough_one_that_tells_has_to_be_among_them() -> None:
    words = WordQuery((RAIN, SNOW, WIND), least=1, telling=(0, 1))
    assert [words.is_met(held) for held in ({0}, {1}, {2}, {1, 2})] == [True, True, False, True]
    two = WordQuery((RAIN, SNOW, WIND), least=2, telling=(2,))
    assert [two.is_met(held) for held in ({2}, {0, 1}, {0, 2})] == [False, False, True]
