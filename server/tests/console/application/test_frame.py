from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from pdpp_kernel.errors import StorageUnavailable
from personal_server.console.application import SEGMENTS, ConsoleApplication
from personal_server.console.pages import Templates
from personal_server.console.session import PageRoute
from server.tests.console.browsing import Browser
from server.tests.console.household import Household


def failing(error: Exception) -> Any:
    def endpoint(visit: Any) -> Any:
        raise error

    return endpoint


def browser_of(house: Household, error: Exception) -> Browser:
    routes = [PageRoute("GET", "/owner/x", failing(error), open_to_all=True)]
    return replace(
        house.browser(), app=ConsoleApplication(house.sign_in, Templates("Ada's server"), routes)
    )


def test_a_defect_is_a_page_that_tells_nothing_and_a_log_line_that_tells_where(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR, "personal_server.console"):
        page = browser_of(Household(), ValueError("a secret value")).get("/owner/x")
    assert (page.status, page.error) == (500, "internal_error")
    assert "a secret value" not in page.text + caplog.text
    assert "ValueError" in caplog.text
    assert "test_frame.py" in caplog.text


def test_a_store_that_cannot_answer_is_told_as_such() -> None:
    browser = browser_of(Household(), StorageUnavailable("The store is busy."))
    page = browser.get("/owner/x")
    assert (page.status, page.error) == (503, "storage_unavailable")
    told = browser.get("/owner/x", accept="application/json")
    assert '"type":"api_error"' in told.text
    assert '"code":"storage_unavailable"' in told.text


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        ("application/json", "application/json"),
        ("text/html;q=0.5, application/json", "application/json"),
        ("text/html, application/json;q=0.9", "text/html"),
        ("*/*", "text/html"),
        ("text/html;q=x, application/json;q=y", "text/html"),
    ],
)
def test_programs_that_prefer_json_get_it(accept: str, kind: str) -> None:
    page = Household().browser().get("/owner/nothing", accept=accept)
    assert page.status == 404
    assert page.headers["content-type"].startswith(kind)


def test_the_parts_it_answers_for_are_all_routed() -> None:
    house = Household()
    for segment in SEGMENTS - {"assets"}:
        assert house.signed_in().get(f"/{segment}").error in (None, "not_found")
