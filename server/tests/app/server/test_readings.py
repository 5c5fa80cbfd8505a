"""How much a grant may read, and what was unusual in what it read, over the wire.

Source: docs/contract/resource-server.md 14.5, 16.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from personal_server.storage.authorization_rows import AuditRow, GrantRow, ReadingAlarmRow
from server.tests.app.whole import Whole, whole
from server.tests.console.browsing import SECOND, marked, numbers
from server.tests.console.household import mail_request

DAY = 86_400 * SECOND
READ = "/v1/streams/messages/records"


@pytest.fixture
def site(tmp_path: Path) -> Generator[Whole]:
    with whole(tmp_path, pause_on_alarm="always") as made:
        yield made


def limited(site: Whole, **limits: str) -> dict[str, Any]:
    """The tokens of a grant that its owner limits on its page."""
    tokens = site.connect(mail_request())
    path = f"/owner/access/{tokens['grant_id']}"
    assert site.owner.submit(site.owner.get(path), f"{path}/limits", **limits).status == 303
    return tokens


def refusal(site: Whole, path: str, token: str) -> dict[str, Any]:
    page = site.call(path, token)
    assert (page.status, site.body(page)["error"]["code"]) == (429, "quota_exceeded")
    assert int(page.headers["retry-after"]) == site.body(page)["error"]["retry_after_seconds"]
    return site.body(page)["error"]


def warned(site: Whole, path: str, token: str) -> list[dict[str, Any]]:
    page = site.call(path, token)
    assert page.status == 200, page.text
    return [w for w in site.body(page)["meta"]["warnings"] if w["code"] == "budget_low"]


def test_a_budget_is_told_before_it_ends_and_begins_anew_with_the_day(site: Whole) -> None:
    tokens = limited(site, records_per_day="20")
    token = tokens["access_token"]
    assert warned(site, f"{READ}?limit=17", token) == []
    (warning,) = warned(site, f"{READ}?limit=1", token)
    assert warning["detail"]["remaining"] == 3
    error = refusal(site, f"{READ}?limit=5", token)
    assert (error["limit"], error["remaining"]) == ("records", 2)
    assert error["recovery"] == {"limit": 2}
    assert site.call(f"{READ}?limit=2", token).status == 200
    assert refusal(site, f"{READ}?limit=1", token)["remaining"] == 0
    assert site.call(f"{READ}?limit=1&filter[subject]=nothing", token).status == 200
    site.clock.now_ns += DAY - site.clock.now_ns % DAY
    form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    renewed = site.token(**form)["access_token"]
    assert warned(site, f"{READ}?limit=17", renewed) == []


def test_a_budget_can_be_set_with_the_approval(site: Whole) -> None:
    token = site.connect(mail_request(), records_per_day="5")["access_token"]
    assert refusal(site, f"{READ}?limit=6", token)["remaining"] == 5
    assert site.call(f"{READ}?limit=5", token).status == 200


@pytest.mark.parametrize("limit", ["requests", "bytes"])
def test_requests_and_bytes_have_budgets_too(site: Whole, limit: str) -> None:
    token = limited(site, **{f"{limit}_per_day": "2"})["access_token"]
    if limit == "requests":
        assert site.call("/v1/schema", token).status == 200
        assert site.call("/v1/schema", token).status == 200
    assert refusal(site, f"{READ}?limit=1", token)["limit"] == limit


def test_a_budget_set_later_counts_what_was_read_before(site: Whole) -> None:
    tokens = site.connect(mail_request())
    assert site.call(f"{READ}?limit=8", tokens["access_token"]).status == 200
    path = f"/owner/access/{tokens['grant_id']}"
    assert numbers(site.owner.get(path), "limits") == []
    site.owner.submit(site.owner.get(path), f"{path}/limits", records_per_day="10")
    assert refusal(site, f"{READ}?limit=3", tokens["access_token"])["remaining"] == 2
    shown = site.owner.get(path)
    assert numbers(shown, "limits") == [10]
    assert numbers(shown, "today")[0] == 8
    site.owner.submit(site.owner.get(path), f"{path}/limits", records_per_day="")
    assert site.call(f"{READ}?limit=30", tokens["access_token"]).status == 200


@pytest.mark.parametrize(
    "limits", [{"records_per_day": "many"}, {"pauses": "perhaps"}, {"result_chars": "19999"}]
)
def test_a_limit_that_is_none_is_refused(site: Whole, limits: dict[str, str]) -> None:
    path = f"/owner/access/{site.connect(mail_request())['grant_id']}"
    form = dict(site.owner.get(path).form(f"{path}/limits")) | limits
    assert site.owner.post(f"{path}/limits", list(form.items())).status == 400


def test_probing_pauses_the_grant_and_is_shown_until_its_owner_saw_it(site: Whole) -> None:
    tokens = site.connect(mail_request())
    for number in range(20):
        assert site.call(f"{READ}/none{number}", tokens["access_token"]).status == 404
    assert site.recorder.flush()
    refused = site.call(f"{READ}?limit=1", tokens["access_token"])
    assert (refused.status, site.body(refused)["error"]["code"]) == (403, "grant_paused")
    assert "alarm" not in refused.text
    assert [row.rule for row in site.owner_rows(ReadingAlarmRow)] == ["unknown_keys"]
    path = f"/owner/access/{tokens['grant_id']}"
    for page in ("/owner/", path):
        assert marked(site.owner.get(page), "alarm", "data-rule") == ["unknown_keys"]
    assert marked(site.owner.get("/owner/access"), "unusual")
    assert site.owner.submit(site.owner.get(path), f"{path}/dismiss").status == 303
    assert site.owner.submit(site.owner.get(path), f"{path}/resume").status == 303
    assert not marked(site.owner.get("/owner/"), "alarm")
    assert site.call(f"{READ}?limit=1", tokens["access_token"]).status == 200
    assert site.owner_rows(GrantRow)[0].hold == "none"
    events = [row.event for row in site.owner_rows(AuditRow)]
    assert events.count("reading.unusual") == events.count("reading.dismissed") == 1
