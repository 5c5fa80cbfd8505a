"""Each worker begins with long tests, and none is lost or torn from its module."""

from __future__ import annotations

from itertools import groupby

import pytest

from tests.long_first import begun_with_long


def module_of(test: str) -> str:
    return test[0]


def test_each_stretch_begins_with_a_long_module() -> None:
    assert "".join(begun_with_long("aabbcd", str, {"c", "d"}, 2)) == "caadbb"


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 16])
@pytest.mark.parametrize("long", ["", "x", "bxyz", "abcdxyz"])
def test_no_test_is_lost_and_long_modules_stay_whole(workers: int, long: str) -> None:
    tests = [f"{module}{number}" for module in "abcdxyz" for number in range(11)]
    ordered = begun_with_long(tests, module_of, set(long), workers)
    assert sorted(ordered) == sorted(tests)
    stretches = [module for module, _ in groupby(ordered, module_of) if module in long]
    assert sorted(stretches) == sorted(set(long))
    others = [test for test in ordered if module_of(test) not in long]
    assert others == [test for test in tests if module_of(test) not in long]
