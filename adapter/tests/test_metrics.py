import logging

import pytest

from pdpp_mcp_server.calls import Link, Outcome
from pdpp_mcp_server.metrics import DISTINCT_OUTCOMES, Counts, route_of, telling

pytestmark = pytest.mark.anyio


def refused(code: str) -> Outcome:
    return Outcome({"error": {"code": code}}, f"error {code}", is_error=True)


def test_a_route_names_places_and_never_what_stands_in_them() -> None:
    path = ("v1", "streams", "mail", "records", "m1", "field-window")
    assert route_of(path) == "/v1/streams/{stream}/records/{record}/field-window"
    assert route_of(("v1", "blobs", "b")) == "/v1/blobs/{blob}"
    assert route_of(("v1", "search", "semantic")) == "/v1/search/semantic"


def test_calls_refits_cuts_and_misses_are_counted() -> None:
    counts = Counts()
    counts.note("search", Outcome({}, ""), (10, 10))
    counts.note("query_records", Outcome({}, "", (Link("body", "pdpp://x"),), page_reads=3), (1, 1))
    counts.note("query_records", Outcome({"content_ladder": [{}]}, ""), (1, 45_001))
    counts.note("read_record_field", refused("stale_cursor"), (1, 1))
    assert counts.line() == (
        "mcp counts calls=4 refits=2 cuts=2 stale_cursors=1 budget_misses=1"
        " query_records.ok=2 read_record_field.stale_cursor=1 search.ok=1"
    )


def test_words_of_a_server_never_become_the_log() -> None:
    counts = Counts()
    assert counts.note("fetch", refused("Dear reader,\nmy secret"), (1, 1)) == "other"
    for number in range(DISTINCT_OUTCOMES * 2):
        counts.note("fetch", refused(f"code_{number}"), (1, 1))
    assert len(counts.calls) <= DISTINCT_OUTCOMES + 1
    assert "secret" not in counts.line()


async def test_the_counts_are_told_when_serving_ends(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pdpp_mcp_server")
    async with telling(Counts()):
        pass
    assert caplog.messages == []
    counts = Counts()
    async with telling(counts):
        counts.note("schema", Outcome({}, ""), (1, 1))
    assert caplog.messages == [counts.line()]


async def test_the_counts_are_told_each_time_they_grew(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import anyio  # noqa: PLC0415

    caplog.set_level(logging.INFO, "pdpp_mcp_server")
    monkeypatch.setattr("pdpp_mcp_server.metrics.LOG_SECONDS", 0)
    counts = Counts()
    counts.note("schema", Outcome({}, ""), (1, 1))
    async with telling(counts):
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert caplog.messages == [counts.line()]
