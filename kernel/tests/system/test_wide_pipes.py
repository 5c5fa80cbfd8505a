"""Pipes that hold more than usual."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

import pytest

from pdpp_kernel.system.wide_pipes import AHEAD_BYTES, widen


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has wide pipes")
def test_whoever_writes_to_a_wide_pipe_goes_on_while_nobody_reads() -> None:
    readable, writable = os.pipe()
    with os.fdopen(readable, "rb"), os.fdopen(writable, "wb", 0) as out:
        widen(writable)
        assert fcntl.fcntl(readable, fcntl.F_GETPIPE_SZ) == AHEAD_BYTES
        assert out.write(bytes(AHEAD_BYTES)) == AHEAD_BYTES  # or it would wait for ever
    with Path(os.devnull).open("rb") as other:
        widen(other.fileno())  # no pipe, and nothing fails


def test_another_system_keeps_its_pipes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    widen(-1)
