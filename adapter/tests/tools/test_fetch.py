"""An id that spells its connection out says where; an argument may repeat it, not change it."""

from base64 import b64decode, b64encode
from typing import Any

import pytest

from adapter.tests.asking import ask
from adapter.tests.fake_rs import Answer, FakeRs, error_answer
from adapter.tests.seed import attachments_relation, declarations, photo, world
from pdpp_mcp_server.errors import ToolError
from pdpp_mcp_server.faces.images import NO_FILE
from pdpp_mcp_server.handles import RecordRef, record_uri
from pdpp_mcp_server.tools.fetch import record_of

m8 = RecordRef("cin_a", "messages", "m8")
forms = ["cin_a/messages:m8", record_uri(m8)]


@pytest.mark.parametrize("id", forms)
def test_an_id_keeps_its_connection(id: str) -> None:
    assert record_of({"id": id}) == m8
    assert record_of({"id": id, "connection_id": "cin_a"}) == m8


@pytest.mark.parametrize("id", forms)
def test_another_connection_is_a_conflict_that_names_both(id: str) -> None:
    with pytest.raises(ToolError) as refused:
        record_of({"id": id, "connection_id": "cin_b"})
    error = refused.value.error
    assert (error["code"], error["param"]) == ("conflicting_connection_id", "connection_id")
    assert "cin_a" in error["message"]
    assert "cin_b" in error["message"]
    assert refused.value.repairs == ({"id": id},)


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["fetch", "read_record_field"])
async def test_an_id_with_a_label_is_mended_in_the_id(tool: str) -> None:
    rs = world()
    rs.script = lambda _: error_answer(
        404, "connection_not_found", recovery={"connection_id": "cin_a"}
    )
    field = {"field_path": "body"} if tool == "read_record_field" else {}
    error = (await ask(rs, tool, {"id": "Mail/messages:m8", **field})).structured["error"]
    assert error["next_call"]["arguments"] == {"id": "cin_a/messages:m8", **field}
    rs.script = None
    following = error["next_call"]
    assert not (await ask(rs, following["tool"], following["arguments"])).is_error


@pytest.mark.anyio
async def test_a_document_is_named_and_dated_by_its_record_not_by_the_wrapper() -> None:
    rs = world()
    wrapper = {"title": "Wrapper", "url": "https://wrapper.example", "sent_at": "1999-01-01"}
    inner = {"title": "Inner", "sent_at": "2026-01-01", "url": "https://inner.example/1"}
    for data, title in ((inner, "Inner"), ({"sent_at": "2026-01-01"}, "2026-01-01")):
        row = {**wrapper, "record_id": "m8", "stream": "messages", "data": data}
        rs.script = lambda _, row=row: Answer(200, row)
        document = (await ask(rs, "fetch", {"id": "cin_a/messages:m8"})).structured
        assert title in document["title"]
        assert "wrapper" not in str(document).lower()


@pytest.mark.anyio
async def test_a_document_says_when_it_was_by_the_clocks_of_the_owner_and_what_it_is_called() -> (
    None
):
    rs = world()
    told = {"at": "2026-03-10", "when": "Tue 2026-03-10 05:00", "title": "Bakery"}
    row = {"record_id": "t1", "stream": "payments", "emitted_at": "2026-11-01T00:00:00Z", **told}
    data = {"payee": "Bakery", "updated_at": "2026-10-01T00:00:00Z"}
    meta = {"time_zone": "America/Los_Angeles"}
    rs.script = lambda _: Answer(200, {**row, "data": data, "meta": meta})
    whole = (await ask(rs, "fetch", {"id": "cin_a/payments:t1"}, is_ours=True)).structured
    assert whole["title"] == "Bakery"
    assert whole["metadata"]["when"] == told["when"]
    assert whole["metadata"]["time_zone"] == meta["time_zone"]
    assert ("time_zone", "owner") in rs.requests[-1].query
    some = {"id": "cin_a/payments:t1", "fields": ["updated_at"]}
    part = (await ask(rs, "fetch", some, is_ours=True)).structured
    assert "Bakery" not in str(part)
    assert "when" not in part["metadata"]
    rs.script = lambda _: Answer(200, {**row, "title": None, "data": {}, "meta": meta})
    nameless = (await ask(rs, "fetch", {"id": "cin_a/payments:t1"}, is_ours=True)).structured
    assert nameless["title"].endswith(told["at"])
    await ask(rs, "fetch", {"id": "cin_a/payments:t1"})
    assert ("time_zone", "owner") not in rs.requests[-1].query


@pytest.mark.anyio
async def test_a_document_is_longer_for_a_client_that_may_have_more() -> None:
    rs = world()
    row = {"record_id": "m8", "stream": "messages", "data": {"id": "m8", "body": "w " * 80_000}}
    rs.script = lambda _: Answer(200, row)
    for chars in (20_000, 60_000, 200_000):
        shown = await ask(rs, "fetch", {"id": "cin_a/messages:m8"}, result_chars=chars)
        assert (
            chars * 9 // 10 < shown.sizes[1] <= chars or shown.structured["text"] == "w " * 80_000
        )


def test_a_legacy_id_takes_the_connection_of_the_argument_or_none() -> None:
    assert record_of({"id": "messages:m8", "connection_id": "cin_a"}) == m8
    assert record_of({"id": "messages:m8"}) == RecordRef(None, "messages", "m8")


def thread_of(document: dict[str, Any], *, has_more: bool) -> FakeRs:
    """A world whose m8 is expanded by the mails of its thread, as a schema with `thread` says."""
    rs = world()
    relation = {
        **attachments_relation,
        "name": "thread",
        "stream": "messages",
        "target_stream": "messages",
        "foreign_key": "thread_id",
        "foreign_key_on": "both",
    }
    rs.declarations = {**declarations, "messages": {**declarations["messages"]}}
    rs.declarations["messages"]["expand"] = [relation]
    mails = [
        {
            "record_id": f"m{number}",
            "stream": "messages",
            "connection_id": "cin_a",
            "data": {"subject": "Bread", "sent_at": f"2026-01-0{number}", **written},
        }
        for number, written in enumerate(
            (
                {
                    "from_name": "Ada",
                    "from_address": "ada@example.org",
                    "body": "Rye?\n\n or wheat",
                },
                {"from_address": "bo@example.org", "body": "w" * 300},
                {"body": "Bread"},
                {},
            ),
            1,
        )
    ]
    page = {"object": "list", "data": mails, "has_more": has_more}
    row = {"record_id": "m8", "stream": "messages", "connection_id": "cin_a", "data": document}
    body = {**row, "expanded": {"thread": page}}
    rs.script = lambda request: Answer(200, body) if request.path[-1] == "m8" else None
    return rs


asked = {"id": "cin_a/messages:m8", "expand": ["thread"]}


@pytest.mark.anyio
async def test_a_thread_is_who_wrote_when_and_how_each_begins() -> None:
    rs = thread_of({"thread_id": "t1", "body": "x"}, has_more=False)
    thread = (await ask(rs, "fetch", asked)).structured["metadata"]["expanded"]["thread"]
    said = [{name: row.get(name) for name in ("id", "by", "at", "line")} for row in thread["data"]]
    ids = [f"cin_a/messages:m{number}" for number in (1, 2, 3, 4)]
    assert [row["id"] for row in said] == ids
    assert [row["by"] for row in said] == ["Ada", "bo@example.org", None, None]
    assert [row["at"] for row in said] == [f"2026-01-0{number}" for number in (1, 2, 3, 4)]
    assert said[0]["line"] == "Rye? or wheat"
    assert len(said[1]["line"]) == 120
    assert [row["line"] for row in said[2:]] == [None, None]
    assert "next" not in thread
    assert not any("url" in row for row in thread["data"])


@pytest.mark.anyio
async def test_a_related_file_is_called_by_its_name_and_has_the_address_that_it_names() -> None:
    rs = world()
    file = {"subject": "Offer", "filename": "offer.pdf", "source_url": "https://a.example/offer"}
    child = {"record_id": "f1", "stream": "attachments", "connection_id": "cin_a", "data": file}
    page = {"object": "list", "data": [child], "has_more": False}
    row = {"record_id": "m8", "stream": "messages", "connection_id": "cin_a", "data": {"body": "x"}}
    rs.script = lambda request: (
        Answer(200, {**row, "expanded": {"attachments": page}})
        if request.path[-1] == "m8"
        else None
    )
    document = (await ask(rs, "fetch", {**asked, "expand": ["attachments"]})).structured
    assert document["metadata"]["expanded"]["attachments"]["data"] == [
        {
            "id": "cin_a/attachments:f1",
            "title": "offer.pdf",
            "url": "https://a.example/offer",
        }
    ]


@pytest.mark.anyio
async def test_a_thread_that_goes_on_has_the_call_that_lists_it() -> None:
    rs = thread_of({"thread_id": "t1", "body": "x"}, has_more=True)
    thread = (await ask(rs, "fetch", asked)).structured["metadata"]["expanded"]["thread"]
    assert thread["next"] == {
        "tool": "query_records",
        "arguments": {
            "stream": "messages",
            "connection_id": "cin_a",
            "filter": {"thread_id": "t1"},
            "order": "asc",
        },
    }


@pytest.mark.anyio
async def test_a_call_is_not_made_of_a_value_that_is_not_shown() -> None:
    for extra, data in (
        ({}, {"body": "x"}),
        ({"fields": ["body"]}, {"thread_id": "t1", "body": "x"}),
    ):
        rs = thread_of(data, has_more=True)
        document = (await ask(rs, "fetch", {**asked, **extra})).structured
        assert document["metadata"]["expanded"]["thread"]["has_more"] is True
        assert "t1" not in str(document)


m10: dict[str, Any] = {"id": "cin_a/messages:m10", "as": "image"}


@pytest.mark.anyio
async def test_an_image_comes_as_a_block_only_when_it_is_asked_for() -> None:
    rs = world()
    plain = await ask(rs, "fetch", {"id": m10["id"]})
    assert plain.image is None
    assert "image" not in plain.structured["metadata"]
    [entry] = plain.structured["metadata"]["content_ladder"]
    asked = {**m10, "fields": ["blob_ref"]}
    assert entry["read"] == {"tool": "fetch", "arguments": asked}
    assert entry["uri"].startswith("pdpp://blob/")
    rs.requests.clear()
    outcome = await ask(rs, "fetch", asked)
    assert outcome.image is not None
    assert (b64decode(outcome.image.data), outcome.image.mime_type) == (photo, "image/png")
    assert [request.path[-1] for request in rs.requests] == ["m10", "blob_1"]
    said = {"field_path": "blob_ref", "status": "shown", "mime_type": "image/png"}
    assert outcome.structured["metadata"]["image"] == said
    rs.sources[0].streams["messages"]["m10"]["blob_ref"] = (
        f"data:image/gif;base64,{b64encode(photo).decode()}"
    )
    inline = (await ask(rs, "fetch", m10)).image
    assert inline is not None
    assert inline.mime_type == "image/png"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("change", "content", "reads", "why"),
    [
        ({"size_bytes": 30_001}, photo, 1, "larger than 30,000 bytes"),
        ({"size_bytes": None}, photo * 5_000, 2, "larger than 30,000 bytes"),
        ({"mime_type": "application/pdf"}, photo, 1, "no PNG, JPEG, GIF or WebP"),
        ({}, b"<svg onload='x'/>", 2, "no PNG, JPEG, GIF or WebP"),
        ({"blob_id": "gone"}, photo, 2, "its bytes: blob_not_found"),
    ],
)
async def test_an_image_that_is_not_shown_says_why_and_where_its_bytes_are(
    change: dict[str, Any], content: bytes, reads: int, why: str
) -> None:
    rs = world()
    row = rs.sources[0].streams["messages"]["m10"]
    row["blob_ref"] = {**row["blob_ref"], **change}
    rs.blobs["blob_1"] = ("image/png", content)
    outcome = await ask(rs, "fetch", m10)
    assert outcome.image is None
    assert len(rs.requests) == reads
    metadata = outcome.structured["metadata"]
    assert metadata["image"] == {"field_path": "blob_ref", "status": "not_shown", "why": why}
    [entry] = metadata["content_ladder"]
    assert entry["uri"].startswith("pdpp://blob/")
    assert "/v1/blobs/" in entry["url"]


@pytest.mark.anyio
async def test_a_record_without_a_file_has_no_image() -> None:
    outcome = await ask(world(), "fetch", {"id": "cin_a/messages:m8", "as": "image"})
    said = {"status": "not_shown", "why": NO_FILE}
    assert outcome.structured["metadata"]["image"] == said
