from __future__ import annotations

from personal_server.domain.connection import ConnectionStatus
from server.tests.console.browsing import Browser, allow, marked, numbers, words
from server.tests.console.household import HOME, WORK, Household, mail_request

PAGE = f"/owner/sources/{HOME}"


def status(house: Household, connection_id: str = HOME) -> ConnectionStatus:
    with house.records.snapshot() as snapshot:
        found = {each.connection_id: each for each in snapshot.connections()}
    return found[connection_id].status


def test_an_account_says_what_it_holds_and_who_reads_it(house: Household, browser: Browser) -> None:
    assert f'href="{PAGE}"' in browser.get("/owner/records").text
    assert marked(browser.get(PAGE), "no-readers")
    allow(browser, house.ask(mail_request()))
    house.collect()
    shown = browser.get(PAGE)
    assert "Home mailbox" in words(shown)
    assert numbers(shown, "total") == [40]
    assert "Notes app" in marked(shown, "readers")[0]
    assert f'href="/owner/records/{HOME}/messages"' in shown.text
    assert browser.get("/owner/sources/cin_nothing").status == 404


def test_it_is_named_as_its_owner_likes(browser: Browser) -> None:
    page = browser.get(PAGE)
    assert browser.submit(page, f"{PAGE}/name", name="  <b>Ada & I</b> ").status == 303
    shown = browser.get(PAGE)
    assert "<h1>&lt;b&gt;Ada &amp; I&lt;/b&gt;</h1>" in shown.text
    too_long = browser.submit(page, f"{PAGE}/name", name="n" * 201)
    assert too_long.status == 400
    assert "200" in words(too_long).split()


def test_it_is_paused_closed_and_opened_again(house: Household, browser: Browser) -> None:
    def press(action: str) -> int:
        fields = [("_csrf", dict(browser.get(PAGE).form(f"{PAGE}/name"))["_csrf"])]
        return browser.post(f"{PAGE}/status", [*fields, ("action", action)]).status

    walk = ["pause", "resume", "revoke", "reactivate"]
    found = [(press(action), status(house)) for action in walk]
    names = [ConnectionStatus.PAUSED, ConnectionStatus.ACTIVE, ConnectionStatus.REVOKED]
    assert found == [(303, each) for each in [*names, ConnectionStatus.ACTIVE]]
    assert press("resume") == 409
    assert press("sell") == 400
    assert status(house) is ConnectionStatus.ACTIVE


def test_it_is_erased_only_when_the_box_is_ticked(house: Household, browser: Browser) -> None:
    page = browser.get(PAGE)
    secret = ("_csrf", dict(page.form(f"{PAGE}/name"))["_csrf"])
    for confirm in ([], [("confirm", WORK)]):
        refused = browser.post(f"{PAGE}/erase", [secret, *confirm])
        assert (refused.status, refused.error) == (400, "confirmation_required")
    assert numbers(browser.get(PAGE), "total") == [40]
    done = browser.post(f"{PAGE}/erase", [secret, ("confirm", HOME)])
    for _ in range(2):  # a reload repeats nothing
        erased = browser.follow(done)
        assert erased.status == 200
        assert numbers(erased, "erase") == [40]
        assert "Home mailbox" in marked(erased, "erase")[0]
    assert browser.get(PAGE).status == 404
    assert status(house, WORK) is ConnectionStatus.ACTIVE


def test_nothing_changes_without_the_form_of_the_page(house: Household, browser: Browser) -> None:
    for action in ("name", "status", "erase"):
        assert browser.post(f"{PAGE}/{action}", [("confirm", HOME)]).status == 403
        assert house.browser().post(f"{PAGE}/{action}", []).status in {303, 403}
    assert status(house) is ConnectionStatus.ACTIVE
