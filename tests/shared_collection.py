"""Which worker of a run collects what first: each begins elsewhere, and no module is made twice.

Rule: pytest compiles a module of tests when it is imported first, and keeps what came of it.  If
all workers began with the same one, each would compile all where nothing is kept yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest


def is_of_everything(config: pytest.Config) -> bool:
    """Whether a run names nothing to collect and leaves nothing out.

    What a module is named for is collected, whatever `--ignore` says.
    """
    named = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return not (named or config.getoption("ignore") or config.getoption("ignore_glob"))


def modules_of(folders: Iterable[Path]) -> list[Path]:
    """The modules of tests below these folders, folder by folder, in the order of their names."""
    return [module for folder in folders for module in sorted(folder.rglob("test_*.py"))]


def begun_at(modules: Sequence[Path], worker: int, workers: int) -> list[Path]:
    """The same modules, from the part of this worker (0 …) on, and those before it at the end.

    `begun_at("abcdef", 1, 3)` is `cdefab`.
    """
    begin = len(modules) * worker // workers
    return [*modules[begin:], *modules[:begin]]
