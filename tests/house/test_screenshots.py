"""The pictures of the owner's pages: each exists, and each is shown in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.visits import PAGES, STATES

DOCS = Path(__file__).resolve().parents[2] / "docs"
SHOWN = ("login", "enter", *PAGES, *STATES)


@pytest.mark.parametrize("page", SHOWN)
def test_each_page_is_shown_at_both_widths(page: str) -> None:
    text = (DOCS / "owner-pages.md").read_text(encoding="utf-8")
    for screen in ("desktop-light", "phone-dark"):
        assert f"screenshots/{page}-{screen}.png" in text
    for screen in ("desktop", "phone"):
        for scheme in ("light", "dark"):
            assert (DOCS / "screenshots" / f"{page}-{screen}-{scheme}.png").is_file()


def test_no_picture_is_left_of_a_page_that_is_gone() -> None:
    kept = {path.stem.rsplit("-", 2)[0] for path in (DOCS / "screenshots").glob("*.png")}
    assert kept == set(SHOWN)
