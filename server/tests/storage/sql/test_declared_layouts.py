"""What is counted by day apart follows from what is grouped by."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.layout import Layout
from server.tests.storage.worlds import NOTES, declaration


def layout_with(grouped: int, others: int) -> Layout:
    """That of notes with so many more booleans, of which some are grouped by."""
    notes: dict[str, Any] = deepcopy(NOTES)
    names = [f"plain{n}" for n in range(others)] + [f"grouped{n}" for n in range(grouped)]
    notes["schema"]["properties"] |= {name: {"type": "boolean"} for name in names}
    notes["query"]["aggregations"]["group_by"] += names[others:]
    del notes["relationships"], notes["query"]["expand"]
    return layout_of(declaration(streams=[notes]).streams["notes"])


def test_every_boolean_that_is_grouped_by_is_counted_by_day() -> None:
    facets = layout_with(grouped=6, others=3).facets
    assert facets == ("pinned", *(f"grouped{n}" for n in range(6)))


def test_others_are_counted_so_while_there_is_room() -> None:
    assert layout_with(grouped=1, others=6).facets == ("pinned", "grouped0", "plain0", "plain1")
