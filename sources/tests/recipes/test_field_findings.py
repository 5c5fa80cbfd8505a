"""Fields of a recipe of the owner's without values, or with such that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pdpp_kernel.source_item import Skipped, SourceRecord
from sources.tests.specimens.own_recipe import EPISODES, EXPORT, RECIPE, read, told


def test_a_field_without_a_value_in_any_row_is_told_once(tmp_path: Path) -> None:
    items = read(RECIPE.replace('"seconds"', '"secs"'), EXPORT, tmp_path)
    assert told(items) == [("empty_field", "listens")]
    (skipped,) = (item for item in items if isinstance(item, Skipped))
    assert {"length:", "3", "(secs)"} <= set(str(skipped.reason).split())


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        (', decimal = ","', 'decimal = ","'),
        (', format = "milliseconds"', 'format = "milliseconds"'),
    ],
)
def test_unreadable_values_are_told_once_a_field_with_what_the_recipe_lacks(
    asked: str, hint: str, tmp_path: Path
) -> None:
    items = read(RECIPE.replace(asked, ""), EXPORT, tmp_path)
    assert told(items) == [("no_value", "history.json")]
    (skipped,) = (item for item in items if isinstance(item, Skipped))
    assert f"`{hint}`" in skipped.reason
    assert "3,45" not in skipped.reason
    assert len([item for item in items if isinstance(item, SourceRecord)]) == 4


def test_days_of_either_order_are_told_to_need_one(tmp_path: Path) -> None:
    rows = [{"no": "1", "at": "06/04/2024"}]
    files = EXPORT | {"history.json": json.dumps({"episodes": rows}).encode()}
    items = read(RECIPE.replace(', format = "milliseconds"', ""), files, tmp_path)
    reasons = [i.reason for i in items if isinstance(i, Skipped) and i.code == "no_value"]
    assert [("by-column" in reason) for reason in reasons] == [True]


INNER = """
[[stream]]
name = "payments"
label = "Payments"
detail = "What was paid in an episode."
within = "listens"
rows = "/payments"
fields = { paid = { is = "amount", unit = "EUR" } }
"""


@pytest.mark.parametrize(
    ("rows", "told_of"),
    [("/payments", []), ("/payment", [("no_rows", "payments")])],
)
def test_a_stream_within_another_whose_place_no_row_has_is_told(
    rows: str, told_of: list[tuple[str, str]], tmp_path: Path
) -> None:
    episodes = json.dumps({"episodes": [EPISODES[0] | {"payments": [{"paid": 1}]}]}).encode()
    files = EXPORT | {"history.json": episodes}
    items = read(RECIPE + INNER.replace("/payments", rows), files, tmp_path)
    assert told(items) == told_of


def test_a_stream_within_another_whose_lists_are_empty_is_told_nothing(tmp_path: Path) -> None:
    episodes = json.dumps({"episodes": [EPISODES[0] | {"payments": []}, EPISODES[1]]}).encode()
    items = read(RECIPE + INNER, EXPORT | {"history.json": episodes}, tmp_path)
    assert told(items) == []
