"""A browser without a screen: keeps cookies, sends what browsers send, reads forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx2
from argon2 import PasswordHasher
from selectolax.lexbor import LexborHTMLParser

from personal_server.console.session import PLACE

CHEAP_HASHER = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
ORIGIN = "http://127.0.0.1:7662"
SECOND = 1_000_000_000


@dataclass
class Clock:
    now_ns: int = 1_795_000_000 * SECOND

    def __call__(self) -> int:
        return self.now_ns


class _FormReader(HTMLParser):
    """Every form of a page with the fields that a browser would send."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[tuple[str, list[tuple[str, str]]]] = []
        self._text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "form":
            self.forms.append((values.get("action") or "", []))
        elif tag == "input" and self.forms and values.get("name") and "disabled" not in values:
            kind = values.get("type") or "text"
            if kind not in ("checkbox", "radio", "submit") or "checked" in values:
                self.forms[-1][1].append((str(values["name"]), values.get("value") or ""))
        elif tag == "option" and "selected" in values and self.forms:
            self.forms[-1][1].append((self._select, values.get("value") or ""))
        elif tag == "select":
            self._select = str(values.get("name"))
        elif tag == "textarea" and self.forms:
            self._text = str(values.get("name"))
            self.forms[-1][1].append((self._text, ""))

    def handle_data(self, data: str) -> None:
        if self._text:
            name, text = self.forms[-1][1][-1]
            self.forms[-1][1][-1] = (name, text + data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._text = ""


@dataclass
class Page:
    status: int
    headers: httpx2.Headers
    html: str

    @property
    def text(self) -> str:
        """The page without the marks that keep names apart, which nobody sees."""
        return re.sub("</?bdi>", "", self.html)

    @property
    def error(self) -> str | None:
        found = re.search(r'data-error="([a-z_]+)"', self.text)
        return found[1] if found else None

    def form(self, action: str) -> list[tuple[str, str]]:
        """The fields of the only form with this action."""
        reader = _FormReader()
        reader.feed(self.text)
        (fields,) = [fields for where, fields in reader.forms if where == action]
        return fields


@dataclass
class Browser:
    app: Any
    origin: str = ORIGIN
    cookies: dict[str, str] = field(default_factory=dict[str, str])
    place: str = ""
    """What a sign-in put before the paths of pages; tests name paths without it."""
    paths: dict[str, str] = field(default_factory=dict[str, str])
    """Where each cookie belongs; here all of them are sent everywhere."""

    def get(self, path: str, **headers: str) -> Page:
        return self.request("GET", path, None, headers)

    def head(self, path: str) -> Page:
        return self.request("HEAD", path, None, {})

    def send(self, method: str, path: str, **headers: str) -> Page:
        """Any other call, without a body."""
        return self.request(method, path, None, headers)

    def post(self, path: str, fields: list[tuple[str, str]], **headers: str) -> Page:
        """Post a form as a page of ours would."""
        sent = {"origin": self.origin, **headers}
        return self.request("POST", path, urlencode(fields).encode(), sent)

    def submit(self, page: Page, where: str, /, **changes: str) -> Page:
        """Post a form of a page with some fields set."""
        fields = [(name, value) for name, value in page.form(where) if name not in changes]
        return self.post(where, [*fields, *changes.items()])

    def follow(self, page: Page) -> Page:
        """Go where an answer sends a browser."""
        assert page.status == 303, page.text
        return self.get(page.headers["location"])

    def request(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Page:
        if path.startswith(("/owner", "/consent", "/device")):
            path = self.place + path
        response = anyio.run(self._exchange, method, path, body, headers)
        for line in response.headers.get_list("set-cookie"):
            name, _, rest = line.partition("=")
            value = rest.split(";")[0].strip('"')
            self.paths[name] = next(
                part[5:] for part in rest.split("; ") if part.lower().startswith("path=")
            )
            if value:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        found = PLACE.match(response.headers.get("location", ""))
        if found is not None:
            self.place = found[0]
        elif "/owner/login" in response.headers.get("location", ""):
            self.place = ""
        if not self.place:
            return Page(response.status_code, response.headers, response.text)
        unplaced = [(n, v.replace(self.place, "")) for n, v in response.headers.multi_items()]
        text = response.text.replace(self.place, "")
        return Page(response.status_code, httpx2.Headers(unplaced), text)

    async def _exchange(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> httpx2.Response:
        sent = {"accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
        if body is not None:
            sent["content-type"] = "application/x-www-form-urlencoded"
        if self.cookies:
            sent["cookie"] = "; ".join(f"{n}={v}" for n, v in self.cookies.items())
        sent |= {name.replace("_", "-"): value for name, value in headers.items() if value}
        transport = httpx2.ASGITransport(app=self.app, client=("203.0.113.7", 1))
        async with httpx2.AsyncClient(transport=transport, base_url=self.origin) as client:
            return await client.request(method, path, content=body, headers=sent)


def words(page: Page) -> str:
    """The page as somebody reads it."""
    flowing = re.sub(r"</?time[^>]*>", "", page.text)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", flowing)).split())


def marked(page: Page, name: str, attribute: str | None = None) -> list[str]:
    """What stands in each element that its template marks with `data-field`, or in an attribute of
    it.

    Tests look for these instead of sentences, so that an English text can be edited alone.
    """
    elements = LexborHTMLParser(page.text).css(f'[data-field="{name}"]')
    if attribute is not None:
        return [each.attributes.get(attribute) or "" for each in elements]
    return [" ".join(each.text(separator=" ").split()) for each in elements]


def numbers(page: Page, name: str) -> list[int]:
    """The whole numbers that stand in the elements with this `data-field`, one after the other."""
    found = re.findall(r"[0-9][0-9,]*", " ".join(marked(page, name)))
    return [int(each.replace(",", "")) for each in found]


def states(page: Page) -> list[str]:
    """The states of what a page shows, from the whole to its parts."""
    elements = LexborHTMLParser(page.text).css("[data-state]")
    return [each.attributes["data-state"] or "" for each in elements]


def press(browser: Browser, page: Page, path: str, action: str, **changes: str) -> Page:
    """Press one of the buttons of a consent page."""
    return browser.submit(page, path, action=action, **changes)


def allow(browser: Browser, path: str) -> Page:
    """Open a consent page and allow it as it stands."""
    return press(browser, browser.get(path), path, "approve")
