"""A whole server in a process of its own, whose names resolve to the documents of this test.

It is composed as `pdpp serve` composes it, but for the network that client documents are fetched
over: every name has one public address, and a connection to that address reaches the test's https
host.  The guard before it and the check of the certificate's name are the real ones.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from personal_server.app.server import open_server
from personal_server.settings import Settings
from personal_server.web.guarded_fetch import GuardedFetch
from tests.browser.chromium import served
from tests.browser.publishing import Publisher
from tests.browser.site import fill
from tests.ports import free_port

PUBLIC_ADDRESS = "93.184.216.34"


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that runs elsewhere; its owner asks it for links."""

    origin: str
    process: subprocess.Popen[str]

    def sign_in_link(self) -> str:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("link\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@contextmanager
def server_process(folder: Path, publisher: Publisher) -> Generator[ServerProcess]:
    """Start it, and end it with its input."""
    told = [str(folder / "data"), str(publisher.port), str(publisher.certificate)]
    command = [sys.executable, "-m", "tests.browser.process", *told]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            yield ServerProcess(json.loads(process.stdout.readline()), process)
        finally:
            process.stdin.close()


class Rerouted(httpx2.AsyncBaseTransport):
    """The network as the server sees it: one address, and the documents' host behind it."""

    def __init__(self, port: int, certificate: str) -> None:
        self.port = port
        trust = ssl.create_default_context(cafile=certificate)
        self.inner = httpx2.AsyncHTTPTransport(verify=trust)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host != PUBLIC_ADDRESS:
            raise httpx2.ConnectError("No such address in this test.")
        request.url = request.url.copy_with(host="127.0.0.1", port=self.port)
        return await self.inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self.inner.aclose()


async def resolve(host: str) -> Sequence[str]:
    """Every name has the one public address."""
    del host
    return [PUBLIC_ADDRESS]


def serve(data: str, documents_port: int, certificate: str) -> None:
    """Serve until the input ends; print the origin, and a link for each line that comes."""
    port = free_port()
    settings = Settings(public_url=f"http://127.0.0.1:{port}", bind_port=port, data_dir=Path(data))
    fetch = GuardedFetch(resolve, Rerouted(documents_port, certificate))
    with open_server(settings, fetch) as server:
        fill(server.stores.records, time.time_ns())
        with served(server.app, port) as origin:
            print(json.dumps(origin), flush=True)
            for _ in sys.stdin:
                print(json.dumps(server.sign_in_link()), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3])
