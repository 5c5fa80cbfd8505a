"""What is told of what happened, and what is not."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import cast

import pytest

from personal_server.delivery.subscription_scopes import Filters
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.cursor import TokenUse
from personal_server.domain.grant import ContentLimit
from personal_server.enforcement.queries import ChangesQuery, Selectors
from personal_server.granting.audit import SERVER
from personal_server.granting.pauses import pause_access, resume_access
from personal_server.granting.revocations import end_grant
from personal_server.reading.changes import follow
from personal_server.reading.tokens import TokenHolder
from personal_server.storage.authorization_rows import AuditRow, GrantRow
from server.tests.delivery.notes import URI, A, B, delete, grant_of, write
from server.tests.delivery.post_office import PostOffice, Received

pytestmark = pytest.mark.anyio

FORBIDDEN = re.compile(rb"at 17|n1|n2")


def keys_from(office: PostOffice, holder: TokenHolder, event: Received) -> list[tuple[str, bool]]:
    """What a receiver reads from the bookmark it was told."""
    data = event.data
    query = ChangesQuery(
        data["stream"], Selectors(data["connection_id"]), changes_since=data["changes_since"]
    )
    authority = office.authority(holder)
    with office.store.snapshot() as snapshot:
        items = cast(list[bytes], follow(office.ports, snapshot, authority, query).data)
    found = [json.loads(bytes(item)) for item in items]
    return [(item["id"], bool(item.get("deleted"))) for item in found]


async def test_a_change_is_told_as_a_bookmark_and_nothing_else(
    office: PostOffice, app: TokenHolder
) -> None:
    await office.subscribe(app)
    write(office, "n1", "n2")
    (event,) = await office.told()
    assert event.event | {"id": "", "time": "", "source": ""} == {
        "specversion": "1.0",
        "pdppversion": "1",
        "id": "",
        "type": "pdpp.records.changed",
        "source": "",
        "time": "",
        "data": event.data,
    }
    assert set(event.data) == {
        "subscription_id",
        "stream",
        "connection_id",
        "connector_key",
        "change_count_hint",
        "changes_since",
    }
    assert event.data["change_count_hint"] == 2
    assert event.data["changes_since"].startswith(TokenUse.BOOKMARK.letter)
    assert not FORBIDDEN.search(event.body.replace(event.data["changes_since"].encode(), b""))
    assert keys_from(office, app, event) == [("n1", False), ("n2", False)]
    assert event.headers["content-type"] == "application/cloudevents+json; charset=utf-8"
    assert event.headers["webhook-id"] == event.event["id"]


async def test_what_is_hidden_is_silent(office: PostOffice) -> None:
    app = office.grant(grant_of("grt_app", A, resources=("n1", "n2")))
    write(office, "n1", title="t")
    await office.subscribe(app)
    write(office, "n1", title="t", mood="calm")
    assert await office.told() == []  # a field that was not granted
    write(office, "n3")
    assert await office.told() == []  # a record that was not
    write(office, "n2", at="2025-01-01T00:00:00Z")
    assert await office.told() == []  # before the granted time
    write(office, "n1", connection=B)
    assert await office.told() == []  # another account
    write(office, "b1", stream="files", name="f")
    assert await office.told() == []  # another stream
    write(office, "n1", title="other")
    assert len(await office.told()) == 1


async def test_what_a_limit_leaves_out_is_silent_and_a_departure_is_told(
    office: PostOffice,
) -> None:
    app = office.grant(grant_of("grt_app", A, only=(ContentLimit("mood", ("calm",)),)))
    write(office, "n1", title="t", mood="Calm")
    write(office, "n2", title="t", mood="wild")
    await office.subscribe(app)
    write(office, "n2", title="other", mood="wild")
    write(office, "n3", title="new", mood="person")
    assert await office.told() == []
    write(office, "n1", title="t", mood="wild")
    write(office, "n2", title="other", mood="CALM")
    (event,) = await office.told()
    assert keys_from(office, app, event) == [("n1", True), ("n2", False)]


async def test_what_came_and_went_before_it_was_told_is_silent(
    office: PostOffice, app: TokenHolder
) -> None:
    await office.subscribe(app)
    write(office, "n1")
    delete(office, "n1")
    assert await office.told() == []


async def test_deletions_and_departures_are_told(office: PostOffice, app: TokenHolder) -> None:
    write(office, "n1", "n2", "n3")
    await office.subscribe(app)
    delete(office, "n1")
    (event,) = await office.told()
    assert keys_from(office, app, event) == [("n1", True)]
    write(office, "n2", at="2025-01-01T00:00:00Z")
    (event,) = await office.told()
    assert keys_from(office, app, event) == [("n2", True)]
    office.store.delete_stream(A, "notes", office.now_ns)
    (event,) = await office.told()
    assert keys_from(office, app, event) == [("n3", True)]


async def test_changes_of_five_seconds_are_one_event_of_each_place(office: PostOffice) -> None:
    app = office.grant(grant_of("grt_app", A, B))
    await office.subscribe(app)
    arrived: list[Received] = []
    for turn in range(12):
        write(office, f"n{turn}")
        write(office, f"n{turn}", connection=B)
        arrived += await office.pass_time(1)
    arrived += await office.pass_time(5)
    for place in (A, B):
        times = [e.at_ns for e in arrived if e.data["connection_id"] == place]
        assert 2 <= len(times) <= 3
        assert all(b - a >= 5_000_000_000 for a, b in pairwise(times))
        hints = [e.data["change_count_hint"] for e in arrived if e.data["connection_id"] == place]
        assert sum(hints) >= 12


async def test_a_filter_narrows_what_is_told(office: PostOffice) -> None:
    app = office.grant(grant_of("grt_app", A, B, streams=("notes", "files")))
    await office.subscribe(app, filters=Filters(("notes",), (B,)))
    write(office, "n1")
    write(office, "f1", stream="files", name="f", connection=B)
    assert await office.told() == []
    write(office, "n1", connection=B)
    (event,) = await office.told()
    assert (event.data["stream"], event.data["connection_id"]) == ("notes", B)


async def test_the_owner_is_told_of_everything(office: PostOffice) -> None:
    await office.subscribe(office.owner())
    write(office, "n1", at="1999-01-01T00:00:00Z")
    write(office, "f1", stream="files", connection=B)
    told = {(e.data["connection_id"], e.data["stream"]) for e in await office.told()}
    assert told == {(A, "notes"), (B, "files")}


async def test_while_an_access_is_paused_nothing_is_told_and_nothing_lost(
    office: PostOffice, app: TokenHolder
) -> None:
    await office.subscribe(app)
    with office.authorization.write() as writer:
        pause_access(writer, "grt_app", SERVER, office.now_ns)
    write(office, "n1")
    assert await office.told() == []
    with office.authorization.write() as writer:
        resume_access(writer, "grt_app", SERVER, office.now_ns)
    (event,) = await office.pass_time(30)
    assert keys_from(office, app, event) == [("n1", False)]


async def test_an_access_that_ended_is_told_once_and_then_nothing(
    office: PostOffice, app: TokenHolder
) -> None:
    made = await office.subscribe(app)
    write(office, "n1")
    with office.authorization.write() as writer:
        end_grant(writer, "grt_app", "owner", SERVER, office.now_ns)
    (event,) = [*await office.pass_time(30), *await office.pass_time(30)]
    assert (event.type, event.data["reason"]) == ("grant.revoked", "revoked")
    assert office.row(made).status == "disabled_revoked"
    write(office, "n2")
    assert await office.told() == []
    with office.authorization.read() as reader:
        names = [row.event for row in reader.rows(AuditRow)]
    assert names[-1] == "subscription.ended"


async def test_an_access_past_its_end_is_told_so(office: PostOffice, app: TokenHolder) -> None:
    await office.subscribe(app)
    office.change_grant(app, GrantRow.expires_at_ns.to(office.now_ns + 1))
    (event,) = await office.pass_time(60)
    assert (event.type, event.data["reason"]) == ("grant.revoked", "expired")


async def test_an_access_that_ends_between_event_and_sending_is_silent(
    office: PostOffice, app: TokenHolder
) -> None:
    await office.subscribe(app)
    write(office, "n1")
    office.deliveries.turn()
    office.now_ns += 5_000_000_000
    with office.authorization.write() as writer:
        end_grant(writer, "grt_app", "owner", SERVER, office.now_ns)
    types = [event.type for event in await office.pass_time(30)]
    assert types == ["grant.revoked"]


async def test_what_is_narrowed_between_event_and_sending_is_not_told(
    office: PostOffice, app: TokenHolder
) -> None:
    await office.subscribe(app)
    write(office, "n1")
    await office.pass_time(0)
    office.now_ns += 5_000_000_000
    office.events.gather(office.now_ns, ends=True)
    assert len(office.queued()) == 1

    def revoked(one: Connection) -> Connection:
        return Connection(
            one.connection_id, one.connector_key, URI, None, ConnectionStatus.REVOKED, 1, 2
        )

    office.store.update_connection(A, revoked)
    assert await office.pass_time(0) == []
    assert office.queued() == []


async def test_where_the_changes_are_forgotten_the_beginning_is_told(
    office: PostOffice, app: TokenHolder
) -> None:
    write(office, "n1")
    await office.subscribe(app)
    write(office, "n2")
    await office.pass_time(0)
    office.store.prune_history(2**62)
    (event,) = await office.pass_time(5)
    assert event.data["changes_since"] == "beginning"
    assert sorted(keys_from(office, app, event)) == [("n1", False), ("n2", False)]
