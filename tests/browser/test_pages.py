"""Every page as a person meets it: narrow screens, keyboards, screen readers, light and dark."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import chromium
from tests.browser.site import Owner, Site
from tests.browser.visits import PAGES, STATES, prepare, show

pytestmark = pytest.mark.browser

CONTROLS = {
    "button",
    "checkbox",
    "radio",
    "textbox",
    "combobox",
    "link",
    "Date",
    "DisclosureTriangle",
}
CONSENTS = {"consent", "package", "picker", "training", "change", "changed", "limited"}
SCRIPTED = {"disclosures", "locale", "uploads", *CONSENTS}
OPEN_ALL = "for (const d of document.querySelectorAll('details')) d.open = true"
LOADED = """return [...document.querySelectorAll("img, link[href], script, iframe")]
  .map((each) => each.src || each.href || "")"""
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


# `test_accessibility` judges names, headings and contrast of every page in the dark on this phone.
@pytest.mark.parametrize(
    "dark",
    [pytest.param(False, id="light"), pytest.param(True, id="dark", marks=pytest.mark.long)],
)
def test_pages_fit_a_phone_name_their_controls_can_be_read_and_load_nothing_from_elsewhere(
    running: Site, dark: bool
) -> None:
    with chromium(width=320, dark=dark) as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        addresses = prepare(running)
        for name in (*PAGES, *STATES):
            show(owner, name, addresses)
            driver.execute_script(OPEN_ALL)
            width: Any = driver.execute_script("return document.documentElement.scrollWidth")
            assert width <= 320, name
            assert unnamed_controls(owner) == [], name
            assert driver.execute_script(CONTRAST) == [], name
            scripts: Any = driver.execute_script("return document.scripts.length")
            assert scripts == (name in SCRIPTED), name
            loaded: Any = driver.execute_script(LOADED)
            assert loaded, name
            known = (running.origin, "data:")
            assert [url for url in loaded if not url.startswith(known)] == [], name
            assert len(owner.all("h1")) == 1, name
            assert len(owner.all("main")) == 1, name
            assert skipped_levels(owner) == [], name


def unnamed_controls(owner: Owner) -> list[str]:
    """Controls that a screen reader could not name."""
    tree: Any = owner.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})
    return [
        node["role"]["value"]
        for node in tree["nodes"]
        if not node.get("ignored")
        and node.get("role", {}).get("value") in CONTROLS
        and not node.get("name", {}).get("value")
    ]


def skipped_levels(owner: Owner) -> list[str]:
    """Headings more than one level below the one before."""
    found = [element.tag_name for element in owner.all("h1, h2, h3, h4, h5, h6")]
    levels = [int(name[1]) for name in found]
    return [
        f"{before} then {name}"
        for before, name, level, above in zip(found, found[1:], levels[1:], levels, strict=False)
        if level > above + 1
    ]


def test_the_keyboard_reaches_every_control_in_reading_order_and_shows_where_it_is(
    owner: Owner, running: Site
) -> None:
    addresses = prepare(running)
    for name in ("consent", "device", "access", "stream", "record", "search"):
        owner.open(addresses[name])
        places, outlines = walk_by_tab(owner)
        assert places == sorted(places), name
        assert len(places) == len(owner.all(REACHED)), name
        assert all(outlines[1:]), name  # the first is not reached by a key


REACHED = (
    "a[href], summary, [tabindex='0'], select, button:not([tabindex='-1']), "
    "input:not([type='hidden']):not([disabled]):not([type='radio']:not(:checked))"
)


def walk_by_tab(owner: Owner) -> tuple[list[int], list[bool]]:
    """The places of the controls that the tab key visits, and whether each shows the focus."""
    for details in owner.all("details:not([open]) > summary"):
        owner.press(details)
    controls = owner.all(REACHED)
    order = {control.id: place for place, control in enumerate(controls)}
    places: list[int] = []
    outlines: list[bool] = []
    owner.find("a.skip").send_keys("")
    for _ in range(3 * len(controls)):
        focused = owner.driver.switch_to.active_element
        if focused.id not in order:
            if focused.tag_name == "body":
                break
        elif not places or places[-1] != order[focused.id]:
            places.append(order[focused.id])
            outlines.append(focused.value_of_css_property("outline-style") != "none")
        focused.send_keys(Keys.TAB)
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
