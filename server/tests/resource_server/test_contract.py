"""What public PDPP clients and adapters depend on, line by line.

Source: docs/contract/resource-server.md 21.
"""

from __future__ import annotations

from typing import Any

import pytest

from personal_server.domain.grant import StreamGrant
from server.tests.resource_server.living import Living, since

pytestmark = pytest.mark.anyio

FIELDS = ("id", "volume_id", "title", "body", "word_count", "pinned", "created_at")
ENTRIES: list[dict[str, Any]] = [
    {
        "id": f"ent_{n}",
        "volume_id": "b1",
        "title": f"Rain {n}",
        "body": "walked home in heavy rain & wind until the lamps came on",
        "word_count": n,
        "pinned": n % 2 == 0,
        "created_at": f"2026-03-{n:02d}T21:40:00Z",
    }
    for n in range(1, 7)
]
READS = (
    "/v1/schema?view=compact",
    "/v1/schema?view=compact&stream=entries",
    "/v1/schema?view=compact&stream=entries&connection_id={cid}",
    "/v1/schema?detail=full&stream=entries&connection_id={cid}",
    "/v1/streams/entries/records?limit=2&order=asc&sort=created_at&count=exact",
    "/v1/streams/entries/records?fields=id&fields=title&filter[pinned]=true",
    "/v1/streams/entries/records?fields=id,title&filter[created_at][gte]=2026-03-02T00:00:00Z",
    "/v1/streams/entries/records?view=titles&connection_id={cid}",
    "/v1/streams/entries/records?expand=volume&expand=attachments&expand_limit[attachments]=3",
    "/v1/streams/entries/records?changes_since=beginning",
    "/v1/streams/entries/aggregate?metric=count&group_by=pinned&limit=5",
    "/v1/streams/entries/aggregate?metric=sum&field=word_count&filter[pinned]=true",
    "/v1/streams/entries/aggregate?metric=count&group_by_time=created_at&granularity=month"
    "&time_zone=Europe/Rome&connection_id={cid}",
    "/v1/search?q=rain&streams[]=entries&limit=2&connection_id={cid}",
    "/v1/search?q=rain&streams=entries&filter[pinned]=true",
    "/v1/streams/entries/records/ent_1?fields=id,title&connection_id={cid}",
    "/v1/streams/entries/records/ent_1?expand=attachments&expand_limit[attachments]=1",
    "/v1/streams/entries/records/ent_1/field-window?field=body&connection_id={cid}"
    "&offset_chars=0&limit_chars=5",
    "/v1/streams/entries/records/ent_1/field-window?field=body&q=rain&before_chars=4&after_chars=2",
)


@pytest.fixture
async def living() -> Living:
    made = Living()
    await made.declare_journal()
    cid = await made.connect(name="Paper diary")
    await made.ingest(cid, "entries", ENTRIES)
    await made.ingest(cid, "volumes", [{"id": "b1", "name": "Spring"}])
    made.grant(
        "client",
        StreamGrant("entries", (cid,), FIELDS, since("2026-01-01T00:00:00Z")),
        StreamGrant("volumes", (cid,), ("id", "name")),
        StreamGrant("attachments", (cid,), ("id", "entry_id", "filename")),
    )
    return made


async def connection(living: Living) -> str:
    async with living.client() as owner:
        return (await owner.get("/v1/owner/connections")).json()["data"][0]["connection_id"]


async def read(living: Living, path: str, token: str = "client") -> Any:  # noqa: S107 (a fake)
    async with living.client(token) as client:
        return await client.get(path, headers={"Accept": "application/json"})


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("token", ["client", "owner"])
async def test_the_calls_of_public_clients_work_as_written(
    living: Living, path: str, token: str
) -> None:
    answer = await read(living, path.format(cid=await connection(living)), token)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert answer.headers["pdpp-version"] == "2026-04-06"


@pytest.mark.parametrize("mode", ["semantic", "hybrid"])
async def test_absent_search_modes_name_those_that_exist(living: Living, mode: str) -> None:
    answer = await read(living, f"/v1/search/{mode}?q=rain&streams=entries&limit=2")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (400, "unsupported_search_mode")
    assert error["allowed_values"] == ["auto", "words"]


async def test_compact_schemas_lift_connections_and_flag_fields(living: Living) -> None:
    body = (await read(living, "/v1/schema?view=compact")).json()
    (connector,) = body["connectors"]
    rows = {row["name"]: row for row in connector["streams"]}
    assert body["detail"] == "compact"
    assert connector["granted_connections"][0]["display_name"] == "Paper diary"
    assert "granted_connections" not in rows["entries"]
    assert rows["entries"]["field_capabilities"]["title"].startswith("t=text,role=primary-title,eq")
    assert rows["entries"]["field_capabilities"]["labels"].endswith("g=false")


async def test_records_and_hits_carry_what_ids_are_built_from(living: Living) -> None:
    cid = await connection(living)
    record = (await read(living, "/v1/streams/entries/records?limit=1")).json()["data"][0]
    hit = (await read(living, "/v1/search?q=heavy+rain")).json()["data"][0]
    assert (record["connection_id"], record["connector_key"]) == (cid, "journal")
    assert record["record_id"] == record["id"]
    assert (hit["stream"], hit["connection_id"], hit["connector_key"]) == (
        "entries",
        cid,
        "journal",
    )
    assert "<mark>heavy</mark>" in hit["snippet"]["text"]
    assert "&amp;" in hit["snippet"]["text"]
    assert {"field_path", "preview_text"} <= set(hit["evidence_excerpts"][0])
    assert (await read(living, hit["record_url"])).json()["id"] == hit["record_key"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/streams/entries/records?limit=4&count=exact",
        "/v1/streams/entries/records?changes_since=beginning&limit=4",
        "/v1/search?q=rain&limit=4",
    ],
)
async def test_more_never_comes_without_a_cursor(living: Living, path: str) -> None:
    first = (await read(living, path)).json()
    last = (await read(living, first["links"]["next"])).json()
    assert first["has_more"] is True
    assert first["next_cursor"]
    assert last["has_more"] is False
    assert "next_cursor" not in last
    assert last["links"]["next"] is None
    ids = [item["id"] for item in (*first["data"], *last["data"])]
    assert sorted(ids) == sorted(entry["id"] for entry in ENTRIES)


async def test_search_says_how_complete_it_is(living: Living) -> None:
    meta = (await read(living, "/v1/search?q=rain")).json()["meta"]
    assert meta["count"] == {"kind": "exact", "value": 6}
    assert meta["recall"]["complete"] is True
    assert meta["recall"]["ranking_scope"] == "all_matches"


async def test_ambiguity_names_the_candidates_and_what_to_send(living: Living) -> None:
    first = await connection(living)
    second = await living.connect()
    fields = ("id", "title", "created_at")
    one = living.grant("one", StreamGrant("entries", (first,), fields))
    two = living.grant("two", StreamGrant("entries", (second,), fields))
    living.package("package", one, two)
    answer = await read(living, "/v1/streams/entries/records", "package")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (409, "ambiguous_connection")
    assert error["retry_with"] == "connection_id"
    candidates = {entry["connection_id"]: entry for entry in error["available_connections"]}
    assert set(candidates) == {first, second}
    assert candidates[first]["display_name"] == "Paper diary"
    assert "display_name" not in candidates[second]
    assert {entry["grant_id"] for entry in candidates.values()} == {"grt_one", "grt_two"}


async def test_the_old_selector_works_and_is_never_emitted(living: Living) -> None:
    cid = await connection(living)
    answer = await read(living, f"/v1/streams/entries/records?connector_instance_id={cid}")
    body = answer.json()
    codes = [w["code"] for w in body["meta"]["warnings"]]
    assert codes == ["deprecated_alias_used", "limited_access"]
    assert all("connector_instance_id" not in record for record in body["data"])


@pytest.mark.parametrize(
    ("path", "param"),
    [
        ("/v1/streams/entries/records?limit=1000", "limit"),
        ("/v1/search?q=rain&limit=1000", "limit"),
        (
            "/v1/streams/entries/records/ent_1/field-window?field=body&limit_chars=99999",
            "limit_chars",
        ),
    ],
)
async def test_limits_above_the_maximum_are_clamped_with_a_warning(
    living: Living, path: str, param: str
) -> None:
    body = (await read(living, path)).json()
    warnings = body["meta"]["warnings"]
    (warning,) = (each for each in warnings if each["code"] != "limited_access")
    assert (warning["code"], warning["param"]) == ("limit_clamped", param)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/v1/streams/entries/aggregate?metric=count&group_by=pinned&limit=101", "invalid_request"),
        (
            "/v1/streams/entries/records?expand=attachments&expand_limit[attachments]=51",
            "invalid_expand",
        ),
        (
            "/v1/streams/entries/records/ent_1/field-window?field=body&q=rain&before_chars=8193",
            "invalid_window",
        ),
    ],
)
async def test_other_maxima_are_errors(living: Living, path: str, code: str) -> None:
    answer = await read(living, path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


async def test_a_deletion_answers_without_a_body(living: Living) -> None:
    cid = await connection(living)
    async with living.client() as owner:
        answer = await owner.delete(f"/v1/streams/entries/records/ent_1?connection_id={cid}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert "content-type" not in answer.headers


async def test_the_challenge_names_the_resource_that_was_asked(living: Living) -> None:
    async with living.client(None) as client:
        answer = await client.get("/v1/schema")
        url = answer.json()["error"]["resource_metadata"]
        document = (await client.get(url)).json()
    assert f'resource_metadata="{url}"' in answer.headers["www-authenticate"]
    assert document["pdpp_core_query_base"].endswith("/v1")
