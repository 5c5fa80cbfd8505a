"""What holds of every page on the narrowest phone, as one look at it tells."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.browser.site import Owner

NARROWEST = 320
OPEN_ALL = "for (const d of document.querySelectorAll('details')) d.open = true"
FACTS = (Path(__file__).parent / "page_facts.js").read_text(encoding="utf-8")
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
SCRIPTED = {"disclosures", "home", "locale", "notices", "uploads", *CONSENTS}


def assert_page_fits(owner: Owner, name: str, origin: str) -> None:
    """A page of `PAGES` or `STATES`, all unfolded, fits and loads nothing from elsewhere.

    It can be read, and its controls have names.
    """
    facts: Any = owner.driver.execute_script(FACTS)
    assert facts["width"] <= NARROWEST, name
    assert unnamed_controls(owner) == [], name
    assert facts["faint"] == [], name
    assert facts["scripts"] == (name in SCRIPTED), name
    assert facts["loaded"], name
    assert [url for url in facts["loaded"] if not url.startswith((origin, "data:"))] == [], name
    assert (facts["titles"], facts["mains"]) == (1, 1), name
    assert skipped_levels(facts["headings"]) == [], name


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


def skipped_levels(levels: list[int]) -> list[tuple[int, int]]:
    """Headings more than one level below the one before."""
    return [(above, level) for above, level in pairwise(levels) if level > above + 1]
