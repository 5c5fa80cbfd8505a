"""Tunnels that are installed on this machine: what each leads here, and how one is started.

Rule: a tunnel is asked by its own program, and started only where its owner says so.
Source: the documentation of `tailscale status`, `serve` and `funnel`, and of cloudflared's
configuration file.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import msgspec

from pdpp_mcp_server.rs_client.json_values import as_object

ASK_SECONDS, START_SECONDS = 10.0, 60.0
HTTPS_PORT = 443
CONFIGURATIONS = (Path("~/.cloudflared/config.yml"), Path("/etc/cloudflared/config.yml"))
_LINE = re.compile(r"^[\s-]*(hostname|service):\s*[\"']?([^\"'\s#]+)")
Run = Callable[[Sequence[str], float], "ProgramOutput | None"]


class ProgramOutput(msgspec.Struct, frozen=True):
    """What a program printed, and whether it ended well."""

    is_good: bool
    text: str
    complaint: str = ""


class Tunnel(msgspec.Struct, frozen=True):
    """A tunnel program as it is now.

    Shapes: `address` is where this server is reached through it, none where it does not lead here;
        `is_public`: by everybody, else by the owner's own devices; `everybody` and `own` are the
        commands that lead it here; `trouble` says why it cannot be used yet, `step` what to do.
    """

    name: str
    address: str | None = None
    is_public: bool = False
    everybody: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    trouble: str = ""
    step: str = ""

    @property
    def port(self) -> int:
        """That of its address."""
        return urlsplit(self.address or "").port or HTTPS_PORT


def run_program(command: Sequence[str], seconds: float) -> ProgramOutput | None:
    """Run a program to its end; none where it cannot be run, or takes longer."""
    try:
        done = subprocess.run(  # noqa: S603 (the programs named below, found on the path)
            command, capture_output=True, text=True, timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ProgramOutput(
        done.returncode == 0, done.stdout, done.stderr.strip() or done.stdout.strip()
    )


def installed_tunnels(port: int, run: Run = run_program) -> Iterator[Tunnel]:
    """Those that are installed, and whether they lead to this port."""
    if (program := shutil.which("tailscale")) is not None:
        yield _tailscale(program, port, run)
    if shutil.which("cloudflared") is not None:
        yield _cloudflared(port)


def _tailscale(program: str, port: int, run: Run) -> Tunnel:
    name, status = "Tailscale", _json(run((program, "status", "--json"), ASK_SECONDS))
    host = str(as_object(status.get("Self")).get("DNSName") or "").rstrip(".")
    if status.get("BackendState") != "Running" or not host:
        trouble = "installed, but not signed in or not running"
        return Tunnel(name, trouble=trouble, step="Type `tailscale up` and sign in.")
    everybody, own = (("tailscale", way, "--bg", str(port)) for way in ("funnel", "serve"))
    served = _json(run((program, "serve", "status", "--json"), ASK_SECONDS))
    funnels = as_object(served.get("AllowFunnel"))
    found = [
        (not funnels.get(place), _address(place))
        for place, each in as_object(served.get("Web")).items()
        if _leads_here(as_object(each), port)
    ]
    if not found:
        return Tunnel(name, everybody=everybody, own=own)
    is_own, address = min(found)
    return Tunnel(name, address, not is_own, everybody, own)


def _leads_here(web: Mapping[str, object], port: int) -> bool:
    """Whether the whole of an address goes to this port of this machine."""
    root = as_object(as_object(web.get("Handlers")).get("/"))
    return _is_here(str(root.get("Proxy") or ""), port)


def _is_here(target: str, port: int) -> bool:
    parts = urlsplit(target if "//" in target else f"http://{target}")
    try:
        return parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.port == port
    except ValueError:
        return False


def _address(host: str) -> str:
    return f"https://{host.removesuffix(f':{HTTPS_PORT}')}"


def _cloudflared(port: int) -> Tunnel:
    """What its configuration file says, which the program that runs may have read or not."""
    hosts = [host for path in CONFIGURATIONS for host in _ingress(path.expanduser(), port)]
    if hosts:
        return Tunnel("Cloudflare Tunnel", f"https://{hosts[0]}", is_public=True)
    step = (
        f"Make a tunnel whose name stays, to http://127.0.0.1:{port} (docs/deploy.md). A quick "
        "tunnel gets another name each time, so apps would have to connect anew."
    )
    return Tunnel("Cloudflare Tunnel", trouble="installed, but no tunnel leads here", step=step)


def _ingress(path: Path, port: int) -> Iterator[str]:
    """The host names that a configuration leads to a port."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    host = ""
    for line in lines:
        if (found := _LINE.match(line)) is None:
            continue
        if found[1] == "hostname":
            host = found[2]
        else:
            if host and _is_here(found[2], port):
                yield host
            host = ""


def start(tunnel: Tunnel, run: Run = run_program, *, for_everybody: bool) -> str | None:
    """Lead a tunnel here; what its program complains of, or none."""
    command = tunnel.everybody if for_everybody else tunnel.own
    answer = run(command, START_SECONDS)
    if answer is None:
        return "the program did not end within a minute"
    return None if answer.is_good else answer.complaint[:300] or "the program failed"


def _json(answer: ProgramOutput | None) -> Mapping[str, object]:
    if answer is None or not answer.is_good:
        return {}
    try:
        return as_object(cast("object", json.loads(answer.text or "{}")))
    except ValueError:
        return {}
