import pytest
from msgspec.structs import replace

from pdpp_kernel.errors import QuotaExceeded, RateLimitExceeded
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.domain.disclosure import DisclosureEntry
from personal_server.resource_server.quotas import Amount, LimitRules, Quotas, amounts_by_grant
from server.tests.resource_server.conftest import OWNER, FakeClock, client_authority

CLIENT = client_authority()


def test_each_limit_can_be_switched_off() -> None:
    limits = Quotas(LimitRules(0, 0, 0, 0, 0), FakeClock())
    for _ in range(1_000):
        limits.enter(CLIENT, 5)
    limits.charge(CLIENT, {"grt_1": Amount(10**9, 10**12)})
    assert limits.standing(CLIENT) is None


def test_a_loop_of_two_hundred_aggregates_goes_through_at_once() -> None:
    limits = Quotas(LimitRules(), FakeClock())
    for _ in range(200):
        limits.enter(CLIENT, 3)
        limits.leave(CLIENT)
    with pytest.raises(RateLimitExceeded):
        limits.enter(CLIENT, 3)


def test_an_expensive_call_waits_for_as_much_as_it_costs() -> None:
    clock = FakeClock()
    limits = Quotas(LimitRules(units_per_second=2, burst=4, in_flight=0), clock)
    limits.enter(CLIENT, 4)
    with pytest.raises(RateLimitExceeded) as caught:
        limits.enter(CLIENT, 3)
    assert caught.value.members["retry_after_seconds"] == 2
    clock.advance(1.5)
    limits.enter(CLIENT, 3)


def test_the_owner_has_ten_times_as_much() -> None:
    limits = Quotas(LimitRules(units_per_second=1, burst=3), FakeClock())
    owner, client = limits.standing(OWNER), limits.standing(CLIENT)
    assert owner is not None
    assert client is not None
    assert (owner.limit, client.limit) == (30, 3)


def test_a_full_bucket_says_when_it_is_full_again() -> None:
    limits = Quotas(LimitRules(units_per_second=10, burst=100), FakeClock())
    limits.enter(CLIENT, 25)
    standing = limits.standing(CLIENT)
    assert standing is not None
    assert (standing.remaining, standing.reset_seconds) == (75, 3)


def test_leaving_makes_room() -> None:
    limits = Quotas(LimitRules(in_flight=1), FakeClock())
    limits.enter(CLIENT, 1)
    with pytest.raises(RateLimitExceeded) as caught:
        limits.enter(CLIENT, 1)
    assert caught.value.members["limit"] == "concurrency"
    limits.leave(CLIENT)
    limits.enter(CLIENT, 1)


def test_quotas_count_per_grant_and_begin_anew_each_day() -> None:
    clock = FakeClock()
    limits = Quotas(LimitRules(records_per_day=10, bytes_per_day=100), clock)
    limits.charge(CLIENT, {"grt_1": Amount(10, 10), "grt_2": Amount(1, 10)})
    with pytest.raises(QuotaExceeded) as caught:
        limits.charge(CLIENT, {"grt_1": Amount(1, 1)})
    assert caught.value.members["limit"] == "records"
    wait = caught.value.members["retry_after_seconds"]
    assert isinstance(wait, int)
    assert 0 < wait <= DAY_NANOSECONDS // NANOSECONDS
    with pytest.raises(QuotaExceeded) as caught:
        limits.charge(CLIENT, {"grt_2": Amount(1, 91)})
    assert caught.value.members["limit"] == "bytes"
    clock.advance(86_400)
    limits.charge(CLIENT, {"grt_1": Amount(10, 10)})


def test_a_refused_answer_counts_for_no_grant_of_it() -> None:
    limits = Quotas(LimitRules(records_per_day=10), FakeClock())
    with pytest.raises(QuotaExceeded):
        limits.charge(CLIENT, {"grt_1": Amount(10), "grt_2": Amount(11)})
    limits.charge(CLIENT, {"grt_1": Amount(10)})


def test_what_was_disclosed_before_a_restart_still_counts() -> None:
    def before(grant_id: str, since_ns: int) -> Amount:
        return Amount(9)

    limits = Quotas(LimitRules(records_per_day=10), FakeClock(), before)
    with pytest.raises(QuotaExceeded):
        limits.charge(CLIENT, {"grt_1": Amount(2)})
    limits.charge(CLIENT, {"grt_1": Amount(1)})


def entry(grant_id: str | None, records: int, size_bytes: int) -> DisclosureEntry:
    named = DisclosureEntry("dis_1", "sub_1", 0, "req_1", "served", "client", "rest", "GET /v1")
    return replace(named, grant_id=grant_id, record_count=records, size_bytes=size_bytes)


def test_amounts_add_up_by_grant_and_the_owner_is_free() -> None:
    parts = [entry("grt_1", 1, 2), entry(None, 9, 9), entry("grt_1", 3, 4)]
    assert amounts_by_grant(parts) == {"grt_1": Amount(4, 6)}
