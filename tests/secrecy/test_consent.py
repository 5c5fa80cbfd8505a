"""What a consent page shows of the records stays on the page."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from personal_server.storage.authorization_rows import ROW_TYPES, AuditRow
from server.tests.console.browsing import press
from server.tests.console.household import (
    PEOPLE,
    SUBJECTS,
    Household,
    bank_request,
    mail_request,
    mails,
)


def test_no_record_value_of_a_shown_sample_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "personal_server")
    house = Household()
    browser = house.signed_in()
    for details in (mail_request(), bank_request()):
        path = house.ask(details)
        page = browser.get(path)
        assert "masked sample" in page.text
        press(browser, page, path, "preview")
        press(browser, page, path, "approve")
        press(browser, page, path, "deny")
    rows: list[Any] = [row for table in ROW_TYPES for row in house.rows(table)]
    assert [row for row in rows if isinstance(row, AuditRow)]
    kept = "\n".join(repr(row) for row in rows)
    bodies = [str(mail["body"]) for mail in mails(house.clock.now_ns, 40)]
    for value in (*PEOPLE, *SUBJECTS, *bodies, "Bakery", "Pharmacy"):
        assert value not in kept
        assert value not in caplog.text
