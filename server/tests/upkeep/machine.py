"""A machine with a data directory, where `pdpp` runs as processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sysconfig
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.ports import free_port
from tests.processes import started, stopped
from tests.secrecy.plugin import WATCH

PDPP = str(Path(sysconfig.get_path("scripts")) / "pdpp")


@dataclass
class Machine:
    """Where commands run and, once started, a server."""

    folder: Path
    settings: dict[str, str] = field(default_factory=dict[str, str])
    process: subprocess.Popen[str] | None = None

    def __post_init__(self) -> None:
        self.address = f"127.0.0.1:{free_port()}"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def origin(self) -> str:
        return f"http://{self.address}"

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("PDPP_")}  # noqa: TID251 (a child's environment)
        own = {"PDPP_DATA_DIR": str(self.data), "PDPP_BIND": self.address, "PDPP_WORKERS": "1"}
        return kept | own | self.settings

    def pdpp(self, *arguments: str | Path, expected: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        done = subprocess.run(
            [PDPP, *map(str, arguments)],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == expected, done.stderr
        assert "Traceback" not in done.stderr
        return done

    def begin(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Run a command beside others."""
        return started(
            [PDPP, *map(str, arguments)],
            env=self.environment,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def start(self) -> None:
        """Start a server, until it has greeted."""
        self.process = self.begin("serve")
        lines: list[str] = []
        for line in self.process.stderr or ():
            lines.append(line)
            if "Ctrl-C" in line:
                break
        WATCH.log("".join(lines), "standard error of pdpp serve")
        assert "Ctrl-C" in lines[-1], lines

    def stop(self) -> str:
        """Stop the server; what it said since it greeted."""
        if self.process is None:
            return ""
        said = stopped(self.process, signal.SIGINT)
        WATCH.log(said, "standard error of pdpp serve")
        self.process = None
        return said

    def get(self, path: str, token: str) -> tuple[int, Any]:
        """What the server answers: status and JSON."""
        answer = httpx2.get(
            f"{self.origin}{path}", headers={"Authorization": f"Bearer {token}"}, timeout=240
        )
        return answer.status_code, answer.json()

    @contextmanager
    def running(self) -> Generator[Machine]:
        """Stop the server in the end."""
        try:
            yield self
        finally:
            self.stop()
