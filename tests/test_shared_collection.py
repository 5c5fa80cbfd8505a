"""Workers collect the same modules, and each begins with those that are no other's first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shared_collection import begun_at, is_of_everything, modules_of

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


@pytest.mark.parametrize(
    ("arguments", "is_all"),
    [
        ((), True),
        (("-k", "rain"), True),
        (("a",), False),
        (("--ignore=a",), False),
        (("--ignore-glob=*/a",), False),
    ],
)
def test_a_run_that_names_or_leaves_out_something_is_not_of_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], *, is_all: bool
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = a\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    config = pytest.Config.fromdictargs({}, list(arguments))
    assert is_of_everything(config) is is_all
