"""The signals that stop a server.  Source: docs/contract/resource-server.md 1.8."""

from __future__ import annotations

import signal

STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def stop_before_serving() -> None:
    """Let a signal that comes before anything is served end the process by way of its blocks."""
    for number in STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
