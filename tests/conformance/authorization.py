"""The public suite's authorization server scenarios, run beside an owner who decides."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx2

from tests.conformance.suite import SECONDS, Run, command, results_in


def registered(origin: str, port: int) -> str:
    """A client with the redirect URI that the suite listens on."""
    metadata = {
        "client_name": "Conformance suite",
        "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
    }
    answer = httpx2.post(f"{origin}/oauth/register", json=metadata)
    return answer.raise_for_status().json()["client_id"]


def run_authorization_scenarios(
    origin: str, revision: str, port: int, folder: Path, decide: Callable[[str], None]
) -> Run:
    """Run them; `decide` takes the owner's browser to the address and back.

    The suite notes the code that it was sent, so what it wrote does not outlive the run.
    """
    told = ["--url", origin, "--client-id", registered(origin, port), "-p", str(port)]
    told += ["--resource", f"{origin}/mcp", "--spec-version", revision, "-o", str(folder)]
    with subprocess.Popen(
        command("authorization", *told), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            decide(next(line.strip() for line in process.stdout if "/oauth/authorize?" in line))
            process.stdout.read()
            process.wait(SECONDS)
        finally:
            process.kill()
    found = results_in(folder, "authorization-server-")
    shutil.rmtree(folder)
    return found
