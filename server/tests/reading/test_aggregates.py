import dataclasses
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import ValueKind
from personal_server.domain.authority import ReadableSource, ReadAuthority
from server.tests.resource_server.door import Door
from server.tests.resource_server.journal import (
    BANK,
    DIARY,
    LETTERS,
    NARROW,
    client,
    furnished,
    grant,
    package,
    stream_grant,
    write,
)

PLACE = "/v1/streams/entries/aggregate"
TIMES = f"{PLACE}?metric=count&group_by_time=created_at&granularity"


def value(door: Door, query: str) -> Any:
    return door.get(f"{PLACE}?{query}", client()).body["value"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("metric=count", 5),
        ("metric=count&filter[pinned]=true", 2),
        ("metric=sum&field=word_count", 35),
        ("metric=sum&field=word_count&filter[title]=zzz", 0),
        ("metric=min&field=created_at", "2026-01-01T10:00:00Z"),
        ("metric=max&field=created_at", "2026-04-01T10:00:00Z"),
        ("metric=max&field=created_at&filter[title]=zzz", None),
        ("metric=count_distinct&field=volume_id", 1),
    ],
)
def test_metrics_are_exact_over_all_connections(door: Door, query: str, expected: object) -> None:
    assert value(door, query) == expected


def test_an_ungrouped_answer_has_a_value_and_no_groups(door: Door) -> None:
    body = door.get(f"{PLACE}?metric=count", client()).body
    assert body["approximate"] is False
    assert body["filtered_record_count"] == 5
    assert not {"groups", "limit", "other_count", "group_count", "connection_id"} & set(body)


def test_groups_come_by_count_with_the_null_group_last_among_equals(door: Door) -> None:
    body = door.get(f"{PLACE}?metric=count&group_by=pinned", client()).body
    assert body["groups"] == [
        {"key": True, "count": 2},
        {"key": None, "count": 2},
        {"key": False, "count": 1},
    ]
    short = door.get(f"{PLACE}?metric=count&group_by=pinned&limit=1", client()).body
    assert (short["group_count"], short["other_count"], short["limit"]) == (3, 3, 1)


def test_other_metrics_may_be_grouped(door: Door) -> None:
    body = door.get(f"{PLACE}?metric=sum&field=word_count&group_by=pinned&limit=1", client()).body
    assert body["groups"] == [{"key": False, "count": 1, "value": 20, "value_count": 1}]
    assert (body["other_count"], body["other_value"]) == (4, 15)


def test_the_newest_buckets_are_kept_in_ascending_order(door: Door) -> None:
    body = door.get(f"{TIMES}=month&limit=2", client()).body
    assert [group["key"] for group in body["groups"]] == ["2026-03-01", "2026-04-01"]
    assert (body["group_count"], body["other_count"]) == (4, 3)


@pytest.mark.parametrize(
    ("grouping", "limit"),
    [("group_by=pinned", 10), ("group_by_time=created_at&granularity=month", 100)],
)
def test_a_year_of_months_is_whole_without_a_limit(door: Door, grouping: str, limit: int) -> None:
    assert door.get(f"{PLACE}?metric=count&{grouping}", client()).body["limit"] == limit


def test_a_repeated_hour_gives_two_buckets() -> None:
    door = Door(furnished())
    moments = ("2026-10-25T00:10:00Z", "2026-10-25T00:50:00Z", "2026-10-25T01:30:00Z")
    records = [{"id": f"t{i}", "created_at": at} for i, at in enumerate(moments)]
    write(door.store, DIARY, "entries", records)
    target = f"{TIMES}=hour&time_zone=Europe/Rome&filter[created_at][gte]=2026-10-25"
    assert door.get(target, client()).body["groups"] == [
        {"key": "2026-10-25T02:00", "start": "2026-10-25T02:00:00+02:00", "count": 2},
        {"key": "2026-10-25T02:00", "start": "2026-10-25T02:00:00+01:00", "count": 1},
    ]


@pytest.mark.parametrize(
    ("granularity", "key"),
    [
        ("minute", "2026-01-01T10:00"),
        ("hour", "2026-01-01T10:00"),
        ("day", "2026-01-01"),
        ("week", "2025-12-29"),
        ("month", "2026-01-01"),
        ("quarter", "2026-01-01"),
        ("year", "2026-01-01"),
    ],
)
def test_buckets_are_named_by_their_beginning(door: Door, granularity: str, key: str) -> None:
    body = door.get(f"{TIMES}={granularity}&filter[title]=Rain", client()).body
    assert body["groups"][0]["key"] == key


def groups(door: Door, query: str, authority: Any = None) -> list[Any]:
    return door.get(f"{PLACE}?{query}", authority or client()).body["groups"]


def test_averages_and_percentiles_are_exact(door: Door) -> None:
    asked = {name: value(door, f"metric={name}&field=word_count") for name in ("avg", "median")}
    assert asked == {"avg": 35 / 3, "median": 10}
    percentiles = [value(door, f"metric=p{n}&field=word_count") for n in (10, 25, 75, 99)]
    assert percentiles == [5, 5, 20, 20]
    assert value(door, "metric=median&field=word_count&filter[pinned]=true") == 7.5
    assert value(door, "metric=avg&field=word_count&filter[title]=zzz") is None


def test_an_answer_says_by_what_it_is_grouped(door: Door) -> None:
    def named(query: str) -> dict[str, Any]:
        body = door.get(f"{PLACE}?metric=count&{query}", client()).body
        names = ("group_by", "then_by", "group_by_time", "granularity", "sort")
        return {name: body[name] for name in names if body.get(name) is not None}

    assert named("") == {}
    assert named("group_by=pinned&sort=key") == {"group_by": "pinned", "sort": "key"}
    two = "group_by=pinned&then_by=volume_id"
    assert named(two) == {"group_by": "pinned", "then_by": "volume_id"}
    timed = {"group_by_time": "created_at", "granularity": "month"}
    assert named("group_by_time=created_at&granularity=month") == timed


def test_groups_have_two_sides(door: Door) -> None:
    assert groups(door, "metric=count&group_by=pinned&then_by=volume_id&limit=2") == [
        {"key": None, "then": None, "count": 2},
        {"key": False, "then": "v1", "count": 1},
    ]
    by_month = "metric=count&group_by=pinned&group_by_time=created_at&granularity=month&limit=3"
    assert groups(door, by_month) == [
        {"key": False, "then": "2026-02-01", "start": "2026-02-01T00:00:00+00:00", "count": 1},
        {"key": None, "then": "2026-03-01", "start": "2026-03-01T00:00:00+00:00", "count": 1},
        {"key": None, "then": "2026-04-01", "start": "2026-04-01T00:00:00+00:00", "count": 1},
    ]


def test_hours_and_weekdays_come_round_in_the_zone_asked_for(door: Door) -> None:
    assert groups(door, f"{TIMES.partition('?')[2]}=hour_of_day&time_zone=Asia/Kolkata") == [
        {"key": "15:00", "count": 5}
    ]
    assert groups(door, f"{TIMES.partition('?')[2]}=weekday&sort=value") == [
        {"key": "wednesday", "count": 1},
        {"key": "thursday", "count": 1},
        {"key": "sunday", "count": 3},
    ]


def test_a_histogram_has_steps_of_a_number(door: Door) -> None:
    body = door.get(f"{PLACE}?metric=count&group_by=word_count&bin=15", client()).body
    assert (body["bin"], body["limit"]) == (15, 100)
    assert body["groups"] == [
        {"key": 0, "until": 15, "count": 2},
        {"key": 15, "until": 30, "count": 1},
        {"key": None, "until": None, "count": 2},
    ]
    assert door.get(f"{PLACE}?metric=count&group_by=word_count&bin=0", client()).body["bin"] == 1


def test_groups_stand_in_the_order_asked_for(door: Door) -> None:
    query = "metric=count&group_by=word_count&sort"
    assert [g["key"] for g in groups(door, f"{query}=-key")] == [20, 10, 5, None]
    assert [g["key"] for g in groups(door, f"{query}=value&limit=2")] == [10, 20]
    assert [g["key"] for g in groups(door, f"{TIMES.partition('?')[2]}=month&sort=-key")][:2] == [
        "2026-04-01",
        "2026-03-01",
    ]


def test_words_narrow_what_is_counted(door: Door) -> None:
    assert value(door, "metric=count&q=rain") == 3
    assert value(door, "metric=sum&field=word_count&q=%22heavy+rain%22") == 10
    narrow = client(stream_grant(fields=("id", "title", "created_at")))
    assert door.get(f"{PLACE}?metric=count&q=rain", narrow).body["value"] == 2
    blind = client(stream_grant(fields=("id", "created_at")))
    refused = door.get(f"{PLACE}?metric=count&q=rain", blind)
    assert (refused.code, refused.error["param"]) == ("invalid_request", "q")


def test_a_connection_is_a_group_with_its_name(door: Door) -> None:
    assert groups(door, "metric=count&group_by=connection_id") == [
        {"key": DIARY, "label": "Paper diary", "count": 3},
        {"key": LETTERS, "count": 2},
    ]


def test_a_package_may_ask_across_its_connections(door: Door) -> None:
    authority = package(
        grant(stream_grant()),
        grant(stream_grant(instance_ids=(BANK,), fields=NARROW), grant_id="grt_2", key="banking"),
    )
    refused = door.get(f"{PLACE}?metric=count", authority)
    assert refused.code == "ambiguous_connection"
    assert refused.body["error"]["recovery"] == {"across": "connections"}
    assert door.get(f"{PLACE}?metric=count&across=connections", authority).body["value"] == 6
    body = door.get(f"{PLACE}?metric=sum&field=word_count&across=connections", authority).body
    assert body["value"] == 35
    assert [w["connection_id"] for w in body["meta"]["warnings"]] == [BANK]
    nobody = door.get(f"{PLACE}?metric=sum&field=nowhere&across=connections", authority)
    assert nobody.code == "unknown_field"


def test_connections_that_declare_a_field_otherwise_are_left_out(door: Door) -> None:
    authority = package(
        grant(stream_grant()),
        grant(stream_grant(instance_ids=(BANK,)), grant_id="grt_2", key="banking"),
    )
    query = "metric=count&group_by=word_count&across=connections"
    assert sum(group["count"] for group in groups(door, query, authority)) == 6
    counted = with_property(authority, LETTERS, "word_count", kind=ValueKind.STRING)
    reply = door.get(f"{PLACE}?{query}", counted)
    assert sum(group["count"] for group in reply.body["groups"]) == 4
    assert [w["detail"]["reason"] for w in reply.body["meta"]["warnings"]] == ["declared_otherwise"]


def with_property(
    authority: ReadAuthority, connection_id: str, name: str, **changed: Any
) -> ReadAuthority:
    """As if the source of a connection declared a property otherwise."""

    def other(source: ReadableSource) -> ReadableSource:
        if source.connection_id != connection_id:
            return source
        properties = dict(source.declared.properties)
        properties[name] = replace(properties[name], **changed)
        return dataclasses.replace(source, declared=replace(source.declared, properties=properties))

    return dataclasses.replace(
        authority, sources=tuple(other(source) for source in authority.sources)
    )


def test_an_id_is_labelled_where_the_name_is_granted(door: Door) -> None:
    shown = groups(door, "metric=count&group_by=volume_id", labelled(client()))
    assert shown == [{"key": None, "count": 3}, {"key": "v1", "label": "Rain", "count": 2}]
    hidden = labelled(client(stream_grant(fields=("id", "volume_id", "created_at"))))
    assert groups(door, "metric=count&group_by=volume_id", hidden)[1] == {"key": "v1", "count": 2}


def test_whoever_groups_by_a_label_is_told_what_it_labels(door: Door) -> None:
    query = f"{PLACE}?metric=count&group_by=title"
    refused = door.get(query, labelled(client()))
    assert (refused.code, refused.error["recovery"]) == (
        "invalid_request",
        {"group_by": "volume_id"},
    )
    assert "recovery" not in door.get(query, client()).error
    hidden = labelled(client(stream_grant(fields=("id", "title", "created_at"))))
    assert "recovery" not in door.get(query, hidden).error


def labelled(authority: ReadAuthority, **said: str) -> ReadAuthority:
    """As if the declaration said that the title of an entry is how people see its volume."""
    schema = {"type": "string", **(said or {"x_pdpp_label_field": "title"})}
    for connection_id in (DIARY, LETTERS):
        authority = with_property(authority, connection_id, "volume_id", schema=schema)
    return authority


def test_a_group_is_marked_where_all_of_it_says_the_same(door: Door) -> None:
    marked = labelled(client(), x_pdpp_mark_field="title")
    alone = groups(door, "metric=count&group_by=volume_id&filter[title]=Rain", marked)
    assert alone == [{"key": "v1", "label": "v1 (Rain)", "count": 1}]
    mixed = groups(door, "metric=count&group_by=volume_id", marked)
    assert mixed == [{"key": None, "count": 3}, {"key": "v1", "count": 2}]


def test_a_record_is_in_the_group_of_all_that_it_lists(door: Door) -> None:
    listed = groups(door, "metric=count&group_by=labels")
    assert listed == [{"key": None, "count": 4}, {"key": "wet", "count": 1}]
    summed = groups(door, "metric=sum&field=word_count&group_by=pinned&then_by=labels&sort=key")
    assert {"key": True, "then": "wet", "count": 1, "value": 10, "value_count": 1} in summed
    hidden = client(stream_grant(fields=("id", "title", "created_at")))
    assert door.get(f"{PLACE}?metric=count&group_by=labels", hidden).code == "field_not_granted"
    stepped = door.get(f"{PLACE}?metric=count&group_by=labels&bin=1", client())
    assert (stepped.code, stepped.error["param"]) == ("invalid_request", "bin")


def test_a_single_source_is_named(door: Door) -> None:
    one = door.get(f"{PLACE}?metric=count&connection_id={LETTERS}", client()).body
    assert (one["connection_id"], one["connector_key"]) == (LETTERS, "journal")
    packaged = door.get(
        f"{PLACE}?metric=count&connection_id={DIARY}", package(grant(stream_grant()))
    )
    assert packaged.body["grant_id"] == "grt_1"


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ("", "invalid_request", "metric"),
        ("metric=mode", "invalid_request", "metric"),
        ("metric=count&field=id", "invalid_request", "field"),
        ("metric=sum", "invalid_request", "field"),
        ("metric=sum&field=title", "invalid_request", "field"),
        ("metric=sum&field=nowhere", "unknown_field", "field"),
        ("metric=count&group_by=title", "invalid_request", "group_by"),
        ("metric=count&group_by=nowhere", "unknown_field", "group_by"),
        ("metric=avg", "invalid_request", "field"),
        ("metric=p90&field=created_at", "invalid_request", "field"),
        ("metric=count&then_by=pinned", "invalid_request", "then_by"),
        ("metric=count&group_by=pinned&then_by=pinned", "invalid_request", "then_by"),
        ("metric=count&group_by=pinned&then_by=title", "invalid_request", "then_by"),
        (
            "metric=count&group_by=pinned&then_by=volume_id&group_by_time=created_at",
            "invalid_request",
            "then_by",
        ),
        ("metric=count&bin=5", "invalid_request", "bin"),
        ("metric=count&group_by=pinned&bin=5", "invalid_request", "bin"),
        ("metric=count&group_by=connection_id&bin=5", "invalid_request", "bin"),
        ("metric=count&group_by=word_count&bin=-1", "invalid_request", "bin"),
        ("metric=count&group_by=word_count&bin=wide", "invalid_request", "bin"),
        ("metric=count&sort=key", "invalid_request", "sort"),
        ("metric=count&group_by=pinned&sort=name", "invalid_request", "sort"),
        ("metric=count&q=", "invalid_request", "q"),
        ("metric=count&q=%2E", "invalid_request", "q"),
        ("metric=count&across=sources", "invalid_request", "across"),
        (f"metric=count&across=connections&connection_id={DIARY}", "invalid_request", "across"),
        ("metric=count&group_by_time=created_at", "invalid_request", "granularity"),
        (
            "metric=count&group_by_time=created_at&granularity=decade",
            "invalid_request",
            "granularity",
        ),
        ("metric=count&group_by_time=title&granularity=day", "invalid_request", "group_by_time"),
        ("metric=count&granularity=day", "invalid_request", "granularity"),
        ("metric=count&time_zone=Mars/Base", "invalid_request", "time_zone"),
        (
            "metric=count&group_by_time=created_at&granularity=day&time_zone=../UTC",
            "invalid_request",
            "time_zone",
        ),
        ("metric=count&limit=0", "invalid_request", "limit"),
        ("metric=count&limit=101", "invalid_request", "limit"),
        ("metric=count&filter[nowhere]=1", "unknown_field", "filter[nowhere]"),
        ("metric=count&cursor=x", "invalid_request", "cursor"),
    ],
)
def test_bad_aggregates_name_the_parameter(door: Door, query: str, code: str, param: str) -> None:
    reply = door.get(f"{PLACE}?{query}", client())
    assert (reply.status, reply.code, reply.error["param"]) == (400, code, param)


@pytest.mark.parametrize(
    "query",
    [
        "metric=sum&field=word_count",
        "metric=count&group_by=pinned",
        "metric=count&filter[word_count]=1",
    ],
)
def test_hidden_fields_are_not_computed_with(door: Door, query: str) -> None:
    authority = client(stream_grant(fields=("id", "title", "created_at")))
    assert door.get(f"{PLACE}?{query}", authority).code == "field_not_granted"


def test_an_aggregate_discloses_the_fields_it_used(door: Door) -> None:
    reply = door.get(
        f"{PLACE}?metric=sum&field=word_count&group_by=pinned&filter[title]=Rain", client()
    )
    assert [(d.fields, d.record_count) for d in reply.disclosed] == [
        (("word_count", "pinned", "title"), 0),
        (("word_count", "pinned", "title"), 0),
    ]
