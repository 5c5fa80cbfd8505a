"""The consent page as its owner meets it: in one view, counted as it is ticked, nothing lost."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import secrets
from collections.abc import Generator
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from pdpp_sources.calendar.reader import DECLARATION as CALENDAR
from pdpp_sources.registry import SOURCES
from personal_server.collecting.connections import create_connection
from personal_server.console.consent_view import CHECKED, CLAIMED, KNOWN, UNKNOWN
from personal_server.domain.connection import Connection, ConnectionStatus
from personal_server.domain.declaration_document import parse_declaration, render_declaration
from personal_server.domain.hosts import CLAUDE_CODE, VS_CODE
from personal_server.storage.authorization_rows import ClientRow, GrantRow
from server.tests.console.household import DAY, bank_request, mail_request
from tests.browser.chromium import chromium
from tests.browser.site import SECONDS, Owner, Site, left
from tests.browser.visits import open_request, prepare

pytestmark = pytest.mark.browser

LAPTOP = (1280, 800)
BOXES = """return [...document.querySelectorAll(arguments[0])].map((one) => {
  const at = one.getBoundingClientRect();
  return [at.left, at.top, at.right, at.bottom];
})"""
TICK_AND_TYPE = "arguments[0].click(); document.querySelector('[data-find] input').focus()"
TYPES_ON = "return document.activeElement.matches('[data-find] input')"
CLIENTS = (
    (VS_CODE.url, "https://vscode.dev/redirect"),
    ("https://assistant.example/client.json", "https://assistant.example/callback"),
    (CLAUDE_CODE.url, "http://localhost:50123/callback"),
    ("cli_notes", "http://127.0.0.1:50123/callback"),
)
MAIL = "1"
"""The entry of the picker that is the mail."""


@pytest.fixture(params=[True, False], ids=["script", "no script"])
def either(request: pytest.FixtureRequest, running: Site) -> Generator[Owner]:
    """A signed-in owner at a laptop, with and without scripts."""
    with chromium(width=LAPTOP[0], height=LAPTOP[1], scripts=request.param) as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        yield owner


# These pages are the same without scripts, as `server/tests/console/consent_page` proves.
without_scripts_at_night = pytest.mark.parametrize(
    "either",
    [True, pytest.param(False, marks=pytest.mark.long)],
    ids=["script", "no script"],
    indirect=True,
)


@pytest.fixture
def scripted(running: Site) -> Generator[Owner]:
    with chromium(width=LAPTOP[0], height=LAPTOP[1]) as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        yield owner


def counts_by_itself(owner: Owner) -> bool:
    """Whether the script of the page runs; it brings a place to say what it counted."""
    return bool(owner.all("main + [role=status]"))


def outside(owner: Owner, selector: str) -> list[list[float]]:
    """What of these is not in view."""
    found: Any = owner.driver.execute_script(BOXES, selector)
    assert found, selector
    width, height = LAPTOP
    return [at for at in found if min(at) < 0 or at[2] > width or at[3] > height]


def test_who_what_how_long_and_the_decision_are_in_one_view(either: Owner, running: Site) -> None:
    three_sources(running)
    pages = prepare(running)
    for name in ("consent", "picker"):
        either.open(pages[name])
        for part in ("#who", ".source", ".bundles", ".kind", "#how-long", "#decision"):
            assert outside(either, part) == [], (name, part)
    wanted = [*mail_request(fields=["subject", "from_name", "body"]), *bank_request()]
    open_request(either, wanted)
    for part in ("#who", ".source", "#how-long", "#decision"):
        assert outside(either, part) == [], part


def test_many_sources_are_a_line_each_that_unfolds_when_ticked(
    either: Owner, running: Site
) -> None:
    many_sources(running)
    either.open(prepare(running)["picker"])
    lines = either.all(".what > .source")
    assert len(lines) > 10
    assert not [kinds for kinds in either.all(".kind, .bundles") if kinds.is_displayed()]
    sizes: list[Any] = [line.size for line in lines]
    assert max(size["height"] for size in sizes) <= 60
    assert either.find("[data-find]").is_displayed() is counts_by_itself(either)
    for place in (0, 1_000):
        either.driver.execute_script(f"scrollTo(0, {place})")
        assert outside(either, ".decide") == []
    assert not either.find(".decide button:not([value])").is_enabled()
    either.tick("keep.0")
    assert either.find("#kinds-0 > summary").is_displayed()
    assert not either.find("#kinds-0 .kind").is_displayed()
    preset = either.find('button[name="bundle"][value^="0."]')
    before = either.find("html")
    either.press(preset)
    WebDriverWait(either.driver, SECONDS).until(left(before))
    assert either.figure() == 0  # its account is empty
    for place in (0, 1_000):
        either.driver.execute_script(f"scrollTo(0, {place})")
        assert outside(either, ".decide, .glance") == []


def test_a_source_is_found_by_its_name(scripted: Owner, running: Site) -> None:
    many_sources(running)
    scripted.open(prepare(running)["picker"])
    scripted.tick("keep.0")
    scripted.find("[data-find] input").send_keys("family")
    shown = [line for line in scripted.all(".what > .source") if line.is_displayed()]
    assert len(shown) == 2  # what is ticked stays
    box = shown[1].find_element(By.CSS_SELECTOR, "label.pick")
    scripted.driver.execute_script(TICK_AND_TYPE, box)
    scripted.rest()
    assert scripted.driver.execute_script(TYPES_ON)
    assert scripted.find("[data-find] input").get_attribute("value") == "family"
    assert sum(line.is_displayed() for line in scripted.all(".what > .source")) == 2


def many_sources(running: Site) -> None:
    """All that this server can read, an account each."""
    records = running.server.stores.records
    for source in SOURCES:
        if source.connector_key in ("mail", "bank", "table"):
            continue
        declared = parse_declaration(source.declaration)
        records.put_declaration(declared, render_declaration(source.declaration), 1)
        name = "Family" if source.connector_key == "slack" else "Mine"
        account = f"cin_{source.connector_key}"
        facts = (account, source.connector_key, declared.source_id, name)
        records.add_connection(Connection(*facts, ConnectionStatus.ACTIVE, 1, 1))


def three_sources(running: Site) -> None:
    """A calendar beside the mail and the bank."""
    records = running.server.stores.records
    declared = parse_declaration(CALENDAR)
    records.put_declaration(declared, render_declaration(CALENDAR), 1)
    stored = records.declaration("calendar", None)
    create_connection(records, stored, "Family", 1, secrets.token_bytes)


def test_what_is_ticked_is_counted_at_once(scripted: Owner, running: Site) -> None:
    scripted.open(prepare(running)["picker"])
    scripted.driver.execute_script("document.body.dataset.same = 'yes'")
    assert scripted.all(".glance strong.figure") == []
    counts = {"stream.0.transactions": 30, f"stream.{MAIL}.messages": 30}
    for name, count in counts.items():
        scripted.tick(name)
        assert scripted.figure() == count
        focused: Any = scripted.driver.execute_script("return document.activeElement.name")
        assert focused == name
    scripted.tick(f"conn.{MAIL}", "cin_work")
    assert scripted.figure() == 42
    assert scripted.find(f'input[name="keep.{MAIL}"]').is_selected()
    assert "12" in scripted.find(f'[aria-labelledby="source-{MAIL}"]').text.split()
    told = str(scripted.find("[role=status].unseen").get_attribute("textContent"))
    assert "42" in told.split()
    Select(scripted.find("#expiry")).select_by_value("1y")
    scripted.rest()
    same: Any = scripted.driver.execute_script("return document.body.dataset.same")
    assert same == "yes"  # no new page
    scripted.allow()
    assert granted_end(running) == 365


def granted_end(running: Site) -> int:
    """How many days the newest package is given for."""
    with running.server.stores.authorization.read() as reader:
        newest = max(reader.rows(GrantRow), key=lambda row: row.issued_at_ns)
    return round(((newest.expires_at_ns or 0) - newest.issued_at_ns) / DAY)


@without_scripts_at_night
def test_a_reload_keeps_what_was_ticked(either: Owner, running: Site) -> None:
    address = prepare(running)["picker"]
    either.open(address)
    either.tick("stream.0.transactions")
    Select(either.find("#expiry")).select_by_value("30d")
    either.rest()
    if not counts_by_itself(either):
        either.preview()
    before = either.find("html")
    either.open(address)
    assert left(before)(either.driver)
    assert either.figure() == 30
    assert either.find('input[name="stream.0.transactions"]').is_selected()
    assert Select(either.find("#expiry")).first_selected_option.get_attribute("value") == "30d"


@without_scripts_at_night
def test_a_new_sign_in_keeps_what_was_ticked(either: Owner, running: Site) -> None:
    address = prepare(running)["picker"]
    either.open(address)
    either.tick("stream.0.transactions")
    if not counts_by_itself(either):
        either.preview()
    either.driver.delete_all_cookies()
    either.open(address)
    assert either.figure() == 30


def test_what_is_wrong_is_said_at_its_box_in_view_and_has_the_focus(
    either: Owner, running: Site
) -> None:
    either.open(prepare(running)["consent"])
    either.press(either.find("#more-long > summary"))
    either.find("#records-per-day").send_keys("many")
    either.preview()
    focused = either.driver.switch_to.active_element
    assert focused.get_attribute("name") == "records_per_day"
    assert focused.get_attribute("value") == "many"
    assert outside(either, "#records-per-day, #wrong-records-per-day") == []
    said = either.find(f"#{focused.get_attribute('aria-describedby')}").text
    assert said
    assert either.find("main").get_attribute("data-error") == "not_a_narrowing"


@without_scripts_at_night
def test_a_choice_without_records_says_so_before_it_is_allowed(
    either: Owner, running: Site
) -> None:
    prepare(running)
    open_request(either, mail_request())
    either.press(either.find(".narrow-box > summary"))
    either.press(either.find("details.limit:has([name$=from_address]) > summary"))
    box = either.find('textarea[name="others.0.messages/from_address"]')
    box.send_keys("nobody@example.org")
    if counts_by_itself(either):
        either.press(either.find("h1"))  # what was typed is done
        either.rest()
    else:
        either.preview()
    assert either.shows('[data-field="no-records"]')
    assert outside(either, ".decide-bar .notice") == []


def known_hosts(running: Site) -> None:
    """Hosts that introduced themselves by their documents."""
    with running.server.stores.authorization.write() as writer:
        for number, document in enumerate((VS_CODE, CLAUDE_CODE)):
            members: Any = document.members
            writer.insert(
                ClientRow(
                    client_id=document.url,
                    client_ref=f"clr_host{number}",
                    registration="client_id_metadata_document",
                    name=members["client_name"],
                    redirect_uris=tuple(members["redirect_uris"]),
                    registered_at_ns=1,
                )
            )


@without_scripts_at_night
def test_an_app_is_known_at_a_glance(either: Owner, running: Site) -> None:
    prepare(running)
    known_hosts(running)
    seen: dict[str, tuple[str, str, str]] = {}
    for client_id, redirect in CLIENTS:
        open_request(either, mail_request(), client_id=client_id, redirect_uri=redirect)
        mark = either.find(".trust")
        drawn = str(mark.find_element(By.CSS_SELECTOR, "svg").get_attribute("innerHTML"))
        style = mark.value_of_css_property("border-top-style")
        level = str(mark.get_attribute("class")).split()[1]
        seen[level] = (drawn.strip(), style, mark.find_element(By.CSS_SELECTOR, "h2").text)
    assert list(seen) == [KNOWN, CHECKED, CLAIMED, UNKNOWN]
    assert len({drawn for drawn, _, _ in seen.values()}) == 4
    assert len({words for _, _, words in seen.values()}) == 4
    assert seen[KNOWN][1] != seen[UNKNOWN][1]
