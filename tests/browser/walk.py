"""The owner's whole way, with the keyboard alone: an empty server to a receipt of what was erased.

`python -m tests.browser.walk FOLDER` walks it with scripts and without, on a real `pdpp serve`, a
mailbox of real mail and the MCP SDK's client, and leaves a numbered picture of every step there and
`index.html`, which shows them beside each other.  Only what opens a page for a person is not a key:
the sign-in link of the terminal, and the address that the app opens.
"""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio
from anyio import to_thread
from mcp import ClientSession
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from adapter.tests.reader import records_of
from bench.samples import mailbox
from bench.site import Site as Served
from pdpp_mcp_server.rs_client.authorization_flows import Listener, listening
from tests.browser.agent import Agent
from tests.browser.chromium import chromium
from tests.browser.keyboard import Keyboard
from tests.browser.pictured_walk import Step, Walk, pictured, walk_both_ways
from tests.browser.site import Owner

MAILS = 400
ASKED = "asks to read your records"
GIVEN = "section[aria-labelledby=given] li a"


@dataclass
class AgentWalk(Walk):
    """One way through; `senders` are those that the owner ticked for the app."""

    senders: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where the server was started."""

    served: Served

    @property
    def origin(self) -> str:
        return self.served.origin

    def sign_in_link(self) -> str:
        command = self.served.command("pdpp", "owner", "link")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return next(word for word in done.stdout.split() if word.startswith("http"))


class Walker(Agent):
    """An MCP host whose owner decides with the keyboard."""

    name = "Mail agent"

    def __init__(self, walk: AgentWalk, terminal: Terminal, listener: Listener) -> None:
        super().__init__(Owner(walk.keyboard.driver, terminal), listener)
        self.walk = walk

    def decide(self, address: str) -> None:
        """In a window of its own, as an app opens it; the owner's stays where it is."""
        keyboard, driver = self.walk.keyboard, self.walk.keyboard.driver
        mine = driver.current_window_handle
        driver.switch_to.new_window("tab")
        keyboard.look_at(driver.current_window_handle)
        driver.get(address)
        sign_in_to_decide(self.walk, self.owner.site.sign_in_link())
        give_two_senders(self.walk)
        driver.close()
        keyboard.look_at(mine)


def sign_in(walk: Walk, link: str) -> None:
    """The link of the terminal, and its button."""
    walk.keyboard.driver.get(link)
    walk.keyboard.follow("button", "Sign in", "Your records")
    walk.keyboard.sees("no records yet")
    walk.step("An empty server, signed in with the link of the terminal")


def sign_in_to_decide(walk: Walk, link: str) -> None:
    """Where an app leads to begins with a sign-in, and goes on to what it asked."""
    walk.keyboard.sees("Sign in", "h1")
    walk.step("The app opened the browser, which asks who is there")
    walk.keyboard.driver.get(link)
    walk.keyboard.follow("button", "Sign in", ASKED)


def upload(walk: Walk, path: Path) -> None:
    """Bring the mailbox in, and see how an app is connected."""
    keyboard = walk.keyboard
    keyboard.follow("link", "Records", "Your records")
    keyboard.follow("link", "Import data", "Import data")
    keyboard.choose_file("Choose a file, or several", path)
    walk.step("The mailbox was chosen")
    keyboard.reach("button", "Upload and import")
    keyboard.press(Keys.ENTER)
    keyboard.sees("imported")
    keyboard.sees(f"{MAILS}", "main table")
    walk.step("Uploaded, recognized and imported")
    keyboard.follow("link", "Overview", "Your records")
    keyboard.reach("link", "Enter the code here")
    walk.step("How an app is connected")


def give_two_senders(walk: AgentWalk) -> None:
    """Consent with a bundle, and only to what two senders wrote."""
    keyboard = walk.keyboard
    keyboard.sees(ASKED, "h1")
    walk.step("The app opened the browser: it asks, and nothing is ticked")
    keyboard.follow("button", "Without full texts", ASKED)
    walk.step("A bundle was chosen")
    open_senders(keyboard)
    for _ in range(2):
        keyboard.press(Keys.TAB)
        box = keyboard.focused("checkbox")
        keyboard.press(Keys.SPACE)
        walk.senders.append(str(box.get_attribute("value")))
    walk.step("Two senders were ticked")
    keyboard.follow("button", "Update preview", ASKED)
    keyboard.sees("only from address: " + ", ".join(walk.senders))
    walk.step("The preview of what it would get")
    keyboard.reach("button", "Allow")
    walk.step("About to allow")
    keyboard.press(Keys.ENTER)
    keyboard.sees("You can close this window")
    walk.step("Allowed: the app has its answer")


def open_senders(keyboard: Keyboard) -> None:
    """Unfold the boxes of the senders."""
    keyboard.unfold("Share less")
    keyboard.unfold("Limit records by: from address")


async def read(session: ClientSession) -> list[dict[str, Any]]:
    """Five messages, as the app gets them."""
    found: Any = await session.call_tool("query_records", {"stream": "messages", "limit": 5})
    assert not found.is_error, found.content
    return records_of(found.structured_content)


def see_what_was_read(walk: Walk, records: Sequence[Mapping[str, Any]]) -> None:
    """The newest line of the log opens the very records that the app got."""
    keyboard = walk.keyboard
    keyboard.follow("link", "Read log", "Read log")
    keyboard.comes_to_see("Mail agent", "main table")
    walk.step("The read log")
    keyboard.follow("link", "details", "Mail agent")
    given = keyboard.driver.find_elements(By.CSS_SELECTOR, GIVEN)
    keys = [unquote(str(link.get_attribute("href")).rpartition("/")[2]) for link in given]
    assert keys == [record["data"]["id"] for record in records]
    walk.step("Its newest entry: what the app asked for, and exactly the records it got")
    keyboard.follow("link", given[0].text, records[0]["data"]["subject"])
    keyboard.sees("Mail agent", "section[aria-labelledby=readers]")
    keyboard.reach("link", "details")
    walk.step("The first of them, and which apps read it")


def narrow(walk: AgentWalk) -> None:
    """Take one of the two senders away."""
    keyboard = walk.keyboard
    keyboard.follow("link", "Access", "Who may read your records")
    walk.step("Who may read what")
    keyboard.follow("link", "Mail agent", "Mail agent")
    keyboard.follow("button", "Change this access", "Change this access")
    walk.step("An access about to be changed, with its choices filled in")
    open_senders(keyboard)
    keyboard.tick(walk.senders.pop(), ticked=False)
    keyboard.follow("button", "Update preview", "Change this access")
    keyboard.sees("only from address: " + walk.senders[0])
    walk.step("With one sender only")
    keyboard.follow("button", "Save the change", "Mail agent")
    walk.step("What it may read now, and what it could read before")


def pause(walk: Walk) -> None:
    """The app has to wait."""
    walk.keyboard.follow("button", "Pause", "Mail agent")
    walk.keyboard.sees("This access is paused")
    walk.step("Paused")


def erase(walk: Walk) -> None:
    """Erase the account, and get a receipt."""
    keyboard = walk.keyboard
    keyboard.follow("link", "Records", "Your records")
    name = keyboard.driver.find_element(By.CSS_SELECTOR, 'main [data-field="account"] h2 a').text
    keyboard.follow("link", name, name)
    keyboard.unfold("Erase this account")
    keyboard.tick("Erase all records")
    walk.step("About to erase the imported account")
    keyboard.follow("button", "Erase this account", "Records erased")
    keyboard.sees(f" records of {name} were erased")
    walk.step("The receipt")
    keyboard.follow("link", "Overview", "Your records")
    keyboard.sees("no records yet")
    walk.step("Empty again")


async def walk_through(terminal: Terminal, walk: AgentWalk, path: Path) -> None:
    """Every step, and what the app gets after each decision."""
    await to_thread.run_sync(sign_in, walk, terminal.sign_in_link())
    await to_thread.run_sync(upload, walk, path)
    with listening() as listener:
        async with Walker(walk, terminal, listener).session() as session:
            records = await read(session)
            assert {record["data"]["from_address"] for record in records} <= set(walk.senders)
            assert not any("body" in record["data"] for record in records)
            await to_thread.run_sync(see_what_was_read, walk, records)
            await to_thread.run_sync(narrow, walk)
            fewer = {record["data"]["from_address"] for record in await read(session)}
            assert fewer == set(walk.senders)
            await to_thread.run_sync(pause, walk)
            refused: Any = await session.call_tool("query_records", {"stream": "messages"})
            assert refused.is_error
            assert refused.structured_content["error"]["code"] == "grant_paused"
            await to_thread.run_sync(erase, walk)


def few_mails(folder: Path) -> Path:
    """The first of a mailbox of real mail.  Raises: SampleUnavailable."""
    path = folder / "mailing-lists.mbox"
    lines = mailbox().path.read_bytes().split(b"\nFrom ")
    path.write_bytes(b"\nFrom ".join(lines[:MAILS]) + b"\n")
    return path


def walked(folder: Path, way: str) -> Sequence[Step]:
    """Walk one of the ways, pictures in its folder."""
    with tempfile.TemporaryDirectory(prefix="pdpp-walk-") as made:
        served = Served(Path(made))
        served.data_dir.mkdir()
        scripts = way == "script"
        with served.serving(), chromium(scripts=scripts, logs=("performance",)) as driver:
            walk = AgentWalk(Keyboard(driver), folder / way)
            with pictured(walk):
                anyio.run(walk_through, Terminal(served), walk, few_mails(Path(made)))
    return walk.steps


if __name__ == "__main__":
    walk_both_ways(walked)
