"""Torture for a time, and its table: tried, survived, lost."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from personal_server.collecting.uploads import FREE_BYTES
from tests.torture.scenarios import SCENARIOS, Unable
from tests.torture.tormented import Lost, Tormented, tormented

DISK_BYTES = FREE_BYTES + 512 * 1024 * 1024
"""Room for what is tortured, and what the server takes no upload below."""


@dataclass
class TortureTable:
    """How often each scenario was tried and survived, what was lost, what this machine cannot."""

    tried: Counter[str] = field(default_factory=Counter[str])
    survived: Counter[str] = field(default_factory=Counter[str])
    unable: dict[str, str] = field(default_factory=dict[str, str])
    losses: list[str] = field(default_factory=list[str])
    promised: int = 0
    renewed: int = 0

    @property
    def lost(self) -> int:
        """How many scenarios lost something."""
        return len(self.losses)

    def __str__(self) -> str:
        lines = [f"{'scenario':<22}{'tried':>7}{'survived':>10}{'lost':>6}"]
        for name in [each for each in SCENARIOS if each in self.tried or each in self.unable]:
            tried, survived = self.tried[name], self.survived[name]
            why = f"   not here: {self.unable[name]}" if name in self.unable else ""
            lines.append(f"{name:<22}{tried:>7}{survived:>10}{tried - survived:>6}{why}")
        tried, survived = self.tried.total(), self.survived.total()
        lines.append(f"{'together':<22}{tried:>7}{survived:>10}{tried - survived:>6}")
        lines.append(f"{self.promised:,} records acknowledged, {self.renewed:,} tokens renewed")
        return "\n".join([*lines, *(f"LOST: {each}" for each in self.losses)])


def torture(
    seconds: float,
    seed: int,
    tell: Callable[[str], object],
    chosen: Sequence[str] = tuple(SCENARIOS),
) -> TortureTable:
    """Run scenarios until the time is over, each at least once; a loss begins with a new server."""
    table, random, end = TortureTable(), Random(seed), time.monotonic() + seconds
    names = _names(chosen, random, lambda: time.monotonic() < end)
    name = next(names, None)
    while name is not None:
        with _disk() as folder, tormented(folder, random.randrange(2**32)) as server:
            is_whole = True
            while is_whole and name is not None:
                is_whole = _run(name, server, table, tell)
                name = next(names, None)
            table.promised += len(server.promised)
            table.renewed += server.counts["tokens renewed"]
    return table


def _names(chosen: Sequence[str], random: Random, is_time: Callable[[], bool]) -> Iterator[str]:
    yield from random.sample(chosen, len(chosen))
    while is_time():
        yield random.choice(chosen)


def _run(name: str, server: Tormented, table: TortureTable, tell: Callable[[str], object]) -> bool:
    begin = time.monotonic()
    try:
        SCENARIOS[name](server)
    except Unable as error:
        table.unable[name] = str(error)
        return True
    except Exception as error:  # noqa: BLE001 (whatever it is, it was not survived)
        table.tried[name] += 1
        said = str(error) if isinstance(error, Lost) else f"{type(error).__name__}: {error}"
        table.losses.append(f"{name}: {said}")
        tell(f"{name:<22} LOST {said}\n{server.log[-2000:]}")
        return False
    table.tried[name] += 1
    table.survived[name] += 1
    tell(f"{name:<22} survived in {time.monotonic() - begin:.1f} s")
    return True


@contextmanager
def _disk() -> Generator[Path]:
    """A file system of its own that can be filled, where one may be mounted; else a folder."""
    with tempfile.TemporaryDirectory() as name:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "torture", name]
        is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
        try:
            yield Path(name)
        finally:
            if is_mounted:
                subprocess.run(["umount", "--lazy", name], check=True)
