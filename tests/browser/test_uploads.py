"""A mailbox brought in from a browser, with a script and without, cut off, twice, and a second one.

What is sent is read by `pdpp import` itself, in a process of its own.
"""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.support.wait import WebDriverWait

from personal_server.app.uploads import uploads_of
from personal_server.settings import Settings
from tests.browser.chromium import chromium
from tests.browser.site import Owner, Site

pytestmark = pytest.mark.browser
SECONDS = 90
MESSAGE = """\
From ada@example.org Mon Mar 14 06:30:00 2022
Message-ID: <{name}-{number}@example.org>
Date: Mon, 14 Mar 2022 07:{minute:02}:00 +0100
From: ada@example.org
To: bob@example.org
Subject: {name} {number}

A line for Bob.

"""


def mailbox(folder: Path, name: str, count: int = 30) -> Path:
    path = folder / f"{name}.mbox"
    path.write_text(
        "".join(MESSAGE.format(name=name, number=n, minute=n % 60) for n in range(count))
    )
    return path


def waiting(owner: Owner, words: str) -> bool:
    wait = WebDriverWait(owner.driver, SECONDS, ignored_exceptions=[WebDriverException])
    return bool(wait.until(lambda _: words in owner.find("body").text))


def send(owner: Owner, path: Path) -> None:
    owner.open(f"{owner.site.origin}/owner/uploads")
    owner.find('input[name="file"]').send_keys(str(path))
    owner.press(owner.find("form.drop button.primary"))


@pytest.fixture(params=[True, False], ids=["script", "no-script"])
def owner(running: Site, request: pytest.FixtureRequest) -> Generator[Owner]:
    with chromium(scripts=request.param) as driver:
        made = Owner(driver, running)
        made.sign_in()
        yield made


def test_a_mailbox_is_sent_and_asked_about_and_read(owner: Owner, tmp_path: Path) -> None:
    send(owner, mailbox(tmp_path, "holiday"))
    assert waiting(owner, "Whose is it?")
    owner.press(owner.find('input[name="account"][value="new"]'))
    owner.find("#new-name").send_keys("Holiday mail")
    owner.press(owner.find("form button.primary"))
    assert waiting(owner, "Holiday mail")
    assert waiting(owner, "imported")
    cells = [cell.text for cell in owner.all("main td")]
    assert cells[:3] == ["messages", "30", "30"]
    owner.open(f"{owner.site.origin}/owner/sources")
    assert owner.sees("Holiday mail")
    send(owner, mailbox(tmp_path, "holiday"))
    assert waiting(owner, "Whose is it?")


def test_what_is_of_no_known_kind_says_so(owner: Owner, tmp_path: Path) -> None:
    path = tmp_path / "noise.bin"
    path.write_bytes(bytes(range(256)) * 64)
    send(owner, path)
    assert waiting(owner, "could not be read")
    owner.press(owner.find('form[action$="/remove"] button'))
    assert owner.sees("Add one")
    assert not owner.all("table")


def test_an_upload_that_was_cut_off_goes_on(running: Site, tmp_path: Path) -> None:
    path = mailbox(tmp_path, "cut")
    content = path.read_bytes()
    uploads = uploads_of(Settings(data_dir=running.folder / "data"), running.server.stores)
    mark = f"1 {path.stat().st_mtime_ns // 1_000_000}"
    held = uploads.begin(path.name, len(content), mark)
    uploads.append(held.upload_id, path.name, 0, content[:1_000])
    with chromium() as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        owner.open(f"{running.origin}/owner/uploads/{held.upload_id}")
        assert owner.sees("It was cut off")
        send(owner, path)
        assert waiting(owner, "Whose is it?")
    (found,) = uploads.each()
    assert (found.upload_id, found.is_whole) == (held.upload_id, True)
