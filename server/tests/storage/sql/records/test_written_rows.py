"""What the tables of a source hold of a record, before anything is written."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from pdpp_kernel.values import COMPARED_CODE_POINTS, DAY_NANOSECONDS, instant_ns
from personal_server.domain.stored import RecordWrite
from personal_server.storage.sql.declared_layouts import layout_of
from personal_server.storage.sql.layout import Layout
from personal_server.storage.sql.records import written_rows
from personal_server.storage.sql.records.word_index import marked_words
from personal_server.storage.sql.records.written_rows import (
    Prepared,
    limiting_values,
    prepare,
    prepare_again,
    prepare_one,
    value_in,
)
from server.tests.storage.worlds import FILES, NOTES, NOTES_STREAM, declaration, note

LAYOUT = layout_of(NOTES_STREAM)
AT = "2026-01-01T00:00:00Z"
LONG = "É" * (COMPARED_CODE_POINTS + 9)


def layout_with(**members: Any) -> Layout:
    raw = copy.deepcopy(NOTES) | members
    return layout_of(declaration(streams=[raw, FILES]).streams["notes"])


def held(prepared: Prepared, layout: Layout = LAYOUT) -> dict[str, object]:
    """The values of columns by their fields, those that are folded behind a tilde."""
    names = [column.field for column in layout.columns]
    names += [f"{column.field}~" for column in layout.folded]
    return dict(zip(names, prepared.values, strict=True))


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("words", 7, 7),
        ("words", None, None),
        ("words", "7", None),
        ("words", 2**63, float(2**63)),
        ("cost", 2.5, 2.5),
        ("cost", True, None),
        ("pinned", True, True),
        ("pinned", 1, None),
        ("day", "1970-01-03", 2),
        ("day", "1970-01-32", None),
        ("at", "1970-01-01T00:00:00.000000005Z", 5),
        ("at", "9999-12-31T23:59:59Z", 2.534023007990e20),
        ("place", "Ulm", "Ulm"),
        ("place", LONG, LONG[:COMPARED_CODE_POINTS]),
        ("place", 7, None),
        ("mood~", "CALM", "calm"),
        ("mood~", 7, None),
        ("mood~", LONG, LONG[:COMPARED_CODE_POINTS].lower()),
        ("body~", "É", "é"),
    ],
)
def test_a_column_holds_what_is_compared(field: str, value: object, expected: object) -> None:
    name = field.removesuffix("~")
    found = held(prepare_one("n", {"id": "n", name: value}, 1, LAYOUT))[field]
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)
    assert type(found) is type(expected)
    if not field.endswith("~"):
        assert value_in(value, LAYOUT.by_field[name].kind) == found


def test_a_record_is_prepared_with_its_words_its_bytes_and_its_place_in_time() -> None:
    data = note("n", AT, title="Heavy rain", body="wind", blob_ref={"blob_id": "blob_sha256_1"})
    found = prepare_one("k", data, 9, LAYOUT)
    assert (found.key, found.emitted_at_ns) == ("k", 9)
    assert orjson.loads(found.text or "") == data
    assert (found.words, found.word_counts) == marked_words(["Heavy rain", "wind"])
    assert found.placed_ns == found.consent_at == instant_ns(AT)
    assert found.blobs == {"blob_ref": "blob_sha256_1"}
    assert found.mentions == ()
    bare = prepare_one("k", {"id": "k"}, 9, LAYOUT)
    assert (bare.placed_ns, bare.consent_at, bare.blobs) == (None, None, {})


def test_a_day_stands_at_its_beginning() -> None:
    dated = layout_with(consent_time_field="day")
    found = prepare_one("k", note("k", AT, day="1970-01-03"), 9, dated)
    assert found.placed_ns == found.consent_at == 2 * DAY_NANOSECONDS
    raw = {name: value for name, value in NOTES.items() if name != "consent_time_field"}
    none = layout_of(declaration(streams=[raw, FILES]).streams["notes"])
    assert none.placed == "at"
    found = prepare_one("k", note("k", AT), 9, none)
    assert (found.placed_ns, found.consent_at) == (instant_ns(AT), None)


def test_a_stream_without_bytes_has_no_references() -> None:
    raw = copy.deepcopy(NOTES)
    del raw["schema"]["properties"]["blob_ref"]
    layout = layout_of(declaration(streams=[raw, FILES]).streams["notes"])
    assert prepare_one("k", note("k"), 9, layout).blobs is None


def test_what_limits_are_compared_with_is_what_columns_hold() -> None:
    data = note("k", words=3, pinned=False, mood="CALM", body="Wind", place="Ulm")
    assert limiting_values(data, LAYOUT) == {
        "words": 3,
        "pinned": False,
        "mood": "calm",
        "body": "wind",
    }
    assert set(limiting_values({}, LAYOUT).values()) == {None}


def test_writes_and_deletes_are_prepared_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = [
        RecordWrite(f"n{n}", None if n % 3 == 2 else note(f"n{n}", words=n), n) for n in range(7)
    ]
    found = prepare(writes, LAYOUT)
    assert [(each.key, each.emitted_at_ns, each.text is None) for each in found] == [
        (f"n{n}", n, n % 3 == 2) for n in range(7)
    ]
    for at_once in (1, 2, 7):
        monkeypatch.setattr(written_rows, "_AT_ONCE", at_once)
        assert prepare(writes, LAYOUT) == found
    other = layout_with(consent_time_field="day")
    again = prepare_again(found, other)
    assert again == prepare(writes, other)
    assert again != found
