"""The owner looks at records with the keyboard alone: days, people, months, maps, searches.

`python -m tests.browser.record_walk FOLDER` walks it with scripts and without, and leaves a
numbered picture of every step there and `index.html`.
"""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.chromium import chromium
from tests.browser.keyboard import Keyboard
from tests.browser.looks import fill_looks
from tests.browser.pictured_walk import Step, Walk, pictured, walk_both_ways
from tests.browser.site import Site, site
from tests.browser.visits import prepare

RECORDS = "Your records"
Look = tuple[str, str, str]
"""A link, the heading of the page that it leads to, and what is seen there."""
LOOKS: tuple[tuple[Look, ...], ...] = (
    (
        ("People", "People", "People"),
        ("Grace Hopper", "Grace Hopper", "One of them"),
        ("All of them", "Your e-mails", "What that person wrote"),
    ),
    (
        ("Your calendar events", "Your calendar events", "A month"),
        ("Month before", "Your calendar events", "The month before"),
        ("Show as a list", "Your calendar events", "The same as a list"),
    ),
    (
        ("What was measured", "What was measured", "What was measured as a line"),
        ("by week", "What was measured", "The same by week"),
        ("records from", "What was measured", "The records of a week"),
    ),
    (
        ("Your pictures", "Your pictures", "Pictures"),
        ("IMG_0003", "IMG_0003", "A picture"),
        ("Your pictures", "Your pictures", "Back among the others"),
        ("Show as a map", "Your pictures", "Where they were taken"),
        ("and others", "Your pictures", "One of these places"),
    ),
)
"""Each stretch begins at the records."""


def look_around(walk: Walk, running: Site) -> None:
    """Every page that shows records, each reached from another by a key."""
    keyboard = walk.keyboard
    prepare(running)  # persons are on, and apps wait
    fill_looks(running.server.stores.records, time.time_ns())
    keyboard.driver.get(running.sign_in_link())
    keyboard.follow("button", "Sign in", RECORDS)
    look_at_days(walk)
    for looks in LOOKS:
        look_at(walk, looks)
    look_for_words(walk)
    look_at_what_comes(walk)


def look_at_days(walk: Walk) -> None:
    """A year, a day of it, and what was measured on that."""
    keyboard = walk.keyboard
    keyboard.follow("link", "Records", RECORDS)
    keyboard.follow("link", "Days", "Your days")
    walk.step("A year as a map of its days")
    (*_, month) = keyboard.driver.find_elements(By.CSS_SELECTOR, '[data-field="month"] > summary')
    name = month.text.splitlines()[0]
    year = name.split()[1]
    keyboard.unfold(name)
    (*_, day) = month.find_element(By.XPATH, "..").find_elements(By.CSS_SELECTOR, "a")
    keyboard.follow("link", day.accessible_name, year)
    keyboard.sees("heart rate", '[data-field="measured"]')
    walk.step("Its last day: what was measured, then its hours")
    keyboard.follow("link", "Day before", year)
    keyboard.follow("link", "heart rate", "What was measured of your body")
    walk.step("What was measured on the day before")


def look_at(walk: Walk, looks: Sequence[Look]) -> None:
    """One page after the other, from the records on."""
    walk.keyboard.follow("link", "Records", RECORDS)
    for link, heading, words in looks:
        walk.keyboard.follow("link", link, heading)
        walk.step(words)


def look_for_words(walk: Walk) -> None:
    """A search, narrowed by a chip and widened again."""
    keyboard = walk.keyboard
    keyboard.follow("link", "Search", "Search everything")
    keyboard.reach("textbox", "Words to find")
    keyboard.press("secret")
    keyboard.press(Keys.ENTER)
    keyboard.sees("52", '[data-field="count"]')
    walk.step("What was found")
    keyboard.follow("link", "Work mailbox", "Search everything")
    keyboard.sees("12", '[data-field="count"]')
    walk.step("Narrowed to an account")
    keyboard.follow("link", "remove", "Search everything")
    keyboard.sees("52", '[data-field="count"]')
    keyboard.unfold("More options")
    keyboard.reach("combobox", "Order")
    walk.step("Its further options")


def look_at_what_comes(walk: Walk) -> None:
    """Notices and their settings, an account that is kept up to date, and uploads."""
    keyboard = walk.keyboard
    keyboard.follow("link", "Overview", RECORDS)
    keyboard.follow("link", "Notices", "Notices")
    keyboard.tick("Backups fail", ticked=False)
    walk.step("What the server tells")
    keyboard.follow("button", "Save settings", "Notices")
    keyboard.follow("link", "Records", RECORDS)
    keyboard.follow("link", "Keep up to date", "Keep up to date")
    keyboard.reach("textbox", "Mail address")
    keyboard.press("ada@example.org")
    keyboard.unfold("Another provider")
    walk.step("An account to be kept up to date")
    keyboard.follow("link", "Records", RECORDS)
    keyboard.follow("link", "Import data", "Import data")
    keyboard.follow("link", "How to get an export", "How to get an export")
    walk.step("How to get an export")


def looked_around(folder: Path, way: str) -> Sequence[Step]:
    """Walk it in one of the ways, pictures in its folder."""
    with (
        tempfile.TemporaryDirectory(prefix="pdpp-walk-") as made,
        site(Path(made)) as running,
        chromium(scripts=way == "script") as driver,
    ):
        walk = Walk(Keyboard(driver), folder / way)
        with pictured(walk):
            look_around(walk, running)
    return walk.steps


if __name__ == "__main__":
    walk_both_ways(looked_around)
