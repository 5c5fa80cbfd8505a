"""How often a process looks for objects that nothing refers to.

Rule: a command mostly ends before so much is left that a look is worth it.  Of a process that
serves, what is made at the start stays for good, so nothing is looked for among it, then or later;
what requests leave is mostly freed at once, so that few rounds find the rest, and whatever thread
freed it, the next request can have it.
"""

from __future__ import annotations

import gc

OBJECTS_BETWEEN_ROUNDS = 50_000


def put_off() -> None:
    """Look for nothing until the start is over."""
    gc.disable()


def look_seldom() -> None:
    """Look when many objects were made that are still there."""
    gc.set_threshold(OBJECTS_BETWEEN_ROUNDS, 20, 20)


def leave_what_is_there() -> None:
    """Look from now on, among what comes later."""
    gc.freeze()
    look_seldom()
    gc.enable()
