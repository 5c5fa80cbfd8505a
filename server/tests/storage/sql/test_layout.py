"""What follows from the columns of a layout: indexes, what limits are compared with, figures."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import ValueKind
from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.layout import held_digest, render_held
from server.tests.storage.worlds import FILES_STREAM, NOTES_STREAM

NOTES = layout_of(NOTES_STREAM)
NAMES = {field: column.name for field, column in NOTES.by_field.items()}


def test_a_column_is_found_by_its_field_and_kind() -> None:
    words = NOTES.column("words")
    assert words is not None
    assert (words.field, words.kind, words.is_text) == ("words", ValueKind.INTEGER, False)
    assert NOTES.column("words", ValueKind.INTEGER) is words
    assert NOTES.column("words", ValueKind.STRING) is None
    assert NOTES.column("none") is NOTES.column(None) is NOTES.column("body") is None
    assert NOTES.places == {column.field: n for n, column in enumerate(NOTES.columns)}
    assert replace(words, name="v3").is_text


def test_names_and_texts_are_folded_where_case_is_ignored() -> None:
    found = {name: NOTES.folded_column(name) for name in ("mood", "body", "title", "id")}
    assert {name: column and column.name for name, column in found.items()} == {
        "mood": "f1",
        "body": "f0",
        "title": None,
        "id": None,
    }


def test_limits_are_compared_with_what_has_an_index() -> None:
    limiting = {name: column.name for name, column in NOTES.limiting.items()}
    # the key is looked up by its own index, and where case is ignored the folded string counts
    assert limiting == {
        "words": NAMES["words"],
        "pinned": NAMES["pinned"],
        "mood": "f1",
        "body": "f0",
    }


def test_an_index_leads_to_the_order_that_a_list_has() -> None:
    at, words, cost = NAMES["at"], NAMES["words"], NAMES["cost"]
    found = NOTES.indexes
    assert found[at] == (at, "k", words, cost)
    assert found[words] == (words, "k", cost)  # a list may be sorted by it
    assert found[NAMES["pinned"]] == (NAMES["pinned"], at, "k", words, cost)
    assert found[NAMES["mood"]] == (NAMES["mood"], at, "k", words, cost)
    assert found["f1"] == ("f1", at, "k")
    assert not {NAMES["title"], NAMES["place"]} & found.keys()
    files = layout_of(FILES_STREAM, frozenset({"note_id"}))
    [note_id] = [column.name for column in files.columns if column.field == "note_id"]
    assert files.indexes == {note_id: (note_id, "k")}


def test_lines_and_summaries_have_their_columns_in_order() -> None:
    columns = [column.name for column in NOTES.columns]
    assert NOTES.line_columns == ("id", "k", "cs", "ce", "e", *columns, "f0", "f1", "wc", "fc")
    words, cost = NAMES["words"], NAMES["cost"]
    parts = ("present", "high", "low", "odd")
    assert NOTES.summary_figures == tuple(f"{n}_{part}" for n in (words, cost) for part in parts)


@pytest.mark.parametrize(
    ("value", "alike"),
    [(True, 1), (7, "7"), (0, "0"), (None, "0"), ("Ulm", b"Ulm"), ("\ud800", "?"), (2.0, 2)],
)
def test_what_a_record_held_is_told_by_a_digest(value: object, alike: object) -> None:
    digest = held_digest(value)  # type: ignore[arg-type]
    assert digest == held_digest(alike)  # type: ignore[arg-type]
    assert len(digest) == 16
    assert digest != held_digest("another")


def test_what_was_not_held_has_no_digest() -> None:
    assert render_held({}) == "{}"
    told = render_held({"mood": "calm", "place": None, "pinned": 0})
    assert told == f'{{"mood":"{held_digest("calm")}","pinned":"{held_digest(0)}"}}'
