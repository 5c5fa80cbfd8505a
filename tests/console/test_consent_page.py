from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from personal_server.domain.connection import ConnectionStatus
from personal_server.sources.mail.declaration import DECLARATION as MAIL
from personal_server.storage.authorization_rows import (
    CodeRow,
    GrantRow,
    PackageRow,
    RequestRow,
    ReviewArtifactRow,
)
from tests.console.browsing import Browser, Page
from tests.console.household import (
    HOME,
    MAIL_SOURCE,
    WORK,
    Household,
    bank_request,
    mail_request,
)

TRAINING = "https://pdpp.dev/purpose/ai_training"


@pytest.fixture
def house() -> Household:
    return Household()


@pytest.fixture
def browser(house: Household) -> Browser:
    return house.signed_in()


def words(page: Page) -> str:
    """The page as somebody reads it."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


def press(browser: Browser, page: Page, path: str, action: str, **changes: str) -> Page:
    return browser.submit(page, path, action=action, **changes)


def allow(browser: Browser, path: str) -> Page:
    return press(browser, browser.get(path), path, "approve")


def test_without_a_session_the_owner_signs_in_first(house: Household) -> None:
    path = house.ask(mail_request())
    page = house.browser().get(path)
    assert page.headers["location"] == "/owner/login?next=%2Fconsent%2Far_0"


def test_the_page_says_who_why_what_and_how_long(house: Household, browser: Browser) -> None:
    page = browser.get(house.ask(mail_request(fields=["subject"])))
    text = words(page)
    assert page.status == 200
    assert "Notes app" in text
    assert "Unverified app" in text
    assert "To give an AI agent context about you" in text
    assert "The app did not say why" in text
    assert "Your e-mails" in text
    assert "Home mailbox" in text
    assert "40 records" in text
    assert "7 May – 18 Nov 2026" in text
    assert "That is 16 Feb 2027" in text
    assert re.search(r'<option value="90d" selected>', page.text)


def test_allowing_goes_back_with_code_state_and_issuer(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    answer = allow(browser, path)
    assert answer.status == 303
    target = urlsplit(answer.headers["location"])
    query = parse_qs(target.query)
    assert target.netloc == "app.example"
    assert query["kept"] == ["1"]
    assert query["state"] == ["state-of-the-app"]
    assert query["iss"] == [house.origin]
    assert query["code"][0].startswith("pdpp_ac_")
    assert [row.access_mode for row in house.rows(GrantRow)] == ["continuous"]


def test_denying_goes_back_with_access_denied(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    answer = press(browser, browser.get(path), path, "deny")
    assert parse_qs(urlsplit(answer.headers["location"]).query)["error"] == ["access_denied"]
    assert house.rows(GrantRow) == []


def test_a_device_request_ends_with_a_page(house: Household, browser: Browser) -> None:
    path = house.ask(
        mail_request(), flow="device", redirect_uri=None, address="198.51.100.4", user_agent="tool"
    )
    page = browser.get(path)
    assert "198.51.100.4" in page.text
    assert "At 18 Nov 2026, 11:06 UTC" in words(page)
    assert "A device asks" in words(page)
    assert "You can close this window" in words(allow(browser, path))


def test_the_form_may_be_redirected_to_the_app_and_nowhere_else(
    house: Household, browser: Browser
) -> None:
    page = browser.get(house.ask(mail_request()))
    policy = page.headers["content-security-policy"]
    assert "form-action 'self' https://app.example;" in policy
    page = browser.get(house.ask(mail_request(), redirect_uri="cursor://any.where/cb"))
    assert "form-action 'self' cursor:;" in page.headers["content-security-policy"]


def test_the_preview_shows_the_result_of_the_choices(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    fields = [(n, v) for n, v in page.form(path) if n != "field.0.messages" or v == "subject"]
    narrowed = browser.post(path, [*fields, ("action", "preview")])
    chips = re.findall(r"<li( class=\"fixed\")?>([a-z ]+)", narrowed.text)
    assert [name.strip() for _, name in chips] == ["id", "sent at", "subject"]
    assert allow_shown(browser, narrowed, path).status == 303
    (row,) = house.rows(ReviewArtifactRow)
    stream = json.loads(row.artifact)["sources"][0]["streams"][0]
    assert stream["fields"] == ["id", "sent_at", "subject"]


def allow_shown(browser: Browser, page: Page, path: str) -> Page:
    return press(browser, page, path, "approve")


def test_a_shortcut_fills_in_recent_days(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.submit(browser.get(path), path, quick="30")
    assert "7 records" in words(page)
    assert 'value="2026-10-19"' in page.text
    allow_shown(browser, page, path)
    (row,) = house.rows(ReviewArtifactRow)
    stream = json.loads(row.artifact)["sources"][0]["streams"][0]
    assert stream["time_constraint"] == {"field": "sent_at", "since": "2026-10-19T00:00:00Z"}


def test_a_shortcut_never_reaches_further_back_than_the_request(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request(time_range={"since": "2026-11-01"}))
    page = browser.submit(browser.get(path), path, quick="365")
    assert page.status == 200
    allow_shown(browser, page, path)
    (row,) = house.rows(ReviewArtifactRow)
    stream = json.loads(row.artifact)["sources"][0]["streams"][0]
    assert stream["time_constraint"]["since"] == "2026-11-01T00:00:00Z"


def test_a_declared_view_is_a_shortcut_too(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.submit(browser.get(path), path, view="0.messages.traffic")
    allow_shown(browser, page, path)
    (row,) = house.rows(ReviewArtifactRow)
    stream = json.loads(row.artifact)["sources"][0]["streams"][0]
    assert stream["fields"] == ["id", "sent_at", "from_address", "to"]


def test_choices_made_after_the_preview_are_shown_again_with_what_changed(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    changed = press(browser, page, path, "approve", expiry="30d")
    assert (changed.status, changed.error) == (409, "review_changed")
    assert "Access now ends 2026-12-18." in words(changed)
    assert house.rows(GrantRow) == []
    assert allow_shown(browser, changed, path).status == 303


def test_a_connection_that_goes_away_makes_the_review_stale(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request(instance_ids=[HOME, WORK]))
    page = browser.get(path)
    revoke_connection(house, WORK)
    stale = press(browser, page, path, "approve")
    assert stale.status in (400, 409)
    assert house.rows(GrantRow) == []


def revoke_connection(house: Household, connection_id: str) -> None:
    import dataclasses  # noqa: PLC0415 -- used here only

    house.records.update_connection(
        connection_id, lambda c: dataclasses.replace(c, status=ConnectionStatus.REVOKED)
    )


def test_a_decided_request_is_closed(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert press(browser, page, path, "approve").status == 303
    again = press(browser, page, path, "approve")
    assert (again.status, again.error) == (409, "approval_conflict")
    closed = browser.get(path)
    assert (closed.status, closed.error) == (410, "request_closed")


def test_an_expired_request_leads_back_to_the_app(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    house.clock.now_ns += 16 * 60 * 10**9
    closed = browser.get(path)
    assert (closed.status, closed.error) == (410, "request_closed")
    assert 'href="https://app.example/cb?kept=1&amp;error=access_denied' in closed.text


def test_an_unknown_request_is_not_found(browser: Browser) -> None:
    page = browser.get("/consent/ar_unknown")
    assert (page.status, page.error) == (404, "not_found")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"action": "approve", "expiry": "7y"}, "not_a_narrowing"),
        ({"action": "approve", "field.0.messages": "nothing"}, "not_a_narrowing"),
        ({"action": "approve", "stream.0.nothing": "1"}, "not_a_narrowing"),
        ({"action": "approve", "conn.0": "cin_work"}, "not_a_narrowing"),
        ({"action": "approve", "keep.7": "1"}, "not_a_narrowing"),
        ({"action": "approve", "since.0.messages": "yesterday"}, "not_a_narrowing"),
        ({"action": "approve", "end": "grt_x"}, "not_a_narrowing"),
        ({"action": "grant"}, "invalid_request"),
        ({}, "invalid_request"),
        ({"quick": "9999"}, "not_a_narrowing"),
    ],
)
def test_a_form_that_asks_for_more_is_refused(
    house: Household, browser: Browser, changes: dict[str, str], code: str
) -> None:
    path = house.ask(mail_request())
    refused = browser.submit(browser.get(path), path, **changes)
    assert (refused.status, refused.error) == (400, code)
    assert house.rows(GrantRow) == []
    if code == "not_a_narrowing":
        assert press(browser, refused, path, "approve").status == 303


def test_training_needs_its_own_tick(house: Household, browser: Browser) -> None:
    request = mail_request()
    request[0]["purpose_code"] = TRAINING
    path = house.ask(request)
    page = browser.get(path)
    assert not re.search(r'name="ai_training" value="yes" checked', page.text)
    refused = press(browser, page, path, "approve")
    assert (refused.status, refused.error) == (400, "ai_training_consent_required")
    assert house.rows(GrantRow) == []
    assert press(browser, refused, path, "approve", ai_training="yes").status == 303


def test_other_purposes_have_no_training_box(house: Household, browser: Browser) -> None:
    assert "ai_training" not in browser.get(house.ask(mail_request())).text


def test_several_accounts_must_be_chosen_among(house: Household, browser: Browser) -> None:
    request = mail_request()
    del request[0]["streams"][0]["instance_ids"]  # type: ignore[index]
    path = house.ask(request)
    page = browser.get(path)
    assert 'value="approve"' not in page.text
    assert "Choose which accounts of E-mail" in words(page)
    chosen = press(browser, page, path, "preview", **{"conn.0": WORK})
    assert "12 records" in words(chosen)
    assert press(browser, chosen, path, "approve").status == 303


def test_an_app_that_asks_for_nothing_gets_a_picker(house: Household, browser: Browser) -> None:
    path = house.ask(None)
    page = browser.get(path)
    assert 'value="approve"' not in page.text
    assert not re.search(r'name="(keep|stream)\.[^>]* checked', page.text)
    ticks = {"keep.0": "1", "stream.0.transactions": "1"}
    chosen = press(browser, page, path, "preview", **ticks)
    assert "30 records" in words(chosen)
    assert press(browser, chosen, path, "approve").status == 303
    assert len(house.rows(GrantRow)) == 1
    assert house.rows(PackageRow) == []


def test_ticking_records_but_not_their_source_is_pointed_out(
    house: Household, browser: Browser
) -> None:
    path = house.ask(None)
    page = browser.get(path)
    assert "but not the source above" not in words(page)
    half = press(browser, page, path, "preview", **{"stream.0.transactions": "1"})
    assert "but not the source above" in words(half)


def test_two_kept_entries_make_a_package_and_none_a_denial(
    house: Household, browser: Browser
) -> None:
    path = house.ask([*mail_request(), *bank_request()])
    assert allow(browser, path).status == 303
    assert len(house.rows(PackageRow)) == 1
    path = house.ask([*mail_request(), *bank_request()])
    page = browser.get(path)
    fields = [(n, v) for n, v in page.form(path) if not n.startswith("keep.")]
    denied = browser.post(path, [*fields, ("action", "approve")])
    assert "error=access_denied" in denied.headers["location"]
    assert len(house.rows(PackageRow)) == 1


def test_what_cannot_be_given_is_said_in_words_with_one_way_back(
    house: Household, browser: Browser
) -> None:
    request = mail_request()
    request[0]["source"] = {"id": "https://registry.pdpp.dev/connectors/health"}
    path = house.ask(request)
    page = browser.get(path)
    assert "This cannot be given" in words(page)
    assert page.text.count("<button") == 1
    back = press(browser, page, path, "deny")
    assert "error=access_denied" in back.headers["location"]


def test_earlier_access_is_shown_and_can_be_replaced(house: Household, browser: Browser) -> None:
    allow(browser, house.ask(mail_request(fields=["subject"])))
    (first,) = house.rows(GrantRow)
    path = house.ask(mail_request())
    page = browser.get(path)
    assert "What it has already" in words(page)
    assert not re.search(r'name="end"[^>]* checked', page.text)
    like = browser.get(f"{path}?like={first.grant_id}")
    assert re.search(r'value="subject" checked', like.text)
    assert not re.search(r'value="body" checked', like.text)
    shown = press(browser, like, path, "preview", end=first.grant_id)
    assert press(browser, shown, path, "approve").status == 303
    reasons = {row.grant_id: row.reason for row in house.rows(GrantRow)}
    assert reasons[first.grant_id] == "replaced"


def test_samples_are_masked_and_never_left_behind(house: Household, browser: Browser) -> None:
    path = house.ask(mail_request())
    page = browser.get(path)
    assert "Lu•••" in page.text
    for hidden in ("Lunch on Thursday", "secret number", "grace@example.org", "Grace Hopper"):
        assert hidden not in page.text
    allow(browser, path)
    dump = repr(vars(house.authorization))
    assert "Lunch" not in dump


def test_a_page_holds_no_secret(house: Household, browser: Browser) -> None:
    page = browser.get(house.ask(mail_request()))
    for word in ("pdpp_", "state-of-the-app", "c" * 43):
        assert word not in page.text
    assert house.rows(CodeRow) == []


HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(1)>\u202eevil'


def test_hostile_text_is_text_everywhere(house: Household, browser: Browser) -> None:
    house.client("cli_evil", name=HOSTILE)
    request = mail_request()
    request[0]["purpose_description"] = HOSTILE
    request[0]["purpose_code"] = "https://evil.example/%22%3E%3Cscript%3E"
    request[0]["client_claims"] = {"commitments": [HOSTILE]}
    page = browser.get(house.ask(request, "cli_evil", user_agent=HOSTILE, address=HOSTILE))
    assert "<script" not in page.text
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
    for markup in ("<script", "<img src=x", "<b>x", "\u202e"):
        assert markup not in page.text


def test_the_request_stays_pending_until_a_button_is_pressed(
    house: Household, browser: Browser
) -> None:
    path = house.ask(mail_request())
    for _ in range(3):
        browser.get(path)
    assert [row.status for row in house.rows(RequestRow)] == ["pending"]
