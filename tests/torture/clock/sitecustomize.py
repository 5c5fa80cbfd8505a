"""A server whose clock goes wrong: the file that TORTURE_CLOCK names says by how many seconds."""

import os
import time

_told = os.environ.get("TORTURE_CLOCK")  # noqa: TID251 (it has no settings yet)
_now, _now_ns = time.time, time.time_ns  # noqa: TID251 (the real ones)


def _ahead() -> int:
    with open(str(_told), encoding="utf-8") as file:
        return int(file.read() or 0)


if _told is not None:
    time.time_ns = lambda: _now_ns() + _ahead() * 1_000_000_000
    time.time = lambda: _now() + _ahead()  # noqa: TID251
