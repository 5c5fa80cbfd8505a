"""Planted records over the wire: no client can tell one, and every disclosure is an alarm.

Source: docs/contract/resource-server.md 14.6.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from personal_server.collecting.persons import turn_on
from personal_server.storage.authorization_rows import AuditRow, CanaryRow, ReadingAlarmRow
from server.tests.app.whole import Whole, whole
from server.tests.console.browsing import SECOND, marked
from server.tests.console.household import HOME, mail_request

PAGE = "/owner/canaries"
PERSONS = "https://registry.pdpp.dev/connectors/persons"
PERSON = "/v1/streams/persons/records"
PEOPLE = f"{PERSON}?limit=100"
READ = f"/v1/streams/messages/records?connection_id={HOME}"


@pytest.fixture
def site(tmp_path: Path) -> Generator[Whole]:
    with whole(tmp_path) as made:
        page = made.owner.get(PAGE)
        assert made.owner.submit(page, PAGE, place=f"{HOME}/messages").status == 303
        yield made


@pytest.fixture
def token(site: Whole) -> str:
    return site.connect(mail_request())["access_token"]


def canary(site: Whole) -> CanaryRow:
    (row,) = site.owner_rows(CanaryRow)
    return row


def listed(site: Whole, token: str) -> list[dict[str, Any]]:
    page = site.call(f"{READ}&limit=100", token)
    assert page.status == 200
    return site.body(page)["data"]


def alarms(site: Whole) -> list[str]:
    assert site.recorder.flush()
    return [row.rule for row in site.owner_rows(ReadingAlarmRow)]


def test_it_is_a_record_like_any_other_to_a_client(site: Whole, token: str) -> None:
    records = listed(site, token)
    (planted,) = [each for each in records if each["id"] == canary(site).key]
    others = [each for each in records if each is not planted]
    assert len(others) == 40
    assert any(each.keys() == planted.keys() for each in others)
    assert any(each["data"].keys() == planted["data"].keys() for each in others)
    counted = site.body(site.call(f"{READ}&count=exact&limit=1", token))
    assert counted["meta"]["count"]["value"] == 41


def test_each_way_to_get_it_raises_an_alarm(site: Whole, token: str) -> None:
    key = quote(canary(site).key, safe="")
    subject = site.body(site.call(f"/v1/streams/messages/records/{key}", token))["data"]["subject"]
    ways = [
        f"{READ}&limit=100",
        f"/v1/streams/messages/records/{key}",
        f"/v1/streams/messages/records/{key}/field-window?field=subject",
        f"{READ}&changes_since=beginning&limit=100",
        f"/v1/search?streams=messages&limit=100&q={quote(subject)}",
    ]
    for way in ways:
        path = f"/owner/access/{site.body(site.call('/grants/current', token))['grant_id']}"
        alarms(site)
        site.owner.submit(site.owner.get(path), f"{path}/dismiss")
        assert site.call(way, token).status == 200, way
        assert site.recorder.flush()
        open_ = [r for r in site.owner_rows(ReadingAlarmRow) if r.dismissed_at_ns is None]
        assert [row.rule for row in open_] == ["canary"], way
    assert "canary" in marked(site.owner.get("/owner/"), "alarm", "data-rule")
    assert marked(site.owner.get(PAGE), "disclosed")


def test_each_way_to_get_a_person_whom_it_alone_tells_of_raises_its_alarm(site: Whole) -> None:
    connection, _ = turn_on(
        site.server.stores.records, site.clock(), site.server.stores.random_bytes
    )
    where = f"connection_id={connection.connection_id}"
    owner = site.owner_token()["access_token"]
    messages = {each["id"]: each["data"] for each in listed(site, owner)}
    sender = messages[canary(site).key]["from_address"]
    persons = site.body(site.call(PEOPLE, owner))["data"]
    (told_of,) = [each for each in persons if sender in each["data"]["addresses"]]
    shown = [
        key for key, data in messages.items() if key == canary(site).key or sender not in str(data)
    ]
    (asked,) = mail_request(resources=shown)
    people = {"source": {"id": PERSONS}, "streams": [{"name": "persons"}]}
    token = site.connect([asked, asked | people])["access_token"]
    for other in site.body(site.call(f"{PEOPLE}&{where}", owner))["data"]:
        if sender not in other["data"]["addresses"]:
            site.call(f"{PERSON}/{other['id']}?{where}", token)
    assert alarms(site) == []
    for way in (
        f"{PERSON}/{told_of['id']}?{where}",
        f"{PEOPLE}&{where}",
        f"{PERSON}/{told_of['id']}/field-window?field=reachable_at&{where}",
        f"/v1/search?streams=persons&q={quote(sender)}",
    ):
        site.clock.now_ns += SECOND
        assert site.call(way, token).status == 200, way
        assert alarms(site) == ["canary"], way  # the same one, once an hour
        assert canary(site).disclosed_at_ns == site.clock(), way
    assert canary(site).disclosed_to
    (found,) = site.owner_rows(ReadingAlarmRow)
    assert found.detail == {"stream": "messages"}


def test_a_person_whom_other_records_tell_of_too_raises_none(site: Whole) -> None:
    connection, _ = turn_on(
        site.server.stores.records, site.clock(), site.server.stores.random_bytes
    )
    (asked,) = mail_request()
    people = {"source": {"id": PERSONS}, "streams": [{"name": "persons"}]}
    token = site.connect([asked, asked | people])["access_token"]
    where = f"connection_id={connection.connection_id}"
    persons = site.body(site.call(f"{PEOPLE}&{where}", token))["data"]
    assert {"emmy@example.org", "ada@example.org"} <= {
        address for each in persons for address in each["data"]["addresses"]
    }
    assert alarms(site) == []


def test_counts_and_the_owners_own_reads_raise_none(site: Whole, token: str) -> None:
    aggregate = f"/v1/streams/messages/aggregate?metric=count&connection_id={HOME}"
    assert site.body(site.call(aggregate, token))["filtered_record_count"] == 41
    owner = site.owner_token()["access_token"]
    assert len(listed(site, owner)) == 41
    assert alarms(site) == []
    assert canary(site).disclosed_at_ns is None


def test_the_owners_export_leaves_it_out(site: Whole) -> None:
    owner = site.owner_token()["access_token"]
    page = site.call(f"/v1/owner/export?connection_id={HOME}", owner)
    assert canary(site).key not in page.text
    assert json.loads(page.text.splitlines()[-1])["record_count"] == 40


def test_taking_it_out_leaves_nothing(site: Whole, token: str) -> None:
    assert site.owner.submit(site.owner.get(PAGE), f"{PAGE}/remove").status == 303
    assert len(listed(site, token)) == 40
    assert site.owner_rows(CanaryRow) == []
    events = [row.event for row in site.owner_rows(AuditRow)]
    assert events.count("canary.planted") == events.count("canary.removed") == 1


def test_a_place_that_is_none_is_refused(site: Whole) -> None:
    for place in ("", "cin_none/messages", f"{HOME}/none"):
        assert site.owner.submit(site.owner.get(PAGE), PAGE, place=place).status == 400
