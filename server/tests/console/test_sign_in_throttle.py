from __future__ import annotations

from collections.abc import Callable

import pytest

from pdpp_kernel.errors import RateLimitExceeded
from personal_server.console.device import UserCodeThrottle
from personal_server.console.sign_in_throttle import SignInThrottle
from personal_server.web.limits import MINUTE_NS
from server.tests.console.browsing import SECOND, Clock


def wait_of(act: Callable[..., None], *key: str) -> object:
    try:
        act(*key)
    except RateLimitExceeded as error:
        return error.members["retry_after_seconds"]
    return 0


def delays(throttle: SignInThrottle, clock: Clock, *key: str) -> list[object]:
    """How long each of 16 wrong tries has to wait for the one before."""
    waits: list[object] = []
    for _ in range(16):
        wait = wait_of(throttle.attempt, *key)
        if isinstance(wait, int) and wait:
            clock.now_ns += wait * SECOND
            throttle.attempt(*key)
        waits.append(wait)
    return waits


def test_the_delay_doubles_from_one_second_up() -> None:
    clock = Clock()
    throttle = SignInThrottle(clock)
    assert delays(throttle, clock, "a")[:14] == [0] * 5 + [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert wait_of(throttle.attempt, "b") == 0


def test_a_browser_that_signed_in_before_waits_a_minute_at_most() -> None:
    clock = Clock()
    waits = delays(SignInThrottle(clock), clock, "a", "known")
    assert waits == [0] * 5 + [1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]


def test_failures_are_forgotten_after_fifteen_minutes() -> None:
    clock = Clock()
    throttle = SignInThrottle(clock)
    for _ in range(5):
        throttle.attempt("a")
    clock.now_ns += 15 * MINUTE_NS
    throttle.attempt("a")


def test_sixty_failures_an_hour_stop_everybody_but_browsers_that_signed_in_before() -> None:
    clock = Clock()
    throttle = SignInThrottle(clock)
    for number in range(60):
        throttle.attempt(str(number))
    assert wait_of(throttle.attempt, "new") == 3_600
    assert wait_of(throttle.attempt, "new", "known") == 0
    clock.now_ns += 3_600 * SECOND
    throttle.attempt("new")


def test_a_right_password_is_no_failure() -> None:
    throttle = SignInThrottle(Clock())
    for _ in range(100):
        throttle.attempt("a")
        throttle.forgive("a")
    throttle.attempt("a")


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
    assert wait_of(throttle.check, "s2") == 3_600
