"""Limits: how much one grant may ask, at once and per day.

Rule: all of a holder's calls count here, by whichever door they came; a call that would pass a
quota is refused before it returns anything.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.disclosure import DisclosureEntry
from personal_server.domain.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.errors import QuotaExceeded, RateLimitExceeded
from personal_server.storage.ports import DisclosureStore
from personal_server.web.limits import Bucket, RateStatus

OWNER_FACTOR = 10


@dataclass(frozen=True, slots=True)
class LimitRules:
    """The configured limits; 0 switches one off.  Units: cost units, records, bytes per UTC day.

    Source: docs/contract/resource-server.md 16.
    """

    units_per_second: int = 20
    burst: int = 200
    in_flight: int = 8
    records_per_day: int = 200_000
    bytes_per_day: int = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Amount:
    """Records and bytes disclosed for one grant."""

    records: int = 0
    size_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.records + other.records, self.size_bytes + other.size_bytes)


DayTotals = Callable[[str, int], Amount]
"""What was disclosed for a grant since an instant (UTC ns); asked once per grant and day."""


@dataclass(slots=True)
class Quotas:
    """The counters of one process."""

    rules: LimitRules
    clock: Callable[[], int]
    day_totals: DayTotals = lambda _grant, _since: Amount()
    _units: Mapping[int, Bucket] = field(init=False)
    _in_flight: Counter[str] = field(default_factory=Counter[str])
    _day: int = -1
    _disclosed: dict[str, Amount] = field(default_factory=dict[str, Amount])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        """Make a bucket for clients and one for the owner."""
        per_second, burst = self.rules.units_per_second, self.rules.burst
        self._units = {
            factor: Bucket(self.clock, burst * factor, per_second * factor, 1, "requests")
            for factor in (1, OWNER_FACTOR)
        }

    def enter(self, authority: ReadAuthority, cost: int) -> None:
        """Take `cost` units and a place in flight; `leave` gives the place back.

        Raises: RateLimitExceeded (`limit` `concurrency` or `requests`).
        """
        factor, holder = _factor(authority), authority.holder
        with self._lock:
            if 0 < self.rules.in_flight * factor <= self._in_flight[holder]:
                raise RateLimitExceeded(
                    "Too many requests at once; wait for answers.",
                    retry_after_seconds=1,
                    limit="concurrency",
                )
            if self._limits_requests:
                self._units[factor].take(holder, cost)
            self._in_flight[holder] += 1

    def leave(self, authority: ReadAuthority) -> None:
        """Give a place in flight back."""
        with self._lock:
            self._in_flight[authority.holder] -= 1
            if not self._in_flight[authority.holder]:
                del self._in_flight[authority.holder]

    def standing(self, authority: ReadAuthority) -> RateStatus | None:
        """The present state of the holder's bucket; `None` while the limit is switched off."""
        if not self._limits_requests:
            return None
        bucket = self._units[_factor(authority)]
        remaining = bucket.left(authority.holder)
        missing = bucket.capacity - remaining
        return RateStatus(bucket.capacity, remaining, -(-missing // bucket.refill))

    def disclose(self, amounts: Mapping[str, Amount]) -> None:
        """Enter what an answer would disclose, by grant; all of it or nothing.

        Raises: QuotaExceeded (`limit` `records` or `bytes`).
        """
        for grant_id in amounts:
            self._learn_day(grant_id)
        with self._lock:
            for grant_id, amount in amounts.items():
                self._check_quota(self._disclosed.get(grant_id, Amount()) + amount)
            for grant_id, amount in amounts.items():
                self._disclosed[grant_id] = self._disclosed.get(grant_id, Amount()) + amount

    @property
    def _limits_requests(self) -> bool:
        return self.rules.units_per_second > 0 and self.rules.burst > 0

    def _learn_day(self, grant_id: str) -> None:
        day = self.clock() // DAY_NANOSECONDS
        with self._lock:
            if day != self._day:
                self._day = day
                self._disclosed.clear()
            known = grant_id in self._disclosed
        if not known:
            amount = self.day_totals(grant_id, day * DAY_NANOSECONDS)
            with self._lock:
                self._disclosed.setdefault(grant_id, amount)

    def _check_quota(self, total: Amount) -> None:
        now_ns = self.clock()
        wait = (DAY_NANOSECONDS - now_ns % DAY_NANOSECONDS) // NANOSECONDS + 1
        for limit, allowed, value in (
            ("records", self.rules.records_per_day, total.records),
            ("bytes", self.rules.bytes_per_day, total.size_bytes),
        ):
            if 0 < allowed < value:
                raise QuotaExceeded(
                    f"The day's {limit} for this grant are used up; go on after midnight UTC.",
                    retry_after_seconds=wait,
                    limit=limit,
                )


def totals_in(log: DisclosureStore) -> DayTotals:
    """What the disclosure log knows of a grant's day, so that a restart forgives nothing."""
    return lambda grant_id, since_ns: Amount(*log.disclosed_since(grant_id, since_ns))


def amounts_by_grant(entries: Iterable[DisclosureEntry]) -> dict[str, Amount]:
    """Sums per grant; what belongs to no grant (the owner's) does not count."""
    sums: dict[str, Amount] = {}
    for entry in entries:
        if entry.grant_id is not None:
            amount = Amount(entry.record_count, entry.size_bytes)
            sums[entry.grant_id] = sums.get(entry.grant_id, Amount()) + amount
    return sums


def _factor(authority: ReadAuthority) -> int:
    return OWNER_FACTOR if authority.kind is TokenKind.OWNER else 1
