"""Many guesses at once: few are looked at, one at a time, and the owner still gets in."""

from __future__ import annotations

import threading
from typing import Literal
from urllib.parse import urlencode

import anyio
import httpx2
import pytest
from argon2 import PasswordHasher
from msgspec.structs import replace

from server.tests.console.browsing import Browser
from server.tests.console.household import Household

PASSWORD = "correct horse battery"
GUESSES = 64


class WatchedHasher(PasswordHasher):
    """Counts how many passwords are verified, and how many at once."""

    def __init__(self) -> None:
        super().__init__(time_cost=2, memory_cost=4_096, parallelism=1)
        self.verified = self.most_at_once = self._now = 0
        self._lock = threading.Lock()

    def verify(self, hash: str | bytes, password: str | bytes) -> Literal[True]:
        with self._lock:
            self.verified += 1
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        try:
            return super().verify(hash, password)
        finally:
            with self._lock:
                self._now -= 1


@pytest.fixture
def hasher(house: Household) -> WatchedHasher:
    made = WatchedHasher()
    house.sign_in = replace(house.sign_in, hasher=made)
    house.sign_in.set_password(PASSWORD)
    house.app = house.console()
    return made


def all_at_once(browser: Browser, count: int) -> list[int]:
    """The statuses of wrong passwords that one browser sends together."""
    form = browser.get("/owner/login").form("/owner/login")
    body = urlencode([*(f for f in form if f[0] != "password"), ("password", "wrong")]).encode()
    headers = {
        "origin": browser.origin,
        "content-type": "application/x-www-form-urlencoded",
        "cookie": "; ".join(f"{name}={value}" for name, value in browser.cookies.items()),
    }
    found: list[int] = []

    async def guess(client: httpx2.AsyncClient) -> None:
        answer = await client.post("/owner/login", content=body, headers=headers)
        found.append(answer.status_code)

    async def guess_all() -> None:
        transport = httpx2.ASGITransport(app=browser.app, client=("203.0.113.7", 1))
        async with (
            httpx2.AsyncClient(transport=transport, base_url=browser.origin) as client,
            anyio.create_task_group() as group,
        ):
            for _ in range(count):
                group.start_soon(guess, client)

    anyio.run(guess_all)
    return found


def sign_in(browser: Browser) -> int:
    page = browser.get("/owner/login")
    return browser.submit(page, "/owner/login", password=PASSWORD).status


def test_of_64_guesses_at_once_five_are_looked_at_one_at_a_time(
    house: Household, hasher: WatchedHasher
) -> None:
    statuses = all_at_once(house.browser(), GUESSES)
    assert sorted(statuses) == [401] * 5 + [429] * (GUESSES - 5)
    assert (hasher.verified, hasher.most_at_once) == (5, 1)


def test_guesses_of_others_never_keep_out_a_browser_that_signed_in_before(
    house: Household, hasher: WatchedHasher
) -> None:
    del hasher
    home, new = house.browser(), house.browser()
    assert sign_in(home) == 303
    home.submit(home.get("/owner/sign-ins"), "/owner/logout")
    all_at_once(house.browser(), GUESSES)
    assert sign_in(new) == 429
    assert sign_in(home) == 303


def test_a_browser_is_known_until_the_password_changes(
    house: Household, hasher: WatchedHasher
) -> None:
    del hasher
    home = house.browser()
    assert sign_in(home) == 303
    (name,) = [name for name in home.cookies if "known" in name]
    kept = home.cookies[name]
    assert house.sign_in.recognized(kept) == kept.partition(".")[0]
    assert house.sign_in.recognized(kept[:-1] + ("A" if kept[-1] != "A" else "B")) is None
    house.sign_in.set_password(PASSWORD + "!")
    assert house.sign_in.recognized(kept) is None
