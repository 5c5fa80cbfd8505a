"""Torture a server: `python -m tests.torture [SECONDS] [SEED] [SCENARIO …]`.

By default ten minutes, the seed of the day and all scenarios; a name of several words in quotes.
Every scenario once, then at random until the time is over; ends with a table and with 1 if anything
was lost.
"""

from __future__ import annotations

import sys
import time

from tests.torture.scenarios import SCENARIOS
from tests.torture.table import torture


def main() -> int:
    """Torture, and print the table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else time.time_ns() // 86_400_000_000_000
    names = sys.argv[3:] or list(SCENARIOS)
    if unknown := set(names) - set(SCENARIOS):
        sys.exit(f"no scenario is named {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    print(f"seed {seed}, {seconds:.0f} s")
    table = torture(seconds, seed, lambda line: print(line, flush=True), names)
    print(table)
    return 1 if table.lost else 0


if __name__ == "__main__":
    sys.exit(main())
