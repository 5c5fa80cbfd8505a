"""Ports for servers under test."""

from __future__ import annotations

import secrets
import socket

LOOPBACK = "127.0.0.1"
# Below those that the system deals out (32768 and up): between this look and a server's start
# another test's connection could get one of these, and what listens there would be taken for it.
LOWEST, HIGHEST = 20_000, 32_000


def free_port() -> int:
    """One that nobody listens at now."""
    while True:
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST)
        with socket.socket() as probe:
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
