"""How often a process looks for objects that nothing refers to.

Rule: a command mostly ends before so much is left that a look is worth it.  Of a process that
serves, what is made at the start stays for good, so nothing is looked for among it, then or later;
what requests leave is mostly freed at once, so that few rounds find the rest, and whatever thread
freed it, the next request can have it.
"""

from __future__ import annotations

import gc

SELDOM = 50_000, 20, 20
"""Looks when so many objects were made that are still there; the older every twentieth time."""


def put_off() -> None:
    """Look for nothing until the start is over."""
    gc.disable()


def leave_what_is_there() -> None:
    """Look from now on, among what comes later."""
    gc.freeze()
    gc.set_threshold(*SELDOM)
    gc.enable()
