import pytest

from personal_server.domain.grant import StreamGrant
from personal_server.storage.ports.disclosure_stores import DisclosureQuery
from server.tests.resource_server.living import Living

pytestmark = pytest.mark.anyio

ROOT = "/v1/owner/disclosures"
ENTRIES = [
    {"id": f"e{n}", "title": "Rain", "created_at": f"2026-03-0{n}T00:00:00Z"} for n in (1, 2)
]


@pytest.fixture
async def living() -> Living:
    made = Living()
    await made.declare_journal()
    connection_id = await made.connect(name="Paper diary")
    await made.ingest(connection_id, "entries", ENTRIES)
    made.grant("client", StreamGrant("entries", (connection_id,), ("id", "title", "created_at")))
    return made


async def rows(living: Living, query: str = "") -> list[dict[str, object]]:
    async with living.client() as owner:
        return (await owner.get(f"{ROOT}?{query}")).json()["data"]


async def test_a_read_leaves_one_entry_per_source_without_content(living: Living) -> None:
    async with living.client("client") as client:
        answer = await client.get(
            "/v1/streams/entries/records?filter[title]=Rain&fields=id,title",
            headers={"PDPP-Tool": "query_records", "Accept-Encoding": "identity"},
        )
    (entry,) = await rows(living)
    assert answer.status_code == 200
    assert entry["route"] == "GET /v1/streams/{stream}/records"
    assert entry["request_id"] == answer.headers["request-id"]
    assert (entry["outcome"], entry["error_code"]) == ("served", None)
    assert (entry["client_id"], entry["grant_id"]) == ("planner", "grt_client")
    assert (entry["channel"], entry["tool"]) == ("mcp", "query_records")
    assert entry["fields"] == ["id", "title"]
    assert (entry["record_count"], entry["bytes"]) == (2, len(answer.content))
    assert "Rain" not in str(entry)


async def test_refusals_are_entered_and_schema_reads_are_not(living: Living) -> None:
    async with living.client("client") as client:
        await client.get("/v1/schema")
        await client.get("/v1/streams/entries/records?fields=body")
        await client.get("/v1/streams/volumes/records")
        await client.get("/v1/owner/connections")
    codes = [entry["error_code"] for entry in await rows(living)]
    assert codes == ["permission_error", "grant_stream_not_allowed", "field_not_granted"]


async def test_entries_narrow_and_page(living: Living) -> None:
    async with living.client("client") as client:
        for _ in range(3):
            await client.get("/v1/streams/entries/records")
        await client.get("/v1/streams/entries/records?colour=red")
    async with living.client() as owner:
        await owner.get("/v1/streams/entries/records")
        first = (await owner.get(f"{ROOT}?limit=2&grant_id=grt_client&outcome=served")).json()
        rest = (await owner.get(first["links"]["next"])).json()
        foreign = await owner.get(f"{ROOT}?limit=2&cursor={first['next_cursor']}")
    ids = [entry["disclosure_id"] for entry in (*first["data"], *rest["data"])]
    assert len(ids) == len(set(ids)) == 3
    assert foreign.json()["error"]["code"] == "invalid_cursor"
    assert len(await rows(living, "outcome=denied&client_id=planner")) == 1
    assert await rows(living, "until=2001-01-01T00:00:00Z") == []


async def test_the_owner_reads_are_entered_too(living: Living) -> None:
    async with living.client() as owner:
        await owner.get("/v1/streams/entries/records/e1")
    (entry,) = await rows(living)
    assert (entry["token_kind"], entry["grant_id"], entry["record_count"]) == ("owner", None, 1)


@pytest.mark.parametrize(
    ("query", "param"), [("outcome=maybe", "outcome"), ("since=yesterday", "since"), ("x=1", "x")]
)
async def test_bad_filters_are_refused(living: Living, query: str, param: str) -> None:
    async with living.client() as owner:
        answer = await owner.get(f"{ROOT}?{query}")
    assert answer.json()["error"]["param"] == param


async def test_what_a_client_asked_and_got_lies_beside_and_the_owners_reads_do_not(
    living: Living,
) -> None:
    async with living.client("client") as client:
        await client.get("/v1/search?q=rain&streams=entries")
        await client.get("/v1/streams/entries/records?fields=id&limit=1")
        await client.get("/v1/streams/entries/records/none")
    async with living.client() as owner:
        await owner.get("/v1/search?q=rain")
    assert living.recorder.flush()
    found = living.disclosures.disclosures(DisclosureQuery(10))
    details = living.disclosures.asked_details([number for number, _ in found])
    kept = [(d.asked, d.keys) for d in (details.get(n) for n, _ in found) if d is not None]
    assert kept == [
        ("/v1/streams/entries/records/none", ()),
        ("/v1/streams/entries/records?fields=id&limit=1", ("e2",)),
        ("/v1/search?q=rain&streams=entries", ("e2", "e1")),
    ]
    assert "none" not in str(await rows(living))
