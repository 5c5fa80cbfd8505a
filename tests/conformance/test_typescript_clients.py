"""What is told, as the libraries of npm hear it: MCP's own clients and Standard Webhooks."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import httpx2
import pytest
from standardwebhooks import Webhook

from server.tests.app.http_server.served import until
from tests.conformance.suite import INSTALLED, NODE, needs_suite
from tests.journeys.test_main_job import BIN, SELECTION, Home, served
from tests.journeys.test_subscriptions import NARROWED, import_more, narrow

__all__ = ["served"]
pytestmark = [pytest.mark.conformance, needs_suite]
SECONDS = 120.0
STREAM = "pdpp://stream/messages"
FOLLOWED = ["pdpp://grant", "pdpp://schema", STREAM]
HERE = Path(__file__).parent
# The environment of a process of node: where the libraries are that are locked here.
LIBRARIES = {"NODE_PATH": str(INSTALLED / "node_modules")}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    found = Home(tmp_path)
    found.environ = {**found.environ, "PDPP_DEV_LOOPBACK_CALLBACKS": "1"}
    return found


def node(script: str, *arguments: str) -> list[str]:
    return [str(NODE), str(HERE / script), *arguments]


# MCP ------------------------------------------------------------------------------------------
class Listener:
    """A client of npm's that follows resources in a process of its own."""

    def __init__(self, served: Home, library: str, revision: str, door: str) -> None:
        where: dict[str, Any] = {
            "command": str(BIN / "pdpp-mcp-server"),
            "args": ["--cache-root", str(served.cache)],
        }
        if door == "http":
            where = {"url": f"{served.origin}/mcp", "token": served.token}
        self.process = subprocess.Popen(
            node("listener.cjs", library, revision, json.dumps(where), *FOLLOWED),
            env={**served.environ, **LIBRARIES},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said: Queue[Any] = Queue()
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        for line in self.process.stdout or ():
            self.said.put(json.loads(line))

    def next(self) -> Any:
        return self.said.get(timeout=SECONDS)

    def updated(self, *uris: str) -> None:
        """Hear of exactly these, in any order."""
        assert sorted(self.next()["updated"] for _ in uris) == sorted(uris)

    def end(self) -> None:
        self.process.communicate(timeout=SECONDS)


# The same story over both doors is told in `journeys/test_subscriptions` with Python's clients.
@pytest.mark.long
def test_each_client_hears_of_a_mailbox_that_was_imported_and_of_less_that_is_given(
    served: Home,
) -> None:
    asked = [
        ("sdk", "2025-11-25", "stdio"),
        ("client", "2025-11-25", "stdio"),
        ("client", "2026-07-28", "stdio"),
        ("client", "2026-07-28", "http"),
    ]
    with ExitStack() as open_things:
        listeners = [Listener(served, *each) for each in asked]
        for listener in listeners:
            open_things.callback(listener.end)
        for listener in listeners:
            assert listener.next() == {"follows": FOLLOWED}
        import_more(served)
        for listener in listeners:
            listener.updated(STREAM)
        narrow(served)
        for listener in listeners:
            listener.updated(*NARROWED)


# Standard Webhooks ----------------------------------------------------------------------------
@contextmanager
def receiving() -> Generator[tuple[str, Queue[tuple[dict[str, str], bytes]]]]:
    """A receiver on this machine: its address, and what arrives."""
    arrived: Queue[tuple[dict[str, str], bytes]] = Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            arrived.put((dict(self.headers.items()), body))
            answer = json.dumps({"challenge": json.loads(body)["data"].get("challenge")}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", arrived
    finally:
        server.shutdown()
        server.server_close()


def verified(secret: str, headers: dict[str, str], body: bytes) -> Any:
    """What npm's library says of an event."""
    done = subprocess.run(
        node("verifier.cjs"),
        input=json.dumps({"secret": secret, "headers": headers, "body": body.decode()}),
        env={**os.environ, **LIBRARIES},  # noqa: TID251 (a child's environment)
        capture_output=True,
        text=True,
        check=True,
        timeout=SECONDS,
    )
    return json.loads(done.stdout)


def test_both_libraries_verify_what_is_delivered_also_while_a_secret_is_rotated(
    served: Home,
) -> None:
    cache = served.folder / "told"
    asked = ("--client", "Told", *SELECTION, "--events", "--cache-root", str(cache), "--yes")
    served.pdpp("grant", "create", *asked)
    [file] = (cache / "clients").glob("*.json")
    credential = json.loads(file.read_text(encoding="utf-8"))["credential"]
    bearer = {"Authorization": f"Bearer {credential['access_token']}"}
    with receiving() as (url, arrived), httpx2.Client(headers=bearer, timeout=240) as client:
        subscriptions = f"{served.origin}/v1/event-subscriptions"
        made = client.post(subscriptions, json={"callback_url": url}).raise_for_status().json()
        mine = f"{subscriptions}/{made['subscription_id']}"
        headers, body = arrived.get(timeout=SECONDS)
        asked = json.loads(body)
        assert asked["type"] == "pdpp.subscription.verify"
        assert verified(made["secret"], headers, body) == {"verified": asked}
        assert Webhook(made["secret"]).verify(body, headers) == asked
        until(lambda: client.get(mine).raise_for_status().json()["status"] == "active")
        rotated = client.patch(mine, json={"rotate_secret": True}).raise_for_status().json()
        client.post(f"{mine}/test-event").raise_for_status()
        headers, body = arrived.get(timeout=SECONDS)
    told = json.loads(body)
    assert told["type"] == "pdpp.subscription.test"
    assert len({made["secret"], rotated["secret"]}) == 2
    for secret in (made["secret"], rotated["secret"]):
        assert verified(secret, headers, body) == {"verified": told}
        assert Webhook(secret).verify(body, headers) == told
    refused = {"refused": "WebhookVerificationError"}
    assert verified(rotated["secret"], headers, body + b" ") == refused
    assert verified("whsec_" + "A" * 43 + "=", headers, body) == refused
