"""The owner's whole way with the keyboard alone, and what such a walk takes for a fault."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.browser.chromium import chromium
from tests.browser.keyboard import KeptOut, Keyboard
from tests.browser.live_walk import walked as lived
from tests.browser.pictured_walk import WAYS
from tests.browser.record_walk import looked_around
from tests.browser.walk import walked
from tests.dovecot import needs_dovecot

pytestmark = pytest.mark.browser
RING = "<title>A page</title><style>:focus-visible{outline:3px solid}</style>"
FIRST = "<a href=x>First</a>"


# Minutes; each step alone: that the keyboard reaches every control, of the pages named there, in
# `test_pages`, what is sent in `test_uploads`, what is allowed and changed in `test_consent`, the
# log in `test_live`; that an access is paused in `test_access`, and that an account is erased in
# `test_accounts`, both of `server/tests/console`.
@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_an_owner_who_has_only_a_keyboard_gets_from_nothing_to_a_receipt(
    tmp_path: Path, way: str
) -> None:
    steps = walked(tmp_path, way)
    assert [step.words for step in steps][-2:] == ["The receipt", "Empty again"]
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    for step in steps:
        assert f'src="{way}/{step.picture}"' in page
        assert (tmp_path / way / step.picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_an_owner_who_has_only_a_keyboard_sees_every_look_of_the_records(
    tmp_path: Path, way: str
) -> None:
    steps = looked_around(tmp_path, way)
    assert steps[-1].words == "How to get an export"


@pytest.mark.long
@needs_dovecot
def test_an_owner_who_has_only_a_keyboard_gets_from_nothing_to_an_answer_about_a_live_mailbox(
    tmp_path: Path,
) -> None:
    steps = lived(tmp_path, mails=20)
    assert steps[-2].words == "The first question is answered"


@pytest.fixture(scope="module")
def driver() -> Generator[webdriver.Chrome]:
    with chromium() as found:
        yield found


@pytest.mark.parametrize(
    ("page", "how"),
    [
        (f"{RING}{FIRST}<button tabindex=-1>Go</button>", "never reaches"),
        (f"{RING}{FIRST}<div>Go</div>", "never reaches"),
        (f"{FIRST}<style>*{{outline:none}}</style><button>Go</button>", "sees no focus on"),
        (
            f"{RING}<b style='position:fixed;inset:0;background:white'></b><button>Go</button>",
            "sees nothing of",
        ),
        (
            f"{RING}<a href=x onkeydown='event.preventDefault()'>First</a><button>Go</button>",
            "cannot leave",
        ),
    ],
    ids=["out of order", "no control", "no ring", "covered", "trap"],
)
def test_what_keeps_a_keyboard_out_is_found(driver: webdriver.Chrome, page: str, how: str) -> None:
    driver.get(f"data:text/html,{page}")
    with pytest.raises(KeptOut, match=how):
        Keyboard(driver).reach("button", "Go")


def test_what_stands_above_is_reached_around_the_end(driver: webdriver.Chrome) -> None:
    driver.get(f"data:text/html,{RING}<button>Go</button>{FIRST}")
    keyboard = Keyboard(driver)
    keyboard.reach("link", "First")
    assert keyboard.reach("button", "Go").text == "Go"
