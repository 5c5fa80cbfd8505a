"""Limits: how much one grant may ask, at once and per day.

Rule: all of a holder's calls count here, by whichever door they came; a call that would pass a
quota is refused before it returns anything.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.values import DAY_NANOSECONDS, NANOSECONDS
from personal_server.errors import QuotaExceeded, RateLimitExceeded
from personal_server.storage.ports import DisclosureStore
from personal_server.web.limits import Standing

OWNER_FACTOR = 10
FORGOTTEN_ABOVE = 4_096


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
class _Holder:
    units: float
    filled_at_ns: int
    in_flight: int = 0


@dataclass(slots=True)
class Limits:
    """The counters of one process."""

    rules: LimitRules
    clock: Callable[[], int]
    day_totals: DayTotals = lambda _grant, _since: Amount()
    _holders: dict[str, _Holder] = field(default_factory=dict[str, _Holder])
    _day: int = -1
    _disclosed: dict[str, Amount] = field(default_factory=dict[str, Amount])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, authority: ReadAuthority, cost: int) -> None:
        """Take `cost` units and a place in flight; `leave` gives the place back.

        Raises: RateLimitExceeded (`limit` `concurrency` or `requests`).
        """
        factor = _factor(authority)
        with self._lock:
            holder = self._refilled(authority)
            if 0 < self.rules.in_flight * factor <= holder.in_flight:
                raise _too_many("concurrency", "Too many requests at once; wait for answers.", 1)
            missing = cost - holder.units
            if self._limits_requests and missing > 0:
                wait = 1 + int(missing / (self.rules.units_per_second * factor))
                raise _too_many("requests", f"Too many requests; wait {wait} s.", wait)
            holder.units -= cost
            holder.in_flight += 1

    def leave(self, authority: ReadAuthority) -> None:
        """The answer was sent."""
        with self._lock:
            self._holders[authority.holder].in_flight -= 1

    def standing(self, authority: ReadAuthority) -> Standing | None:
        """The present state of the holder's bucket; `None` while the limit is switched off."""
        if not self._limits_requests:
            return None
        factor = _factor(authority)
        full = self.rules.burst * factor
        with self._lock:
            holder = self._refilled(authority)
            remaining = max(0, min(full, int(holder.units)))
        rate = max(1, self.rules.units_per_second * factor)
        return Standing(full, remaining, -(-(full - remaining) // rate))

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

    def _refilled(self, authority: ReadAuthority) -> _Holder:
        factor, now_ns = _factor(authority), self.clock()
        full = float(self.rules.burst * factor)
        holder = self._holders.get(authority.holder)
        if holder is None:
            self._forget_idle(now_ns)
            holder = self._holders[authority.holder] = _Holder(full, now_ns)
        gained = (now_ns - holder.filled_at_ns) * self.rules.units_per_second * factor / NANOSECONDS
        holder.units = min(full, holder.units + max(0.0, gained))
        holder.filled_at_ns = now_ns
        return holder

    def _forget_idle(self, now_ns: int) -> None:
        if len(self._holders) < FORGOTTEN_ABOVE:
            return
        oldest_ns = now_ns - 600 * NANOSECONDS
        kept = {k: h for k, h in self._holders.items() if h.in_flight or h.filled_at_ns > oldest_ns}
        self._holders.clear()
        self._holders.update(kept)

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


def amounts_by_grant(parts: Iterable[tuple[str | None, Amount]]) -> dict[str, Amount]:
    """Sums per grant; what belongs to no grant (the owner's) does not count."""
    sums: dict[str, Amount] = {}
    for grant_id, amount in parts:
        if grant_id is not None:
            sums[grant_id] = sums.get(grant_id, Amount()) + amount
    return sums


def _factor(authority: ReadAuthority) -> int:
    return OWNER_FACTOR if authority.kind is TokenKind.OWNER else 1


def _too_many(limit: str, message: str, wait_seconds: int) -> RateLimitExceeded:
    return RateLimitExceeded(message, retry_after_seconds=wait_seconds, limit=limit)
