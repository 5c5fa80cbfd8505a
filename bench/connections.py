"""`python -m bench.connections [CONNECTIONS]`: callers that say nothing, and what others notice.

Serves under the usual limit of 1,024 descriptors, soft and hard, opens 1,010 connections that say
nothing, then as many that send half a request's head, and keeps them open.  Meanwhile somebody else
asks for a record again and again.  Prints how long that took at most, what the server's log said,
and how many of the connections the server had ended after a minute.
"""

from __future__ import annotations

import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

from rich.console import Console

from bench.clients import Refused, RestCaller
from bench.filling import fill
from bench.site import Running, Site

CONNECTIONS, DESCRIPTORS = 1_010, 1_024
WATCHED_SECONDS, RECORDS = 60, 1_000
HALF_A_HEAD = b"GET /v1/streams HTTP/1.1\r\nHost: "


def main(connections: int = CONNECTIONS) -> int:
    """Silent ones, then half-sent heads; 1 if somebody else was refused."""
    with tempfile.TemporaryDirectory(prefix="pdpp-connections-") as folder:
        site = Site(Path(folder))
        filled = fill(site.data_dir, RECORDS, Console(stderr=True))
        selection = ("--source", "bench_mail", "--connection", filled.mail[0])
        token, _ = site.grant("reader", *selection)
        refused = 0
        with site.serving("prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}") as server:
            for name, said in (("silent", b""), ("half a head", HALF_A_HEAD)):
                print(f"{connections:,} connections, {name}:")
                refused += _flood(site, server, token, connections, said)
        log = (site.folder / "serve.log").read_text(encoding="utf-8")
        warned = [line for line in log.splitlines() if "connections are open" in line]
        print(f"the log: {len(log):,} bytes, {len(warned)} lines about it, such as", *warned[:1])
    return 1 if refused else 0


def _flood(site: Site, server: Running, token: str, connections: int, said: bytes) -> int:
    """Open them, look for a while; how often somebody else was refused."""
    with ExitStack() as stack:
        opened = [stack.enter_context(each) for each in _opened(site.port, connections, said)]
        most = server.descriptors
        longest, asked, refused = 0.0, 0, 0
        end = time.monotonic() + WATCHED_SECONDS
        while time.monotonic() < end:
            begin = time.perf_counter()
            with closing(RestCaller(site.origin, token)) as caller:
                try:
                    caller.get("/v1/streams/messages/records", (("limit", "1"),))
                except (OSError, Refused):
                    refused += 1
            asked, longest = asked + 1, max(longest, time.perf_counter() - begin)
            most = max(most, server.descriptors)
            time.sleep(0.05)
        ended = sum(_is_ended(each) for each in opened)
    print(
        f"  {len(opened):,} were opened, {ended:,} had been ended after {WATCHED_SECONDS} s; the"
        f" server had at most {most:,} descriptors, {server.threads} threads\n"
        f"  somebody else asked {asked:,} times: {refused} refused, the longest {longest:.2f} s"
    )
    return refused


def _opened(port: int, connections: int, said: bytes) -> Iterator[socket.socket]:
    for _ in range(connections):
        with suppress(OSError):
            connection = socket.create_connection(("127.0.0.1", port), timeout=10)
            connection.sendall(said)
            yield connection


def _is_ended(connection: socket.socket) -> bool:
    """Whether the server has closed its end."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in sys.argv[1:])))
