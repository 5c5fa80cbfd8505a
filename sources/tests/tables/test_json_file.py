"""JSON of any form: lists wherever they stand, objects on lines or not, places."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pdpp_kernel.source_item import Data, Json, SourceItem, SourceRecord
from pdpp_sources.common.errors import ExportNotRecognized
from pdpp_sources.common.export import open_export
from pdpp_sources.registry import readings
from pdpp_sources.tables.json_file import form_of_json
from sources.tests.reading import read_path, records_of, skips_of
from sources.tests.test_contract import modest

PEOPLE: list[Data] = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Ann"}]


def read(content: str, folder: Path) -> list[tuple[str, SourceItem]]:
    (folder / "export.json").write_text(content)
    return read_path(folder / "export.json")


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize(
    ("whole", "stream"),
    [
        (PEOPLE, "export"),
        ({"people": PEOPLE}, "people"),
        ({"data": {"people": PEOPLE}}, "people"),
        ({"data": {"none": [], "people": PEOPLE}, "deep": {"no": {"more": []}}}, "people"),
    ],
)
def test_a_list_is_found_wherever_it_stands(
    whole: Json, stream: str, indent: int | None, tmp_path: Path
) -> None:
    items = read(json.dumps(whole, indent=indent), tmp_path)
    assert [each["name"] for each in records_of(items, stream)] == ["Ada", "Ann"]
    assert skips_of(items) == []


def test_each_list_is_a_stream_and_what_stands_beside_is_named(tmp_path: Path) -> None:
    whole: Data = {"made": "today", "people": PEOPLE, "pets": [{"name": "Rex"}], "tags": ["a"]}
    items = read(json.dumps(whole), tmp_path)
    assert len(records_of(items, "people")) == 2
    assert [each["name"] for each in records_of(items, "pets")] == ["Rex"]
    assert skips_of(items) == ["unknown_record_type"]


@pytest.mark.parametrize(
    "whole", ['[{}, null, "x", 3]', '{{"made": "today", "people": [{}, null, "x", 3]}}']
)
def test_what_is_no_object_in_a_list_of_objects_is_named(whole: str, tmp_path: Path) -> None:
    items = read(whole.format('{"name": "Ada"}'), tmp_path)
    assert [each["name"] for each in records_of(items)] == ["Ada"]
    assert [code for code in skips_of(items) if code == "bad_record"] == ["bad_record"] * 3


def test_half_characters_deep_in_a_cell_cost_themselves_only(tmp_path: Path) -> None:
    items = read(r'[{"id": 1, "said": {"a\ud83d": ["b\udce9", 2]}}]', tmp_path)
    (row,) = records_of(items)
    assert skips_of(items) == []
    assert json.dumps(row["said"], ensure_ascii=False).encode()
    assert next(iter(row["said"].values()))[1] == 2


def test_objects_one_after_the_other_need_no_lines(tmp_path: Path) -> None:
    content = "".join(json.dumps(each, indent=2) + "\n" for each in PEOPLE)
    assert [each["name"] for each in records_of(read(content, tmp_path))] == ["Ada", "Ann"]


def test_a_single_object_is_a_single_row(tmp_path: Path) -> None:
    [row] = records_of(read('{"name": "Ada, Countess", "born": {"year": 1815}}', tmp_path))
    assert (row["name"], row["born"]) == ("Ada, Countess", {"year": 1815})


def test_an_entry_that_cannot_be_read_is_named_and_costs_no_other(tmp_path: Path) -> None:
    items = read('[{"a": 1},\n {"a": 2},\n {"a": ,},\n {"a": 4}]', tmp_path)
    assert [each["a"] for each in records_of(items)] == [1, 2, 4]
    assert skips_of(items) == ["bad_record"]


@pytest.mark.parametrize("content", ["[1, 2]", '["a", "b"]', "[[1, 2], [3, 4]]", "{no json}"])
def test_what_holds_no_object_is_not_claimed(content: str, tmp_path: Path) -> None:
    with pytest.raises(ExportNotRecognized):
        read(content, tmp_path)


def test_only_lines_that_are_objects_are_lines() -> None:
    assert form_of_json(b'{"a": 1}\n{"a": 2}\n') == "lines"
    assert form_of_json(b'{\n "a": {},\n "b": {}\n}') == "lists"
    assert form_of_json(b'[\n{"a": 1},\n{"a": 2}\n]') == "lists"
    assert form_of_json(b'{"a", "b"}\n') is None


def test_geojson_is_places_and_shapes(tmp_path: Path) -> None:
    def feature(kind: str, coordinates: Json, name: str) -> Data:
        geometry: Data = {"type": kind, "coordinates": coordinates}
        return {"type": "Feature", "geometry": geometry, "properties": {"name": name, "stars": 3}}

    features = [
        feature("Point", [13.4, 52.5, 34], "Home"),
        feature("LineString", [[1, 2], [3, 4]], "Way"),
        feature("Point", ["x", 2], "Nowhere"),
    ]
    items = read(json.dumps({"type": "FeatureCollection", "features": features}), tmp_path)
    [home] = records_of(items, "places")
    assert (home["name"], home["latitude"], home["longitude"], home["elevation"]) == (
        "Home",
        52.5,
        13.4,
        34,
    )
    way, nowhere = records_of(items, "shapes")
    assert (way["shape"], way["coordinates"]) == ("LineString", [[1, 2], [3, 4]])
    assert (nowhere["name"], nowhere["stars"]) == ("Nowhere", 3)
    assert skips_of(items) == []


def test_instants_that_are_numbers_are_known(tmp_path: Path) -> None:
    row: Data = {"created_at": 1_593_250_194, "size": 1_593_250_194}
    [found] = records_of(read(json.dumps([row]), tmp_path))
    assert found["created_at"] == "2020-06-27T09:29:54Z"
    assert found["size"] == 1_593_250_194


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
rows = st.lists(st.dictionaries(st.sampled_from("abcd"), values, min_size=1), min_size=1)


@modest
@given(first=rows, second=rows, indent=st.sampled_from([None, 2]))
def test_every_object_is_one_row(
    first: list[Data], second: list[Data], indent: int | None, tmp_path: Path
) -> None:
    items = read(json.dumps({"one": first, "two": {"three": second}}, indent=indent), tmp_path)
    streams = Counter(item.stream for _, item in items if isinstance(item, SourceRecord))
    assert (streams["one"], streams["three"]) == (len(first), len(second))
    positions = [item.position for _, item in items]
    assert positions == sorted(positions)


def test_memory_holds_a_row_and_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    with path.open("w") as stream:
        stream.write('{"rows": [')
        for number in range(900):
            stream.write("," * bool(number) + json.dumps({"n": number, "about": "word " * 1000}))
        stream.write("]}")
    with open_export(path) as export:
        tracemalloc.start()
        try:
            (reading,) = readings(export)
            read_rows = sum(1 for _ in reading.items())
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert export.total_bytes > 4_500_000
    assert read_rows == 900
    assert peak < 3_500_000


def test_lists_two_objects_within_a_member_are_tables(tmp_path: Path) -> None:
    """As TikTok's export holds them."""
    watched = [{"Date": "2024-01-05 10:11:12", "Link": "https://t.example/1"}] * 2
    liked = [{"Date": "2024-01-06 10:11:12", "Link": "https://t.example/2"}]
    activity = {
        "Video Browsing History": {"VideoList": watched},
        "Like List": {"ItemFavoriteList": liked},
    }
    whole = {"Activity": activity, "Profile": {"Profile Information": {"userName": "a"}}}
    (tmp_path / "user_data_tiktok.json").write_text(json.dumps(whole))
    items = read_path(tmp_path)
    assert len(records_of(items, "videolist")) == 2
    assert len(records_of(items, "itemfavoritelist")) == 1
