"""Our own tools, resources and prompts under the names that the public suite asks for.

So the suite judges what this server really answers, by the scenario and by the wire schema: a door
before `/mcp` puts one of our calls in the place of the call to a fixture.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import anyio

from adapter.tests.seed import photo
from pdpp_mcp_server.handles import (
    BlobRef,
    RecordRef,
    WindowRef,
    blob_uri,
    record_uri,
    window_uri,
)
from personal_server.settings import Settings
from tests.browser.chromium import served
from tests.conformance.builds import AddBearer
from tests.ports import free_port
from tests.requirements.real import Real, outermost

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Loan:
    """What is asked in place of a scenario's own call."""

    scenario: str
    method: str
    params: Json

    @property
    def is_error(self) -> bool:
        """Whether the answer is to be a tool's refusal."""
        return self.scenario == "tools-call-error"


def loans(real: Real) -> list[Loan]:
    """Every tool, resource and prompt, one refusal and one completion."""
    letter = RecordRef(real.personal, "messages", "m8")
    blob = BlobRef(real.personal, f"blob_sha256_{sha256(photo).hexdigest()}")
    uris = [
        "pdpp://schema",
        "pdpp://grant",
        "pdpp://types",
        "pdpp://stream/messages",
        record_uri(letter),
        window_uri(WindowRef(letter, "body", 0, 100)),
    ]
    spoken = f"{real.personal}/messages:m8"
    asked: dict[str, Json] = {
        "schema": {},
        "query_records": {"stream": "messages", "limit": 5},
        "aggregate": {"stream": "messages", "metric": "count", "group_by": "from"},
        "search": {"query": "invoice"},
        "fetch": {"id": spoken},
        "read_record_field": {"id": spoken, "field_path": "body", "limit_chars": 100},
    }
    prompts: dict[str, Json] = {
        "what_is_shared": {},
        "answer_with_evidence": {"question": "Who wrote?"},
        "timeline": {"topic": "invoices"},
        "stream_overview": {"stream": "messages"},
    }
    return [
        *(_named("tools-call-simple-text", "tools/call", name, it) for name, it in asked.items()),
        _named("tools-call-error", "tools/call", "aggregate", {}),
        *(Loan("resources-read-text", "resources/read", {"uri": uri}) for uri in uris),
        Loan("resources-read-binary", "resources/read", {"uri": blob_uri(blob)}),
        *(_named("prompts-get-simple", "prompts/get", name, it) for name, it in prompts.items()),
        Loan(
            "completion-complete",
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "timeline"},
                "argument": {"name": "stream", "value": "mess"},
            },
        ),
    ]


def _named(scenario: str, method: str, name: str, arguments: Json) -> Loan:
    return Loan(scenario, method, {"name": name, "arguments": arguments})


class Lending:
    """The door: what comes for a fixture is asked of us, with the caller's own `_meta`.

    Shapes: `answers` are the results of what was lent.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.loan: Loan | None = None
        self.answers: list[Json] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        body = await _whole(receive)
        message = json.loads(body)
        if self.loan is not None and message.get("method") == self.loan.method:
            scope, body = _instead(self.loan, scope, message)
            send = self._noting(send)
        await self.app(scope, _once(body, receive), send)

    def _noting(self, send: Any) -> Any:
        async def note(message: Any) -> None:
            if message["type"] == "http.response.body":
                self.answers.append(json.loads(message["body"]).get("result", {}))
            await send(message)

        return note


def _instead(loan: Loan, scope: Any, message: Json) -> tuple[Any, bytes]:
    kept = {name: it for name, it in message["params"].items() if name == "_meta"}
    body = json.dumps({**message, "params": {**loan.params, **kept}}).encode()
    name = str(loan.params.get("name") or loan.params.get("uri") or "").encode()
    changed = {b"content-length": str(len(body)).encode(), b"mcp-name": name}
    headers = [(header, changed.get(header, value)) for header, value in scope["headers"]]
    return {**scope, "headers": headers}, body


async def _whole(receive: Any) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def _once(body: bytes, receive: Any) -> Any:
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return waiting.pop() if waiting else await receive()

    return replay


@contextmanager
def lending() -> Generator[tuple[str, Lending, list[Loan]]]:
    """A seeded server behind the door: its address, the door, and what it can lend."""
    port = free_port()
    real = anyio.run(Real.seeded)
    app, _ = outermost(real, Settings(public_url=f"http://127.0.0.1:{port}"))
    door = Lending(AddBearer(app, "mine"))
    with served(door, port) as address:
        yield f"{address}/mcp", door, loans(real)
