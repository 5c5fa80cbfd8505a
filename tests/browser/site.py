"""A whole server with records in it, listening, and its owner in a real browser."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from pdpp_kernel.source_declaration import SourceDeclaration
from pdpp_sources.bank.reader import DECLARATION as BANK
from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.app.server import Server, open_server
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration, render_declaration
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
)
from personal_server.settings import Settings
from personal_server.storage.ports.whole_store import RecordStore
from server.tests.console.household import (
    BANK_SOURCE,
    CHECKING,
    HOME,
    MAIL_SOURCE,
    WORK,
    mails,
    payments,
)
from tests.browser.chromium import served
from tests.new_files import begin_database
from tests.ports import free_port

SECONDS = 120  # one, but on a machine that is busy with much else
DOWNLOADS = "Downloads"
ARCHIVE = (
    b"From ada@example.org Mon Mar 14 06:30:00 2022\nMessage-ID: <archive@example.org>\n"
    b"Date: Mon, 14 Mar 2022 07:30:00 +0100\nFrom: ada@example.org\nTo: bob@example.org\n"
    b"Subject: An old letter\n\nA line for Bob.\n\n"
)


class Place(Protocol):
    """Where an owner goes."""

    @property
    def origin(self) -> str: ...

    def sign_in_link(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Site:
    """A listening server."""

    origin: str
    server: Server
    folder: Path

    def sign_in_link(self) -> str:
        return self.server.sign_in_link()


def as_composed(server: Server) -> Any:
    """The application of a server, with nothing around it."""
    return server.app


@contextmanager
def site(
    folder: Path,
    name: str = "Ada's server",
    served_app: Callable[[Server], Any] = as_composed,
) -> Generator[Site]:
    """A server on a free port, with two mailboxes and a bank account."""
    port = free_port()
    downloads = folder / DOWNLOADS
    downloads.mkdir(parents=True)
    (downloads / "Archive.mbox").write_bytes(ARCHIVE)
    settings = Settings(
        public_url=f"http://127.0.0.1:{port}",
        bind_port=port,
        data_dir=folder / "data",
        server_name=name,
        import_folders=(downloads,),
    )
    begin_database(settings)
    with open_server(settings) as server:
        fill(server.stores.records, time.time_ns())
        with served(served_app(server), port) as origin:
            yield Site(origin, server, folder)


@cache
def declarations() -> tuple[SourceDeclaration, SourceDeclaration]:
    """Of mails and of a bank, as values that every server may share."""
    return parse_declaration(MAIL), parse_declaration(BANK)


def fill(records: RecordStore, now_ns: int) -> None:
    """Two mailboxes and a bank account."""
    for raw, declared in zip((MAIL, BANK), declarations(), strict=True):
        records.put_declaration(declared, render_declaration(raw), now_ns)
    accounts: list[tuple[str, str, str, str, str, list[dict[str, Any]]]] = [
        (HOME, "mail", MAIL_SOURCE, "Home mailbox", "messages", mails(now_ns, 40)),
        (WORK, "mail", MAIL_SOURCE, "Work mailbox", "messages", mails(now_ns, 12)),
        (CHECKING, "bank", BANK_SOURCE, "Checking", "transactions", payments(now_ns, 30)),
    ]
    for connection_id, key, source_id, name, stream, rows in accounts:
        records.add_connection(
            Connection(connection_id, key, source_id, name, ConnectionStatus.ACTIVE, now_ns, now_ns)
        )
        mail, bank = declarations()
        declared = (mail if key == "mail" else bank).streams[stream]
        writes = [RecordWrite(row["id"], row, now_ns) for row in rows]
        records.commit(Batch(connection_id, declared, writes, now_ns))


def left(element: WebElement) -> Callable[[object], bool]:
    """Whether the page that held an element is gone.

    While one page gives way to the next, the driver knows neither, and says so in other words.
    """

    def is_gone(_: object) -> bool:
        try:
            element.is_enabled()
        except StaleElementReferenceException:
            return True
        except WebDriverException as error:
            if "does not belong to the document" in str(error):
                return True
            raise
        return False

    return is_gone


class Owner:
    """The owner at a browser."""

    def __init__(self, driver: webdriver.Chrome, site: Place) -> None:
        self.driver = driver
        self.site = site

    def sign_in(self) -> None:
        """With a fresh link."""
        self.driver.get(self.site.sign_in_link())
        self.find("button.primary").click()
        entered = WebDriverWait(self.driver, SECONDS, ignored_exceptions=[WebDriverException])
        entered.until(lambda driver: "/owner/enter" not in driver.current_url)

    def open(self, address: str) -> None:
        """Go there, signing in on the way where that is asked for."""
        self.driver.get(address)
        if "/owner/login" in self.driver.current_url:
            self.sign_in()

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def tick(self, name: str, value: str | None = None) -> None:
        """Tick a box by its form name; it is scrolled to as people do."""
        chosen = "" if value is None else f'[value="{value}"]'
        box = self.find(f'input[name="{name}"]{chosen}')
        if not box.is_selected():
            self.press(box)
            self.rest()

    def rest(self) -> None:
        """Wait until what was ticked is counted, where a script does that."""
        soon = WebDriverWait(self.driver, SECONDS, ignored_exceptions=[WebDriverException])
        soon.until(lambda _: not self.all("[aria-busy='true']"))

    def press(self, element: WebElement) -> None:
        """Bring an element into view and click it."""
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", element)
        element.click()

    def leave_by(self, element: WebElement) -> None:
        """Press what leads to another page, and wait for that: a click does not always."""
        before = self.find("html")
        self.press(element)
        WebDriverWait(self.driver, SECONDS).until(left(before))

    def decide(self, action: str) -> None:
        """Press Allow, Update preview or Deny."""
        self.press(self.decision(action))

    def decision(self, action: str) -> WebElement:
        """The button that is named so in the form."""
        return self.find(f'.decide-bar button[value="{action}"]')

    def allow(self) -> None:
        """Press Allow, and wait for what comes of it."""
        self.leave_by(self.decision("approve"))

    def preview(self) -> None:
        """Press Update preview, and wait for the page that comes of it."""
        self.leave_by(self.decision("preview"))

    def figure(self) -> int:
        """How many records the app would get, as the consent page tells."""
        return int(str(self.find(".glance .figure").text).split()[0])

    def sees(self, words: str) -> bool:
        """Whether the page that is there, or is just coming, says so: names and values."""
        waiting = WebDriverWait(self.driver, SECONDS, ignored_exceptions=[WebDriverException])
        return bool(waiting.until(lambda _: words in self.find("body").text))

    def shows(self, selector: str) -> bool:
        """Whether the page that is there, or is just coming, has such an element."""
        waiting = WebDriverWait(self.driver, SECONDS, ignored_exceptions=[WebDriverException])
        return bool(waiting.until(lambda _: self.all(selector)))
