import hashlib

import pytest

from personal_server.domain.grant import StreamGrant
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.resource_server.living import Living

pytestmark = pytest.mark.anyio

CONTENT = bytes(range(256)) * 8
SHA256 = hashlib.sha256(CONTENT).hexdigest()
BLOB_ID = f"blob_sha256_{SHA256}"
PATH = f"/v1/blobs/{BLOB_ID}"
REFERENCE = {
    "blob_id": BLOB_ID,
    "mime_type": "image/png",
    "size_bytes": len(CONTENT),
    "sha256": SHA256,
    "filename": "día.png",
}
FIELDS = ("id", "entry_id", "filename", "blob_ref")


@pytest.fixture
async def living(any_store: RecordStore) -> Living:
    made = Living(store=any_store)
    await made.declare_journal()
    return made


async def holding(living: Living) -> str:
    """A connection with a referenced blob."""
    connection_id = await living.connect()
    assert (await upload(living, connection_id)) == 201
    await living.ingest(
        connection_id, "attachments", [{"id": "a1", "entry_id": "e1", "blob_ref": REFERENCE}]
    )
    return connection_id


async def upload(living: Living, connection_id: str, content: bytes = CONTENT) -> int:
    async with living.client() as owner:
        answer = await owner.post(
            f"/v1/blobs?connection_id={connection_id}&stream=attachments&record_key=a1",
            content=content,
            headers={"Content-Type": "image/png"},
        )
    if answer.status_code < 400:
        assert answer.json()["sha256"] == hashlib.sha256(content).hexdigest()
        assert answer.json()["mime_type"] == "image/png"
    return answer.status_code


async def test_bytes_are_known_by_their_content(living: Living) -> None:
    connection_id = await living.connect()
    assert await upload(living, connection_id) == 201
    assert await upload(living, connection_id) == 200


async def test_a_blob_is_served_through_a_granted_reference(living: Living) -> None:
    connection_id = await holding(living)
    living.grant("client", StreamGrant("attachments", (connection_id,), FIELDS))
    async with living.client("client") as client:
        record = (await client.get("/v1/streams/attachments/records/a1")).json()
        answer = await client.get(record["data"]["blob_ref"]["fetch_url"])
    assert answer.content == CONTENT
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-disposition"] == "inline; filename*=UTF-8''d%C3%ADa.png"
    assert answer.headers["etag"] == f'"sha256-{SHA256}"'
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["cache-control"] == "private, no-cache"
    assert "content-encoding" not in answer.headers


async def test_parts_validators_and_heads(living: Living) -> None:
    await holding(living)
    async with living.client() as client:
        part = await client.get(PATH, headers={"Range": "bytes=1-3"})
        outside = await client.get(PATH, headers={"Range": f"bytes={len(CONTENT)}-"})
        several = await client.get(PATH, headers={"Range": "bytes=0-1,4-5"})
        known = await client.get(PATH, headers={"If-None-Match": f'"sha256-{SHA256}"'})
        head = await client.head(PATH, headers={"Range": "bytes=1-3"})
    assert (part.status_code, part.content) == (206, CONTENT[1:4])
    assert part.headers["content-range"] == f"bytes 1-3/{len(CONTENT)}"
    assert outside.status_code == 416
    assert outside.headers["content-range"] == f"bytes */{len(CONTENT)}"
    assert outside.json()["error"]["code"] == "range_not_satisfiable"
    assert (several.status_code, several.content) == (200, CONTENT)
    assert (known.status_code, known.content) == (304, b"")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(CONTENT))


async def test_unknown_unreferenced_and_forbidden_look_the_same(living: Living) -> None:
    connection_id = await holding(living)
    await upload(living, connection_id, b"nobody points here")
    loose = f"/v1/blobs/blob_sha256_{hashlib.sha256(b'nobody points here').hexdigest()}"
    living.grant("blind", StreamGrant("attachments", (connection_id,), FIELDS[:3]))
    living.grant(
        "elsewhere", StreamGrant("attachments", (connection_id,), FIELDS, resources=("a2",))
    )
    answers: list[tuple[int, object, object]] = []
    for token, path in (
        ("owner", loose),
        ("owner", "/v1/blobs/blob_sha256_00"),
        ("owner", "/v1/blobs/nonsense"),
        ("blind", PATH),
        ("elsewhere", PATH),
    ):
        async with living.client(token) as client:
            answer = await client.get(path)
        error = answer.json()["error"]
        answers.append((answer.status_code, error["code"], error["message"]))
    assert len(set(answers)) == 1
    assert answers[0][:2] == (404, "blob_not_found")


async def test_the_log_counts_the_bytes_sent(living: Living) -> None:
    await holding(living)
    async with living.client() as client:
        await client.get(PATH, headers={"Range": "bytes=0-9"})
        entry = (await client.get("/v1/owner/disclosures")).json()["data"][0]
    assert (entry["bytes"], entry["record_count"]) == (10, 0)
    assert entry["fields"] == ["blob_ref"]


async def test_a_reference_cannot_smuggle_headers(living: Living) -> None:
    connection_id = await living.connect()
    await upload(living, connection_id)
    wild = {**REFERENCE, "mime_type": "text/html\r\nX-Bad: 1", "filename": 'a";\r\n'}
    await living.ingest(
        connection_id, "attachments", [{"id": "a1", "entry_id": "e1", "blob_ref": wild}]
    )
    async with living.client() as client:
        answer = await client.get(PATH)
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == "attachment; filename*=UTF-8''a%22%3B%0D%0A"
    assert "x-bad" not in answer.headers


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("stream=attachments&record_key=a1", "invalid_request"),
        ("connection_id={cid}&record_key=a1", "invalid_request"),
        ("connection_id={cid}&stream=nothing&record_key=a1", "not_found"),
        ("connection_id={cid}&stream=attachments&record_key=a1&json_path=x", "invalid_request"),
        ("connection_id={cid}&stream=attachments&record_key=a1&mime_type=x", "invalid_request"),
        (
            "connection_id=cin_none000000000000&stream=attachments&record_key=a1",
            "connection_not_found",
        ),
    ],
)
async def test_a_bad_upload_is_refused(living: Living, query: str, code: str) -> None:
    connection_id = await living.connect()
    async with living.client() as owner:
        answer = await owner.post(f"/v1/blobs?{query.format(cid=connection_id)}", content=b"x")
    assert answer.json()["error"]["code"] == code


async def test_too_large_a_blob_is_refused(living: Living) -> None:
    small = Living(max_blob_bytes=10)
    await small.declare_journal()
    connection_id = await small.connect()
    assert await upload(small, connection_id) == 413
