from __future__ import annotations

import pytest

from personal_server.console.device import UserCodeThrottle
from personal_server.console.sign_in import SignInThrottle
from personal_server.errors import RateLimitExceeded
from personal_server.web.limits import MINUTE_NS
from tests.console.browsing import SECOND, Clock


def wait_of(throttle: SignInThrottle | UserCodeThrottle, key: str) -> object:
    try:
        throttle.check(key)
    except RateLimitExceeded as error:
        return error.members["retry_after_seconds"]
    return 0


def test_the_delay_doubles_from_one_second_to_fifteen_minutes() -> None:
    clock = Clock()
    throttle = SignInThrottle(clock)
    waits: list[object] = []
    for _ in range(16):
        throttle.failed("a")
        waits.append(wait_of(throttle, "a"))
    assert waits == [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]
    assert wait_of(throttle, "b") == 0


def test_failures_are_forgotten_after_fifteen_minutes() -> None:
    clock = Clock()
    throttle = SignInThrottle(clock)
    for _ in range(5):
        throttle.failed("a")
    clock.now_ns += 15 * MINUTE_NS
    throttle.check("a")


def test_sixty_failures_an_hour_stop_everybody() -> None:
    clock = Clock()
    throttle = SignInThrottle(clock)
    for number in range(60):
        throttle.failed(str(number))
    assert wait_of(throttle, "new") == 3_600
    clock.now_ns += 3_600 * SECOND
    throttle.check("new")


def test_five_wrong_codes_in_ten_minutes_stop_a_session_and_twenty_an_hour_all() -> None:
    clock = Clock()
    throttle = UserCodeThrottle(clock)
    for _ in range(5):
        throttle.check("s1")
        throttle.failed("s1")
    with pytest.raises(RateLimitExceeded):
        throttle.check("s1")
    throttle.check("s2")
    for number in range(15):
        throttle.failed(f"t{number}")
    assert wait_of(throttle, "s2") == 3_600
