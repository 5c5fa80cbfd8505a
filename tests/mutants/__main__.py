"""Change a room's modules a little, and see whether the room's own tests notice.

`python -m tests.mutants ROOM [COUNT] [--seed SEED] [--module NAME]` is what `make mutants` runs.
Everything happens in copies of the tree, two at a time (`--at-once 1`: one).
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from pages.parts import ROOT
from tests.mutants.copies import Copy, Verdict
from tests.mutants.mutations import Mutation, is_python, mutations
from tests.mutants.rooms import ROOMS, Shelf

Mutant = tuple[Shelf, Path, Mutation]
AT_ONCE = 2


def sample(room: str, count: int, seed: int, module: str) -> list[Mutant]:
    """As many mutants of the room as asked, drawn by the seed, in the order of the files."""
    every = [
        (shelf, path, mutation)
        for shelf in ROOMS[room]
        for path in shelf.paths()
        if module in path.as_posix()
        for mutation in mutations((ROOT / path).read_bytes())
    ]
    random.Random(seed).shuffle(every)
    readable = (m for m in every if is_python(m[2].applied((ROOT / m[1]).read_bytes())))
    return sorted(islice(readable, count), key=lambda each: (each[1].as_posix(), each[2].start))


def judged(copies: SimpleQueue[Copy], mutant: Mutant) -> tuple[Mutant, Verdict]:
    """The verdict of the room's tests about one mutant, in whichever copy is free."""
    copy = copies.get()
    try:
        verdict = copy.judge(*mutant)
    finally:
        copies.put(copy)
    _, path, mutation = mutant
    print(
        f"{verdict.outcome:9}{verdict.seconds:6.1f} s  {path.name}:{mutation.line}  {verdict.by}",
        flush=True,
    )
    return mutant, verdict


def table(verdicts: list[tuple[Mutant, Verdict]]) -> str:
    """Module by module, then each survivor as a change."""
    outcomes: dict[str, Counter[str]] = {}
    survivors: list[str] = []
    for (_, path, mutation), verdict in verdicts:
        outcomes.setdefault(path.as_posix(), Counter())[verdict.outcome] += 1
        if verdict.outcome == "survived":
            place = f"{path.as_posix()}:{mutation.line}"
            survivors.append(f"{place}\n  - {mutation.before}\n  + {mutation.after}")
    whole = sum(outcomes.values(), Counter[str]())
    rows = [
        f"{name:70}{counts.total():8}{counts['killed']:8}{counts['timeout']:8}{counts['survived']:10}"
        f"{counts['error']:8}"
        for name, counts in (*outcomes.items(), ("together", whole))
    ]
    head = f"{'module':70}{'mutants':>8}{'killed':>8}{'timeout':>8}{'survived':>10}{'errors':>8}"
    return "\n".join([*survivors, "", head, *rows])


def main() -> int:
    """Sample, try each, print the table; 1 where tests fail by themselves or a trial broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("room", choices=ROOMS)
    parser.add_argument("count", type=int, nargs="?", default=60)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 86_400_000_000_000)
    parser.add_argument("--module", default="", help="only modules whose path holds this")
    parser.add_argument("--at-once", type=int, default=AT_ONCE, help="how many copies are tried")
    asked = parser.parse_args()
    mutants = sample(asked.room, asked.count, asked.seed, asked.module)
    print(f"{asked.room}: {len(mutants)} mutants, seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        made = [Copy(Path(folder) / str(number)) for number in range(asked.at_once)]
        try:
            left_out: set[str] = set()
            for shelf in ROOMS[asked.room]:
                failed, slow = made[0].learn(shelf)
                if failed:
                    print(f"without a change fails {failed}")
                    return 1
                left_out.update(slow)
            for node in sorted(left_out):
                print(f"left out, being slow: {node}")
            copies: SimpleQueue[Copy] = SimpleQueue()
            for copy in made:
                copy.left_out = sorted(left_out)
                copies.put(copy)
            with ThreadPoolExecutor(asked.at_once) as pool:
                verdicts = list(pool.map(partial(judged, copies), mutants))
        finally:
            for copy in made:
                copy.end()
    print(table(verdicts))
    errors = sum(verdict.outcome == "error" for _, verdict in verdicts)
    if errors:
        print(f"{errors} trials came to no verdict: a fault of this tool, and no kill")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
