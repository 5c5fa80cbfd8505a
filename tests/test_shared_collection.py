"""Workers collect the same modules, and each begins with those that are no other's first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared_collection import begun_at, modules_of

MODULES = [Path(name) for name in "abcdefghijk"]


@pytest.mark.parametrize("workers", [1, 2, 4, 11, 16])
def test_each_begins_elsewhere_and_collects_all(workers: int) -> None:
    orders = [begun_at(MODULES, number, workers) for number in range(workers)]
    assert all(sorted(order) == MODULES for order in orders)
    assert len({order[0] for order in orders}) == min(workers, len(MODULES))


def test_modules_are_found_folder_by_folder(tmp_path: Path) -> None:
    for name in ("b/test_two.py", "b/deeper/test_one.py", "b/helper.py", "a/test_three.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = modules_of([tmp_path / "b", tmp_path / "a"])
    names = [str(module.relative_to(tmp_path)) for module in found]
    assert names == ["b/deeper/test_one.py", "b/test_two.py", "a/test_three.py"]
