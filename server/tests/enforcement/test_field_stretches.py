"""Which stretch of a field a window is."""

from __future__ import annotations

from typing import Any

import pytest

from pdpp_kernel.errors import PersonalServerError
from personal_server.enforcement.field_stretches import check_path, stretch_of
from personal_server.enforcement.queries import FieldWindowQuery


def stretch(**asked: Any) -> tuple[int, int, int]:
    return stretch_of(FieldWindowQuery("mails", "m1", "body", **asked))


@pytest.mark.parametrize("field", ["body", "x_pdpp-1"])
def test_a_path_names_one_property(field: str) -> None:
    assert check_path(field) == field


@pytest.mark.parametrize("field", ["", "a.b", "a/b", "a[0]"])
def test_a_path_has_one_step(field: str) -> None:
    with pytest.raises(PersonalServerError) as caught:
        check_path(field)
    assert (caught.value.code, caught.value.param) == ("invalid_field_path", "field")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, (4_096, 0, 0)),
        ({"limit_chars": 10}, (10, 0, 0)),
        ({"offset_chars": 7}, (4_096, 7, 0)),
        ({"text": "rain"}, (4_096, 0, 2_046)),
        ({"text": "rain", "limit_chars": 10}, (10, 0, 3)),
        ({"text": "rain", "limit_chars": 3}, (3, 0, 0)),
        ({"text": "rain", "before_chars": 5}, (9, 0, 5)),
        ({"text": "rain", "after_chars": 6}, (10, 0, 0)),
        ({"text": "rain", "before_chars": 5, "after_chars": 6}, (15, 0, 5)),
        ({"text": "rain", "before_chars": 0, "after_chars": 0}, (4, 0, 0)),
        ({"text": "rain", "limit_chars": 8, "before_chars": 5}, (8, 0, 4)),
        ({"text": "rain", "limit_chars": 8, "before_chars": 3}, (8, 0, 3)),
        ({"text": "rain", "limit_chars": 8, "after_chars": 1}, (8, 0, 0)),
        ({"text": "rain", "before_chars": 8_192, "after_chars": 8_192}, (16_384, 0, 8_192)),
        ({"text": "r" * 256, "limit_chars": 256}, (256, 0, 0)),
    ],
)
def test_a_match_stands_in_the_middle_or_with_the_context_that_was_asked_for(
    asked: dict[str, Any], expected: tuple[int, int, int]
) -> None:
    assert stretch(**asked) == expected


@pytest.mark.parametrize(
    ("asked", "param"),
    [
        ({"before_chars": 0}, "before_chars"),
        ({"after_chars": 1}, "after_chars"),
        ({"text": "rain", "offset_chars": 0}, "offset_chars"),
        ({"text": ""}, "q"),
        ({"text": "r" * 257}, "q"),
    ],
)
def test_what_does_not_go_together_is_refused(asked: dict[str, Any], param: str) -> None:
    with pytest.raises(PersonalServerError) as caught:
        stretch(**asked)
    assert (caught.value.code, caught.value.param) == ("invalid_window", param)
