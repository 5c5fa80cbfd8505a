import pytest

from pdpp_kernel.errors import ConnectionBusy
from personal_server.domain.grant import StreamGrant
from server.tests.resource_server.living import Living
from tests.oracle.memory import MemoryStore

pytestmark = pytest.mark.anyio

ROOT = "/v1/owner/connections"


@pytest.fixture
async def living() -> Living:
    made = Living()
    await made.declare_journal()
    return made


async def test_a_connection_goes_through_its_states(living: Living) -> None:
    connection_id = await living.connect(name="  Paper diary ")
    await living.ingest(
        connection_id, "entries", [{"id": "e1", "created_at": "2026-01-01T00:00:00Z"}]
    )
    async with living.client() as owner:
        seen: list[str] = []
        for action in ("pause", "resume", "revoke", "reactivate"):
            row = (await owner.post(f"{ROOT}/{connection_id}/{action}")).json()
            seen.append(row["status"])
        assert seen == ["paused", "active", "revoked", "active"]
        row = (await owner.get(f"{ROOT}/{connection_id}")).json()
    assert row["display_name"] == "Paper diary"
    assert row["label_status"] == "owner_set"
    assert row["record_count"] == 1
    assert row["supported_actions"] == ["pause", "revoke", "rename", "delete"]


async def test_a_transition_that_does_not_exist_is_refused(living: Living) -> None:
    connection_id = await living.connect()
    async with living.client() as owner:
        answer = await owner.post(f"{ROOT}/{connection_id}/resume")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "invalid_state")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "connector_key"),
        ({"connector_key": "journal", "colour": 1}, "colour"),
        ({"connector_key": 1}, "connector_key"),
        ({"connector_key": "journal", "display_name": "  "}, "display_name"),
        ({"connector_key": "journal", "display_name": "x" * 201}, "display_name"),
        ([], "body"),
    ],
)
async def test_a_bad_body_is_refused_by_its_member(
    living: Living, body: object, param: str
) -> None:
    async with living.client() as owner:
        answer = await owner.post(ROOT, json=body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_request", param)


async def test_an_unknown_connector_or_connection_is_not_found(living: Living) -> None:
    async with living.client() as owner:
        made = await owner.post(ROOT, json={"connector_key": "nothing"})
        assert made.json()["error"]["code"] == "not_found"
        for method, path in (
            ("GET", ""),
            ("POST", "/pause"),
            ("GET", "/rejections"),
        ):
            answer = await owner.request(method, f"{ROOT}/cin_unknown0000000000{path}")
            assert answer.json()["error"]["code"] == "connection_not_found"


async def test_a_name_can_be_given_and_taken_away(living: Living) -> None:
    connection_id = await living.connect()
    async with living.client() as owner:
        named = await owner.patch(f"{ROOT}/{connection_id}", json={"display_name": " Work "})
        bare = await owner.patch(f"{ROOT}/{connection_id}", json={"display_name": None})
    assert named.json()["display_name"] == "Work"
    assert bare.json()["display_name"] is None
    assert bare.json()["label_status"] == "fallback"


async def test_runs_feed_freshness(living: Living) -> None:
    connection_id = await living.connect()
    async with living.client() as owner:
        reported = await owner.post(
            f"{ROOT}/{connection_id}/runs",
            json={"run_id": "run_1", "status": "failed", "at": "2026-03-14T06:30:00Z"},
        )
        bad = await owner.post(
            f"{ROOT}/{connection_id}/runs",
            json={"run_id": "run_1", "status": "done", "at": "2026-03-14T06:30:00Z"},
        )
    assert reported.status_code == 202
    assert reported.json()["freshness"]["status"] == "stale"
    assert reported.json()["last_run"]["run_id"] == "run_1"
    assert bad.json()["error"]["param"] == "status"


async def test_erasing_needs_the_id_again(living: Living) -> None:
    connection_id = await living.connect()
    await living.ingest(
        connection_id, "entries", [{"id": "e1", "created_at": "2026-01-01T00:00:00Z"}]
    )
    async with living.client() as owner:
        path = f"{ROOT}/{connection_id}"
        for query in ("", "?confirm=yes"):
            refused = await owner.delete(path + query)
            assert refused.json()["error"]["code"] == "confirmation_required"
        erased = await owner.delete(f"{path}?confirm={connection_id}")
        assert erased.json() == {
            "object": "deletion",
            "connection_id": connection_id,
            "deleted_count": 1,
            "kept_backups": [],
        }
        assert (await owner.get(path)).status_code == 404


class BusyStore(MemoryStore):
    def erase_connection(self, connection_id: str, now_ns: int) -> int:
        raise ConnectionBusy("A write is under way on this connection.")


async def test_a_connection_is_not_erased_under_a_write() -> None:
    living = Living(store=BusyStore())
    await living.declare_journal()
    connection_id = await living.connect()
    async with living.client() as owner:
        answer = await owner.delete(f"{ROOT}/{connection_id}?confirm={connection_id}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "connection_busy")


async def test_pages_of_connections_laid_end_to_end_are_the_list(living: Living) -> None:
    made = {await living.connect() for _ in range(5)}
    seen: list[str] = []
    async with living.client() as owner:
        path = f"{ROOT}?limit=2&status=draft"
        while path:
            page = (await owner.get(path)).json()
            seen += [row["connection_id"] for row in page["data"]]
            assert page["has_more"] == ("next_cursor" in page)
            path = page["links"]["next"]
        wrong = await owner.get(f"{ROOT}?limit=2&cursor={'A' * 40}")
    assert set(seen) == made
    assert len(seen) == 5
    assert wrong.json()["error"]["code"] == "invalid_cursor"


async def test_rejections_are_listed_newest_first(living: Living) -> None:
    connection_id = await living.connect()
    await living.ingest(connection_id, "entries", [{"id": "e1"}, {"title": 1}])
    async with living.client() as owner:
        page = (await owner.get(f"{ROOT}/{connection_id}/rejections?limit=1")).json()
        rest = (await owner.get(page["links"]["next"])).json()
    assert len(page["data"]) == len(rest["data"]) == 1
    assert page["data"][0]["receipt_id"] != rest["data"][0]["receipt_id"]
    assert rest["has_more"] is False


@pytest.mark.parametrize("path", [ROOT, "/v1/owner/declarations", "/v1/owner/disclosures"])
async def test_client_tokens_stay_outside(living: Living, path: str) -> None:
    connection_id = await living.connect()
    from_grant = living.grant(
        "reader", StreamGrant("entries", (connection_id,), ("id", "created_at"))
    )
    async with living.client(from_grant) as client:
        answer = await client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "permission_error")
