from __future__ import annotations

import re

import pytest

from personal_server.console.session import PageRoute
from server.tests.console.browsing import Page
from server.tests.console.household import Household

PASSWORD = "correct horse battery"


def test_a_link_shows_a_button_and_only_pressing_it_spends_the_link(house: Household) -> None:
    browser = house.browser()
    path = f"/owner/enter?t={house.sign_in.make_link()}"
    assert [browser.get(path).status for _ in range(2)] == [200, 200]
    page = browser.get(path)
    entered = browser.submit(page, "/owner/enter")
    assert (entered.status, entered.headers["location"]) == (303, "/owner/")
    assert browser.get("/owner/sign-ins").status == 200


def test_a_spent_link_opens_nothing(house: Household) -> None:
    browser = house.browser()
    page = browser.get(f"/owner/enter?t={house.sign_in.make_link()}")
    browser.submit(page, "/owner/enter")
    other = house.browser()
    again = other.get("/owner/enter?t=x")
    fields = [*again.form("/owner/enter"), *page.form("/owner/enter")[1:]]
    spent = other.post("/owner/enter", [f for f in fields if f != ("t", "x")][:2])
    assert (spent.status, spent.error) == (400, "sign_in_link_invalid")


def test_the_password_signs_in_and_leads_on(house: Household) -> None:
    house.sign_in.set_password(PASSWORD)
    browser = house.browser()
    page = browser.get("/owner/login?next=%2Fconsent%2Far_x")
    entered = browser.submit(page, "/owner/login", password=PASSWORD)
    assert (entered.status, entered.headers["location"]) == (303, "/consent/ar_x")


def test_a_wrong_password_says_so_and_shows_the_form_again(house: Household) -> None:
    house.sign_in.set_password(PASSWORD)
    browser = house.browser()
    wrong = browser.submit(browser.get("/owner/login"), "/owner/login", password="no")
    assert (wrong.status, wrong.error) == (401, "sign_in_failed")
    assert browser.submit(wrong, "/owner/login", password=PASSWORD).status == 303


def test_without_a_password_the_page_tells_how_to_get_a_link(house: Household) -> None:
    page = house.browser().get("/owner/login")
    assert "pdpp owner link" in page.text
    assert 'type="password"' not in page.text


def test_at_localhost_the_link_is_asked_for_by_that_name(house: Household) -> None:
    page = house.browser("http://localhost:7662").get("/owner/login")
    assert "pdpp owner link http://localhost:7662" in page.text


def test_head_is_answered_like_get(house: Household) -> None:
    assert house.browser().head("/owner/login").status == 200
    assert house.signed_in().head("/owner/sign-ins").status == 200


def test_guessing_is_slowed_from_the_fifth_failure(house: Household) -> None:
    house.sign_in.set_password(PASSWORD)
    browser = house.browser()
    page = browser.get("/owner/login")
    for _ in range(5):
        assert browser.submit(page, "/owner/login", password="no").status == 401
    refused = browser.submit(page, "/owner/login", password=PASSWORD)
    assert (refused.status, refused.error) == (429, "rate_limit_exceeded")
    assert refused.headers["retry-after"] == "1"
    house.clock.now_ns += 1_000_000_000
    assert browser.submit(page, "/owner/login", password="no").status == 401
    assert browser.submit(page, "/owner/login", password=PASSWORD).headers["retry-after"] == "2"
    link = browser.get(f"/owner/enter?t={house.sign_in.make_link()}")
    assert browser.submit(link, "/owner/enter").status == 303


@pytest.mark.parametrize(
    ("origin", "session", "secure"),
    [
        ("http://127.0.0.1:7662", "pdpp_owner_7662", False),
        ("https://me.example", "__Host-pdpp_owner", True),
    ],
)
def test_the_session_cookie_is_kept_from_scripts_and_other_sites(
    house: Household, origin: str, session: str, secure: bool
) -> None:
    browser = house.browser(origin)
    page = browser.get(f"/owner/enter?t={house.sign_in.make_link()}")
    entered = browser.submit(page, "/owner/enter")
    (line,) = [
        line for line in entered.headers.get_list("set-cookie") if line.startswith(f"{session}=")
    ]
    assert {"httponly", "samesite=lax"} <= set(line.lower().split("; "))
    assert bool(browser.place) is not secure
    assert browser.paths[session] == f"{browser.place}/"  # so other windows keep theirs
    assert ("Secure" in line) is secure
    assert "Domain" not in line


def test_a_sign_in_replaces_the_session_that_the_browser_brought(house: Household) -> None:
    browser = house.signed_in()
    page = browser.get(f"/owner/enter?t={house.sign_in.make_link()}")
    assert browser.submit(page, "/owner/enter").status == 303
    assert len(house.sign_in.sessions()) == 1


def test_signing_out_ends_the_session_on_the_server(house: Household) -> None:
    browser = house.signed_in()
    kept = dict(browser.cookies)
    assert browser.submit(browser.get("/owner/sign-ins"), "/owner/logout").status == 303
    browser.cookies = kept
    assert browser.get("/owner/sign-ins").status == 303


def test_another_sign_in_can_be_ended(house: Household) -> None:
    browser, other = house.signed_in(), house.signed_in()
    secret = browser.cookies["pdpp_owner_7662"] + browser.place.removeprefix("/~")
    mine = house.sign_in.session(secret)
    assert mine is not None
    (reference,) = {s.reference for s in house.sign_in.sessions()} - {mine.reference}
    page = browser.get("/owner/sign-ins")
    assert browser.submit(page, f"/owner/sign-ins/{reference}/end").status == 303
    assert other.get("/owner/sign-ins").status == 303
    assert browser.get("/owner/sign-ins").status == 200


def test_sign_ins_of_one_browser_are_one_line_and_end_together(house: Household) -> None:
    browser, others = house.signed_in(), [house.signed_in() for _ in range(3)]
    page = browser.get("/owner/sign-ins")
    assert page.text.count('data-field="alike"') == 1
    assert page.text.count("<h2>") == 1
    (ending,) = re.findall(r'action="([^"]+/end-alike)"', page.text)
    assert browser.submit(page, ending).status == 303
    assert [other.get("/owner/").status for other in others] == [303] * 3
    assert "end-alike" not in browser.get("/owner/sign-ins").text
    gone = browser.post(
        "/owner/sign-ins/00/end-alike", browser.get("/owner/").form("/owner/logout")
    )
    assert (gone.status, gone.error) == (404, "not_found")


def test_all_other_sign_ins_can_be_ended_at_once(house: Household) -> None:
    browser = house.signed_in()
    assert "/owner/sign-ins/end-others" not in browser.get("/owner/sign-ins").text
    others = [house.signed_in() for _ in range(2)]
    page = browser.get("/owner/sign-ins")
    assert browser.submit(page, "/owner/sign-ins/end-others").status == 303
    assert [other.get("/owner/").status for other in others] == [303, 303]
    assert browser.get("/owner/").status == 200


def test_without_a_session_people_are_led_to_sign_in_and_programs_are_told(
    house: Household,
) -> None:
    browser = house.browser()
    page = browser.get("/owner/sign-ins")
    assert page.headers["location"] == "/owner/login?next=%2Fowner%2Fsign-ins"
    told = browser.get("/owner/sign-ins", accept="application/json")
    assert told.status == 401
    assert '"owner_session_required"' in told.text


FORGED: list[dict[str, str]] = [
    {"origin": "null"},
    {"origin": "https://evil.example"},
    {"origin": "http://localhost:7662"},
    {"origin": "http://127.0.0.1:7663"},
    {"origin": ""},
    {"origin": "", "sec_fetch_site": "cross-site"},
    {"origin": "", "sec_fetch_site": "same-site"},
    {"content_type": "text/plain"},
    {"content_type": "application/json"},
    {"content_type": "multipart/form-data; boundary=x"},
]


@pytest.mark.parametrize("headers", FORGED)
def test_a_form_from_elsewhere_does_nothing(house: Household, headers: dict[str, str]) -> None:
    browser = house.signed_in()
    page = browser.get("/owner/sign-ins")
    refused = browser.post("/owner/logout", page.form("/owner/logout"), **headers)
    assert (refused.status, refused.error) == (403, "csrf_failed")
    assert browser.get("/owner/sign-ins").status == 200


def test_a_form_without_origin_needs_a_browser_that_says_same_origin(house: Household) -> None:
    browser = house.signed_in()
    fields = browser.get("/owner/sign-ins").form("/owner/logout")
    headers = {"origin": "", "sec_fetch_site": "same-origin"}
    assert browser.post("/owner/logout", fields, **headers).status == 303


@pytest.mark.parametrize("secret", [None, "", "x", "ü"])
def test_a_form_without_the_secret_of_the_session_does_nothing(
    house: Household, secret: str | None
) -> None:
    browser = house.signed_in()
    fields = [] if secret is None else [("_csrf", secret)]
    assert browser.post("/owner/logout", fields).error == "csrf_failed"


def test_no_page_does_anything_for_a_form_without_the_secret() -> None:
    """Accounts that are followed, and what will come later, among them."""
    house = Household(sign_ups=lambda: pytest.fail("no form was taken"))
    browser = house.signed_in()
    routes: tuple[PageRoute, ...] = house.app.table.routes
    posted = [route for route in routes if route.method == "POST"]
    assert any("/feeds/new" in route.pattern for route in posted)
    for route in posted:
        path = re.sub(r"\{[a-z_]+\}", "x", route.pattern)
        assert browser.post(path, [("_csrf", "x")]).error == "csrf_failed", path
        foreign = browser.post(path, [("_csrf", "x")], origin="https://evil.example")
        assert foreign.error == "csrf_failed", path


def test_the_secret_may_come_in_a_header(house: Household) -> None:
    browser = house.signed_in()
    csrf = dict(browser.get("/owner/sign-ins").form("/owner/logout"))["_csrf"]
    assert browser.post("/owner/logout", [], x_csrf_token=csrf).status == 303


def test_before_sign_in_the_form_secret_is_that_of_the_cookie(house: Household) -> None:
    browser = house.browser()
    page = browser.get(f"/owner/enter?t={house.sign_in.make_link()}")
    browser.cookies.clear()
    assert browser.submit(page, "/owner/enter").error == "csrf_failed"


NEXT = [
    ("/consent/ar_1", "/consent/ar_1"),
    ("/device?user_code=WDJB-MJHT", "/device?user_code=WDJB-MJHT"),
    ("/owner", "/owner"),
    ("//evil.example", "/owner/"),
    ("/owner//evil.example", "/owner/"),
    ("https://evil.example", "/owner/"),
    ("/\\evil.example", "/owner/"),
    ("/owner/\\evil", "/owner/"),
    ("/ownerx", "/owner/"),
    ("/consent/a\r\nSet-Cookie: x", "/owner/"),
    ("javascript:alert(1)", "/owner/"),
    ("/mcp", "/owner/"),
    ("", "/owner/"),
]


@pytest.mark.parametrize(("target", "led_to"), NEXT)
def test_sign_in_leads_only_to_our_own_pages(house: Household, target: str, led_to: str) -> None:
    house.sign_in.set_password(PASSWORD)
    browser = house.browser()
    page = browser.get("/owner/login")
    entered = browser.submit(page, "/owner/login", password=PASSWORD, next=target)
    assert entered.headers["location"] == led_to


def pages_of(house: Household) -> list[Page]:
    browser = house.signed_in("https://me.example")
    stranger = house.browser("https://me.example")
    return [
        browser.get("/owner/sign-ins"),
        browser.get("/owner/nothing"),
        stranger.get("/owner/login"),
        stranger.get("/owner/enter?t=x"),
        stranger.get("/owner/sign-ins"),
        stranger.get("/owner/login?other=1"),
    ]


def test_every_page_carries_the_strict_headers(house: Household) -> None:
    for page in pages_of(house):
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; img-src 'self' data:")
        assert "form-action 'self'; frame-ancestors 'none'; base-uri 'none'" in policy
        assert "script-src" not in policy
        assert page.headers["referrer-policy"] == "same-origin"
        assert page.headers["x-frame-options"] == "DENY"
        assert page.headers["cross-origin-resource-policy"] == "same-origin"
        assert page.headers["strict-transport-security"] == "max-age=31536000"
        assert page.headers["cache-control"] == "no-store"
        assert page.headers["pragma"] == "no-cache"
        assert "<script" not in page.text


def test_pages_that_lead_back_to_an_app_keep_its_window(house: Household) -> None:
    """Of the others no website that opened one gets hold."""
    signed_in, stranger = house.signed_in(), house.browser()
    for browser, path, is_kept in (
        (signed_in, "/owner/", False),
        (signed_in, "/owner/search?q=x", False),
        (signed_in, "/owner/nothing", False),
        (stranger, "/owner/", False),
        (stranger, "/owner/sign-ins", False),
        (stranger, "/owner/login?next=/consent/x", True),
        (stranger, "/owner/enter?t=x", True),
        (stranger, "/consent/x", True),
        (signed_in, "/consent/x", True),
        (signed_in, "/device", True),
    ):
        policy = browser.get(path).headers.get("cross-origin-opener-policy")
        assert policy == (None if is_kept else "same-origin"), path


def test_bad_requests_are_pages_with_their_code(house: Household) -> None:
    browser = house.signed_in()
    assert browser.get("/owner/sign-ins?x=1").error == "invalid_request"
    assert browser.get("/owner/login?next=/a&next=/b").error == "invalid_request"
    assert browser.get("/owner/nothing").error == "not_found"
    assert browser.get("/owner/sign-ins", pdpp_version="2020-01-01").error == "unsupported_version"
    refused = browser.get("/owner/logout")
    assert (refused.error, refused.headers["allow"]) == ("method_not_allowed", "POST")


def test_a_form_that_is_too_large_is_refused(house: Household) -> None:
    browser = house.signed_in()
    large = browser.post("/owner/logout", [("x", "y" * 600_000)])
    assert (large.status, large.error) == (413, "resource_limit")
    many = browser.post("/owner/logout", [("x", "")] * 10_001)
    assert (many.status, many.error) == (400, "invalid_request")


def test_the_icon_is_public_and_readable_from_anywhere(house: Household) -> None:
    icon = house.browser().get("/icon.svg")
    assert icon.headers["content-type"].startswith("image/svg+xml")
    assert icon.headers["access-control-allow-origin"] == "*"


def test_a_link_opened_in_the_same_browser_leads_on_to_where_it_was_going(
    house: Household,
) -> None:
    browser = house.browser()
    browser.get("/owner/login?next=%2Fconsent%2Far_x")
    page = browser.get(f"/owner/enter?t={house.sign_in.make_link()}")
    entered = browser.submit(page, "/owner/enter")
    assert entered.headers["location"] == "/consent/ar_x"
    assert "pdpp_next_7662" not in browser.cookies


def test_a_browser_without_cookies_is_told_so_and_sent_in_no_circle(house: Household) -> None:
    browser = house.browser()
    page = browser.get(f"/owner/enter?t={house.sign_in.make_link()}")
    browser.cookies.clear()
    first = browser.submit(page, "/owner/enter")
    other = browser.post("/owner/enter", [], origin="http://127.0.0.1:7663")
    assert (first.status, first.error) == (other.status, other.error) == (403, "csrf_failed")
    assert lead(first) != lead(other)


def test_a_spent_link_names_the_command_for_another(house: Household) -> None:
    browser = house.browser()
    page = browser.get("/owner/enter?t=pdpp_ol_x")
    assert "pdpp owner link" in browser.submit(page, "/owner/enter").text


def lead(page: Page) -> str:
    return page.text.partition('class="lead"')[2].partition("</p>")[0]
