import orjson
import pytest

from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.living import NDJSON, Living

pytestmark = pytest.mark.anyio

AT = "2026-03-14T06:30:00Z"
ENTRY = {"id": "ent_41", "title": "Rain", "created_at": "2026-03-13T21:40:00Z"}


@pytest.fixture
async def living(any_store: RecordStore) -> Living:
    made = Living(store=any_store)
    await made.declare_journal()
    return made


def lines(*objects: object) -> bytes:
    return b"\n".join(o if isinstance(o, bytes) else orjson.dumps(o) for o in objects)


async def test_good_lines_commit_and_bad_ones_are_receipted(living: Living) -> None:
    connection_id = await living.connect()
    body = lines(
        {"key": "ent_41", "data": ENTRY, "emitted_at": AT},
        b"",
        {"key": "ent_42", "data": {**ENTRY, "id": "ent_42"}, "emitted_at": AT},
        {"data": {**ENTRY, "title": 7}, "emitted_at": AT},
        b"\xff",
    )
    async with living.client() as owner:
        answer = await owner.post(
            f"/v1/ingest/entries?connection_id={connection_id}&run_id=run_1",
            content=body,
            headers=NDJSON,
        )
        receipts = (await owner.get(f"/v1/owner/connections/{connection_id}/rejections")).json()
        row = (await owner.get(f"/v1/owner/connections/{connection_id}")).json()
    result = answer.json()
    assert (result["records_attempted"], result["records_accepted"]) == (4, 2)
    assert (result["records_changed"], result["records_rejected"]) == (2, 2)
    assert result["errors"] == []
    assert [r["input_index"] for r in result["rejections"]] == [2, 3]
    assert {r["code"] for r in result["rejections"]} == {"record_schema_violation", "invalid_utf8"}
    assert "7" not in result["rejections"][0]["message"]
    assert {r["run_id"] for r in receipts["data"]} == {"run_1"}
    assert row["status"] == "active"


async def test_the_same_batch_again_changes_nothing(living: Living) -> None:
    connection_id = await living.connect()
    await living.ingest(connection_id, "entries", [ENTRY])
    again = await living.ingest(connection_id, "entries", [ENTRY])
    assert (again["records_accepted"], again["records_changed"]) == (1, 0)


async def test_the_target_may_be_the_only_connection_of_a_connector(living: Living) -> None:
    connection_id = await living.connect()
    body = lines({"data": ENTRY, "emitted_at": AT})
    async with living.client() as owner:
        path = "/v1/ingest/entries?connector_id=journal"
        first = await owner.post(path, content=body, headers=NDJSON)
        other = await living.connect()
        second = await owner.post(path, content=body, headers=NDJSON)
        await owner.post(f"/v1/owner/connections/{other}/revoke")
        third = await owner.post(path, content=body, headers=NDJSON)
    assert first.json()["connection_id"] == connection_id
    error = second.json()["error"]
    assert error["code"] == "ambiguous_connection"
    assert {c["connection_id"] for c in error["available_connections"]} == {connection_id, other}
    assert third.status_code == 200


@pytest.mark.parametrize(
    ("query", "code", "param"),
    [
        ("", "invalid_request", "connection_id"),
        ("connection_id=cin_unknown0000000000", "connection_not_found", "connection_id"),
        ("connector_id=nothing", "connection_not_found", "connector_id"),
    ],
)
async def test_a_bad_target_is_refused(living: Living, query: str, code: str, param: str) -> None:
    await living.connect()
    async with living.client() as owner:
        answer = await owner.post(f"/v1/ingest/entries?{query}", content=b"", headers=NDJSON)
    error = answer.json()["error"]
    assert (error["code"], error["param"]) == (code, param)


async def test_what_cannot_be_written_is_refused(living: Living) -> None:
    connection_id = await living.connect()
    path = f"/v1/ingest/entries?connection_id={connection_id}"
    async with living.client() as owner:
        unknown = await owner.post(path.replace("entries", "nothing"), content=b"", headers=NDJSON)
        mistyped = await owner.post(path, content=b"", headers={"Content-Type": "text/plain"})
        crowd = b'{"op":"delete","key":"x","emitted_at":"%s"}\n' % AT.encode() * 10_001
        crowded = await owner.post(path, content=crowd, headers=NDJSON)
        await owner.post(f"/v1/owner/connections/{connection_id}/revoke")
        revoked = await owner.post(path, content=b"", headers=NDJSON)
    assert unknown.json()["error"]["code"] == "not_found"
    assert mistyped.status_code == 415
    assert (crowded.status_code, crowded.json()["error"]["code"]) == (413, "resource_limit")
    assert revoked.json()["error"]["code"] == "connection_not_writable"


async def test_records_are_deleted_one_by_one_or_all(living: Living) -> None:
    connection_id = await living.connect()
    others = [{**ENTRY, "id": f"x/{n}"} for n in range(3)]
    await living.ingest(connection_id, "entries", [ENTRY, *others])
    target = f"connection_id={connection_id}"
    async with living.client() as owner:
        one = f"/v1/streams/entries/records/x%2F1?{target}"
        assert (await owner.delete(one)).status_code == 204
        assert (await owner.delete(one)).json()["error"]["code"] == "not_found"
        many = f"/v1/streams/entries/records?{target}"
        refused = await owner.delete(f"{many}&confirm=volumes")
        assert refused.json()["error"]["code"] == "confirmation_required"
        deleted = (await owner.delete(f"{many}&confirm=entries")).json()
        left = (await owner.get(many)).json()["data"]
    assert deleted["deleted_count"] == 3
    assert left == []


async def test_collector_state_is_replaced_per_stream(living: Living) -> None:
    connection_id = await living.connect()
    async with living.client() as owner:
        empty = (await owner.get("/v1/state/journal")).json()
        await owner.put("/v1/state/journal", json={"state": {"entries": {"since": "2026-03-14"}}})
        both = await owner.put("/v1/state/journal", json={"state": {"volumes": 7}})
        less = await owner.put("/v1/state/journal", json={"state": {"entries": None}})
        unknown = await owner.put("/v1/state/journal", json={"state": {"nothing": 1}})
        large = await owner.put("/v1/state/journal", json={"state": {"entries": "x" * 262_144}})
        misshapen = await owner.put("/v1/state/journal", json={"state": 1})
    assert (empty["state"], empty["updated_at"]) == ({}, None)
    assert empty["connection_id"] == connection_id
    assert both.json()["state"] == {"entries": {"since": "2026-03-14"}, "volumes": 7}
    assert less.json()["state"] == {"volumes": 7}
    assert unknown.json()["error"]["param"] == "state.nothing"
    assert (large.status_code, misshapen.status_code) == (413, 400)
