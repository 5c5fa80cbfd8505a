"""A mailbox brought in from a browser, with a script and without, cut off, twice, and a second one.

What is sent is read by `pdpp import` itself, in a process of its own.
"""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.support.wait import WebDriverWait

from personal_server.app.uploads import uploads_of
from personal_server.console.uploads import CHUNK_BYTES
from personal_server.settings import Settings
from tests.browser.chromium import chromium
from tests.browser.site import Owner, Site, site

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


def settings_of(running: Site) -> Settings:
    return Settings(data_dir=running.folder / "data")


WHOSE = '[data-field="whose"]'
IMPORTED = 'main[data-state="imported"]'


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


# That a form is sent without scripts, `test_a_mailbox_is_sent_…` proves for all.
without_scripts_at_night = pytest.mark.parametrize(
    "owner",
    [True, pytest.param(False, marks=pytest.mark.long)],
    ids=["script", "no-script"],
    indirect=True,
)


def reported(owner: Owner) -> list[str]:
    """The kind of the first line of a report, and how many records were read and are new."""
    return [cell.text for cell in owner.all("main tbody th, main tbody td")][:3]


def test_a_mailbox_is_sent_and_asked_about_and_read(owner: Owner, tmp_path: Path) -> None:
    send(owner, mailbox(tmp_path, "holiday"))
    assert owner.shows(WHOSE)
    owner.press(owner.find('input[name="account"][value="new"]'))
    owner.find("#new-name").send_keys("Holiday mail")
    owner.press(owner.find("form button.primary"))
    assert waiting(owner, "Holiday mail")
    assert owner.shows(IMPORTED)
    assert reported(owner) == ["messages", "30", "30"]
    owner.open(f"{owner.site.origin}/owner/records")
    assert owner.sees("Holiday mail")
    send(owner, mailbox(tmp_path, "holiday"))
    assert owner.shows(IMPORTED)  # the same content is known, and nobody is asked


@without_scripts_at_night
def test_what_is_of_no_known_kind_says_so(owner: Owner, tmp_path: Path) -> None:
    path = tmp_path / "noise.bin"
    path.write_bytes(bytes(range(256)) * 64)
    send(owner, path)
    assert owner.shows('form[action$="/remove"]')
    assert owner.all("section.problem, section.notice")
    owner.press(owner.find('form[action$="/remove"] button'))
    assert owner.shows("form.drop")
    assert not owner.all("table")


@without_scripts_at_night
def test_a_mailbox_of_this_machine_is_read_where_it_lies(owner: Owner) -> None:
    owner.open(f"{owner.site.origin}/owner/uploads")
    owner.press(owner.find('a[href$="/owner/uploads/folders"]'))
    assert waiting(owner, "Archive.mbox")
    assert owner.sees("E-mail")
    owner.press(owner.find('form[action$="/folders"] button'))
    assert owner.shows(WHOSE)
    owner.press(owner.find('input[name="account"][value="new"]'))
    owner.find("#new-name").send_keys("Old mail")
    owner.press(owner.find("form button.primary"))
    assert owner.shows(IMPORTED)
    assert reported(owner) == ["messages", "1", "1"]
    assert owner.shows('form[action$="/remove"]')


def drop(owner: Owner, path: Path) -> None:
    """Drag a file or a folder from outside onto the form, and let it go."""
    box: Any = owner.driver.execute_script(
        "const form = document.querySelector('form.drop'); form.scrollIntoView({block: 'center'});"
        "const box = form.getBoundingClientRect(); return [box.x + 20, box.y + 5]"
    )
    data = {"items": [], "files": [str(path)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, "x": box[0], "y": box[1], "data": data}
        owner.driver.execute_cdp_cmd("Input.dispatchDragEvent", event)


def test_a_folder_that_is_dropped_is_sent_with_its_places(running: Site, tmp_path: Path) -> None:
    letters = tmp_path / "Maildir" / "cur"
    letters.mkdir(parents=True)
    (tmp_path / "Maildir" / "new").mkdir()
    for number in range(5):
        letter = MESSAGE.format(name="drop", number=number, minute=number).partition("\n")[2]
        (letters / f"{number}.host:2,S").write_text(letter)
    with chromium() as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        owner.open(f"{running.origin}/owner/uploads")
        drop(owner, tmp_path / "Maildir")
        assert owner.shows(WHOSE)
        (held,) = uploads_of(settings_of(running), running.server.stores).each()
        content = Path(running.folder, "data", "uploads", held.upload_id, "content")
        sent = sorted(path.name for path in (content / "Maildir" / "cur").iterdir())
        assert sent == sorted(path.name for path in letters.iterdir())
        owner.press(owner.find('input[name="account"][value="new"]'))
        owner.find("#new-name").send_keys("Dropped")
        owner.press(owner.find("form button.primary"))
        assert owner.shows(IMPORTED)
        assert reported(owner) == ["messages", "5", "5"]


def large_mailbox(folder: Path, size_bytes: int = 20 * 1024 * 1024) -> Path:
    """One letter with so long a text that it is sent in several pieces."""
    path = folder / "large.mbox"
    text = MESSAGE.format(name="large", number=1, minute=1)
    with path.open("w") as out:
        out.write(text)
        for _ in range(size_bytes // 64):
            out.write("x" * 63 + "\n")
        out.write("\n" + MESSAGE.format(name="large", number=2, minute=2))
    return path


CUT_AFTER = """
const [whole, left] = [window.fetch, {pieces: arguments[0]}];
window.fetch = (address, rest) => {
  if (String(address).includes("/bytes") && left.pieces-- <= 0) return new Promise(() => {});
  return whole(address, rest);
};
"""


def test_a_mailbox_of_some_megabytes_is_cut_off_and_goes_on(running: Site, tmp_path: Path) -> None:
    path = large_mailbox(tmp_path)
    uploads = uploads_of(settings_of(running), running.server.stores)
    with chromium() as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        owner.open(f"{running.origin}/owner/uploads")
        driver.execute_script(CUT_AFTER, 2)
        owner.find('input[name="file"]').send_keys(str(path))
        owner.press(owner.find("form.drop button.primary"))
        waits = WebDriverWait(driver, SECONDS)
        waits.until(lambda _: any(e.received_bytes == 2 * CHUNK_BYTES for e in uploads.each()))
        (held,) = uploads.each()
        owner.open(f"{running.origin}/owner/uploads/{held.upload_id}")
        assert owner.shows('[data-field="cut-off"]')
        send(owner, path)
        assert owner.shows(WHOSE)
        (found,) = uploads.each()
        assert (found.upload_id, found.is_whole) == (held.upload_id, True)
        content = Path(uploads.folder, held.upload_id, "content", path.name)
        assert content.read_bytes() == path.read_bytes()


def test_the_same_file_from_two_tabs_is_one_upload(running: Site, tmp_path: Path) -> None:
    path = large_mailbox(tmp_path, CHUNK_BYTES * 5 // 4)
    uploads = uploads_of(settings_of(running), running.server.stores)
    with chromium() as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        for _ in range(2):
            driver.switch_to.new_window("tab")
            owner.open(f"{running.origin}/owner/uploads")
            driver.execute_script(CUT_AFTER, 1)
            owner.find('input[name="file"]').send_keys(str(path))
            owner.press(owner.find("form.drop button.primary"))
            waits = WebDriverWait(driver, SECONDS)
            waits.until(lambda _: any(e.received_bytes for e in uploads.each()))
        send(owner, path)
        assert owner.shows(WHOSE)
        (found,) = uploads.each()
        content = Path(uploads.folder, found.upload_id, "content", path.name)
        assert content.read_bytes() == path.read_bytes()
        send(owner, path)  # a second time, once it is whole: another upload, and not read twice
        assert owner.shows(WHOSE)
        assert len(uploads.each()) == 2


def test_an_upload_of_another_server_and_of_nobody_leads_nowhere(
    running: Site, tmp_path: Path
) -> None:
    held = uploads_of(settings_of(running), running.server.stores).begin("a.mbox", 10, "m")
    (tmp_path / "other").mkdir()
    with chromium() as driver, site(tmp_path / "other", "Bob's server") as other:
        stranger = Owner(driver, other)
        stranger.sign_in()
        stranger.open(f"{other.origin}/owner/uploads/{held.upload_id}")
        assert stranger.shows('main[data-error="not_found"]')
        # who signed in there is nobody here
        driver.get(f"{running.origin}/owner/uploads/{held.upload_id}")
        assert "/owner/login" in driver.current_url


def test_an_upload_that_was_cut_off_goes_on(running: Site, tmp_path: Path) -> None:
    path = mailbox(tmp_path, "cut")
    content = path.read_bytes()
    uploads = uploads_of(settings_of(running), running.server.stores)
    mark = f"1 {path.stat().st_mtime_ns // 1_000_000}"
    held = uploads.begin(path.name, len(content), mark)
    uploads.append(held.upload_id, path.name, 0, content[:1_000])
    with chromium() as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        owner.open(f"{running.origin}/owner/uploads/{held.upload_id}")
        assert owner.shows('[data-field="cut-off"]')
        send(owner, path)
        assert owner.shows(WHOSE)
    (found,) = uploads.each()
    assert (found.upload_id, found.is_whole) == (held.upload_id, True)
