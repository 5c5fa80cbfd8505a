import threading

import pytest

from personal_server.errors import RateLimitExceeded
from personal_server.web.limits import MAX_KEYS, Bucket, FailedBearers

SECOND = 10**9


class Clock:
    now_ns = 10**18

    def __call__(self) -> int:
        return self.now_ns


def test_the_wait_ends_a_minute_after_the_oldest_refusal_that_counts() -> None:
    clock = Clock()
    failed = FailedBearers(2, clock)
    failed.count("a")
    clock.now_ns += 20 * SECOND
    failed.count("a")
    with pytest.raises(RateLimitExceeded) as refused:
        failed.count("a")
    assert refused.value.members["retry_after_seconds"] == 40
    failed.count("b")
    clock.now_ns += 40 * SECOND
    failed.count("a")


def test_nothing_is_kept_where_the_limit_is_off() -> None:
    failed = FailedBearers(0, Clock())
    for _ in range(100):
        failed.count("a")
    assert failed == FailedBearers(0, failed.clock)


def test_addresses_of_the_past_are_forgotten() -> None:
    clock = Clock()
    failed = FailedBearers(1, clock)
    for number in range(MAX_KEYS):
        failed.count(str(number))
    clock.now_ns += 61 * SECOND
    failed.count("last")
    remembered = FailedBearers(1, clock)
    remembered.count("last")
    assert failed == remembered


def test_a_bucket_gives_each_token_once_to_many_threads() -> None:
    bucket = Bucket(Clock(), 1_000, 1, 3_600)
    refusals: list[RateLimitExceeded] = []

    def take() -> None:
        for _ in range(300):
            try:
                bucket.take("a")
            except RateLimitExceeded as refused:
                refusals.append(refused)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refusals) == 200
    assert bucket.left("a") == 0
