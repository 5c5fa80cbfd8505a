from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pdpp_kernel.values import render_instant
from pdpp_sources.bank.reader import DECLARATION as BANK
from personal_server.console.disclosure_lines import HOW, HOW_BY_ROUTE
from personal_server.domain.disclosure import DENIED, AskedDetail
from personal_server.storage.authorization_rows import ReadingAlarmRow
from server.tests.cli.test_disclosures import entry
from server.tests.console.browsing import Browser, allow, marked, numbers, states, words
from server.tests.console.household import CHECKING, DAY, HOME, Household, mail_request

LOG = "/owner/disclosures"
OPENAPI = Path(__file__).parents[1] / "resource_server" / "openapi.json"


def test_sources_tell_what_is_kept_per_account_and_who_reads_it(
    house: Household, browser: Browser
) -> None:
    allow(browser, house.ask(mail_request()))
    house.collect()
    page = browser.get("/owner/records")
    assert states(page) == ["active"] * 3
    totals = dict(zip(marked(page, "account"), numbers(page, "account-total"), strict=True))
    for name, total in (("Home mailbox", 40), ("Work mailbox", 12)):
        assert [count for text, count in totals.items() if name in text] == [total]
    assert any(each.startswith("Your payments") for each in marked(page, "kind"))
    (readers,) = marked(page, "readers")
    assert "Notes app" in readers
    assert len(marked(page, "no-readers")) == 2
    assert "Lunch" not in words(page)


def test_disclosures_are_a_table_with_a_plot(house: Household, browser: Browser) -> None:
    house.disclosures.append_disclosures(
        [
            entry(1, record_count=7),
            entry(2, at_ns=house.clock.now_ns - DAY, record_count=14),
            entry(3, outcome=DENIED, error_code="field_not_granted", record_count=0),
            entry(4, at_ns=house.clock.now_ns - 40 * DAY, record_count=500),
        ]
    )
    page = browser.get("/owner/disclosures")
    assert numbers(page, "plotted") == [21, 30]
    assert numbers(page, "most-of-a-day") == [14]
    assert page.text.count("<rect") == 2
    (refused,) = marked(page, "refused")
    assert "field not granted" in refused
    assert str(HOW["query_records"]) in words(page)


def test_older_disclosures_are_a_page_further(house: Household, browser: Browser) -> None:
    house.disclosures.append_disclosures([entry(number) for number in range(1, 61)])
    page = browser.get("/owner/disclosures")
    assert 'href="/owner/disclosures?before=11"' in page.text
    older = browser.get("/owner/disclosures?before=11")
    assert older.text.count('<th scope="row"') == 10
    assert browser.get("/owner/disclosures?before=x").error == "invalid_request"


def given(house: Household, number: int, asked: str, *keys: str, **members: Any) -> None:
    """An entry of a grant of the home mailbox, with what lies beside it."""
    detail = AskedDetail(b"s" * 32, asked, keys)
    facts: dict[str, Any] = {"connection_id": HOME, "record_count": len(keys), "detail": detail}
    house.disclosures.append_disclosures([entry(number, **facts | members)])


def test_a_line_opens_what_was_asked_and_the_records_that_were_given(
    house: Household, browser: Browser
) -> None:
    asked = "/v1/search?q=secret+lunch&filter%5Bsent_at%5D%5Bgte%5D=2026-01-01&page_chars=9000"
    given(house, 1, asked, "m004", "gone")
    page = browser.get("/owner/disclosures")
    assert 'href="/owner/disclosures/1"' in page.text
    line = browser.get("/owner/disclosures/1")
    (shown,) = marked(line, "asked")
    assert {"secret", "lunch", "sent", "2026-01-01"} <= set(shown.split())
    assert "9000" not in shown
    assert f'href="/owner/records/{HOME}/messages/m004"' in line.text
    assert len(marked(line, "absent")) == 1
    house.disclosures.forget_details(house.clock.now_ns + DAY)
    assert marked(browser.get("/owner/disclosures/1"), "unkept")


def test_the_line_of_a_search_says_the_words_as_long_as_they_are_kept(
    house: Household, browser: Browser
) -> None:
    given(house, 1, "/v1/search?q=secret+lunch&limit=3", "m004", tool="search")
    given(house, 2, "/v1/streams/messages/records?q=other", tool="query_records")
    assert marked(browser.get(LOG), "sought") == ["secret lunch"]
    house.disclosures.forget_details(house.clock.now_ns + DAY)
    assert not marked(browser.get(LOG), "sought")


@pytest.mark.parametrize("number", ["2", "0", "x", "9" * 19])
def test_a_line_that_is_not_there_is_not_found(
    house: Household, browser: Browser, number: str
) -> None:
    given(house, 1, "/v1/schema")
    assert browser.get(f"/owner/disclosures/{number}").error == "not_found"


def test_a_line_names_the_others_of_its_call(house: Household, browser: Browser) -> None:
    given(house, 1, "/v1/schema", request_id="req_7.1", stream="drafts")
    given(house, 2, "/v1/search?q=x", request_id="req_7.2")
    given(house, 3, "/v1/search?q=y", request_id="req_8.1")
    page = browser.get("/owner/disclosures/2")
    assert 'href="/owner/disclosures/1"' in page.text
    assert 'href="/owner/disclosures/3"' not in page.text


def test_many_records_of_a_line_are_pages(house: Household, browser: Browser) -> None:
    given(house, 1, "/v1/streams/messages/records", *(f"m{number:03}" for number in range(60)))
    page = browser.get("/owner/disclosures/1")
    assert 'href="/owner/disclosures/1?from=50"' in page.text
    last = browser.get("/owner/disclosures/1?from=50")
    missing = [len(marked(each, "absent")) for each in (page, last)]
    assert missing == [10, 10]  # the mailbox has 40


def test_the_log_is_seen_by_app_stream_and_day(house: Household, browser: Browser) -> None:
    house.client("cli_notes")
    given(house, 1, "/v1/schema", *"abc", client_id="cli_notes")
    given(house, 2, "/v1/schema", *"ab", at_ns=house.clock.now_ns - DAY, stream="drafts")
    shares = marked(browser.get("/owner/disclosures"), "share")
    for name, records in (("local_my-agent", "2"), ("Notes app", "3"), ("drafts", "2")):
        (share,) = [text for text in shares if text.startswith(name)]
        assert re.findall("[0-9]+", share) == [records, "1"]
    alone = browser.get("/owner/disclosures?client=cli_notes")
    assert numbers(alone, "plotted") == [3, 30]
    assert 'href="/owner/disclosures/2"' not in alone.text
    assert 'href="/owner/disclosures/1"' in alone.text
    assert marked(alone, "condition")[0].startswith("Notes app ")
    of_stream = browser.get("/owner/disclosures?stream=drafts&client=local_my-agent")
    assert 'href="/owner/disclosures/1"' not in of_stream.text
    today = render_instant(house.clock.now_ns)[:10]
    of_day = browser.get(f"/owner/disclosures?day={today}")
    assert 'href="/owner/disclosures/2"' not in of_day.text
    assert of_day.text.count('class="chosen"') == 1
    assert marked(browser.get("/owner/disclosures?day=1990-01-01"), "no-match")
    for day in ("1990-02-30", "yesterday", "1969-12-31"):
        assert browser.get(f"/owner/disclosures?day={day}").error == "invalid_request"


def test_unusual_reading_is_marked_at_its_line(house: Household, browser: Browser) -> None:
    given(house, 1, "/v1/search?q=x")
    given(house, 2, "/v1/search?q=y")
    house.insert(
        ReadingAlarmRow(
            alarm_id="ral_1",
            held_id="grt_1",
            client_id="local_my-agent",
            rule="canary",
            at_ns=entry(2).at_ns,
            detail={"stream": "messages"},
            paused=False,
            dismissed_at_ns=house.clock.now_ns,
        )
    )
    counts = {path: len(marked(browser.get(path), "unusual")) for path in (LOG, f"{LOG}/2")}
    assert counts == {LOG: 1, f"{LOG}/2": 1}
    assert marked(browser.get(f"{LOG}/1"), "unusual") == []


def test_a_log_that_is_looked_at_says_what_came_just_now(
    house: Household, browser: Browser
) -> None:
    given(house, 1, "/v1/schema")
    page = browser.get("/owner/disclosures")
    assert 'data-head="1"' in page.text
    assert not marked(page, "new")
    assert browser.get("/owner/disclosures?after=1&seen=1").status == 204
    given(house, 2, "/v1/search?q=x", "m001", stream="drafts")
    news = browser.get("/owner/disclosures?after=1&seen=1")
    assert 'data-head="2"' in news.text
    (new,) = marked(news, "new")
    assert {"local_my-agent", "1", "drafts"} <= set(new.replace(",", " ").split())
    assert browser.get("/owner/disclosures?after=1&seen=2").status == 204
    assert browser.get("/owner/disclosures?stream=messages&after=1&seen=1").status == 204
    assert browser.get("/owner/disclosures?seen=x").error == "invalid_request"


def test_the_log_alone_runs_the_script_that_looks_for_more(
    house: Household, browser: Browser
) -> None:
    given(house, 1, "/v1/schema")
    page = browser.get("/owner/disclosures")
    policy = page.headers["content-security-policy"]
    assert "script-src 'self'; connect-src 'self';" in policy
    (address,) = re.findall(r'<script src="([^"]+)" defer>', page.text)
    script = house.browser().get(address)
    assert script.status == 200
    assert script.headers["content-type"].startswith("text/javascript")
    for path in ("/owner/disclosures/1", "/owner/disclosures?before=9", "/owner/apps"):
        assert "script" not in browser.get(path).headers["content-security-policy"]


def test_an_empty_log_says_so(browser: Browser) -> None:
    assert marked(browser.get("/owner/disclosures"), "no-reads")


def test_sources_tell_what_their_description_says_otherwise(
    house: Household, browser: Browser
) -> None:
    streams = [{**BANK["streams"][0], "semantics": "append"}, *BANK["streams"][1:]]
    house.declare(
        {**BANK, "declaration_version": "2", "streams": streams, "profiles": ["https://x.example"]}
    )
    page = browser.get(f"/owner/sources/{CHECKING}")
    (adapted,) = marked(page, "adapted")
    assert adapted.startswith("/streams/0/semantics ")
    assert "append_only" in adapted
    (uninterpreted,) = marked(page, "uninterpreted")
    assert "/profiles" in uninterpreted.split()


def test_a_read_says_what_it_did_whichever_way_it_came(house: Household, browser: Browser) -> None:
    published: dict[str, Any] = json.loads(OPENAPI.read_text(encoding="utf-8"))["paths"]
    assert {route.removeprefix("GET ") for route in HOW_BY_ROUTE} <= set(published)
    given(house, 1, "/v1/search?q=x", tool=None, channel="rest", route="GET /v1/search")
    given(house, 2, "/v1/timeline", tool="pdpp_read", route="GET /v1/timeline")
    given(house, 3, "/v1/else", tool="own_tool", route="GET /v1/else")
    said = [marked(browser.get(f"{LOG}/{number}"), "title")[0] for number in (1, 2, 3)]
    routes = (HOW_BY_ROUTE["GET /v1/search"], HOW_BY_ROUTE["GET /v1/timeline"], "mcp own_tool")
    for title, how in zip(said, map(str, routes), strict=True):
        assert title.endswith(how)
