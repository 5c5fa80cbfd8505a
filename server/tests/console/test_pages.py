"""Every page as a whole: hostile text changes no structure, and each has the strict headers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote_plus, urlencode

import pytest

from pdpp_sources.mail.reader import DECLARATION as MAIL
from personal_server.domain.disclosure import AskedDetail
from personal_server.storage.authorization_rows import GrantRow
from server.tests.cli.test_disclosures import entry
from server.tests.console.browsing import Browser, Page, allow
from server.tests.console.household import HOME, MAIL_SOURCE, Household

DOCUMENT = "https://app.example/client.json"
CORPUS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)' x='",
    "</title></textarea></style></script><svg/onload=alert(1)>",
    "javascript:alert(1)//",
    "{{ 7*7 }}{% for x in y %}${7*7}",
    "&lt;script&gt;&#60;b&#62;",
    "<!-- -->]]><![CDATA[<b>",
    "\u202ereversed\u2066\u200b\ufeff",
    "a\x00b\x1b[31mc\r\nd\x08",
    "<a href=//evil.example>click</a>",
    "</form><form action=//evil.example method=post>",
]


class Structure(HTMLParser):
    """Elements with the names of their attributes, and the values that can do something."""

    ACTIVE = ("href", "src", "action", "formaction", "style", "http-equiv", "type", "method")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[tuple[str, str | None], ...]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        shown = tuple((name, value if name in self.ACTIVE else None) for name, value in attrs)
        self.found.append((tag, shown))

    def handle_comment(self, data: str) -> None:
        self.found.append(("comment", ()))


def structure(page: Page, text: str = "harmless") -> list[Any]:
    """A link of ours may name foreign text in its query."""
    reader = Structure()
    reader.feed(page.text.replace(f"={quote_plus(text)}", "=TEXT"))
    return sorted(reader.found, key=repr)  # sources stand in the order of their names


@dataclass
class Told:
    """A household in which everything that others may write says `text`."""

    text: str
    house: Household = field(default_factory=Household)
    drawn: int = 0

    def __post_init__(self) -> None:
        self.house = Household(random_bytes=self.random)
        raw = json.loads(json.dumps(MAIL))
        raw |= {"display": {"name": self.text, "detail": self.text}}
        raw["declaration_version"] = "2099-01-01"
        raw["streams"][0]["display"] = {"label": self.text, "detail": self.text}
        for view in raw["streams"][0]["views"]:
            view["label"] = self.text
        self.house.declare(raw)
        self.house.connect("cin_told", "mail", MAIL_SOURCE, self.text)
        mail = {"id": "m1", "sent_at": self.text, "subject": self.text, "from_name": self.text}
        self.house.fill("cin_told", "messages", [mail])
        self.house.client("cli_told", name=self.text, display={"name": self.text})
        self.house.client(DOCUMENT, name=self.text, registration="client_id_metadata_document")

    def random(self, size: int) -> bytes:
        self.drawn += 1
        return self.drawn.to_bytes(size, "big")

    def ask(self, client_id: str, **over: Any) -> str:
        request: dict[str, object] = {
            "type": "https://pdpp.dev/data-access",
            "source": {"id": MAIL_SOURCE},
            "purpose_code": "https://app.example/purpose",
            "purpose_description": self.text,
            "access_mode": "continuous",
            "retention": {"max_duration": "P30D", "on_expiry": "delete"},
            "client_claims": {"commitments": [self.text]},
            "streams": [{"name": "messages", "instance_ids": ["cin_told"]}],
        }
        return self.house.ask([request], client_id, user_agent=self.text, address=self.text, **over)

    def pages(self) -> dict[str, Page]:
        """Every page that shows foreign text."""
        browser = self.house.signed_in()
        allow(browser, self.ask("cli_told"))
        (grant,) = self.house.rows(GrantRow)
        detail = AskedDetail(b"s", f"/v1/search?{urlencode({'q': self.text})}", (self.text,))
        told = entry(
            1, client_id="cli_told", grant_id=grant.grant_id, stream=self.text, detail=detail
        )
        self.house.disclosures.append_disclosures([told])
        device: dict[str, Any] = {"redirect_uri": None, "state": None, "code_challenge": None}
        owner = self.house.ask(
            None, "cli_told", flow="owner_device", picker=False, user_agent=self.text, **device
        )
        shown = {
            "consent": self.ask("cli_told"),
            "document": self.ask(DOCUMENT),
            "by device": self.ask("cli_told", flow="device", **device),
            "picker": self.house.ask(None, "cli_told"),
            "owner device": owner.replace("/consent/", "/device/"),
            "home": "/owner/",
            "access": "/owner/access",
            "one": f"/owner/access/{grant.grant_id}",
            "account": "/owner/sources/cin_told",
            "merge": f"/owner/sources/cin_told/merge?other={HOME}",
            "split": f"/owner/sources/{HOME}/split?other=cin_told",
            "disclosures": "/owner/disclosures",
            "line": "/owner/disclosures/1",
            "apps": "/owner/clients",
            "sign-ins": "/owner/sign-ins",
        }
        return {name: browser.get(path) for name, path in shown.items()}


@pytest.fixture(scope="module")
def harmless() -> dict[str, Page]:
    return Told("harmless").pages()


@pytest.mark.parametrize("text", CORPUS)
def test_hostile_text_changes_the_structure_of_no_page(
    text: str, harmless: dict[str, Page]
) -> None:
    for name, page in Told(text).pages().items():
        assert page.status == 200, name
        assert structure(page, text) == structure(harmless[name]), name
        for hidden in ("\u202e", "\u2066", "\u200b", "\ufeff", "\x00", "\x1b", "\x08"):
            assert hidden not in page.text, name


LIVE = ("disclosures", "consent", "document", "by device", "picker", "home")
"""Pages with a script of ours."""
POLICY = "frame-ancestors 'none'; base-uri 'none'"


def failing(browser: Browser) -> dict[str, Page]:
    """Pages of errors."""
    return {
        "not found": browser.get("/owner/nothing"),
        "no request": browser.get("/consent/ar_x"),
        "method": browser.get("/owner/logout"),
        "csrf": browser.post("/owner/logout", []),
        "code": browser.post("/device", [("_csrf", "x")]),
    }


def test_every_page_forbids_scripts_frames_and_foreign_forms(harmless: dict[str, Page]) -> None:
    stranger = Household().browser()
    pages = {**harmless, **failing(Household().signed_in())}
    pages["login"] = stranger.get("/owner/login")
    for name, page in pages.items():
        policy = page.headers["content-security-policy"]
        allowed = "script-src 'self'; connect-src 'self'; " if name in LIVE else ""
        policy = policy.replace(allowed, "")
        assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self' data:"), name
        assert policy.endswith(POLICY), name
        assert "script" not in policy, name
        assert page.headers["x-frame-options"] == "DENY", name
        assert page.headers["x-content-type-options"] == "nosniff", name
        assert page.headers["referrer-policy"] == "same-origin", name
        assert page.headers["cache-control"] == "no-store", name
        assert "strict-transport-security" not in page.headers, name
        forbidden = {"iframe", "object"} if name in LIVE else {"script", "iframe", "object"}
        assert not forbidden & {tag for tag, _ in structure(page)}, name


FORMS: dict[str, Callable[[dict[str, Page]], Page]] = {
    "consent": lambda pages: pages["consent"],
    "picker": lambda pages: pages["picker"],
}


@pytest.mark.parametrize("name", FORMS)
def test_nothing_is_ticked_or_sent_that_the_owner_did_not_choose(
    name: str, harmless: dict[str, Page]
) -> None:
    fields = [key for key, _ in FORMS[name](harmless).form("/consent/" + _handle(harmless[name]))]
    assert "ai_training" not in fields
    assert "end" not in fields
    if name == "picker":
        assert not [key for key in fields if key.startswith(("keep.", "stream.", "conn."))]


def _handle(page: Page) -> str:
    return page.text.split('action="/consent/')[1].split('"')[0]
