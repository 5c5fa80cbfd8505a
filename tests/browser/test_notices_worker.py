"""Where a click on a notice leads, in a browser's own JavaScript."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import pytest

from personal_server.console.static_files import NOTICES_WORKER
from tests.browser.chromium import chromium

pytestmark = pytest.mark.browser
ORIGIN = "http://127.0.0.1:7662"
# A worker's `self` with the windows that are open; its answer is what a click opened or focused.
CLICK = """
const [source, urls, page, done] = arguments;
const heard = {};
const windows = urls.map((url) => ({ url, focus: async () => done(['focused', url]) }));
new Function('self', source)({
  addEventListener: (name, handler) => { heard[name] = handler; },
  clients: { matchAll: async () => windows, openWindow: async (url) => done(['opened', url]) },
});
heard.notificationclick({ notification: { close() {}, data: page }, waitUntil() {} });
"""


@pytest.mark.parametrize(
    ("windows", "done"),
    [
        ((), ["opened", "/owner/disclosures"]),
        (("/docs",), ["opened", "/owner/disclosures"]),
        (("/docs", "/~p1ace/owner/records"), ["opened", "/~p1ace/owner/disclosures"]),
        (("/~p1ace/owner/disclosures?day=x",), ["focused", "/~p1ace/owner/disclosures?day=x"]),
        (("/owner/disclosures",), ["focused", "/owner/disclosures"]),
    ],
    ids=["none", "of nobody", "signed in at a place", "there already", "with a domain"],
)
def test_a_click_opens_the_page_that_the_notice_is_about_where_the_owner_is_signed_in(
    windows: tuple[str, ...], done: list[str]
) -> None:
    urls = [f"{ORIGIN}{path}" for path in windows]
    with chromium() as driver:
        found: Any = driver.execute_async_script(
            CLICK, NOTICES_WORKER.decode(), urls, "/owner/disclosures"
        )
    assert found[0] == done[0]
    assert found[1].removeprefix(ORIGIN) == done[1]
