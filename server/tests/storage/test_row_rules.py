from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.record import FieldChange
from pdpp_kernel.values import ValueKind
from personal_server.storage.row_rules import changed_fields, fold, foreign_value, latest_change


def test_a_field_changed_if_its_json_did() -> None:
    before = {"a": 1, "b": {"x": 1, "y": 2}, "c": None, "d": "s", "e": True}
    after = {"a": 1.0, "b": {"y": 2, "x": 1}, "d": "s", "e": 1, "f": None}
    assert changed_fields(before, after) == {"a", "c", "e", "f"}


def test_the_latest_change_is_of_granted_fields() -> None:
    created = FieldChange(3, 30)
    changes = {"a": FieldChange(5, 10), "b": FieldChange(9, 90)}
    assert latest_change(created, changes, ("a", "c")) == FieldChange(5, 10)
    assert latest_change(created, changes, ()) == created


@given(st.text())
def test_folding_keeps_every_code_point_in_its_place(text: str) -> None:
    assert len(fold(text)) == len(text)
    assert fold(fold(text)) == fold(text)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("7", ValueKind.INTEGER, 7),
        ("-7", ValueKind.INTEGER, -7),
        ("07", ValueKind.INTEGER, None),
        ("7", ValueKind.STRING, "7"),
        ("true", ValueKind.BOOLEAN, True),
        ("yes", ValueKind.BOOLEAN, None),
        ("x", None, None),
    ],
)
def test_a_key_is_found_in_a_field_of_its_kind(
    text: str, kind: ValueKind | None, expected: object
) -> None:
    assert foreign_value(text, kind) == expected
