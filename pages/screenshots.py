"""`make screenshots`: every owner page, wide and narrow, light and dark, into docs/screenshots."""

from __future__ import annotations

import io
import shutil
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from selenium import webdriver

from tests.browser.chromium import chromium, photograph
from tests.browser.looks import fill_looks
from tests.browser.site import Owner, Site, site
from tests.browser.visits import PAGES, STATES, prepare, show

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "screenshots"
WIDTHS = {"desktop": 1280, "phone": 360}
COLORS = 128


def main() -> None:
    """Photograph everything."""
    with _home() as folder, site(folder) as running:
        addresses = prepare(running)
        fill_looks(running.server.stores.records, time.time_ns())
        for screen, width in WIDTHS.items():
            for dark in (False, True):
                name = f"{screen}-{'dark' if dark else 'light'}"
                with chromium(width=width, dark=dark) as driver:
                    _photograph_all(driver, running, addresses, name, width)


@contextmanager
def _home() -> Generator[Path]:
    """A folder with a name of its own: pages show where files lie, and pictures are published."""
    folder = Path(tempfile.gettempdir(), "ada")
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _photograph_all(
    driver: webdriver.Chrome, running: Site, addresses: dict[str, str], name: str, width: int
) -> None:
    driver.get(f"{running.origin}/owner/login?next=%2Fdevice")
    _keep(driver, f"login-{name}", width)
    driver.get(running.sign_in_link())
    _keep(driver, f"enter-{name}", width)
    owner = Owner(driver, running)
    owner.sign_in()
    for page in (*PAGES, *STATES):
        show(owner, page, addresses)
        _keep(driver, f"{page}-{name}", width)


def _keep(driver: webdriver.Chrome, name: str, width: int) -> None:
    """A picture with few colours: pages are flat, and the repository stays small."""
    picture = Image.open(io.BytesIO(photograph(driver, width)))
    FOLDER.mkdir(parents=True, exist_ok=True)
    small = picture.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE)
    small.save(FOLDER / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
