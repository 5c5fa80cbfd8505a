from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from selectolax.lexbor import LexborHTMLParser

from pdpp_kernel.errors import QueryTimeout
from pdpp_sources.calendar.reader import DECLARATION as CALENDAR
from pdpp_sources.imessage import DECLARATION as IMESSAGE
from pdpp_sources.mail.reader import DECLARATION as MAIL
from pdpp_sources.whatsapp import DECLARATION as WHATSAPP
from personal_server.console.words import PURPOSES
from personal_server.reading.preview import EvidenceReader
from personal_server.storage.authorization_rows import CodeRow
from server.tests.console.browsing import Browser, allow, marked, numbers, press, words
from server.tests.console.household import HOME, MAIL_SOURCE, Household, bank_request, mail_request

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202eevil'


def test_the_page_says_who_why_what_and_how_long(house: Household, browser: Browser) -> None:
    page = browser.get(house.ask(mail_request(fields=["subject"])))
    text = words(page)
    assert page.status == 200
    assert "Notes app" in text
    assert 'class="trust unknown"' in page.text
    assert str(PURPOSES["https://pdpp.dev/purpose/agent_context"]) in text
    assert marked(page, "no-reason")
    assert "Your e-mails" in text
    assert "Home mailbox" in text
    assert numbers(page, "figure")[0] == 40
    assert "7 May – 18 Nov 2026" in text
    assert "16 Feb 2027" in marked(page, "ends")[0]
    assert re.search(r'<option value="90d" selected>', page.text)


def test_the_summary_says_whether_full_texts_are_given(house: Household, browser: Browser) -> None:
    def fields_line(*fields: str) -> str:
        return marked(browser.get(house.ask(mail_request(fields=list(fields)))), "figure")[1]

    without, texts = fields_line("subject"), fields_line("subject", "body")
    assert texts.count(",") == without.count(",") + 1
    path = house.ask(mail_request())
    outline = press(browser, browser.get(path), path, "preview", bundle="0.outline")
    whole = press(browser, browser.get(path), path, "preview", bundle="0.everything")
    lines = [marked(page, "figure")[1].split(",")[0] for page in (outline, whole)]
    assert len(set(lines)) == 2  # both say which


def test_a_ticked_kind_chooses_its_source(house: Household, browser: Browser) -> None:
    path = house.ask(None)
    page = browser.get(path)
    assert 'value="approve"' not in page.text
    chosen = press(browser, page, path, "preview", **{"stream.0.transactions": "1"})
    assert re.search(r'name="keep.0" value="1" checked', chosen.text)
    assert 'value="approve"' in chosen.text
    without = [each for each in chosen.form(path) if each[0] != "keep.0"]
    dropped = browser.post(path, [*without, ("action", "preview")])
    assert not re.search(r'name="keep.0" value="1" checked', dropped.text)


def test_what_must_still_be_chosen_is_said_where_it_is(house: Household, browser: Browser) -> None:
    path = house.ask(None)
    page = press(browser, browser.get(path), path, "preview", **{"keep.0": "1"})
    assert '<p class="quiet" tabindex="-1" autofocus' in page.text
    assert page.text.count("autofocus") == 1
    tried = press(browser, page, path, "approve")
    assert '<p class="problem" role="alert" tabindex="-1" autofocus' in tried.text
    assert tried.text.count("autofocus") == 1


def test_a_bundle_fills_in_fields_and_everything_is_more(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    for bundle, body in (("outline", False), ("texts", True), ("everything", True)):
        page = browser.submit(page, path, bundle=f"0.{bundle}")
        ticked = re.search(r'name="field.0.messages" value="body" checked', page.text)
        assert (ticked is not None) is body
        assert 'value="approve"' in page.text
    assert browser.submit(page, path, bundle="0.all").error == "not_a_narrowing"


def test_kinds_unfold_where_what_is_given_of_them_is_sensitive(
    house: Household, browser: Browser
) -> None:
    for raw in (IMESSAGE, WHATSAPP, CALENDAR):
        key = str(raw["connector_key"])
        house.declare(raw)
        house.connect(f"cin_{key}", key, raw["source"]["id"], key)
    path = house.ask(None)
    page = browser.get(path)
    assert 'id="kinds-' in page.text
    for name, sensitive in ((IMESSAGE["display"]["name"], True), ("Calendar", False)):
        found = re.search(rf'id="source-([0-9])">{re.escape(name)}<', page.text)
        assert found is not None
        page = browser.submit(page, path, bundle=f"{found[1]}.everything")
        (kinds,) = LexborHTMLParser(page.text).css(f"#kinds-{found[1]}")
        assert ("open" in kinds.attributes) is sensitive


def test_the_line_of_a_source_counts_the_kinds_that_were_asked_for(
    house: Household, browser: Browser
) -> None:
    house.fill(HOME, "attachments", [{"id": "a1", "message_id": "m001"}])
    wanted = [*mail_request(), *bank_request()]
    for raw in (IMESSAGE, WHATSAPP):
        key = str(raw["connector_key"])
        house.declare(raw)
        house.connect(f"cin_{key}", key, raw["source"]["id"], key)
        source = {"kind": "connector", "id": raw["source"]["id"]}
        wanted.append({**wanted[0], "source": source, "streams": [{"name": "messages"}]})
    page = browser.get(house.ask(wanted))
    sums = [
        each.text().split()[0] for each in LexborHTMLParser(page.text).css(".source-head > .sum")
    ]
    assert sums == ["40", "30", "0", "0"]


def test_a_choice_that_gives_nothing_says_so(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert not marked(page, "no-records")
    none = press(browser, page, path, "preview", **{"since.0.messages": "2099-01-01"})
    assert marked(none, "no-records")
    assert 'value="approve"' in none.text


def test_a_count_that_took_too_long_is_not_called_nothing(
    house: Household, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = house.ask(mail_request())

    def too_slow(*_: object, **__: object) -> None:
        raise QueryTimeout("too slow", retry_after_seconds=1)

    monkeypatch.setattr(EvidenceReader, "_read", too_slow)
    assert not marked(browser.get(path), "no-records")


def test_samples_are_masked_and_never_left_behind(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert "Lu•••" in page.text
    for hidden in ("Lunch on Thursday", "secret number", "Grace Hopper"):
        assert hidden not in page.text
    allow(browser, path)
    dump = repr(vars(house.authorization))
    assert "Lunch" not in dump


def test_a_page_holds_no_secret(house: Household, browser: Browser) -> None:
    page = browser.get(house.ask(mail_request()))
    for word in ("pdpp_", "state-of-the-app", "c" * 43):
        assert word not in page.text
    assert house.rows(CodeRow) == []


def test_hostile_text_is_text_everywhere(house: Household, browser: Browser) -> None:
    house.client("cli_evil", name=HOSTILE)
    request = mail_request()
    request[0]["purpose_description"] = HOSTILE
    request[0]["purpose_code"] = "https://evil.example/%22%3E%3Cscript%3E"
    request[0]["client_claims"] = {"commitments": [HOSTILE]}
    page = browser.get(house.ask(request, "cli_evil", user_agent=HOSTILE, address=HOSTILE))
    assert "<script>" not in page.text
    assert "<img src=x" not in page.text
    assert "\u202e" not in page.text
    assert "&lt;script&gt;" in page.text


class Authorship(HTMLParser):
    """Which authorship stands inside which."""

    VOID = frozenset({"input", "br", "img", "meta", "link"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str | None] = []
        self.nested: list[tuple[str, str]] = []
        self.kinds: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        kind = dict(attrs).get("data-authorship")
        if kind is not None:
            self.kinds.add(kind)
            self.nested += [(outer, kind) for outer in self.open if outer is not None]
        if tag not in self.VOID:
            self.open.append(kind)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            self.open.pop()


def test_the_four_kinds_of_authorship_never_stand_inside_each_other(
    house: Household, browser: Browser
) -> None:
    request: list[Any] = [*mail_request(), *bank_request()]
    request[0]["client_claims"] = {"commitments": ["We never sell your data."]}
    reader = Authorship()
    reader.feed(browser.get(house.ask(request)).text)
    assert reader.kinds == {"server", "policy", "publisher", "client"}
    assert reader.nested == []
    assert reader.open == []


def test_fields_that_their_declaration_calls_sensitive_are_marked(
    house: Household, browser: Browser
) -> None:
    raw = json.loads(json.dumps(MAIL))
    raw["declaration_version"] = "2099-01-02"
    raw["streams"][0]["schema"]["properties"]["subject"]["x_pdpp_sensitive"] = True
    house.declare(raw)
    house.connect("cin_marked", "mail", MAIL_SOURCE, "Marked")
    house.fill("cin_marked", "messages", [{"id": "1", "sent_at": "2024-01-01", "subject": "x"}])
    request = mail_request(instance_ids=["cin_marked"], fields=["subject"])
    page = browser.get(house.ask(request))
    assert re.findall(r"<li>([^<]*) <span[^>]*>· sensitive", page.text) == ["subject"]


def test_hostile_names_and_values_of_sources_are_text_too(
    house: Household, browser: Browser
) -> None:
    raw = json.loads(json.dumps(MAIL))
    raw["display"] = {"name": HOSTILE, "detail": HOSTILE}
    raw["declaration_version"] = "2099-01-01"
    raw["streams"][0]["display"] = {"label": HOSTILE, "detail": HOSTILE}
    for view in raw["streams"][0]["views"]:
        view["label"] = HOSTILE
    house.declare(raw)
    house.connect("cin_evil", "mail", MAIL_SOURCE, HOSTILE)
    house.fill("cin_evil", "messages", [{"id": HOSTILE, "sent_at": HOSTILE, "subject": "<b>x</b>"}])
    page = browser.get(house.ask(mail_request(instance_ids=["cin_evil"], fields=["subject"])))
    assert page.status == 200
    assert "&lt;b•••" in page.text
    for markup in ("<script>", "<img src=x", "<b>x", "\u202e"):
        assert markup not in page.text
