"""What a property's schema says of persons."""

from __future__ import annotations

import pytest

from pdpp_kernel.person_fields import PERSON_MEMBER, PersonField, PersonForm, person_field


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"form": "address"}, PersonField("from", PersonForm.ADDRESS, None, None, False)),
        (
            {"form": "address", "card": True},
            PersonField("from", PersonForm.ADDRESS, None, None, True),
        ),
        (
            {"form": "number", "card": "yes"},
            PersonField("from", PersonForm.NUMBER, None, None, False),
        ),
        (
            {"form": "handle", "network": "x"},
            PersonField("from", PersonForm.HANDLE, "x", None, False),
        ),
        (
            {"form": "handle", "network": 3},
            PersonField("from", PersonForm.HANDLE, None, None, False),
        ),
        (
            {"form": "number", "named_by": "name"},
            PersonField("from", PersonForm.NUMBER, None, "name", False),
        ),
        # what is written for people holds the name itself
        (
            {"form": "written", "named_by": "name"},
            PersonField("from", PersonForm.WRITTEN, None, None, False),
        ),
        (
            {"form": "number", "named_by": 1},
            PersonField("from", PersonForm.NUMBER, None, None, False),
        ),
        ({"form": "face"}, None),
        ({}, None),
        ("address", None),
        (None, None),
    ],
)
def test_what_is_understood_is_read_and_anything_else_says_nothing(
    said: object, expected: PersonField | None
) -> None:
    assert person_field("from", {PERSON_MEMBER: said}) == expected
    assert person_field("from", {}) is None
