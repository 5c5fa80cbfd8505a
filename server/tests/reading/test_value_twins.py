"""A filter that finds something names what it misses by case, accents or blanks."""

import copy
from typing import Any

import orjson
import pytest

from pdpp_kernel.errors import QueryTimeout
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.declaration_document import parse_declaration
from personal_server.reading.value_twins import twins_of
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    client,
    stream_grant,
    write,
)

LIST, FIGURE = (
    "/v1/streams/entries/records?count=none",
    "/v1/streams/entries/aggregate?metric=count",
)
SHOPS = ["CAFE ROMA", "café roma", "Cafe  Roma", "Cafe Romana", "Café Roma"]


def declared() -> Any:
    raw = copy.deepcopy(JOURNAL_RAW)
    entries = next(each for each in raw["streams"] if each["name"] == "entries")
    entries["schema"]["properties"]["shop"] = {"type": "string"}
    entries["query"]["aggregations"]["group_by"] = ["pinned", "shop", "volume_id"]
    return parse_declaration(raw)


SHOPPING = declared()
EVERYTHING = tuple(SHOPPING.streams["entries"].properties)


def visit(number: int, shop: str) -> Any:
    at = f"2026-01-{number:02}T10:00:00Z"
    return {"id": f"s{number}", "body": "sunny", "created_at": at, "shop": shop, "volume_id": shop}


def access(**limits: Any) -> ReadAuthority:
    fields = limits.pop("fields", EVERYTHING)
    granted = stream_grant(fields=fields, instance_ids=(DIARY,), **limits)
    return client(granted, declared=SHOPPING)


@pytest.fixture
def door(any_store: RecordStore) -> Door:
    any_store.put_declaration(SHOPPING, orjson.dumps(SHOPPING.raw), 1)
    any_store.add_connection(CONNECTIONS[0])
    visits = [visit(n, shop) for n, shop in enumerate(["Netto", "NETTO", "Netto", "Nett o"], 1)]
    write(any_store, DIARY, "entries", visits, declared=SHOPPING)
    return Door(any_store)


def twins(door: Door, target: str, authority: ReadAuthority) -> Any:
    near = door.get(target, authority).body["meta"].get("near", [])
    assert all(each["twin"] is True for each in near)
    return sorted((each["field"], each["value"], each["count"]) for each in near)


def test_twins_differ_by_case_accents_and_blanks_alone() -> None:
    assert twins_of(["Cafe Roma"], SHOPS) == ["CAFE ROMA", "café roma", "Cafe  Roma", "Café Roma"]
    assert twins_of(["Cafe Roma"], SHOPS, caseless=True) == [
        "café roma",
        "Cafe  Roma",
        "Café Roma",
    ]
    assert twins_of(["Cafe Roma", "Café Roma"], ["Café Roma"]) == []
    assert twins_of([""], ["", " "]) == []


@pytest.mark.parametrize("place", [LIST, FIGURE])
def test_what_a_filter_finds_names_its_twins(door: Door, place: str) -> None:
    both = [("shop", "NETTO", 1), ("shop", "Nett o", 1)]
    assert twins(door, f"{place}&filter[shop]=Netto", access()) == both
    assert (
        twins(door, f"{place}&filter[shop][in]=Netto&filter[shop][in]=NETTO", access()) == both[1:]
    )
    early = f"{place}&filter[shop]=Netto&filter[created_at][lt]=2026-01-02"
    assert twins(door, early, access()) == []
    assert twins(door, f"{place}&filter[volume_id]=Netto", access()) == []


@pytest.mark.parametrize("place", [LIST, FIGURE])
def test_twins_follow_every_write(door: Door, place: str, any_store: RecordStore) -> None:
    target, before = f"{place}&filter[shop]=Netto", [("shop", "NETTO", 1), ("shop", "Nett o", 1)]
    assert twins(door, target, access()) == before
    write(any_store, DIARY, "entries", [visit(5, "netto"), visit(2, "Aldi")], declared=SHOPPING)
    assert twins(door, target, access()) == [("shop", "Nett o", 1), ("shop", "netto", 1)]
    narrow = access(resources=("s1", "s5"))
    assert twins(door, target, narrow) == [("shop", "netto", 1)]


def test_twins_that_were_not_found_in_time_are_looked_for_again(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(*_: object) -> None:
        raise QueryTimeout("The read took too long.")

    target = f"{LIST}&filter[shop]=Netto"
    with monkeypatch.context() as slow:
        slow.setattr("personal_server.reading.empty_answers.values_plan", too_long)
        assert twins(door, target, access()) == []
    assert twins(door, target, access()) == [("shop", "NETTO", 1), ("shop", "Nett o", 1)]


@pytest.mark.parametrize("place", [LIST, FIGURE])
def test_records_that_are_not_granted_have_no_twins(door: Door, place: str) -> None:
    target = f"{place}&filter[shop]=Netto"
    assert twins(door, target, access(until="2026-01-02T00:00:00Z")) == []
    assert twins(door, target, access(resources=("s1", "s3"))) == []
    assert twins(door, target, access(only={"shop": ("Netto",)})) == []


def test_a_figure_of_words_names_no_twins(door: Door) -> None:
    asked = f"{FIGURE}&filter[shop]=Netto"
    assert twins(door, asked, access()) != []
    assert door.get(f"{asked}&q=sunny", access()).body["meta"].get("near") is None
    assert twins(door, FIGURE, access()) == []


def test_a_field_whose_values_were_shown_is_logged(door: Door) -> None:
    reply = door.get(f"{LIST}&fields=id&filter[shop]=Netto", access(fields=EVERYTHING))
    assert {name for each in reply.disclosed for name in each.fields} >= {"shop"}
