"""The stdio adapter from process to its first list of tools and first call, and later lists.

Usage: python -m bench.starting [TIMES]

Beside the clock, which a busy machine stretches, it prints the processor's time of each start.
Modules are compiled before, as they are where the program is installed.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from bench.clients import StdioCaller

CALL = {"name": "query_records", "arguments": {"stream": "messages"}}

BOUND_START_S, BOUND_LIST_MS = 0.4, 5.0
LISTS = 50


class Empty(BaseHTTPRequestHandler):
    """A resource server whose lists are empty."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer any read."""
        body = json.dumps({"object": "list", "data": [], "has_more": False}).encode()
        self.send_response(404 if ".well-known" in self.path else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def credential(root: Path, port: int) -> Path:
    """A cache for a server on this port."""
    folder = root / ".pdpp"
    (folder / "clients").mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    url = f"http://127.0.0.1:{port}"
    token = {
        "access_token": "pdpp_at_bench",
        "token_type": "Bearer",
        "token_kind": "client",
        "expires_at": "2099-01-01T00:00:00Z",
        "grant_id": "grt_bench",
        "scope": "pdpp:read",
    }
    document = {
        "provider_url": url,
        "authorization_server": url,
        "scope": "pdpp:read",
        "client": {"client_id": "cli_bench", "client_name": "bench"},
        "credential": token,
        "created_at": "2026-01-01T00:00:00Z",
    }
    path = folder / "clients" / f"127.0.0.1_{port}.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    path.chmod(0o600)
    return folder


def processor_seconds() -> float:
    """What the processes that ended have used."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Start, list, end, several times."""
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    entry = "from pdpp_mcp_server.commands.mcp import run; run()"
    starts: list[float] = []
    ready: list[float] = []
    lists: list[float] = []
    processor: list[float] = []
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        server = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), Empty))
        Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        kept = f"PYTHONPYCACHEPREFIX={folder}/compiled"
        compiled = ["env", "-u", "PYTHONDONTWRITEBYTECODE", kept]
        cache = ["--cache-root", credential(Path(folder), server.server_port)]
        command = [*compiled, sys.executable, "-c", entry, *cache]
        StdioCaller(command).close()
        for _ in range(times):
            before, begun = processor_seconds(), time.perf_counter()
            with StdioCaller(command) as caller:
                caller.request("tools/list", {})
                starts.append(time.perf_counter() - begun)
                caller.request("tools/call", CALL)
                ready.append(time.perf_counter() - begun)
                for _ in range(LISTS):
                    asked = time.perf_counter()
                    caller.request("tools/list", {})
                    lists.append((time.perf_counter() - asked) * 1_000)
            processor.append(processor_seconds() - before)
    print(f"start to tools/list: median {statistics.median(starts):.2f} s, bound {BOUND_START_S}")
    print(f"start to first call: median {statistics.median(ready):.2f} s")
    print(f"processor, start to end: least {min(processor):.2f} s")
    print(f"tools/list: p50 {statistics.median(lists):.2f} ms, bound {BOUND_LIST_MS:.0f}")


if __name__ == "__main__":
    main()
