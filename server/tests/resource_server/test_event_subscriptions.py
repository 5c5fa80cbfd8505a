"""Event subscriptions as their callers see them; sending is `server/tests/delivery`."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.grant import StreamGrant
from personal_server.storage.authorization_rows import ReadingLimitsRow, SubscriptionRow
from server.tests.resource_server.living import Living

pytestmark = pytest.mark.anyio

ROOT = "/v1/event-subscriptions"
URL = "https://app.example/hooks"


@pytest.fixture
async def living() -> Living:
    made = Living()
    await made.declare_journal()
    for _ in range(2):
        await made.connect()
    return made


def connections(living: Living) -> list[str]:
    with living.store.snapshot() as snapshot:
        return [each.connection_id for each in snapshot.connections()]


def granted(living: Living, token: str, connection: int = 0) -> str:
    cid = connections(living)[connection]
    made = living.grant(token, StreamGrant("entries", (cid,), ("id", "created_at", "title")))
    allow(living, f"grt_{token}")
    return made


def allow(living: Living, held_id: str, events: bool | None = True) -> None:
    """What the owner decided of a grant or package."""
    of_it = ReadingLimitsRow.held_id.equals(held_id)
    with living.subscriptions.store.write() as writer:
        writer.delete(ReadingLimitsRow, of_it)
        writer.insert(ReadingLimitsRow(held_id=held_id, events=events))


async def post(living: Living, token: str, body: object, query: str = "") -> httpx2.Response:
    async with living.client(token) as client:
        return await client.post(f"{ROOT}{query}", json=body)


async def made(living: Living, token: str, **more: Any) -> dict[str, Any]:
    answer = await post(living, token, {"callback_url": URL, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def patched(living: Living, token: str, made_id: str, body: object) -> httpx2.Response:
    async with living.client(token) as client:
        return await client.patch(f"{ROOT}/{made_id}", json=body)


def refusal(answer: httpx2.Response) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error.get("param")


def activate(living: Living, status: str = "active", reason: str | None = None) -> None:
    with living.subscriptions.store.write() as writer:
        stands = [SubscriptionRow.status.to(status), SubscriptionRow.disabled_reason.to(reason)]
        writer.change(SubscriptionRow, stands)


async def test_what_the_owner_paused_only_the_owner_lets_go_on(living: Living) -> None:
    granted(living, "app")
    new = await made(living, "app")
    activate(living, "disabled", "owner")
    answer = await patched(living, "app", new["subscription_id"], {"enabled": True})
    assert refusal(answer)[:2] == (409, "invalid_state")
    elsewhere = {"callback_url": f"{URL}/2"}
    answer = await patched(living, "app", new["subscription_id"], elsewhere)
    assert refusal(answer)[:2] == (409, "invalid_state")


@pytest.mark.parametrize("decided", [None, False])
async def test_who_was_not_allowed_to_be_told_cannot_ask(
    living: Living, decided: bool | None
) -> None:
    granted(living, "app")
    new = await made(living, "app")
    allow(living, "grt_app", decided)
    refused = (403, "events_not_granted")
    answer = await post(living, "app", {"callback_url": URL})
    assert refusal(answer)[:2] == refused
    assert "authorization_details" in answer.json()["error"]["next_step"]
    activate(living, "disabled", "client")
    for changes in ({"enabled": True}, {"callback_url": f"{URL}/2"}):
        answer = await patched(living, "app", new["subscription_id"], changes)
        assert refusal(answer)[:2] == refused
    await made(living, "owner")  # who asks nobody


async def test_a_new_one_waits_for_its_address_and_shows_its_secret_once(living: Living) -> None:
    granted(living, "app")
    new = await made(living, "app")
    assert new["secret"].startswith("whsec_")
    assert new["status"] == "pending_verification"
    assert new["scope"]["streams"] == ["entries"]
    assert (new["authority_kind"], new["grant_id"]) == ("client_grant", "grt_app")
    async with living.client("app") as client:
        one = (await client.get(f"{ROOT}/{new['subscription_id']}")).json()
        listed = (await client.get(ROOT)).json()["data"]
    assert "secret" not in one
    assert [each["subscription_id"] for each in listed] == [new["subscription_id"]]


async def test_nobody_else_sees_it(living: Living) -> None:
    granted(living, "app")
    granted(living, "other")
    new = await made(living, "app")
    for token in ("other", "owner"):
        async with living.client(token) as client:
            one = await client.get(f"{ROOT}/{new['subscription_id']}")
            gone = await client.delete(f"{ROOT}/{new['subscription_id']}")
            listed = (await client.get(ROOT)).json()["data"]
        assert refusal(one)[:2] == refusal(gone)[:2] == (404, "not_found")
        assert listed == []


async def test_the_owners_own_has_no_grant(living: Living) -> None:
    new = await made(living, "owner")
    assert (new["authority_kind"], new["grant_id"]) == ("owner", None)
    assert len(new["scope"]["connection_ids"]) == 2


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("http://app.example/", ("93.184.215.14",)),
        ("https://app.example:25/", ("93.184.215.14",)),
        ("https://a:b@app.example/", ("93.184.215.14",)),
        ("https://app.example/#here", ("93.184.215.14",)),
        ("https://app.example/" + "x" * 2_048, ("93.184.215.14",)),
        ("https://app.example/", ("93.184.215.14", "10.0.0.1")),
        ("https://app.example/", ("::ffff:127.0.0.1",)),
        ("https://app.example/", ("64:ff9b::a00:1",)),
        ("https://app.example/", tuple(f"93.184.215.{n}" for n in range(9))),
        ("https://app.example/", ()),
        ("https:///hooks", ()),
        ("hooks", ()),
        ("https://ap p.example/", ()),
        ("https://[::1", ()),
        ("https://app.example:x/", ()),
    ],
)
async def test_addresses_that_may_not_be_called_are_refused(
    living: Living, url: str, addresses: tuple[str, ...]
) -> None:
    granted(living, "app")
    living.hosts["app.example"] = addresses
    answer = await post(living, "app", {"callback_url": url})
    assert refusal(answer) == (400, "invalid_callback", "callback_url")


async def test_filters_name_what_can_be_read(living: Living) -> None:
    granted(living, "app")
    first, second = connections(living)
    new = await made(living, "app", filters={"streams": ["entries"], "connection_ids": [first]})
    assert new["scope"]["connection_ids"] == [first]
    for filters, code in (
        ({"streams": ["comments"]}, (403, "grant_stream_not_allowed")),
        ({"connection_ids": [second]}, (404, "connection_not_found")),
    ):
        answer = await post(living, "app", {"callback_url": URL, "filters": filters})
        assert refusal(answer)[:2] == code
        answer = await patched(living, "app", new["subscription_id"], {"filters": filters})
        assert refusal(answer)[:2] == code


async def test_a_package_names_the_connection(living: Living) -> None:
    granted(living, "a")
    granted(living, "b", 1)
    living.package("both", "a", "b")
    allow(living, "gpkg_both")
    assert refusal(await post(living, "both", {"callback_url": URL}))[:2] == (
        409,
        "ambiguous_connection",
    )
    second = connections(living)[1]
    answer = await post(living, "both", {"callback_url": URL}, f"?connection_id={second}")
    assert answer.status_code == 201
    assert answer.json()["grant_id"] == "grt_b"
    assert answer.json()["scope"]["connection_ids"] == [second]
    async with living.client("b") as client:
        assert (await client.get(ROOT)).json()["data"] == []


async def test_an_access_has_ten_at_most(living: Living) -> None:
    granted(living, "app")
    for _ in range(10):
        await made(living, "app")
    assert refusal(await post(living, "app", {"callback_url": URL}))[:2] == (409, "limit_reached")


@pytest.mark.parametrize(
    ("status", "enabled", "then", "code"),
    [
        ("active", False, "disabled", None),
        ("disabled", False, "disabled", None),
        ("disabled", True, "active", None),
        ("active", True, "active", None),
        ("disabled_failure", True, "pending_verification", None),
        ("pending_verification", True, "pending_verification", "verification_pending"),
        ("pending_verification", False, "pending_verification", "invalid_state"),
        ("disabled_failure", False, "disabled_failure", "invalid_state"),
        ("disabled_revoked", True, "disabled_revoked", "invalid_state"),
    ],
)
async def test_switching_on_and_off(
    living: Living, status: str, enabled: bool, then: str, code: str | None
) -> None:
    granted(living, "app")
    new = await made(living, "app")
    activate(living, status, "client" if status == "disabled" else None)
    answer = await patched(living, "app", new["subscription_id"], {"enabled": enabled})
    assert (answer.json()["error"]["code"] if code else answer.status_code) == (code or 200)
    async with living.client("app") as client:
        one = (await client.get(f"{ROOT}/{new['subscription_id']}")).json()
    assert one["status"] == then


async def test_another_address_is_asked_first(living: Living) -> None:
    granted(living, "app")
    living.hosts["new.example"] = ("93.184.215.15",)
    new = await made(living, "app")
    activate(living)
    moved = {"callback_url": "https://new.example/"}
    answer = await patched(living, "app", new["subscription_id"], moved)
    assert answer.json()["status"] == "pending_verification"
    assert answer.json()["callback_url"] == "https://new.example/"
    answer = await patched(
        living, "app", new["subscription_id"], {"callback_url": "https://no.example/"}
    )
    assert refusal(answer)[:2] == (400, "invalid_callback")


async def test_an_address_is_asked_five_times_an_hour(living: Living) -> None:
    granted(living, "app")
    new = await made(living, "app")
    codes = [
        refusal(await patched(living, "app", new["subscription_id"], {"enabled": True}))[:2]
        for _ in range(5)
    ]
    assert codes == [(409, "verification_pending")] * 4 + [(429, "rate_limit_exceeded")]
    living.clock.now_ns += 3_600 * NANOSECONDS
    again = await patched(living, "app", new["subscription_id"], {"enabled": True})
    assert refusal(again)[:2] == (409, "verification_pending")


async def test_a_secret_is_rotated(living: Living) -> None:
    granted(living, "app")
    new = await made(living, "app")
    answer = await patched(living, "app", new["subscription_id"], {"rotate_secret": True})
    assert answer.json()["secret"].startswith("whsec_")
    assert answer.json()["secret"] != new["secret"]
    with living.subscriptions.store.read() as reader:
        (row,) = reader.rows(SubscriptionRow)
    assert row.old_secret is not None
    box = living.subscriptions.secrets
    assert box.open(row.secret, row.subscription_id) != box.open(
        row.old_secret, row.subscription_id
    )


async def test_a_test_event_is_sent_to_an_active_one_once_a_minute(living: Living) -> None:
    granted(living, "app")
    new = await made(living, "app")
    path = f"{ROOT}/{new['subscription_id']}/test-event"
    async with living.client("app") as client:
        assert refusal(await client.post(path))[:2] == (409, "invalid_state")
        activate(living)
        sent = await client.post(path)
        assert sent.status_code == 202
        assert sent.json()["event_id"].startswith("evt_")
        assert refusal(await client.post(path))[:2] == (429, "rate_limit_exceeded")
        living.clock.now_ns += 60 * NANOSECONDS
        assert (await client.post(path)).status_code == 202


async def test_deleting_it_is_final(living: Living) -> None:
    granted(living, "app")
    new = await made(living, "app")
    async with living.client("app") as client:
        assert (await client.delete(f"{ROOT}/{new['subscription_id']}")).status_code == 204
        again = await client.delete(f"{ROOT}/{new['subscription_id']}")
        assert (await client.get(ROOT)).json()["data"] == []
    assert refusal(again)[:2] == (404, "not_found")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"callback_url": 1},
        {"callback_url": URL, "more": 1},
        {"callback_url": URL, "filters": {"streams": "entries"}},
        {"callback_url": URL, "filters": {"streams": ["s"] * 65}},
        [],
    ],
)
async def test_bodies_of_another_shape_are_refused(living: Living, body: object) -> None:
    granted(living, "app")
    assert refusal(await post(living, "app", body))[:2] == (400, "invalid_request")
