"""Columns, indexes and summaries follow from what a declaration asks for."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from personal_server.storage.sql.declared_layouts import layout_of, layouts
from personal_server.storage.sql.layout import Grouped, Layout
from server.tests.storage.worlds import DECLARED, FILES, NOTES, declaration


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


def test_what_is_compared_has_a_column_and_what_is_asked_for_an_index() -> None:
    notes, files = layouts(DECLARED)["notes"], layouts(DECLARED)["files"]
    columns = {column.field: column.indexed for column in notes.columns}
    assert columns == {
        "id": True,
        "at": True,
        "day": True,
        "title": False,  # a label of groups
        "mood": True,
        "place": False,
        "words": True,
        "cost": True,
        "pinned": True,
    }
    assert [column.name for column in notes.columns] == [f"c{n}" for n in range(len(columns))]
    assert [(c.field, c.name, c.indexed) for c in notes.folded] == [
        ("body", "f0", True),
        ("mood", "f1", True),
    ]
    assert (notes.key, notes.placed, notes.measured) == ("id", "at", ("words", "cost"))
    assert (notes.lexical, notes.blobs, notes.by_day) == (("title", "body"), ("blob_ref",), True)
    assert notes.grouped == (Grouped("mood", "title", "place"),)
    # what another stream refers to is looked up
    assert {c.field: c.indexed for c in files.columns} == {
        "id": False,
        "note_id": True,
        "number": False,
    }
    assert (files.placed, files.grouped, files.facets) == (None, (), ())


@pytest.mark.parametrize(
    ("own", "key"),
    [
        ({"primary_key": ["id"]}, "id"),
        ({"primary_key": ["id", "note_id"]}, None),
        ({"primary_key": ["number"]}, None),
    ],
)
def test_one_string_is_the_key(own: dict[str, Any], key: str | None) -> None:
    files: dict[str, Any] = deepcopy(FILES) | own
    files["schema"]["required"] = ["id", "note_id", "number"]
    assert layout_of(declaration(streams=[files]).streams["files"]).key == key


def test_authors_are_grouped_first_and_no_more_than_four() -> None:
    notes: dict[str, Any] = deepcopy(NOTES)
    names = [f"name{n}" for n in range(5)]
    notes["schema"]["properties"] |= {name: {"type": "string"} for name in names}
    notes["schema"]["properties"]["name3"]["x_pdpp_role"] = "author"
    notes["query"]["aggregations"]["group_by"] += names
    notes["query"]["aggregations"]["sum"] += ["more", "most"]
    notes["schema"]["properties"] |= {"more": {"type": "number"}, "most": {"type": "number"}}
    del notes["relationships"], notes["query"]["expand"]
    found = layout_of(declaration(streams=[notes]).streams["notes"])
    assert [each.field for each in found.grouped] == ["name3", "mood", "name0", "name1"]
    assert found.measured == ("words", "cost", "more")
