"""Many callers at once, by `wrk`: a program in C, so that what is measured is the server."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.site import Running

PATIENCE_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Load:
    """What came of one run.  Units: `processor_ms` of the server for each request, answered or not;
    `own_seconds` is the processor time of `wrk` itself.
    """

    answers_a_second: float
    refused: int
    processor_ms: float
    p99: str
    own_seconds: float
    seconds: int


def wrk_path() -> str | None:
    """Where it is, if it is installed."""
    return shutil.which("wrk")


def lua_of(folder: Path, token: str, message: Mapping[str, object] | None) -> Path:
    """The script of one request: a read, or a message to `/mcp`."""
    headers = {"Authorization": f"Bearer {token}"}
    lines: list[str] = []
    if message is not None:
        headers["Content-Type"] = "application/json"
        headers["Accept"] = "application/json, text/event-stream"
        headers["MCP-Protocol-Version"] = "2025-11-25"
        lines += ['wrk.method = "POST"', f"wrk.body = [==[{json.dumps(message)}]==]"]
    lines += [f'wrk.headers["{name}"] = "{value}"' for name, value in headers.items()]
    path = folder / "request.lua"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def load(server: Running, url: str, script: Path, callers: int, seconds: int) -> Load:
    """Let so many callers ask for so long, each at once again."""
    before, own = server.processor_seconds, _children_seconds()
    done = subprocess.run(
        [
            wrk_path() or "wrk",
            "--threads=1",
            f"--connections={callers}",
            f"--duration={seconds}s",
            f"--timeout={PATIENCE_SECONDS}s",
            "--latency",
            f"--script={script}",
            url,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    asked = _number(r"(\d+) requests in", done.stdout)
    refused = _number(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    p99 = re.search(r"99%\s+(\S+)", done.stdout)
    return Load(
        (asked - refused) / seconds,
        refused,
        (server.processor_seconds - before) * 1_000 / max(asked, 1),
        p99[1] if p99 else "",
        _children_seconds() - own,
        seconds,
    )


def _number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
