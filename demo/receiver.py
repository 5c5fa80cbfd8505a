"""A receiver of events: it verifies each, follows its bookmark, and hands on what is new.

python -m demo.receiver ORIGIN TOKEN PORT [CONNECTION]   (the server: PDPP_DEV_LOOPBACK_CALLBACKS=1)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from standardwebhooks import Webhook


class Receiver:
    """Asks to be told at `http://127.0.0.1:PORT`, and calls back with each new item."""

    def __init__(
        self, origin: str, token: str, port: int, new: Callable[[Any], None], connection: str = ""
    ) -> None:
        self._origin, self._token, self._new = origin, token, new
        self.server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        query = f"?connection_id={connection}" if connection else ""
        asked = {"callback_url": f"http://127.0.0.1:{port}/"}
        self._webhook: Webhook | None = None
        self.made = self._call(f"/v1/event-subscriptions{query}", asked)
        self._webhook = Webhook(self.made["secret"])

    def status(self) -> str:
        """Whether it is told yet."""
        return self._call(f"/v1/event-subscriptions/{self.made['subscription_id']}")["status"]

    def _call(self, path: str, body: object = None) -> Any:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self._origin + path, data, headers), timeout=10) as answer:  # noqa: S310
            return json.load(answer)

    def _follow(self, told: Any) -> None:
        """Read everything that is new since the bookmark."""
        since = {"changes_since": told["changes_since"], "connection_id": told["connection_id"]}
        path: str | None = f"/v1/streams/{told['stream']}/records?{urlencode(since)}"
        while path:
            page = self._call(path)
            for item in page["data"]:
                self._new(item)
            path = page["links"]["next"]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver._webhook is None:  # the challenge was quicker than the secret
                    return self.send_error(503)
                event = receiver._webhook.verify(body, dict(self.headers.items()))
                answer = json.dumps({"challenge": event["data"].get("challenge")}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                if event["type"] == "pdpp.records.changed":
                    receiver._follow(event["data"])
                return None

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: what is new is told elsewhere."""

        return Handler


if __name__ == "__main__":
    origin, token, port, *connection = sys.argv[1:]
    Receiver(origin, token, int(port), print, *connection).server.serve_forever()
