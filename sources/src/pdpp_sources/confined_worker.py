"""A process that parses what a server says: how it is confined, and what its end is called.

Rule: what a server says may make a parser fail in any way, which ends this process and no other.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from pdpp_kernel.system.confinement import Limits, confine
from pdpp_kernel.system.landlock import read_only
from pdpp_sources.account_requests import AccountTrouble

STEP_SECONDS = 30.0
"""Of the processor, for what was said at once."""


def confine_worker(memory_bytes: int) -> None:
    """Give up the network, and all files that are not open."""
    confine(Limits(STEP_SECONDS, memory_bytes))
    read_only(())


def begin_step() -> None:
    """Let what is said next have a time of its own."""
    signal.setitimer(signal.ITIMER_PROF, STEP_SECONDS)


def end_of(work: Callable[[], str | None], misbehaves: str) -> str | None:
    """Why the work of the process ended, as a code; None where it ended well.

    Where there is no memory left to say anything, the process ends.
    """
    try:
        return work()
    except AccountTrouble as trouble:
        return trouble.code
    except MemoryError:
        os._exit(1)
    except Exception:  # noqa: BLE001 (whatever a server makes a parser raise)
        return misbehaves
