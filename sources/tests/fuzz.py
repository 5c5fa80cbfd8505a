"""`python -m sources.tests.fuzz [SOURCE …] [--seconds N] [--seed N]`: damage exports at random.

Begins with a small export of each source, and makes it worse byte by byte, line by line and value
by value. Whatever a reader makes of it, it may raise nothing but a refusal of the whole, and every
record must fit its schema. What fails is written to a folder, and its seed is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from pdpp_sources.common.errors import ExportError
from sources.tests.reading import read_path
from sources.tests.specimens import SPECIMENS
from sources.tests.specimens.files import Files, as_zip

ROUNDS = 12  # of damage to one export, at most
LONGEST = 40_000
TELLING = (
    b"BEGIN:VCARD\r\n",
    b"END:VEVENT\r\n",
    b"\nFrom a Mon Jan  1 00:00:00 2024\n",
    b"\n--b\n",
    b"<STMTTRN>",
    b"</",
    b"[[",
    b"](",
    b"---\n",
    b'{"',
    b"}]",
    b'",',
    b"\x00",
    b"\xff\xfe",
    b"=\r\n",
    b"\xf0\x9f\x98\x80",
    b"\\u0000",
    b"\\ud800",
    b"1e400",
    b"-0",
    b"99999999999999999999",
    b"NaN",
    b"0000-00-00",
    b"20240230T250000Z",
    b";TZID=Nowhere:",
    b"RRULE:FREQ=YEARLY;COUNT=0\r\n",
    b";;;",
)
Damage = Callable[[bytes, Random], bytes]


def _byte(body: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(body))
    return body[:at] + bytes([chance.randrange(256)]) + body[at + 1 :]


def _telling(body: bytes, chance: Random) -> bytes:
    at = chance.randrange(len(body))
    return body[:at] + chance.choice(TELLING) + body[at + chance.randrange(4) :]


def _without(body: bytes, chance: Random) -> bytes:
    begin = chance.randrange(len(body))
    return body[:begin] + body[begin + chance.randrange(60) :]


def _again(body: bytes, chance: Random) -> bytes:
    begin = chance.randrange(len(body))
    piece = body[begin : begin + chance.randrange(1, 80)]
    return body[:begin] + piece * chance.randrange(2, 50) + body[begin:]


def _lines(body: bytes, chance: Random) -> bytes:
    lines = body.split(b"\n")
    first, second = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


DAMAGES: Sequence[Damage] = (_byte, _byte, _telling, _telling, _without, _again, _lines)


def damaged(files: Files, seed: int) -> Files:
    """The files after some damage; the same for the same seed."""
    chance = Random(seed)
    worse = dict(files)
    for _ in range(chance.randrange(1, ROUNDS)):
        name = chance.choice(sorted(worse))
        if worse[name]:
            worse[name] = chance.choice(DAMAGES)(worse[name], chance)[:LONGEST]
    return worse


def try_seed(key: str, seed: int, folder: Path) -> None:
    """Read one damaged export. Raises: whatever the reader should not have."""
    try:
        read_path(as_zip(damaged(SPECIMENS[key], seed), folder / "export.zip"))
    except ExportError:
        return


def main(keys: Sequence[str], seconds: float, seed: int) -> int:
    """Try seeds until the time is up; the number of those that failed."""
    failed = tried = 0
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            for key in keys:
                tried += 1
                try:
                    try_seed(key, seed, Path(folder))
                except Exception:  # noqa: BLE001 (whatever it is, it is printed and counted)
                    failed += 1
                    print(f"{key} with seed {seed}:\n{traceback.format_exc(limit=-3)}")
            seed += 1
    print(f"{tried} exports, {failed} failed; the next seed is {seed}")
    return failed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m sources.tests.fuzz")
    parser.add_argument("sources", nargs="*", default=sorted(SPECIMENS))
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    sys.exit(1 if main(chosen.sources, chosen.seconds, chosen.seed) else 0)
