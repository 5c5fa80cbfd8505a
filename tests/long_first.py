"""The order of the tests of a run with several workers: each begins with some of the long ones.

Rule: a worker gets a stretch of the list, one after another as long as the next, and takes from the
end of another's when it is done.  A long test at the end of all would be waited for alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import TypeVar

Test = TypeVar("Test")
Module = TypeVar("Module")


def begun_with_long(
    tests: Sequence[Test],
    module_of: Callable[[Test], Module],
    long: Collection[Module],
    workers: int,
) -> list[Test]:
    """The same tests; those of a module stay together, and the others keep their order.

    `begun_with_long("aabbcd", str, {"c", "d"}, 2)` is `caadbb`.
    """
    modules: dict[Module, list[Test]] = {}
    others: list[Test] = []
    for test in tests:
        module = module_of(test)
        (modules.setdefault(module, []) if module in long else others).append(test)
    together, rest = list(modules.values()), iter(others)
    ordered: list[Test] = []
    for number in range(workers):
        stretch = (len(tests) - len(ordered)) // (workers - number)
        begin = [test for each in together[number::workers] for test in each]
        ordered += [*begin, *islice(rest, max(0, stretch - len(begin)))]
    return [*ordered, *rest]
