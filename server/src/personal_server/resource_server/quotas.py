"""Limits: how much one grant may ask, at once and per day.

Rule: all of a holder's calls count here, by whichever door they came; a call that would pass a
quota is refused before it returns anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import QuotaExceeded, RateLimitExceeded
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS, render_instant
from personal_server.domain.answer_warnings import Warning
from personal_server.domain.authority import ReadAuthority, ReadingBudget, TokenKind
from personal_server.domain.disclosure import Disclosed, DisclosureEntry
from personal_server.domain.keyed_values import (
    KeyedCounts,
    KeyedValues,
    ValueSpace,
)
from personal_server.domain.own_values import OwnSpace
from personal_server.storage.ports.disclosure_stores import DisclosureStore
from personal_server.web.limits import MAX_KEYS, Bucket, RateStatus, levels_in

OWNER_FACTOR = 10
_SPENT_BYTES = 80


class LimitRules(msgspec.Struct, frozen=True):
    """The configured limits; 0 switches one off.  Units: cost units, records, bytes per UTC day.

    Source: docs/contract/resource-server.md 16.
    """

    units_per_second: int = 20
    burst: int = 600
    in_flight: int = 8
    records_per_day: int = 200_000
    bytes_per_day: int = 2 * 1024**3


class Amount(msgspec.Struct, frozen=True):
    """Records and bytes disclosed for one grant."""

    records: int = 0
    size_bytes: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.records + other.records, self.size_bytes + other.size_bytes)


class Spent(msgspec.Struct, frozen=True):
    """What was read of a day's budget."""

    requests: int = 0
    amount: Amount = Amount()


class BudgetLeft(msgspec.Struct, frozen=True):
    """What remains of one bound that the owner set.  Units: `reset_at_ns` UTC."""

    limit: str
    allowed: int
    remaining: int
    reset_at_ns: int

    @property
    def is_low(self) -> bool:
        """Whether a caller should know: a fifth is left, or less."""
        return 5 * self.remaining <= self.allowed


SpentToday = Callable[[str, int], Spent]
"""What was read since an instant under a grant or package; asked once a day, if it has a budget."""

DayTotals = Callable[[str, int], Amount]
"""What was disclosed for a grant since an instant (UTC ns); asked once per grant and day."""


@dataclass(slots=True)
class Quotas:
    """The counters of one server.  Values of a day are known by the day and whom they are of."""

    rules: LimitRules
    clock: Callable[[], int]
    day_totals: DayTotals = lambda _grant, _since: Amount()
    spent_today: SpentToday = lambda _held, _since: Spent()
    space: ValueSpace = field(default_factory=OwnSpace)
    _units: Mapping[int, Bucket] = field(init=False)
    _in_flight: KeyedCounts = field(init=False)
    _disclosed: KeyedValues[Amount] = field(init=False)
    _spent: KeyedValues[Spent] = field(init=False)

    def __post_init__(self) -> None:
        """Make a bucket for clients and one for the owner.  All are one group, with one lock."""
        per_second, burst, space = self.rules.units_per_second, self.rules.burst, self.space
        self._units = {
            factor: Bucket(
                self.clock,
                burst * factor,
                per_second * factor,
                1,
                "requests",
                levels_in(space, f"quotas.units_{factor}"),
            )
            for factor in (1, OWNER_FACTOR)
        }
        self._in_flight = space.counts("quotas.in_flight", MAX_KEYS)
        self._disclosed = space.values("quotas.disclosed", Amount, MAX_KEYS, _SPENT_BYTES)
        self._spent = space.values("quotas.spent", Spent, MAX_KEYS, _SPENT_BYTES)

    def knows(self, authority: ReadAuthority, disclosed: Iterable[Disclosed] = ()) -> bool:
        """Whether its call, and what that discloses, are counted without asking the log."""
        grants = {part.source.grant_id for part in disclosed} - {None}
        day = self._today()
        has_spent = authority.budget is None or self._spent_by(authority) is not None
        return has_spent and all(self._disclosed.get((day, each)) is not None for each in grants)

    def enter(self, authority: ReadAuthority, cost: int) -> None:
        """Take `cost` units and a place in flight; `leave` gives the place back.

        Raises: RateLimitExceeded (`limit` `concurrency` or `requests`), QuotaExceeded when the
            owner's budget of requests is used up.
        """
        self._learn_spent(authority)
        factor, holder = _factor(authority), authority.holder
        with self._in_flight.lock:
            if 0 < self.rules.in_flight * factor <= self._in_flight.total(holder):
                raise RateLimitExceeded(
                    "Too many requests at once. Wait for the answers.",
                    retry_after_seconds=1,
                    limit="concurrency",
                )
            if self._limits_requests:
                self._units[factor].take(holder, cost)
            self._count_request(authority)
            self._in_flight.add(holder, 1)

    def leave(self, authority: ReadAuthority) -> None:
        """Give a place in flight back."""
        self._in_flight.add(authority.holder, -1)

    def standing(self, authority: ReadAuthority) -> RateStatus | None:
        """The present state of the holder's bucket; `None` while the limit is switched off."""
        if not self._limits_requests:
            return None
        bucket = self._units[_factor(authority)]
        remaining = bucket.left(authority.holder)
        missing = bucket.capacity - remaining
        return RateStatus(bucket.capacity, remaining, -(-missing // bucket.refill))

    def left(self, authority: ReadAuthority) -> list[BudgetLeft]:
        """What remains of the budget that the owner set, bound by bound."""
        spent = self._spent_by(authority)
        return [] if spent is None else self._left(authority, spent)

    def charge(self, authority: ReadAuthority, amounts: Mapping[str, Amount]) -> None:
        """Enter what an answer would disclose, by grant; all of it or nothing.

        Raises: QuotaExceeded (`limit` `records` or `bytes`).
        """
        self._learn_spent(authority)
        total = sum(amounts.values(), Amount())
        for grant_id in amounts:
            self._learn_day(grant_id)
        with self._disclosed.lock:
            day = self._today()
            after = {
                (day, grant_id): (self._disclosed.get((day, grant_id)) or Amount()) + amount
                for grant_id, amount in amounts.items()
            }
            for amount in after.values():
                self._check_quota(amount)
            self._spend(authority, total)
            for key, amount in after.items():
                self._disclosed.put(key, amount)

    @property
    def _limits_requests(self) -> bool:
        return self.rules.units_per_second > 0 and self.rules.burst > 0

    def _left(self, authority: ReadAuthority, spent: Spent) -> list[BudgetLeft]:
        budget = authority.budget or ReadingBudget()
        reset_at_ns = (self.clock() // DAY_NANOSECONDS + 1) * DAY_NANOSECONDS
        return [
            BudgetLeft(limit, allowed, max(0, allowed - used), reset_at_ns)
            for limit, allowed, used in (
                ("requests", budget.requests, spent.requests),
                ("records", budget.records, spent.amount.records),
                ("bytes", budget.size_bytes, spent.amount.size_bytes),
            )
            if allowed is not None
        ]

    def _count_request(self, authority: ReadAuthority) -> None:
        spent = self._spent_by(authority)
        if spent is None:
            return
        for left in self._left(authority, spent):
            if left.limit == "requests" and left.remaining == 0:
                raise self._over_budget(left)
        after = replace(spent, requests=spent.requests + 1)
        self._spent.put((self._today(), authority.held_id), after)

    def _spend(self, authority: ReadAuthority, amount: Amount) -> None:
        spent = self._spent_by(authority)
        if spent is None:
            return
        asked = {"records": amount.records, "bytes": amount.size_bytes}
        for left in self._left(authority, spent):
            if asked.get(left.limit, 0) > left.remaining:
                raise self._over_budget(left)
        after = replace(spent, amount=spent.amount + amount)
        self._spent.put((self._today(), authority.held_id), after)

    def _spent_by(self, authority: ReadAuthority) -> Spent | None:
        """What counts today, for whom the owner set a budget."""
        if authority.budget is None:
            return None
        return self._spent.get((self._today(), authority.held_id))

    def _over_budget(self, left: BudgetLeft) -> QuotaExceeded:
        until = render_instant(left.reset_at_ns)
        fewer = left.limit == "records" and left.remaining > 0
        ask = "ask for fewer records, or continue" if left.remaining else "continue"
        return QuotaExceeded(
            f"The owner lets this access read {left.allowed:,} {left.limit} a day, and"
            f" {left.remaining:,} remain: {ask} after {until}.",
            retry_after_seconds=(left.reset_at_ns - self.clock()) // NANOSECONDS + 1,
            limit=left.limit,
            remaining=left.remaining,
            resets_at=until,
            recovery={"limit": left.remaining} if fewer else None,
        )

    def _today(self) -> int:
        return self.clock() // DAY_NANOSECONDS

    def _learn_spent(self, authority: ReadAuthority) -> None:
        """Count for whoever has a budget, from what was read before it was counted here."""
        held_id, day = authority.held_id, self._today()
        if authority.budget is None:
            self._spent.remove((day, held_id))
        elif self._spent.get((day, held_id)) is None:
            spent = self.spent_today(held_id, day * DAY_NANOSECONDS)
            with self._spent.lock:
                if self._spent.get((day, held_id)) is None:
                    self._spent.put((day, held_id), spent)

    def _learn_day(self, grant_id: str) -> None:
        day = self._today()
        if self._disclosed.get((day, grant_id)) is None:
            amount = self.day_totals(grant_id, day * DAY_NANOSECONDS)
            with self._disclosed.lock:
                if self._disclosed.get((day, grant_id)) is None:
                    self._disclosed.put((day, grant_id), amount)

    def _check_quota(self, total: Amount) -> None:
        now_ns = self.clock()
        wait = (DAY_NANOSECONDS - now_ns % DAY_NANOSECONDS) // NANOSECONDS + 1
        for limit, allowed, value in (
            ("records", self.rules.records_per_day, total.records),
            ("bytes", self.rules.bytes_per_day, total.size_bytes),
        ):
            if 0 < allowed < value:
                raise QuotaExceeded(
                    (
                        f"This access has read the {limit} that it may read today. "
                        "Continue after midnight UTC."
                    ),
                    retry_after_seconds=wait,
                    limit=limit,
                )


def budget_low(left: BudgetLeft) -> Warning:
    """What a caller is told before the budget that the owner set ends."""
    until = render_instant(left.reset_at_ns)
    return Warning(
        "budget_low",
        f"Before this answer {left.remaining:,} of the {left.allowed:,} {left.limit} remained that"
        f" the owner lets this access read a day; the next day begins {until}.",
        detail={
            "limit": left.limit,
            "allowed": left.allowed,
            "remaining": left.remaining,
            "resets_at": until,
        },
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
