"""A real Chromium without a screen, and a server thread for it to visit."""

# Selenium tells no types of what a browser answers.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import uvicorn
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

START_SECONDS = 120
EMPTY = "data:,"


def is_installed() -> bool:
    """Whether this machine has a browser and its driver."""
    return shutil.which("chromedriver") is not None and _binary() is not None


def _binary() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def chromium(
    *,
    width: int = 1280,
    height: int = 900,
    dark: bool = False,
    scripts: bool = True,
    logs: Sequence[str] = (),
) -> Generator[webdriver.Chrome]:
    """An empty browser.  `scripts` off is how careful people browse; `logs` are kinds it keeps.

    It is a fresh one, but within `kept_browsers`, where a plain one that was emptied is as good.
    """
    if _kept is None or dark or logs:
        driver = _begun(width, height, dark, scripts, logs)
    else:
        driver = _kept.pop(scripts, None) or _begun(width, height, dark, scripts, logs)
    try:
        _look(driver, width, height, dark)
        yield driver
        is_plain = not (dark or logs) and len(driver.window_handles) == 1
        if _kept is not None and scripts not in _kept and is_plain:
            _empty(driver)
            _kept[scripts] = driver
    finally:  # what failed may have been left in any state
        if _kept is None or _kept.get(scripts) is not driver:
            driver.quit()


_kept: dict[bool, webdriver.Chrome] | None = None
"""Idle browsers to be used again, by whether they run scripts; None where none is kept."""


@contextmanager
def kept_browsers() -> Generator[None]:
    """Within the block browsers are used again: a start and an end take a second of a processor."""
    global _kept
    _kept = {}
    try:
        yield
    finally:
        for driver in _kept.values():
            driver.quit()
        _kept = None


def _empty(driver: webdriver.Chrome) -> None:
    """Leave an empty page, which knows of no address, cookie or answer."""
    driver.get(EMPTY)
    driver.execute_cdp_cmd("Page.resetNavigationHistory", {})
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    driver.execute_cdp_cmd("Network.clearBrowserCache", {})


def _look(driver: webdriver.Chrome, width: int, height: int, dark: bool) -> None:
    """Give the page its size and its colours."""
    driver.set_window_size(width, height)
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})


def _begun(
    width: int, height: int, dark: bool, scripts: bool, logs: Sequence[str]
) -> webdriver.Chrome:
    driver_path = shutil.which("chromedriver")
    assert driver_path is not None, "chromedriver is missing; install chromium and chromium-driver."
    options = webdriver.ChromeOptions()
    options.binary_location = _binary() or ""
    for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{flag}")
    options.add_argument("--hide-scrollbars")
    # A window without tabs and address bar: to paint those takes a third of what a page costs.
    options.add_argument(f"--app={EMPTY}")
    options.add_argument(f"--window-size={width},{height}")
    if logs:
        options.set_capability("goog:loggingPrefs", dict.fromkeys(logs, "ALL"))
    if dark:
        options.add_argument("--blink-settings=preferredColorScheme=0")
    if not scripts:
        preferences: dict[str, Any] = {"profile.managed_default_content_settings.javascript": 2}
        options.add_experimental_option("prefs", preferences)
    return webdriver.Chrome(options, Service(driver_path, log_output=os.devnull))


@contextmanager
def served(app: Any, port: int = 0, **options: Any) -> Generator[str]:
    """The address of an ASGI application while the block runs; `options` are uvicorn's."""
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_config=None, lifespan="auto", ws="none", **options
    )
    started = threading.Event()

    class Started(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            started.set()

    server = Started(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert started.wait(START_SECONDS), "The server did not start."
    (listener,) = server.servers[0].sockets
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(START_SECONDS)


def photograph(driver: webdriver.Chrome, width: int) -> bytes:
    """The whole page as PNG."""
    metrics: Any = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})
    height = min(int(metrics["cssContentSize"]["height"]), 6_000)
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    picture = driver.get_screenshot_as_png()
    screen["height"] = 900
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    return picture
