"""What a schema counts, dates and groups: of what is visible, and only where it is asked for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from pdpp_kernel.values import NANOSECONDS, render_instant
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.stored import CollectionRun, RunStatus
from personal_server.enforcement.queries import SchemaQuery
from personal_server.reading import schema
from server.tests.reading.search.test_meaning import MODEL, Embedder, embed
from server.tests.resource_server.door import NOW_NS, Door
from server.tests.resource_server.journal import (
    DIARY,
    LETTERS,
    NARROW,
    OWNER,
    client,
    furnished,
    grant,
    package,
    stream_grant,
)


def row(door: Door, query: str, authority: ReadAuthority) -> dict[str, Any]:
    reply = door.get(f"/v1/schema?{query}", authority)
    return reply.body["connectors"][0]["streams"][0]


def test_a_package_has_an_entry_per_member_grant(door: Door) -> None:
    authority = package(
        grant(stream_grant(instance_ids=(DIARY,))),
        grant(stream_grant("volumes", (LETTERS,)), grant_id="grt_2"),
    )
    body = door.get("/v1/schema", authority).body
    assert [c["grant_id"] for c in body["connectors"]] == ["grt_1", "grt_2"]
    assert body["bearer"]["grant_package_id"] == "gpkg_1"
    assert body["bearer"]["grant_ids"] == ["grt_1", "grt_2"]
    assert body["meta"]["package"] == {"member_count": 2, "partial": False}
    connections = body["connectors"][0]["streams"][0]["granted_connections"]
    assert connections == [
        {"connection_id": DIARY, "display_name": "Paper diary", "grant_id": "grt_1"}
    ]


def test_streams_count_visible_records_only(door: Door) -> None:
    authority = client(stream_grant(since="2026-02-01T10:00:00Z"))
    rows = door.get("/v1/streams", authority).data
    assert [(r["connection_id"], r["record_count"]) for r in rows] == [(DIARY, 2), (LETTERS, 2)]
    assert {r["last_updated"] for r in rows} == {"2026-05-01T00:00:00.000Z"}
    none = client(stream_grant(since="2036-02-01T10:00:00Z"))
    assert [r["last_updated"] for r in door.get("/v1/streams", none).data] == [None, None]
    assert rows[0]["display_name"] == "Paper diary"
    assert "display_name" not in rows[1]


def test_freshness_follows_runs_and_the_declared_limit(door: Door) -> None:
    def freshness() -> dict[str, Any]:
        target = f"/v1/streams?connection_id={DIARY}"
        return door.get(target, client()).data[0]["freshness"]

    assert freshness()["status"] == "stale"
    door.store.record_run(
        DIARY, CollectionRun("r1", RunStatus.SUCCEEDED, NOW_NS - 3_600 * NANOSECONDS)
    )
    assert freshness()["status"] == "current"
    door.store.record_run(DIARY, CollectionRun("r2", RunStatus.FAILED, NOW_NS))
    found = freshness()
    assert found["status"] == "stale"
    assert found["captured_at"] < found["last_attempted_at"]


def glance_of(door: Door, authority: ReadAuthority, query: str = "") -> dict[str, Any]:
    return row(door, f"view=compact{query}", authority)["visible"]


@pytest.mark.parametrize("query", ["", "&stream=entries"])
def test_a_compact_row_counts_and_dates_what_is_visible(query: str) -> None:
    door = Door(furnished())
    narrow = client(stream_grant(fields=NARROW, since="2026-02-01T10:00:00Z"))
    listed = door.get("/v1/streams/entries/records?limit=100&connection_id=" + DIARY, narrow).data
    listed += door.get(
        "/v1/streams/entries/records?limit=100&connection_id=" + LETTERS, narrow
    ).data
    times = sorted(each["data"]["created_at"] for each in listed)
    assert glance_of(door, narrow, query) == {
        "records": len(listed),
        "time_field": "created_at",
        "earliest": times[0],
        "latest": times[-1],
    }
    one = glance_of(door, narrow, f"{query}&connection_id={LETTERS}")
    assert one["records"] == sum(each["connection_id"] == LETTERS for each in listed)


def test_a_time_that_is_not_granted_dates_nothing(door: Door) -> None:
    assert glance_of(door, client(stream_grant(fields=("id", "title")))) == {"records": 5}


def test_records_are_counted_to_a_bound(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, bounded = client(), client(stream_grant(since="2020-01-01T00:00:00Z"))
    for bound, shown in ((5, {"records": 5}), (4, {"records": 4, "more": True})):
        monkeypatch.setattr(schema, "COUNTED_RECORDS", bound)
        for authority in (whole, bounded):
            found = glance_of(door, authority)
            assert {name: found[name] for name in ("records", "more") if name in found} == shown


def test_the_oldest_of_the_last_collections_is_shown() -> None:
    door = Door(furnished())
    door.store.record_run(DIARY, CollectionRun("r1", RunStatus.SUCCEEDED, NOW_NS - 5 * NANOSECONDS))
    assert "collected_at" not in glance_of(door, client())
    door.store.record_run(LETTERS, CollectionRun("r2", RunStatus.SUCCEEDED, NOW_NS - NANOSECONDS))
    assert glance_of(door, client())["collected_at"] == render_instant(NOW_NS - 5 * NANOSECONDS)


def test_many_streams_are_counted_one_at_a_time(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert schema.MOST_ROWS_WITH_FIGURES == 24  # docs/contract/resource-server.md 8
    connectors = door.get("/v1/schema?view=compact", OWNER).body["connectors"]
    rows = sum(len(each["streams"]) for each in connectors)
    monkeypatch.setattr(schema, "MOST_ROWS_WITH_FIGURES", rows)
    assert "visible" in row(door, "view=compact", OWNER)
    monkeypatch.setattr(schema, "MOST_ROWS_WITH_FIGURES", rows - 1)
    assert "visible" not in row(door, "view=compact", OWNER)
    assert glance_of(door, OWNER, f"&stream=entries&connection_id={DIARY}")["records"] > 0


def test_today_is_the_owners_day(door: Door) -> None:
    compact = door.get("/v1/schema?view=compact", client()).body
    noon = datetime.fromtimestamp(NOW_NS // NANOSECONDS, UTC)
    assert compact["today"] == {"date": noon.date().isoformat(), "time_zone": "UTC"}
    assert "today" not in door.get("/v1/schema", client()).body
    there = replace(door.ports, time_zone=lambda: "Pacific/Kiritimati")
    authority = client()
    query = SchemaQuery(compact=True)
    with there.snapshot(None) as snapshot:
        described = schema.describe_schema(there, snapshot, authority, query)
    assert described.today == (noon + timedelta(hours=14)).date()


ROW_OF = ("schema?view=compact", "schema", "schema?view=compact&stream=entries", "streams/entries")


def shown_row(door: Door, path: str, authority: ReadAuthority) -> dict[str, Any]:
    body = door.get(f"/v1/{path}", authority).body
    return body["connectors"][0]["streams"][0] if "connectors" in body else body


@pytest.mark.parametrize("path", ROW_OF)
def test_a_row_says_how_much_of_it_can_be_found_by_meaning(path: str) -> None:
    store = furnished()
    store.use_embedding_model(MODEL)
    door = Door(store, embedder=Embedder())

    def found(authority: ReadAuthority) -> tuple[object, object]:
        search = shown_row(door, path, authority)["search"]
        return search["semantic_fields"], search.get("embedded_percent")

    both, one = client(), client(stream_grant(instance_ids=(DIARY,)))
    # of the five entries one has no text, which needs no embedding
    assert (found(both), found(one)) == ((["body"], 20), (["body"], 0))
    embed(store, (DIARY,))
    assert (found(both), found(one)) == ((["body"], 80), (["body"], None))
    embed(store)
    assert found(both) == (["body"], None)
    assert found(client(stream_grant(fields=NARROW))) == ([], None)


@pytest.mark.parametrize("path", ROW_OF)
def test_without_the_model_that_embedded_it_a_row_is_found_by_words(path: str) -> None:
    class Another(Embedder):
        model = "another model"

    store = furnished()
    store.use_embedding_model(MODEL)
    embed(store)
    for embedder in (None, Another()):
        search = shown_row(Door(store, embedder=embedder), path, client())["search"]
        assert (search["modes"], search["semantic_fields"]) == (["lexical"], [])


def test_a_full_row_has_the_freshness_of_its_least_fresh_account(door: Door) -> None:
    for query in ("schema", "streams/entries"):
        assert shown_row(door, query, client())["freshness"]["status"] == "stale"
    for account, at in ((DIARY, NOW_NS - 5 * NANOSECONDS), (LETTERS, NOW_NS - NANOSECONDS)):
        door.store.record_run(account, CollectionRun("r1", RunStatus.SUCCEEDED, at))
    for query in ("schema", "streams/entries"):
        fresh = shown_row(door, query, client())["freshness"]
        assert fresh["status"] == "current"
        assert fresh["captured_at"] == render_instant(NOW_NS - 5 * NANOSECONDS)
    assert "freshness" not in shown_row(door, "schema?view=compact", client())
