"""The signals that stop a server.  Source: docs/contract/resource-server.md 1.8."""

from __future__ import annotations

import logging
import os
import signal
import threading

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

CLOSING_SECONDS = 30.0
FORCED = 70
"""The exit code where somebody had to be ended by force."""

_log = logging.getLogger(__name__)


def end_in_time(seconds: float = CLOSING_SECONDS) -> None:
    """End this process by force where it has not ended by itself until then.

    A thread that never returns would keep it for ever. What was acknowledged is in the database
    by then, and the next start reads it as after a loss of power.
    """

    def force() -> None:
        _log.error("the server did not stop in %.0f s; it is ended", seconds)
        os._exit(FORCED)

    timer = threading.Timer(seconds, force)
    timer.daemon = True
    timer.start()


def stop_before_serving() -> None:
    """Let a signal that comes before anything is served end the process by way of its blocks."""
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
