from typing import Any

import jsonschema_rs
import orjson
import pytest

from personal_server.resource_server.declarations import DECLARATION_BODY
from server.tests.resource_server.living import JOURNAL, Living

ROOT = "/v1/owner/declarations"
BODY = jsonschema_rs.Draft202012Validator(dict(DECLARATION_BODY))


def journal(**changes: Any) -> dict[str, Any]:
    return {**orjson.loads(JOURNAL.read_bytes()), **changes}


@pytest.fixture
def living() -> Living:
    return Living()


@pytest.mark.anyio
async def test_a_declaration_is_new_once(living: Living) -> None:
    async with living.client() as owner:
        first = await owner.post(ROOT, json=journal())
        again = await owner.post(ROOT, json=journal())
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["declaration"] == journal()
    assert first.json()["digest"] == again.json()["digest"]


@pytest.mark.anyio
async def test_revisions_are_kept_and_the_newest_is_current(living: Living) -> None:
    async with living.client() as owner:
        old = (await owner.post(ROOT, json=journal())).json()
        await owner.post(ROOT, json=journal(declaration_version="next"))
        current = (await owner.get(f"{ROOT}/journal")).json()
        version = old["declaration_version"]
        earlier = (await owner.get(f"{ROOT}/journal?version={version}")).json()
        listed = (await owner.get(ROOT)).json()["data"]
        unknown = await owner.get(f"{ROOT}/journal?version=never")
    assert current["declaration_version"] == "next"
    assert earlier["digest"] == old["digest"]
    assert [(row["connector_key"], row["declaration_version"]) for row in listed] == [
        ("journal", "next")
    ]
    assert unknown.json()["error"]["code"] == "not_found"


@pytest.mark.anyio
async def test_bad_declarations_say_where(living: Living) -> None:
    async with living.client() as owner:
        await owner.post(ROOT, json=journal())
        faulty = await owner.post(ROOT, json=journal(streams=[]))
        changed = await owner.post(ROOT, json=journal(display={"name": "Another"}))
        not_json = await owner.post(
            ROOT, content=b"{", headers={"Content-Type": "application/json"}
        )
    assert faulty.json()["error"]["code"] == "invalid_declaration"
    assert faulty.json()["error"]["errors"][0]["path"]
    assert changed.json()["error"]["code"] == "declaration_conflict"
    assert not_json.status_code == 400


@pytest.mark.anyio
async def test_a_source_is_forgotten_only_without_connections(living: Living) -> None:
    async with living.client() as owner:
        await owner.post(ROOT, json=journal())
        connection_id = await living.connect()
        kept = await owner.delete(f"{ROOT}/journal")
        await owner.delete(f"/v1/owner/connections/{connection_id}?confirm={connection_id}")
        gone = await owner.delete(f"{ROOT}/journal")
        again = await owner.delete(f"{ROOT}/journal")
    assert kept.json()["error"]["code"] == "invalid_state"
    assert (gone.status_code, gone.content) == (204, b"")
    assert again.json()["error"]["code"] == "not_found"


@pytest.mark.anyio
async def test_the_key_of_records_that_exist_does_not_change(living: Living) -> None:
    stream = journal()["streams"][0]
    others = journal()["streams"][1:]
    changed = journal(
        declaration_version="next", streams=[{**stream, "semantics": "append_only"}, *others]
    )
    async with living.client() as owner:
        await owner.post(ROOT, json=journal())
        connection_id = await living.connect()
        entry = {"id": "e1", "created_at": "2026-01-01T00:00:00Z"}
        await living.ingest(connection_id, "entries", [entry])
        refused = await owner.post(ROOT, json=changed)
        await owner.delete(
            f"/v1/streams/entries/records?connection_id={connection_id}&confirm=entries"
        )
        accepted = await owner.post(ROOT, json=changed)
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        409,
        "declaration_incompatible",
    )
    assert accepted.status_code == 201


# What is published of the body.


def test_a_good_declaration_fits() -> None:
    assert BODY.is_valid(journal())


def test_the_manifest_spelling_fits() -> None:
    manifest = journal(connector_id="https://x.example/j", version="1", display_name="Journal")
    for name in ("source", "declaration_version", "display"):
        del manifest[name]
    assert BODY.is_valid(manifest)


@pytest.mark.parametrize(
    "changes", [{"streams": []}, {"connector_key": "No"}, {"protocol_version": "9"}]
)
def test_anything_else_does_not(changes: dict[str, Any]) -> None:
    assert not BODY.is_valid(journal(**changes))


@pytest.mark.parametrize("member", ["query", "display"])
def test_what_decides_about_reads_is_closed(member: str) -> None:
    stream = journal()["streams"][0]
    changed = {**stream, member: {**stream[member], "colour": 1}}
    assert not BODY.is_valid(journal(streams=[changed]))


@pytest.mark.anyio
async def test_the_answer_says_what_was_kept_and_what_was_adapted(living: Living) -> None:
    stream = {**journal()["streams"][0], "semantics": "append", "compaction": {"class": "x"}}
    others = journal()["streams"][1:]
    sent = journal(streams=[stream, *others], profiles=["x"])
    assert BODY.is_valid(sent)
    async with living.client() as owner:
        accepted = (await owner.post(ROOT, json=sent)).json()
        fetched = (await owner.get(f"{ROOT}/journal")).json()
    assert accepted["kept"] == fetched["kept"] == ["/streams/0/compaction", "/profiles"]
    assert [each["path"] for each in accepted["adapted"]] == ["/streams/0/semantics"]
    assert accepted["declaration"] == sent
