"""The words of what a server takes."""

from __future__ import annotations

from pdpp_kernel.operators import FILTER_CAPABILITIES
from pdpp_kernel.read_capabilities import OF_THIS_PROGRAM, ReadCapability


def test_a_word_is_its_name_in_small_letters() -> None:
    assert all(each.value == each.name.lower() for each in ReadCapability)


def test_this_program_takes_all_of_it() -> None:
    assert set(ReadCapability) == OF_THIS_PROGRAM


def test_each_word_of_an_operator_is_one_and_no_other_word_of_a_filter_is() -> None:
    assert {word for word in ReadCapability if word.startswith("filter_")} == {*FILTER_CAPABILITIES}
