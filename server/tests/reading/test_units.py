"""Amounts have their currency, and no figure runs over several of them in silence."""

import copy
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import QueryTimeout
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.declaration_document import parse_declaration
from personal_server.enforcement.authority import read_authority
from personal_server.enforcement.authorized_reads import units_plan
from personal_server.enforcement.plans import AggregatePlan
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    BANK,
    BANKING,
    CONNECTIONS,
    DIARY,
    JOURNAL_RAW,
    LIST,
    client,
    grant,
    member,
    resolved,
    stream_grant,
    write,
)
from tests.oracle.memory import MemoryStore

PLACE = "/v1/streams/entries/aggregate"
AMOUNT = "word_count"


def declared() -> Any:
    raw = copy.deepcopy(JOURNAL_RAW)
    entries = next(each for each in raw["streams"] if each["name"] == "entries")
    properties = entries["schema"]["properties"]
    properties["currency"] = {"type": ["string", "null"], "x_pdpp_type": "currency"}
    properties[AMOUNT]["x_pdpp_unit_field"] = "currency"
    properties["weight"] = {"type": "number", "x_pdpp_unit": "kg"}
    query = entries["query"]
    query["aggregations"]["sum"] = [AMOUNT, "weight"]
    query["aggregations"]["max"] = ["created_at", AMOUNT]
    query["range_filters"]["word_count"] = ["gte", "lte"]
    return parse_declaration(raw)


MONEY = declared()
EVERYTHING = tuple(MONEY.streams["entries"].properties)


def payment(number: int, amount: int | None, currency: str | None, title: str = "Rent") -> Any:
    at = f"2026-01-{number:02}T10:00:00Z"
    held = {"word_count": amount, "currency": currency, "weight": 2.5, "volume_id": title}
    return {"id": f"p{number}", "created_at": at, "body": "", **held}


def access(fields: Sequence[str] = EVERYTHING, **limits: Any) -> ReadAuthority:
    granted = stream_grant(fields=tuple(fields), instance_ids=(DIARY,), **limits)
    return client(granted, declared=MONEY)


@pytest.fixture
def paid(any_store: RecordStore) -> Door:
    rows = [
        payment(1, 10, "EUR"),
        payment(2, 20, "EUR", "Shop"),
        payment(3, 5000, "JPY", "Shop"),
        payment(4, None, "USD"),
    ]
    any_store.put_declaration(MONEY, orjson.dumps(MONEY.raw), 1)
    any_store.add_connection(CONNECTIONS[0])
    write(any_store, DIARY, "entries", rows, declared=MONEY)
    return Door(any_store)


def warned(reply: Any) -> Any:
    told = [w for w in reply.body["meta"]["warnings"] if w["code"].startswith(("mixed", "units"))]
    return [(w["code"], w["field"], w["detail"]) for w in told]


MIXED = [("mixed_currencies", AMOUNT, {"group_by": "currency", "unit_count": 2})]


@pytest.mark.parametrize("metric", ["sum", "avg", "max", "median", "p90"])
def test_a_figure_over_several_currencies_says_so(paid: Door, metric: str) -> None:
    asked = f"{PLACE}?metric={metric}&field={AMOUNT}"
    reply = paid.get(asked, access())
    assert warned(reply) == MIXED
    assert "unit" not in reply.body
    one = paid.get(f"{asked}&filter[currency]=EUR", access())
    assert (warned(one), one.body["unit"]) == ([], "EUR")


def test_a_figure_says_that_its_units_could_not_be_told_in_time(
    paid: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_long(*_: object) -> None:
        raise QueryTimeout("The read took too long.")

    monkeypatch.setattr("personal_server.reading.units.units_plan", too_long)
    reply = paid.get(f"{PLACE}?metric=sum&field={AMOUNT}", access())
    assert warned(reply) == [("units_unknown", AMOUNT, {"group_by": "currency"})]
    assert "unit" not in reply.body


def test_values_without_a_currency_are_not_in_that_of_the_others(paid: Door) -> None:
    write(paid.store, DIARY, "entries", [payment(5, 7, None, "Rent")], declared=MONEY)
    asked = f"{PLACE}?metric=sum&field={AMOUNT}"
    rent = f"{asked}&filter[volume_id]=Rent"
    for unsaid in (paid.get(rent, access()), paid.get(f"{rent}&group_by=volume_id", access())):
        assert warned(unsaid) == [("units_unknown", AMOUNT, {"group_by": "currency"})]
        assert "unit" not in unsaid.body
    assert warned(paid.get(f"{rent}&group_by=currency", access())) == []
    assert warned(paid.get(f"{LIST}?sort={AMOUNT}&filter[volume_id]=Rent", access())) == [
        ("units_unknown", AMOUNT, {"group_by": "currency"})
    ]
    page = paid.get(f"{LIST}?fields={AMOUNT}&filter[volume_id]=Rent", access())
    assert warned(page) == [("units_unknown", AMOUNT, {"add_field": "currency"})]
    assert "units" not in page.body["meta"]
    assert warned(paid.get(asked, access())) == MIXED
    assert warned(paid.get(f"{asked}&filter[id]=p5", access())) == []


def test_groups_have_the_currency_that_all_their_values_have(paid: Door) -> None:
    asked = f"{PLACE}?metric=sum&field={AMOUNT}&group_by=volume_id"
    reply = paid.get(asked, access())
    assert warned(reply) == MIXED
    units = {group["key"]: group.get("unit") for group in reply.body["groups"]}
    assert units == {"Rent": "EUR", "Shop": None}
    split = paid.get(f"{PLACE}?metric=sum&field={AMOUNT}&group_by=currency", access())
    assert warned(split) == []
    assert {each["key"]: each["value"] for each in split.body["groups"]} == {
        "EUR": 30,
        "JPY": 5000,
        "USD": 0,
    }


def test_what_groups_by_currency_leave_out_is_no_one_sum(paid: Door) -> None:
    asked = f"{PLACE}?metric=sum&field={AMOUNT}&group_by=currency"
    one = paid.get(f"{asked}&limit=1", access()).body
    assert (one["other_count"], "other_value" in one) == (3, False)
    two = paid.get(f"{asked}&limit=2", access()).body
    assert (len(two["groups"]), two["other_value"]) == (2, 0)
    rent = paid.get(f"{asked[:-8]}volume_id&limit=1&filter[currency]=EUR", access()).body
    assert (rent["other_value"], rent["unit"]) == (10, "EUR")


def test_a_unit_of_all_values_stands_beside_figure_groups_and_rows(paid: Door) -> None:
    assert paid.get(f"{PLACE}?metric=sum&field=weight", access()).body["unit"] == "kg"
    grouped = paid.get(f"{PLACE}?metric=sum&field=weight&group_by=volume_id", access()).body
    assert {each["unit"] for each in grouped["groups"]} == {"kg"}
    assert paid.get(f"{LIST}?fields=weight", access()).body["meta"]["units"] == {"weight": "kg"}


def test_counts_have_no_unit(paid: Door) -> None:
    reply = paid.get(f"{PLACE}?metric=count_distinct&field=volume_id", access())
    assert (warned(reply), "unit" in reply.body) == ([], False)


def test_an_order_by_amounts_in_several_currencies_says_so(paid: Door) -> None:
    reply = paid.get(f"{LIST}?sort=-{AMOUNT}", access())
    assert warned(reply) == MIXED
    assert warned(paid.get(LIST, access())) == []
    assert warned(paid.get(f"{LIST}?sort={AMOUNT}&filter[volume_id]=Rent", access())) == []


def test_rows_without_their_currency_have_it_beside_them_or_the_way_to_it(paid: Door) -> None:
    rent = paid.get(f"{LIST}?fields={AMOUNT}&filter[volume_id]=Rent", access())
    assert rent.body["meta"]["units"] == {AMOUNT: "EUR"}
    assert {field for each in rent.disclosed for field in each.fields} >= {"currency"}
    assert sum(each.record_count for each in rent.disclosed) == len(rent.body["data"])
    every = paid.get(f"{LIST}?fields={AMOUNT}", access())
    assert warned(every) == [
        ("mixed_currencies", AMOUNT, {"add_field": "currency", "unit_count": 2})
    ]
    assert "units" not in paid.get(f"{LIST}?fields={AMOUNT},currency", access()).body["meta"]


def test_a_hit_says_what_was_paid_and_that_is_logged(paid: Door) -> None:
    write(paid.store, DIARY, "entries", [payment(5, -7, "EUR") | {"body": "rain"}], declared=MONEY)
    reply = paid.get("/v1/search?q=rain", access())
    assert [hit["amount"] for hit in reply.data] == ["-7 EUR"]
    assert {AMOUNT, "currency"} <= {name for each in reply.disclosed for name in each.fields}
    unnamed = [name for name in EVERYTHING if name != "currency"]
    blind = paid.get("/v1/search?q=rain", access(unnamed))
    assert "amount" not in blind.data[0]
    assert AMOUNT not in {name for each in blind.disclosed for name in each.fields}


def test_neither_hidden_records_nor_hidden_fields_tell_of_a_currency(paid: Door) -> None:
    blind = access([name for name in EVERYTHING if name != "currency"])
    for asked in (f"{PLACE}?metric=sum&field={AMOUNT}", f"{LIST}?sort={AMOUNT}"):
        assert warned(paid.get(asked, blind)) == []
        assert warned(paid.get(asked, access(until="2026-01-03T00:00:00Z"))) == []
        assert warned(paid.get(asked, access(resources=("p1", "p2")))) == []
    early = access(until="2026-01-03T00:00:00Z")
    assert paid.get(f"{PLACE}?metric=sum&field={AMOUNT}", early).body["unit"] == "EUR"


def test_a_message_names_no_currency(paid: Door) -> None:
    reply = paid.get(f"{PLACE}?metric=sum&field={AMOUNT}", access())
    (said,) = [w for w in reply.body["meta"]["warnings"] if w["code"] == "mixed_currencies"]
    assert not any(code in str(said) for code in ("EUR", "JPY", "USD"))


@pytest.mark.parametrize(
    ("metric", "over"), [("sum", 3), ("avg", 3), ("median", 3), ("p90", 3), ("max", None)]
)
def test_sums_means_and_percentiles_say_over_how_many_values(
    paid: Door, metric: str, over: int | None
) -> None:
    reply = paid.get(f"{PLACE}?metric={metric}&field={AMOUNT}", access())
    assert (reply.body.get("value_count"), reply.body["filtered_record_count"]) == (over, 4)
    grouped = paid.get(f"{PLACE}?metric={metric}&field={AMOUNT}&group_by=volume_id", access())
    counts = {each["key"]: each.get("value_count") for each in grouped.body["groups"]}
    assert counts == ({"Rent": 1, "Shop": 2} if over else {"Rent": None, "Shop": None})


def test_figures_over_accounts_that_measure_in_different_units_say_so() -> None:
    raw = copy.deepcopy(MONEY.raw)
    raw["source"]["id"], raw["connector_key"] = BANKING.source_id, "banking"
    entries = next(each for each in raw["streams"] if each["name"] == "entries")
    entries["schema"]["properties"]["weight"]["x_pdpp_unit"] = "lb"
    pounds, store = parse_declaration(raw), MemoryStore()
    for declaration, account in ((MONEY, CONNECTIONS[0]), (pounds, CONNECTIONS[2])):
        store.put_declaration(declaration, orjson.dumps(declaration.raw), 1)
        store.add_connection(account)
        rows = [payment(1, 10, "EUR")]
        write(store, account.connection_id, "entries", rows, declared=declaration)
    fields = tuple(pounds.streams["entries"].properties)
    grants = [
        grant(stream_grant(fields=fields, instance_ids=(connection_id,)), grant_id=name, key=key)
        for connection_id, name, key in ((DIARY, "grt_1", "journal"), (BANK, "grt_2", "banking"))
    ]
    members = (member(grants[0]), replace(member(grants[1]), connector_key="banking"))
    declared = {"journal": MONEY, "banking": pounds}
    authority = read_authority(resolved("mcp_package", *members), CONNECTIONS, declared)
    door = Door(store)
    asked = f"{PLACE}?metric=sum&field=weight"
    both = [("mixed_units", "weight", {"group_by": "connection_id", "unit_count": 2})]
    assert warned(door.get(f"{asked}&across=connections", authority)) == both
    for connection_id, unit in ((DIARY, "kg"), (BANK, "lb")):
        one = door.get(f"{asked}&connection_id={connection_id}", authority)
        assert (warned(one), one.body["unit"]) == ([], unit)


def test_groups_whose_units_could_not_be_told_in_time_have_none(
    paid: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole_only(*asked: Any) -> AggregatePlan:
        if len(asked) > 3:
            raise QueryTimeout("The read took too long.")
        return units_plan(*asked)

    asked = f"{PLACE}?metric=sum&field={AMOUNT}&group_by=volume_id"
    units = [group.get("unit") for group in paid.get(asked, access()).body["groups"]]
    assert sorted(units, key=str) == ["EUR", None]
    monkeypatch.setattr("personal_server.reading.units.units_plan", whole_only)
    reply = paid.get(asked, access())
    assert warned(reply) == MIXED
    assert [group.get("unit") for group in reply.body["groups"]] == [None, None]


@pytest.mark.parametrize(("most", "is_told"), [(3, True), (2, False)])
def test_groups_of_more_units_than_are_counted_have_none(
    paid: Door, monkeypatch: pytest.MonkeyPatch, most: int, *, is_told: bool
) -> None:
    """A group might have a unit that is not told."""
    monkeypatch.setattr("personal_server.enforcement.authorized_reads.MOST_UNITS", most)
    asked = f"{PLACE}?metric=sum&field={AMOUNT}&group_by=volume_id"
    groups = paid.get(asked, access()).body["groups"]
    assert any("unit" in group for group in groups) is is_told


def test_what_is_grouped_by_its_unit_needs_no_second_look(
    paid: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def counted(*asked: Any) -> AggregatePlan:
        looks.append(len(asked))
        return units_plan(*asked)

    monkeypatch.setattr("personal_server.reading.units.units_plan", counted)
    for grouped, expected in (
        ("currency", [3]),
        ("volume_id", [3, 4]),
        ("volume_id&filter[currency]=EUR", [3]),
        ("volume_id&then_by=currency", [3]),
    ):
        looks.clear()
        asked = f"{PLACE}?metric=sum&field={AMOUNT}&group_by={grouped}"
        assert paid.get(asked, access()).status == 200
        assert looks == expected
