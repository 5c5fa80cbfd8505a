"""Every page as a person meets it: narrow screens, keyboards, screen readers, light and dark."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.browser.chromium import chromium
from tests.browser.site import Owner, Site
from tests.browser.visits import PAGES, prepare

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
CONTRAST = (Path(__file__).parent / "contrast.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_pages_fit_a_phone_name_their_controls_and_can_be_read(running: Site, dark: bool) -> None:
    with chromium(width=360, dark=dark) as driver:
        owner = Owner(driver, running)
        owner.sign_in()
        addresses = prepare(running)
        for name in PAGES:
            driver.get(addresses[name])
            width: Any = driver.execute_script("return document.documentElement.scrollWidth")
            assert width <= 360, name
            assert unnamed_controls(owner) == [], name
            assert driver.execute_script(CONTRAST) == [], name
            assert driver.execute_script("return document.scripts.length") == 0
            assert len(owner.all("h1")) == 1, name
            assert len(owner.all("main")) == 1, name


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


def test_the_browser_of_the_journeys_runs_no_script(owner: Owner) -> None:
    owner.driver.get("data:text/html,<title>off</title><script>document.title = 'on'</script>")
    assert owner.driver.title == "off"


def test_the_enter_key_in_a_field_only_updates_the_preview(owner: Owner, running: Site) -> None:
    owner.driver.get(prepare(running)["consent"])
    boxes = owner.all('input[type="checkbox"]:not([disabled])')
    owner.press(owner.find("details.narrow-box > summary"))
    owner.find('input[type="date"]').send_keys("\n")
    assert owner.sees("An app asks to read your records")
    assert len(owner.all('input[type="checkbox"]:not([disabled])')) == len(boxes)
    assert "/consent/" in owner.driver.current_url


def test_the_buttons_of_the_decision_are_equal_in_size(owner: Owner, running: Site) -> None:
    owner.driver.get(prepare(running)["consent"])
    sizes: list[Any] = [button.size for button in owner.all(".decide button")]
    assert len(sizes) == 3
    assert len({size["height"] for size in sizes}) == 1
    widths = [size["width"] for size in sizes]
    assert max(widths) - min(widths) <= 1


def test_nothing_is_loaded_from_elsewhere(owner: Owner, running: Site) -> None:
    for address in prepare(running).values():
        owner.driver.get(address)
        for element in owner.all("img, link[href], script, iframe"):
            source = element.get_attribute("src") or element.get_attribute("href")
            assert str(source).startswith((running.origin, "data:"))
