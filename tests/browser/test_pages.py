"""Every page as a person meets it: narrow screens, keyboards, screen readers, light and dark."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import chromium
from tests.browser.keyboard import Keyboard
from tests.browser.page_facts import NARROWEST, OPEN_ALL, assert_page_fits
from tests.browser.site import Owner, Site
from tests.browser.visits import PAGES, STATES, prepare, show
from tests.conformance.suite import is_installed

pytestmark = pytest.mark.browser


# Where the public suite is installed, `test_accessibility` looks at each page on this phone in the
# light, as this does, and then in the dark.
@pytest.mark.parametrize(
    "dark",
    [
        pytest.param(
            False,
            id="light",
            marks=pytest.mark.skipif(is_installed(), reason="test_accessibility looks at the same"),
        ),
        pytest.param(True, id="dark", marks=pytest.mark.long),
    ],
)
def test_pages_fit_a_phone_name_their_controls_can_be_read_and_load_nothing_from_elsewhere(
    running: Site, dark: bool
) -> None:
    with chromium(width=NARROWEST, dark=dark) as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        addresses = prepare(running)
        for name in (*PAGES, *STATES):
            show(owner, name, addresses)
            driver.execute_script(OPEN_ALL)
            assert_page_fits(owner, name, running.origin)


def test_the_keyboard_reaches_every_control_in_reading_order_and_shows_where_it_is(
    owner: Owner, running: Site
) -> None:
    addresses = prepare(running)
    for name in WALKED:
        show(owner, name, addresses)
        places, outlines = walk_by_tab(owner)
        assert places == sorted(places), name
        assert len(places) == len(owner.all(REACHED)), name
        assert all(outlines[1:]), name  # the first is not reached by a key


WALKED = (
    "consent",
    "device",
    "access",
    "stream",
    "record",
    "search",
    "uploads",
    "upload",
    "account",
    "records",
    "disclosures",
    "erased",
)


# The input for a whole folder is shown by a script, and this browser runs none.
REACHED = (
    "a[href], summary, [tabindex='0'], select, button:not([tabindex='-1']), "
    "input:not([type='hidden']):not([disabled]):not([type='radio']:not(:checked))"
    ":not([hidden] [data-folder-input])"
)


NUMBERED = "window.reached = [...document.querySelectorAll(arguments[0])]; return reached.length"
FOCUSED = """const here = document.activeElement;
  return [here === document.body, reached.indexOf(here), getComputedStyle(here).outlineStyle]"""


def walk_by_tab(owner: Owner) -> tuple[list[int], list[bool]]:
    """The places of the controls that the tab key visits, and whether each shows the focus."""
    for details in owner.all("details:not([open]) > summary"):
        owner.press(details)
    count: Any = owner.driver.execute_script(NUMBERED, REACHED)
    keyboard = Keyboard(owner.driver)
    places: list[int] = []
    outlines: list[bool] = []
    owner.find("a.skip").send_keys("")
    for _ in range(3 * count):
        is_around, place, outline = owner.driver.execute_script(FOCUSED)
        if is_around:
            break
        if place >= 0 and (not places or places[-1] != place):
            places.append(place)
            outlines.append(outline != "none")
        keyboard.press(Keys.TAB)
    return places, outlines


def test_the_browser_of_the_journeys_runs_no_script(owner: Owner) -> None:
    owner.driver.get("data:text/html,<title>off</title><script>document.title = 'on'</script>")
    assert owner.driver.title == "off"


def test_the_enter_key_in_a_field_only_updates_the_preview(owner: Owner, running: Site) -> None:
    owner.open(prepare(running)["consent"])
    boxes = owner.all('input[type="checkbox"]:not([disabled])')
    owner.press(owner.find("details.narrow-box > summary"))
    owner.find('input[type="date"]').send_keys("\n")
    assert owner.shows(".decide")
    assert len(owner.all('input[type="checkbox"]:not([disabled])')) == len(boxes)
    assert "/consent/" in owner.driver.current_url


def test_the_buttons_of_the_decision_are_equal(owner: Owner, running: Site) -> None:
    owner.open(prepare(running)["consent"])
    buttons = owner.all(".decide button")
    assert [button.get_attribute("value") for button in buttons] == ["approve", "deny"]
    sizes: list[Any] = [button.size for button in buttons]
    for look in ("color", "background-color", "border-top-color", "font-weight", "font-size"):
        assert len({button.value_of_css_property(look) for button in buttons}) == 1, look
    assert len({size["height"] for size in sizes}) == 1
    widths = [size["width"] for size in sizes]
    assert max(widths) - min(widths) <= 1
