import threading

import pytest

from pdpp_kernel.errors import RateLimitExceeded
from personal_server.web.failed_attempts import FailedBearers
from personal_server.web.limits import MAX_KEYS, Bucket, network_of

SECOND = 10**9


class Clock:
    now_ns = 10**18

    def __call__(self) -> int:
        return self.now_ns


def test_the_wait_ends_a_minute_after_the_oldest_refusal_that_counts() -> None:
    clock = Clock()
    failed = FailedBearers(2, clock)
    failed.count("a", "t")
    clock.now_ns += 20 * SECOND
    failed.count("a", "t")
    with pytest.raises(RateLimitExceeded) as refused:
        failed.count("a", "t")
    assert refused.value.members["retry_after_seconds"] == 40
    failed.count("b", "t")
    clock.now_ns += 40 * SECOND
    failed.count("a", "t")


def test_each_bearer_counts_by_itself_so_that_a_host_always_hears_to_renew_its_own() -> None:
    failed = FailedBearers(2, Clock())
    for number in range(100):
        failed.count("a", f"token {number}")
    failed.count("a", "token 0")
    with pytest.raises(RateLimitExceeded):
        failed.count("a", "token 0")
    failed.count("b", "token 0")


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("unknown", "unknown"),
        ("", ""),
    ],
)
def test_an_ipv6_address_counts_by_its_64_bits_of_network(address: str, network: str) -> None:
    assert network_of(address) == network


def test_nothing_is_refused_where_the_limit_is_off() -> None:
    failed = FailedBearers(0, Clock())
    for _ in range(100):
        failed.count("a", "t")


def test_of_so_many_addresses_the_one_that_failed_longest_ago_is_forgotten() -> None:
    failed = FailedBearers(1, Clock())
    for number in range(MAX_KEYS + 1):
        failed.count(str(number), "t")
    failed.count("0", "t")
    with pytest.raises(RateLimitExceeded):
        failed.count(str(MAX_KEYS), "t")


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
