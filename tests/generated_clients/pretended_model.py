"""A model that is none, for hosts of agents: it calls one tool, and ends with what that answered.

It speaks what the hosts of `test_foreign_clients.py` speak: OpenAI's chat completions, and Gemini's
`generateContent`, whole or as events.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

LOOPBACK = "127.0.0.1"
NAME = "pretended"


@dataclass
class PretendedModel:
    """What it was offered and what its tool answered, by name of the tool in the host.

    Shapes: `tool` is how the name of the tool ends that it calls; `origin` is where it listens.
    """

    tool: str
    offered: set[str] = field(default_factory=set[str])
    answers: list[str] = field(default_factory=list[str])
    origin: str = ""

    def reply(self, path: str, body: dict[str, Any]) -> tuple[list[Any], bool]:
        """What it says, in parts, and whether they are events."""
        if path.endswith("/chat/completions"):
            return self._completion(body), bool(body.get("stream"))
        return [self._content(body)], "streamGenerateContent" in path

    def _completion(self, body: dict[str, Any]) -> list[Any]:
        told = [each for each in body["messages"] if each["role"] == "tool"]
        tool = self._called(each["function"]["name"] for each in body.get("tools", ()))
        says: dict[str, Any] = {"role": "assistant", "content": "It is done."}
        if told:
            self.answers.append(json.dumps(told[-1]))
        elif tool:
            function = {"name": tool, "arguments": "{}"}
            call = {"index": 0, "id": "call_1", "type": "function", "function": function}
            says = {"role": "assistant", "tool_calls": [call]}
        ends = "tool_calls" if "tool_calls" in says else "stop"
        common = {"id": "1", "created": 1, "model": NAME}
        if not body.get("stream"):
            choice = {"index": 0, "message": says, "finish_reason": ends}
            return [common | {"object": "chat.completion", "choices": [choice]}]
        choices: list[dict[str, Any]] = [
            {"delta": says, "finish_reason": None},
            {"delta": {}, "finish_reason": ends},
        ]
        return [
            common | {"object": "chat.completion.chunk", "choices": [{"index": 0} | each]}
            for each in choices
        ]

    def _content(self, body: dict[str, Any]) -> Any:
        parts = (part for each in body["contents"] for part in each["parts"])
        told = [part for part in parts if "functionResponse" in part]
        declared = (each.get("functionDeclarations", ()) for each in body.get("tools", ()))
        tool = self._called(each["name"] for some in declared for each in some)
        says: dict[str, Any] = {"text": "It is done."}
        if told:
            self.answers.append(json.dumps(told[-1]))
        elif tool:
            says = {"functionCall": {"name": tool, "args": {}}}
        content = {"role": "model", "parts": [says]}
        return {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]}

    def _called(self, offered: Generator[str]) -> str | None:
        names = sorted(offered)
        self.offered.update(names)
        return next((name for name in names if name.endswith(self.tool)), None)


@contextmanager
def pretended_model(tool: str) -> Generator[PretendedModel]:
    """A model that listens on loopback, and calls that tool."""
    model = PretendedModel(tool)

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            parts, are_events = model.reply(self.path.partition("?")[0], body)
            texts = (json.dumps(part) for part in parts)
            text = "".join(f"data: {each}\n\n" for each in texts) if are_events else next(texts)
            self.send_response(200)
            kind = "text/event-stream" if are_events else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: what was asked stands in the model."""

    with ThreadingHTTPServer((LOOPBACK, 0), Answering) as server:
        model.origin = f"http://{LOOPBACK}:{server.server_address[1]}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield model
        finally:
            server.shutdown()
            thread.join()
