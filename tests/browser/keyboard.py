"""A person at the keyboard of a real Chromium: nothing here points or scrolls.

What keeps such a person out is an error that says so: a control that the tab key never reaches, a
focus that cannot be seen, one that something else lies over, a place that it cannot leave.
"""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

SECONDS = 60
MOST_TABS = 400
# A date is one element of several stops: day, month, year, and the calendar.
MOST_STOPS = 6
# What has the focus: its words, those of its pictures and of its label, whether a ring is drawn
# around it, and whether any of it can be seen.
FOCUSED = """
const here = document.activeElement;
if (!here || here === document.body || here === document.documentElement) return null;
const alts = [...here.querySelectorAll("img[alt]")].map((each) => each.alt);
const words = [here.getAttribute("aria-label"), here.textContent, ...alts, ...(here.labels ?? [])]
  .map((each) => each?.textContent ?? each ?? "").join(" ").replace(/\\s+/g, " ").trim();
const style = getComputedStyle(here), box = here.getBoundingClientRect();
const ring = (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0)
  || style.boxShadow !== "none";
const seen = [[.5, .5], [.1, .2], [.9, .2], [.1, .8], [.9, .8]].some(([x, y]) => {
  const hit = document.elementFromPoint(box.left + x * box.width, box.top + y * box.height);
  return hit && (hit === here || here.contains(hit) || hit.closest("label")?.control === here);
});
return [here, words, ring, seen];
"""
PAGE = "return [document.title, location.pathname]"


class KeptOut(AssertionError):
    """The page does not let a person at the keyboard do this."""


class Keyboard:
    """Tab, Enter, Space, arrows and typing, in a browser that logs when it would ask for a file."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver

    def look_at(self, window: str) -> None:
        """Go on in this window, which lies before the others then."""
        self.driver.switch_to.window(window)
        self.driver.execute_cdp_cmd("Page.bringToFront", {})

    def press(self, *keys: str) -> None:
        """Keys, to whatever has the focus."""
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def reach(self, role: str, name: str) -> WebElement:
        """Press Tab until the control with this role has the focus whose name holds these words.

        It goes around once: what stands above is reached by way of the end.  Raises: KeptOut.
        """
        passed: list[str] = []
        at, stops, around = "", 0, 0
        for _ in range(MOST_TABS):
            focused: Any = self.driver.execute_script(FOCUSED)
            if focused is None:
                around += bool(passed)
                if around > 1:
                    break
            else:
                element, words, ring, seen = focused
                stops = stops + 1 if element.id == at else 0
                at = element.id
                if stops > MOST_STOPS:
                    raise self._kept_out("cannot leave", words)
                if not stops:
                    passed.append(words[:60])
                    if not ring:
                        raise self._kept_out("sees no focus on", words)
                    if not seen:
                        raise self._kept_out("sees nothing of", words)
                    if name in words and self._is(element, role, name):
                        return element
            self.press(Keys.TAB)
        reached = "; ".join(passed)
        raise self._kept_out("never reaches", f"{role} “{name}”; it reaches {reached}")

    def _is(self, element: WebElement, role: str, name: str) -> bool:
        """Whether a screen reader is told so."""
        return element.aria_role == role and name in element.accessible_name

    def focused(self, role: str) -> WebElement:
        """What has the focus, which has this role.  Raises: KeptOut."""
        element = self.driver.switch_to.active_element
        if element.aria_role != role:
            raise self._kept_out("comes next upon a", f"{element.aria_role}, not upon a {role}")
        return element

    def _kept_out(self, how: str, what: str) -> KeptOut:
        title, path = self.driver.execute_script(PAGE)
        return KeptOut(f"On “{title}” ({path.partition('~')[0]}) the keyboard {how} {what}.")

    def follow(self, role: str, name: str, heading: str) -> None:
        """Press Enter on a control, and wait for the page with this heading that comes of it."""
        self.reach(role, name)
        before = self.driver.find_element(By.CSS_SELECTOR, "html")
        self.press(Keys.ENTER)
        self._until(lambda: _is_gone(before))
        self.sees(heading, "h1")

    def tick(self, name: str, *, ticked: bool = True) -> None:
        """Tick a box, or take its tick away, with Space."""
        box = self.reach("checkbox", name)
        if box.is_selected() != ticked:
            self.press(Keys.SPACE)
        if box.is_selected() != ticked:
            raise self._kept_out("cannot tick", name)

    def unfold(self, name: str) -> None:
        """Open what is folded away, with Enter."""
        summary = self.reach("DisclosureTriangle", name)
        details = summary.find_element(By.XPATH, "..")
        if details.get_attribute("open") is None:
            self.press(Keys.ENTER)
        if details.get_attribute("open") is None:
            raise self._kept_out("cannot unfold", name)

    def choose_file(self, name: str, path: Path) -> None:
        """Ask for the file chooser with the keyboard, and give it the file.

        The chooser is a window of the desktop, which a browser without a screen cannot open: it is
        intercepted once the page has asked for it, as a person would have typed the path there.
        """
        self.reach("button", name)
        self.driver.execute_cdp_cmd("Page.setInterceptFileChooserDialog", {"enabled": True})
        self.press(Keys.ENTER)
        asked = self._until(self._asked_for_a_file)
        chosen = {"files": [str(path)], "backendNodeId": asked}
        self.driver.execute_cdp_cmd("DOM.setFileInputFiles", chosen)

    def _asked_for_a_file(self) -> int | None:
        logged: Any = self.driver.get_log("performance")
        for line in logged:
            event = json.loads(line["message"])["message"]
            if event["method"] == "Page.fileChooserOpened":
                return event["params"]["backendNodeId"]
        return None

    def sees(self, words: str, where: str = "body") -> None:
        """Wait until the page, or the one that comes, says so."""

        def said() -> bool:
            return words in self.driver.find_element(By.CSS_SELECTOR, where).text

        self._until(said)

    def comes_to_see(self, words: str, where: str) -> None:
        """Load the page anew until it says so: what is written soon is not there at once."""

        def said() -> bool:
            found = self.driver.find_elements(By.CSS_SELECTOR, where)
            if any(words in each.text for each in found):
                return True
            self.driver.refresh()
            return False

        self._until(said)

    def _until(self, found: Callable[[], Any]) -> Any:
        wait = WebDriverWait(
            self.driver, SECONDS, poll_frequency=0.1, ignored_exceptions=[WebDriverException]
        )
        return wait.until(lambda _: found())


def _is_gone(element: WebElement) -> bool:
    """Whether its page has gone; the driver has several words for it, by when it is asked."""
    try:
        element.is_enabled()
    except WebDriverException:
        return True
    return False
