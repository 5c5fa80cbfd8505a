"""A layout is read back as it was, and one that is being changed relies on nothing."""

from __future__ import annotations

import orjson
from msgspec.structs import replace

from pdpp_kernel.values import ValueKind
from personal_server.storage.sql.declared_layouts import layouts
from personal_server.storage.sql.layout import FORM
from personal_server.storage.sql.stored_layouts import between, parse_layout
from server.tests.storage.worlds import DECLARED

NOTES = layouts(DECLARED)["notes"]


def test_a_layout_comes_back_as_it_was_rendered() -> None:
    found = parse_layout(NOTES.render())
    assert found == NOTES
    assert found.render() == NOTES.render()
    assert (NOTES.form, NOTES.rebuilding) == (FORM, ())


def test_what_an_older_program_did_not_know_is_not_there() -> None:
    raw = orjson.loads(NOTES.render())
    for name in ("placed", "form", "persons", "folded", "by_day", "facets", "grouped"):
        del raw[name]
    found = parse_layout(orjson.dumps(raw).decode())
    assert (found.placed, found.form, found.persons, found.folded) == ("at", 1, (), ())
    assert (found.by_day, found.facets, found.grouped) == (False, (), ())


def test_columns_that_are_there_are_read_and_others_taken_from_the_text() -> None:
    kept, new, other = NOTES.columns[0], NOTES.columns[1], NOTES.columns[2]
    stored = replace(
        NOTES,
        columns=(replace(kept, name="c7"), replace(other, kind=ValueKind.STRING)),
        key="mood",
        form=3,
        lexical=("body",),
        blobs=(),
    )
    found = between(stored, NOTES)
    assert found.columns[0] == replace(kept, name="c7", indexed=False)
    assert found.columns[1] == replace(new, name="v1", indexed=False)
    assert found.columns[2] == replace(other, name="v2", indexed=False)  # of another kind
    assert not any(column.indexed for column in found.columns)
    assert (found.key, found.form, found.lexical, found.placed) == (None, 3, ("body",), None)
    assert (found.by_day, found.facets, found.grouped, found.folded) == (False, (), (), ())
    assert (found.blobs, found.rebuilding) == ((), tuple(found.columns[1:]))
    again = between(NOTES, NOTES)
    assert (again.key, again.placed) == ("id", "at")
    assert again.rebuilding == ()
