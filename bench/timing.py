"""Timing of calls: percentiles with one caller and with many."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Timing:
    """Latencies in milliseconds and calls per second over all callers."""

    p50: float
    p95: float
    rate: float


def percentile(sorted_ns: Sequence[int], share: float) -> float:
    """The value below which `share` of the calls lie, in milliseconds."""
    return sorted_ns[min(len(sorted_ns) - 1, int(len(sorted_ns) * share))] / 1e6


def time_calls(calls: Sequence[Call], repeats: int, warm_up: int = 3) -> Timing:
    """Run each call `repeats` times in a thread of its own; all threads at once."""
    durations: list[list[int]] = [[] for _ in calls]
    failures: list[BaseException] = []
    barrier = threading.Barrier(len(calls))

    def run(call: Call, into: list[int]) -> None:
        try:
            for _ in range(warm_up):
                call()
            barrier.wait(timeout=120)
            for _ in range(repeats):
                start = perf_counter_ns()
                call()
                into.append(perf_counter_ns() - start)
        except BaseException as error:  # noqa: BLE001 (handed to the caller below)
            failures.append(error)
            barrier.abort()

    threads = [
        threading.Thread(target=run, args=(call, into), daemon=True)
        for call, into in zip(calls, durations, strict=True)
    ]
    begin = perf_counter_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    flat = sorted(ns for one in durations for ns in one)
    elapsed = (perf_counter_ns() - begin) / 1e9
    return Timing(percentile(flat, 0.5), percentile(flat, 0.95), len(flat) / elapsed)
