import hashlib
import io
import tarfile
import tempfile

import orjson
import pytest

from personal_server.storage.ports.whole_store import RecordStore
from personal_server.web.query_strings import parse_query
from personal_server.web.requests import Request
from personal_server.web.responses import close_chunks
from server.tests.resource_server.living import NDJSON, Living
from server.tests.resource_server.test_blobs import BLOB_ID, CONTENT, REFERENCE, SHA256, upload
from tests.proving import bearer

pytestmark = pytest.mark.anyio

PATH = "/v1/owner/export"
ENTRIES = [{"id": f"e{n}", "created_at": f"2026-03-0{n}T00:00:00Z"} for n in range(1, 4)]


@pytest.fixture
async def living(any_store: RecordStore) -> Living:
    made = Living(store=any_store, grants=({"grant_id": "grt_1"},))
    await made.declare_journal()
    connection_id = await made.connect(name="Paper diary")
    await made.ingest(connection_id, "entries", ENTRIES)
    await upload(made, connection_id)
    await made.ingest(
        connection_id, "attachments", [{"id": "a1", "entry_id": "e1", "blob_ref": REFERENCE}]
    )
    return made


async def test_lines_have_a_head_and_an_end_that_proves_them_complete(living: Living) -> None:
    async with living.client() as owner:
        answer = await owner.get(PATH)
    lines = answer.content.splitlines(keepends=True)
    head, *records, end = [orjson.loads(line) for line in lines]
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert head["object"] == "export"
    assert [(r["stream"], r["key"]) for r in records] == [
        ("attachments", "a1"),
        ("entries", "e1"),
        ("entries", "e2"),
        ("entries", "e3"),
    ]
    assert end == {
        "object": "export_end",
        "record_count": 4,
        "sha256": hashlib.sha256(b"".join(lines[:-1])).hexdigest(),
    }


async def test_an_archive_can_be_ingested_again(living: Living) -> None:
    async with living.client() as owner:
        await owner.get("/v1/streams/entries/records")
        answer = await owner.get(f"{PATH}?format=tar")
        with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
            members = {m.name: archive.extractfile(m) for m in archive.getmembers()}
            contents = {name: file.read() for name, file in members.items() if file is not None}
        other = await living.connect()
        records = next(v for k, v in contents.items() if k.endswith("/entries.ndjson"))
        again = await owner.post(
            f"/v1/ingest/entries?connection_id={other}", content=records, headers=NDJSON
        )
    assert again.json()["records_changed"] == 3
    assert contents[f"blobs/{SHA256}"] == CONTENT
    assert orjson.loads(contents["grants.json"]) == [{"grant_id": "grt_1"}]
    assert orjson.loads(contents["declarations/journal.json"])["connector_key"] == "journal"
    assert orjson.loads(contents["connections.json"])[0]["display_name"] == "Paper diary"
    assert b'"stream":"entries"' in contents["disclosures.ndjson"]
    streams = orjson.loads(contents["manifest.json"])["streams"]
    assert [(s["stream"], s["record_count"]) for s in streams] == [
        ("attachments", 1),
        ("entries", 3),
    ]


async def test_an_archive_may_leave_the_blobs_out(living: Living) -> None:
    async with living.client() as owner:
        answer = await owner.get(f"{PATH}?format=tar&include_blobs=false")
    with tarfile.open(fileobj=io.BytesIO(answer.content)) as archive:
        names = archive.getnames()
    assert not [name for name in names if name.startswith("blobs/")]
    assert BLOB_ID.encode() in answer.content


async def test_only_so_many_exports_are_made_at_once_and_their_places_come_back(
    living: Living, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")  # so that each waits to be taken
    exported = next(r for r in living.table.routes if r.pattern == PATH)
    with living.identify(bearer("owner")) as (owner, _):
        authority = owner.authority
    request = Request(
        exported.name,
        authority,
        parse_query(b"", exported.declared),
        {},
        PATH,
        "",
        "http://127.0.0.1:7662",
        "req_1",
        living.clock(),
    )
    running = [exported.answer_request(request) for _ in range(2)]
    async with living.client() as owner:
        refused = await owner.get(PATH)
        for reply in running:
            close_chunks(reply.chunks)
        served = [(await owner.get(PATH)).status_code for _ in range(3)]
    assert refused.json()["error"]["code"] == "storage_unavailable"
    assert served == [200, 200, 200]


async def test_an_export_can_be_narrowed(living: Living) -> None:
    other = await living.connect()
    async with living.client() as owner:
        entries = await owner.get(f"{PATH}?stream=entries")
        empty = await owner.get(f"{PATH}?connection_id={other}")
        unknown = await owner.get(f"{PATH}?connection_id=cin_none000000000000")
        nothing = await owner.get(f"{PATH}?stream=nothing")
        bad = await owner.get(f"{PATH}?format=zip")
    assert len(entries.content.splitlines()) == 5
    assert len(empty.content.splitlines()) == 2
    assert unknown.json()["error"]["code"] == "connection_not_found"
    assert nothing.json()["error"]["code"] == "not_found"
    assert bad.json()["error"]["allowed_values"] == ["ndjson", "tar"]


async def test_an_export_is_entered_in_the_log(living: Living) -> None:
    async with living.client() as owner:
        await owner.get(PATH)
        entries = (await owner.get("/v1/owner/disclosures")).json()["data"]
    assert {(e["stream"], e["record_count"]) for e in entries} == {
        ("entries", 3),
        ("attachments", 1),
    }
