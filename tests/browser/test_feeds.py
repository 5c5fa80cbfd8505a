"""A mailbox kept up to date from a browser, by the keyboard alone and without a script."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from server.tests.app.test_mailbox_runs import put, signed_in
from tests.browser.chromium import chromium
from tests.browser.keyboard import Keyboard
from tests.browser.site import Owner, site
from tests.dovecot import PASSWORD, USER, mail_server, needs_dovecot

pytestmark = pytest.mark.browser


@needs_dovecot
def test_a_mailbox_is_signed_in_to_chosen_and_read_by_the_keyboard_alone(tmp_path: Path) -> None:
    with mail_server() as server, site(tmp_path) as running, chromium(scripts=False) as driver:
        with signed_in(server) as client:
            put(client, "INBOX", range(12))
            put(client, "Junk", range(12, 14))
        owner, keys = Owner(driver, running), Keyboard(driver)
        owner.sign_in()
        owner.open(f"{running.origin}/owner/records")
        begun = time.monotonic()
        keys.follow("link", "Keep up to date", "Keep up to date")
        keys.reach("textbox", "Mail address")
        keys.press(USER)
        keys.reach("textbox", "App password")
        keys.press(PASSWORD)
        keys.unfold("Another provider")
        keys.reach("textbox", "Mail server")
        keys.press(f"127.0.0.1:{server.port}")
        keys.follow("button", "Sign in", USER)
        folders = [each.text.split() for each in owner.all('[data-field="folder"]')]
        assert folders == [["INBOX", "12"], ["Junk", "2"]]
        keys.tick("INBOX")
        keys.reach("button", "Keep these folders up to date")
        keys.press(Keys.ENTER)
        owner.shows('[data-field="whose"]')  # two mailboxes of the house may hold the same
        keys.reach("radio", "Home mailbox")
        keys.press(Keys.ARROW_UP, Keys.SPACE)
        keys.reach("button", "Continue")
        keys.press(Keys.ENTER)
        owner.shows('[data-field="account"]')
        owner.shows('main[data-state="waiting"]')
        assert owner.find('[data-field="items"]').text == "12 mails"
        print(f"from Sources to the mails: {time.monotonic() - begun:.0f} s")
        assert PASSWORD not in driver.page_source
        assert server.log.count("Password mismatch") == 0
