"""What every store of disclosures does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from personal_server.domain.disclosure import DENIED, SERVED, AskedDetail, DisclosureEntry
from personal_server.storage.ports.disclosure_stores import (
    DisclosureQuery,
    DisclosureStore,
    ShareOf,
)
from personal_server.storage.sql.logs.disclosures import SqlDisclosures
from tests.new_files import new_file
from tests.oracle.disclosure_memory import MemoryDisclosures
from tests.postgresql import postgres_database

FIRST = DisclosureEntry(
    disclosure_id="dis_1",
    subject_id="sub_1",
    at_ns=100,
    request_id="req_1",
    outcome=SERVED,
    token_kind="client",
    channel="mcp",
    route="GET /v1/search",
    client_id="planner",
    grant_id="grt_1",
    tool="search",
    connector_key="mail",
    connection_id="cin_1",
    stream="messages",
    fields=("id", "subject"),
    record_count=7,
    size_bytes=512,
)
SECOND = replace(FIRST, disclosure_id="dis_2", at_ns=200, grant_id="grt_2", record_count=1)
REFUSED = replace(
    FIRST, disclosure_id="dis_3", at_ns=300, outcome=DENIED, error_code="field_not_granted"
)


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DisclosureStore]:
    if request.param == "memory":
        yield MemoryDisclosures()
        return
    if request.param == "postgres":
        with postgres_database(tmp_path) as database:
            yield SqlDisclosures(database, "sub_1")
        return
    file = new_file(tmp_path / "store" / "db.sqlite3")
    yield SqlDisclosures(file, "sub_1")
    file.close()


def ids(store: DisclosureStore, query: DisclosureQuery) -> list[str]:
    return [entry.disclosure_id for _, entry in store.disclosures(query)]


def test_entries_come_back_whole_newest_first(store: DisclosureStore) -> None:
    store.append_disclosures([FIRST, SECOND])
    store.append_disclosures([REFUSED])
    assert [e for _, e in store.disclosures(DisclosureQuery(10))] == [REFUSED, SECOND, FIRST]


def test_queries_narrow_by_member_and_time(store: DisclosureStore) -> None:
    store.append_disclosures([FIRST, SECOND, REFUSED])
    assert ids(store, DisclosureQuery(10, (("grant_id", "grt_1"),))) == ["dis_3", "dis_1"]
    assert ids(store, DisclosureQuery(10, (("outcome", "denied"),))) == ["dis_3"]
    assert ids(store, DisclosureQuery(10, since_ns=200, until_ns=300)) == ["dis_2"]


def test_pages_continue_below_the_last_number(store: DisclosureStore) -> None:
    store.append_disclosures([FIRST, SECOND, REFUSED])
    ((number, _), *_) = store.disclosures(DisclosureQuery(1))
    assert ids(store, DisclosureQuery(1, below=number)) == ["dis_2"]


def test_day_totals_count_what_was_served(store: DisclosureStore) -> None:
    store.append_disclosures([FIRST, SECOND, REFUSED])
    assert store.disclosed_since("grt_1", 0) == (7, 512)
    assert store.disclosed_since("grt_1", 101) == (0, 0)


def test_old_entries_are_forgotten(store: DisclosureStore) -> None:
    store.append_disclosures([FIRST, SECOND])
    store.forget_disclosures(150)
    assert ids(store, DisclosureQuery(10)) == ["dis_2"]


DAY_NS = 86_400_000_000_000


def by(store: DisclosureStore, of: ShareOf, **members: Any) -> dict[str, tuple[int, int]]:
    asked: dict[str, Any] = {"limit": 10, **members}
    query = DisclosureQuery(**asked)
    return {each.name: (each.record_count, each.answer_count) for each in store.shares(of, query)}


def test_what_was_served_is_counted_by_day_app_and_stream(store: DisclosureStore) -> None:
    later = replace(FIRST, disclosure_id="dis_4", at_ns=3 * DAY_NS + 5)
    store.append_disclosures([FIRST, SECOND, REFUSED, later])
    other = replace(later, disclosure_id="dis_5", client_id="notes", stream=None, record_count=0)
    store.append_disclosures([replace(later, at_ns=3 * DAY_NS + 6), other])
    store.append_disclosures([replace(SECOND, client_id=None)])
    assert by(store, "day") == {"0": (9, 3), "3": (14, 3)}
    assert by(store, "day", since_ns=3 * DAY_NS + 17) == {"3": (14, 3)}
    assert by(store, "day", until_ns=3 * DAY_NS) == {"0": (9, 3)}
    assert by(store, "day", equal=(("client_id", "notes"),)) == {"3": (0, 1)}
    assert by(store, "client_id") == {"planner": (22, 4), "": (1, 1), "notes": (0, 1)}
    assert by(store, "client_id", limit=1) == {"planner": (22, 4)}
    assert by(store, "stream") == {"messages": (23, 5), "": (0, 1)}
    assert by(store, "stream", equal=(("client_id", "planner"), ("stream", "notes"))) == {}
    store.forget_disclosures(DAY_NS)
    assert by(store, "day") == {"3": (14, 3)}


def test_what_was_asked_lies_beside_an_entry_and_goes_before_it(store: DisclosureStore) -> None:
    detail = AskedDetail(b"s" * 32, "/v1/search?q=rain", ("ent_1", "ent_2"))
    store.append_disclosures([FIRST, replace(SECOND, detail=detail)])
    numbers = [number for number, _ in store.disclosures(DisclosureQuery(10))]
    assert list(store.asked_details(numbers).values()) == [detail]
    place = (SECOND.connection_id or "", SECOND.stream or "")
    assert [number for number, _ in store.disclosures_of(*place, "ent_2", 10)] == [2]
    assert store.disclosures_of(*place, "ent_3", 10) == ()
    assert store.disclosures_of(*place, "ent_2", 0) == ()
    assert store.disclosures_of("cin_else", place[1], "ent_2", 10) == ()
    store.forget_details(200)
    assert store.asked_details(numbers) != {}
    store.forget_details(201)
    assert store.asked_details(numbers) == {}
    assert ids(store, DisclosureQuery(10)) == ["dis_2", "dis_1"]
