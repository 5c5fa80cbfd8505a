"""An empty machine to the first answered question about a live mailbox, with the keyboard, timed.

`python -m tests.browser.live_walk FOLDER [MAILS]` begins with an empty data directory and Debian's
dovecot with so many public mails (1,000), and needs root for it.  A server is started, its owner
signs in with the link of the terminal, adds the mailbox under *Keep up to date*, chooses folders,
sees the mails arrive, allows an app to read them, and the app asks; then somebody answers, and the
app is asked whether they did.  Each step is a numbered picture, with the seconds since the begin,
and those of a phone's width beside them.
"""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import imaplib
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from mcp import ClientSession
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from bench.samples import mailbox
from bench.site import Site as Served
from pdpp_mcp_server.rs_client.authorization_flows import Listener, listening
from tests.browser.agent import Agent
from tests.browser.chromium import chromium
from tests.browser.keyboard import Keyboard
from tests.browser.pictured_walk import Step, Walk, pictured
from tests.browser.site import Owner
from tests.browser.walk import Terminal
from tests.dovecot import PASSWORD, USER, MailServer, mail_server

MAILS = 1_000
ARRIVED_SECONDS = 600.0
ASKED = "asks to read your records"
DESKTOP, PHONE = (1280, 900), (390, 844)
QUESTION = {"query": "exmh"}
ANSWER = "Thursday suits me"


@dataclass
class TimedWalk(Walk):
    """A walk that notes the seconds of each step, and pictures it as a phone shows it, too."""

    begun: float = field(default_factory=time.monotonic)
    seconds: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def step(self, words: str) -> None:
        """Keep the time, then both pictures; taking them counts for nothing."""
        now = time.monotonic()
        self.seconds.append((now - self.begun, words))
        super().step(words)
        self._as_on_a_phone()
        self.begun += time.monotonic() - now

    def _as_on_a_phone(self) -> None:
        driver = self.keyboard.driver
        at = {"width": PHONE[0], "height": PHONE[1], "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", at)
        (self.folder / f"phone-{self.steps[-1].picture}").write_bytes(
            driver.get_screenshot_as_png()
        )
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


class Asking(Agent):
    """An app whose owner allows it to read the mailbox."""

    name = "Mail agent"

    def __init__(self, walk: TimedWalk, terminal: Terminal, listener: Listener) -> None:
        super().__init__(Owner(walk.keyboard.driver, terminal), listener)
        self.walk = walk

    def decide(self, address: str) -> None:
        """In a window of its own; the browser is signed in already."""
        keyboard, driver = self.walk.keyboard, self.walk.keyboard.driver
        mine = driver.current_window_handle
        driver.switch_to.new_window("tab")
        keyboard.look_at(driver.current_window_handle)
        driver.get(address)
        if "Sign in" in driver.find_element(By.CSS_SELECTOR, "h1").text:
            driver.get(self.owner.site.sign_in_link())
            keyboard.follow("button", "Sign in", ASKED)
        self.walk.step("The app asks, in a window that it opened")
        keyboard.follow("button", "Everything", ASKED)
        self.walk.step("What it would get")
        keyboard.reach("button", "Allow")
        keyboard.press(Keys.ENTER)
        keyboard.sees("You can close this window")
        self.walk.step("Allowed")
        driver.close()
        keyboard.look_at(mine)


def add_mailbox(walk: TimedWalk, terminal: Terminal, server: MailServer) -> None:
    """From the link of the terminal to folders that are kept up to date."""
    keyboard = walk.keyboard
    keyboard.driver.get(terminal.sign_in_link())
    keyboard.follow("button", "Sign in", "Your records")
    walk.step("Signed in with the link of the terminal: nothing is there yet")
    keyboard.follow("link", "Keep up to date", "Keep up to date")
    walk.step("Where a mailbox is added")
    keyboard.reach("textbox", "Mail address")
    keyboard.press(USER)
    keyboard.reach("textbox", "App password")
    keyboard.press(PASSWORD)
    keyboard.unfold("Another provider")
    keyboard.reach("textbox", "Mail server")
    keyboard.press(f"127.0.0.1:{server.port}")
    walk.step("Address, password and server typed")
    keyboard.follow("button", "Sign in", USER)
    walk.step("Its folders, with how many mails each holds")
    keyboard.reach("button", "Keep these folders up to date")
    keyboard.press(Keys.ENTER)


def see_it_arrive(walk: TimedWalk, mails: int) -> None:
    """The page comes again by itself while the mails do."""
    keyboard, end = walk.keyboard, time.monotonic() + ARRIVED_SECONDS
    is_pictured = False
    while time.monotonic() < end:
        text, state = _shown(keyboard)
        items = re.search(r"([\d,]+)(?: of [\d,]+)? mails?", text)
        count = int(items[1].replace(",", "")) if items else 0
        if 0 < count < mails and not is_pictured:
            walk.step(f"{count:,} mails have come")
            is_pictured = True
        if state == "waiting" and count == mails:
            walk.step("All mails are here")
            return
        time.sleep(0.2)
    raise TimeoutError(_shown(keyboard))


def _shown(keyboard: Keyboard) -> tuple[str, str]:
    """Text and state of the page; neither while one page gives way to the next."""
    with suppress(WebDriverException):
        main = keyboard.driver.find_element(By.CSS_SELECTOR, "main")
        return main.text, str(main.get_attribute("data-state"))
    return "", ""


def fill(server: MailServer, mails: int) -> int:
    """Public mails, as they came; how many."""
    box = mailbox().path.read_bytes().split(b"\nFrom ")[:mails]
    with imaplib.IMAP4("127.0.0.1", server.port) as client:
        client.login(USER, PASSWORD)
        for number, mail in enumerate(box):
            _, _, raw = mail.partition(b"\n")
            folder = "INBOX" if number % 4 else "Lists"
            if number == 0:
                client.create(folder)
            client.append(folder, "", "", re.sub(rb"\r?\n", b"\r\n", raw))
    return len(box)


def answer(server: MailServer) -> None:
    """Somebody writes back."""
    mail = EmailMessage()
    mail["From"], mail["To"] = "Grace <grace@example.com>", USER
    mail["Subject"], mail["Message-ID"] = "Re: Lunch?", "<answer@example.com>"
    mail["Date"] = "Sat, 28 Nov 2026 10:00:00 +0000"
    mail.set_content(ANSWER)
    with imaplib.IMAP4("127.0.0.1", server.port) as client:
        client.login(USER, PASSWORD)
        client.append("INBOX", "", "", mail.as_bytes().replace(b"\n", b"\r\n"))


async def ask(session: ClientSession, tool: str, arguments: dict[str, Any]) -> Any:
    """What the app is answered."""
    found: Any = await session.call_tool(tool, arguments)
    assert not found.is_error, found.content
    return found


async def walk_through(walk: TimedWalk, terminal: Terminal, server: MailServer, mails: int) -> None:
    """Every step."""
    await to_thread.run_sync(add_mailbox, walk, terminal, server)
    await to_thread.run_sync(see_it_arrive, walk, mails)
    with listening() as listener:
        async with Asking(walk, terminal, listener).session() as session:
            found = await ask(session, "search", QUESTION)
            assert found.structured_content["results"]
            walk.step("The first question is answered")
            await to_thread.run_sync(answer, server)
            sent = time.monotonic()
            while True:
                asked = {"stream": "messages", "filter": {"from_address": "grace@example.com"}}
                found = await ask(session, "query_records", {**asked, "limit": 1})
                if found.structured_content["data"]["data"]:
                    break
                assert time.monotonic() < sent + ARRIVED_SECONDS
                await anyio.sleep(0.2)
            walk.step(f"“Did she write back?” {time.monotonic() - sent:.0f} s after she did")


def walked(folder: Path, mails: int) -> Sequence[Step]:
    """Walk, and print how long each step took."""
    with mail_server() as server, tempfile.TemporaryDirectory(prefix="pdpp-live-") as made:
        count = fill(server, mails)
        served = Served(Path(made))
        served.data_dir.mkdir()
        with chromium(scripts=False) as driver:
            driver.set_window_size(*DESKTOP)
            walk = TimedWalk(Keyboard(driver), folder / "script")
            with served.serving():
                walk.seconds.append((time.monotonic() - walk.begun, "The server answers"))
                with pictured(walk):
                    anyio.run(walk_through, walk, Terminal(served), server, count)
    for seconds, words in walk.seconds:
        print(f"{seconds:6.1f} s  {words}")
    return walk.steps


if __name__ == "__main__":
    walked(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else MAILS)
