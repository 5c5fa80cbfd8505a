from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.values import ValueKind
from personal_server.storage.folding import fold
from personal_server.storage.row_rules import foreign_value


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
