from __future__ import annotations

import json
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from pdpp_kernel.source_item import Data, Skipped, SourceItem, SourceRecord
from pdpp_sources.common.export import open_export
from pdpp_sources.recipes import recipe_rows
from pdpp_sources.recipes.recipe_file import parse_recipe
from pdpp_sources.recipes.recipe_reader import RecipeSource
from sources.tests.reading import checked
from sources.tests.specimens.files import Files, as_folder

HEAD = """
recipe = 1
key = "rides"
name = "Rides"
detail = "Where you rode."
how_to_export = "Ask the shop."
"""


def source(streams: str) -> RecipeSource:
    return RecipeSource(parse_recipe(HEAD + streams, "rides.toml"))


def items(recipe: RecipeSource, files: Files, folder: Path, zone: str = "UTC") -> list[SourceItem]:
    with open_export(as_folder(files, folder)) as export:
        object.__setattr__(export, "zone", ZoneInfo(zone))
        claimed = recipe.recognize(export)
        assert claimed
        return list(checked(recipe, recipe.read(export.only(claimed.members))))


def records(read: list[SourceItem]) -> list[Data]:
    return [item.data for item in read if isinstance(item, SourceRecord)]


def codes(read: list[SourceItem]) -> list[str]:
    return [item.code for item in read if isinstance(item, Skipped)]


RIDES = """
[[stream]]
name = "rides"
label = "Rides"
detail = "Each ride."
has = ["Start", ["Km", "Kilometer"]]
key = ["started_at"]
time = "started_at"
end = "ended_at"
title = "name"

[stream.fields]
started_at = { from = "Start", is = "instant" }
ended_at = { from = "End", is = "instant" }
name = "Name"
distance = { from = ["Km", "Kilometer"], is = "number", unit = "km", decimal = "," }
fee = { from = "Fee", is = "amount", unit_field = "currency" }
currency = { from = "Currency", is = "currency" }
"""


def test_rows_of_csv_below_other_lines_are_read_by_the_names_of_their_columns(
    tmp_path: Path,
) -> None:
    body = (
        "Notes:\n\nStart,End,NAME,Kilometer,Fee,Currency\n"
        '2024-07-01 10:00,2024-07-01 11:30,Lake,"1.012,5",-3.20,EUR\n'
        "2024-07-02T10:00:00Z,,Hill,7,,\n"
    )
    read = items(source(RIDES), {"a.csv": body.encode()}, tmp_path, "Europe/Berlin")
    first, second = records(read)
    assert first == {
        "id": "2024-07-01 10:00",
        "started_at": "2024-07-01T08:00:00Z",
        "ended_at": "2024-07-01T09:30:00Z",
        "name": "Lake",
        "distance": 1012.5,
        "fee": -3.2,
        "currency": "EUR",
    }
    assert second["started_at"] == "2024-07-02T10:00:00Z"
    assert (second["distance"], second["fee"], second["ended_at"]) == (7, None, None)
    assert codes(read) == ["before_header"]


def test_the_words_of_a_declaration_are_those_of_the_contract() -> None:
    (stream,) = source(RIDES).declaration["streams"]
    properties = stream["schema"]["properties"]
    assert properties["started_at"]["x_pdpp_role"] == "event-time"
    assert properties["ended_at"]["x_pdpp_role"] == "event-end"
    assert properties["name"]["x_pdpp_role"] == "primary-title"
    assert properties["distance"]["x_pdpp_unit"] == "km"
    assert properties["fee"]["x_pdpp_unit_field"] == "currency"
    assert properties["currency"]["x_pdpp_type"] == "currency"
    assert stream["consent_time_field"] == "started_at"
    assert "fee" in stream["query"]["aggregations"]["sum"]
    # what is shown first is the name of something, and figures are made by it
    assert {"name"} <= {*stream["query"]["aggregations"]["group_by"]}
    assert "name" in stream["query"]["aggregations"]["count_distinct"]


def test_what_is_no_currency_is_named_and_left_out(tmp_path: Path) -> None:
    rows = [("a", "eur"), ("b", "R$"), ("c", "6.25"), ("d", "Euros"), ("e", "USDC"), ("f", "€")]
    body = "Start,Km,Fee,Currency\n" + "".join(
        f"2024-07-0{day}T10:00:00Z,{name},1,{value}\n"
        for day, (name, value) in enumerate(rows, start=1)
    )
    read = items(source(RIDES), {"a.csv": body.replace(",a,", ",1,").encode()}, tmp_path)
    found = [each["currency"] for each in records(read)]
    assert found == ["EUR", "R$", None, None, "USDC", "€"]
    assert "no_value" in codes(read)


PLACED = """
[[stream]]
name = "rides"
label = "Rides"
detail = "Each ride."
files = ["rides.csv"]
has = ["began"]
time = "began"
latitude = "up"
longitude = "across"
category = "purpose"

[stream.fields]
began = { is = "instant" }
up = { is = "number" }
across = { is = "number" }
purpose = { is = "word" }
gauge = { is = "word" }
reading = { is = "number", unit = "km", total = true, measure_field = "gauge" }
"""


def test_a_recipe_says_where_what_for_and_what_adds_up() -> None:
    (stream,) = source(PLACED).declaration["streams"]
    properties = stream["schema"]["properties"]
    roles = [properties[name]["x_pdpp_role"] for name in ("up", "across", "purpose")]
    assert roles == ["latitude", "longitude", "category"]
    assert properties["reading"]["x_pdpp_total"] is True
    assert properties["reading"]["x_pdpp_measure_field"] == "gauge"


NESTED = """
[[stream]]
name = "orders"
label = "Orders"
detail = "Each order."
files = ["orders.json"]
rows = "/shop/*/orders"
has = ["no"]
key = ["number"]
time = "day"

[stream.fields]
number = { from = "no", is = "string" }
day = { is = "day", format = "%d.%m.%Y" }

[[stream]]
name = "items"
label = "Items"
detail = "What was in an order."
within = "orders"
rows = "/lines"

[stream.fields]
article = "/article/name"
pieces = { is = "whole" }

[[stream]]
name = "tags"
label = "Tags"
detail = "Words on an order."
within = "orders"
rows = "/tags"

[stream.fields]
tag = { from = "value", is = "word" }
"""


def order(number: int, **others: object) -> Data:
    return {"no": number, "day": "31.12.2023", **others}


def test_lists_in_rows_are_streams_that_belong_to_them(tmp_path: Path) -> None:
    lines = [
        {"article": {"name": "Flour"}, "pieces": 2},
        {"article": {"name": "Flour"}, "pieces": 2},
    ]
    shop = {
        "shop": {
            "one": {"orders": [order(1, lines=lines, tags=["home"])]},
            "two": {"closed": True, "orders": [order(2), {"no": 3, "day": "soon"}]},
        },
        "orders": [order(9)],
    }
    read = items(source(NESTED), {"x/orders.json": json.dumps(shop).encode()}, tmp_path)
    by_stream = [(i.stream, i.data) for i in read if isinstance(i, SourceRecord)]
    orders = [data for stream, data in by_stream if stream == "orders"]
    assert orders[:2] == [
        {"id": "1", "number": "1", "day": "2023-12-31"},
        {"id": "2", "number": "2", "day": "2023-12-31"},
    ]
    assert orders[2] == {"id": "3", "number": "3"}
    inner = [data for stream, data in by_stream if stream == "items"]
    assert [(d["parent_id"], d["article"], d["pieces"]) for d in inner] == [("1", "Flour", 2)] * 2
    assert len({d["id"] for d in inner}) == 2
    assert [d["tag"] for stream, d in by_stream if stream == "tags"] == ["home"]
    assert codes(read) == ["no_value"]


BY_COLUMN = """
[[stream]]
name = "views"
label = "Views"
detail = "Each view."
has = ["Title", "Date"]
key = ["title", "day"]
repeats = true
time = "day"

[stream.fields]
title = "Title"
day = { from = "Date", is = "day", format = "by-column" }
"""


@pytest.mark.parametrize(
    ("cells", "days", "told"),
    [
        (["1/2/24", "13/2/24"], ["2024-02-01", "2024-02-13"], []),
        (["1/2/24", "2/13/24"], ["2024-01-02", "2024-02-13"], []),
        (["01.02.24", "2.3.24"], ["2024-02-01", "2024-03-02"], []),
        (["1/2/24", "1/3/24"], [None, None], ["ambiguous_dates"]),
    ],
)
def test_the_order_of_days_is_that_of_their_column(
    cells: list[str], days: list[str | None], told: list[str], tmp_path: Path
) -> None:
    body = "Title,Date\n" + "".join(f"Heat,{cell}\n" for cell in cells)
    read = items(source(BY_COLUMN), {"a.csv": body.encode()}, tmp_path)
    assert [data.get("day") for data in records(read)] == days
    assert codes(read) == told


def test_equal_rows_are_several_records_and_the_same_ones_in_the_next_export(
    tmp_path: Path,
) -> None:
    first = b"Title,Date\nHeat,2024-02-13\nHeat,2024-02-13\n"
    before = records(items(source(BY_COLUMN), {"a.csv": first}, tmp_path / "1"))
    longer = first + b"Heat,2024-02-14\n"
    after = records(items(source(BY_COLUMN), {"b.csv": longer}, tmp_path / "2"))
    assert len({data["id"] for data in before}) == 2
    assert after[:2] == before
    assert after[2]["id"] not in {data["id"] for data in before}


ONLY = """
[[stream]]
name = "places"
label = "Places"
detail = "Where the phone was."
has = ["_type", "tst"]
key = ["at"]
time = "at"
only = { _type = "location" }

[stream.fields]
at = { from = "tst", is = "instant", format = "seconds" }
latitude = { from = "lat", is = "number", sensitive = true }
"""


def test_rows_of_other_kinds_are_named(tmp_path: Path) -> None:
    lines = [
        {"_type": "location", "tst": 1700000000, "lat": 52.5},
        {"_type": "waypoint", "tst": 1700000001},
        {"_type": "location", "tst": "never", "lat": 52.5},
    ]
    body = "\n".join(map(json.dumps, lines)).encode()
    read = items(source(ONLY), {"a.rec.jsonl": body}, tmp_path)
    assert records(read)[0] == {
        "id": "1700000000",
        "at": "2023-11-14T22:13:20Z",
        "latitude": 52.5,
    }
    assert codes(read) == ["unknown_record_type", "no_value"]


@pytest.mark.parametrize("kind", ["whole", "number"])
@pytest.mark.parametrize("written", ['"' + "1" * 400 + '"', "1e400", "1" * 400])
def test_a_number_beyond_every_number_costs_its_field(
    written: str, kind: str, tmp_path: Path
) -> None:
    lines = f'{{"_type": "location", "tst": 1, "lat": {written}}}'
    stream = ONLY.replace('is = "number"', f'is = "{kind}"')
    read = items(source(stream), {"a.jsonl": lines.encode()}, tmp_path)
    assert codes(read) == ["no_value"]
    assert records(read)[0]["latitude"] is None


def test_reading_from_a_place_on_goes_on_there(tmp_path: Path) -> None:
    body = "\n".join(json.dumps({"_type": "location", "tst": n}) for n in range(1, 5)).encode()
    recipe = source(ONLY)
    with open_export(as_folder({"a.json": body}, tmp_path)) as export:
        whole = list(recipe.read(export))
        assert list(recipe.read(export, whole[2].position)) == whole[2:]


@pytest.mark.parametrize("kept", [0.9, 0.5, 0.1])
def test_a_file_that_was_cut_keeps_what_is_whole(kept: float, tmp_path: Path) -> None:
    shop = {"shop": {"one": {"orders": [order(n) for n in range(20)]}}}
    body = json.dumps(shop).encode()
    read = items(source(NESTED), {"orders.json": body[: int(len(body) * kept)]}, tmp_path)
    assert len(records(read)) >= int(20 * kept) - 1
    assert "truncated" in codes(read)


AROUND = """
[[stream]]
name = "notes"
label = "Notes"
detail = "Each note."
files = ["*.json"]
rows = "/by/*/list"
has = ["n"]
key = ["list", "n"]
empty = "none"

[stream.fields]
n = { is = "whole", unit = "notes" }
file = { of = "file", is = "word" }
folder = { of = "folder", is = "word" }
list = { of = "member", is = "word" }
tags = { is = "names", split = "|", empty = "-" }
people = { from = "/with/*/name", is = "names" }
length = { is = "duration" }
"""


def test_what_a_row_stands_in_and_what_stands_for_nothing(tmp_path: Path) -> None:
    rows = [
        {"n": 1, "tags": "a b|c", "with": [{"name": "Ada"}, {}], "length": "1:02:03.5"},
        {"n": 2, "tags": ["d"], "with": [], "length": "PT1H3S"},
        {"n": 3, "tags": '["e", "f"]', "with": None, "length": "02:03"},
        {"n": 4, "tags": "-", "with": "none", "length": 7},
        {"n": 5, "tags": "[g", "length": "none"},
        {"n": 6, "tags": "h", "length": "1h"},
    ]
    body = json.dumps({"by": {"Ada": {"list": rows}, "Bo": {"list": [{"n": 1}]}}}).encode()
    read = items(source(AROUND), {"deep/down/day.json": body}, tmp_path)
    found = records(read)
    assert {(r["file"], r["folder"], r["list"]) for r in found} == {
        ("day", "down", "Ada"),
        ("day", "down", "Bo"),
    }
    assert [r.get("tags") for r in found] == [
        ["a b", "c"],
        ["d"],
        ["e", "f"],
        None,
        ["[g"],
        ["h"],
        None,
    ]
    assert [r.get("people") for r in found] == [["Ada"], *[None] * 6]
    assert [r["length"] for r in found] == [3723.5, 3603, 123, 7, None, None, None]
    assert codes(read) == ["no_value"]
    (stream,) = source(AROUND).declaration["streams"]
    assert stream["schema"]["properties"]["length"]["x_pdpp_unit"] == "s"
    assert stream["query"]["aggregations"]["sum"] == ["n", "length"]


def test_an_entry_without_a_key_costs_neither_its_row_nor_the_others_in_it(tmp_path: Path) -> None:
    keyed = NESTED.replace('rows = "/lines"', 'rows = "/lines"\nkey = ["article"]\nrepeats = true')
    lines = [{"article": {"name": "tea"}}, {"pieces": 2}, {"article": {"name": "rye"}}]
    body = json.dumps({"shop": {"a": {"orders": [{"no": 1, "lines": lines}]}}}).encode()
    read = items(source(keyed), {"orders.json": body}, tmp_path)
    assert [r.get("article") for r in records(read)] == [None, "tea", "rye"]
    assert codes(read) == ["bad_record"]


def test_a_file_without_the_name_of_its_rows_is_not_searched_for_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("its places are searched")

    recipe = source(AROUND.replace("/by/*/list", "/a/notes"))
    with open_export(as_folder({"a.json": b'{"a": {"notes": [{"n": 1}]}}'}, tmp_path / "a")) as own:
        assert recipe.recognize(own)
    monkeypatch.setattr(recipe_rows, "json_places", refuse)
    with open_export(as_folder({"a.json": b'{"places": [{"n": 1}]}'}, tmp_path / "b")) as other:
        assert recipe.recognize(other) is None
