"""A resource server of somebody else, replayed from recorded bodies.

The bodies are data, in `recorded_bodies/`; its README says where their shapes come from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from adapter.tests.fake_rs import Answer, Request, request_of, write_answer

Json = dict[str, Any]
folder = Path(__file__).with_name("recorded_bodies")
recordings = ("as_published", "without_views", "early_compact")


@cache
def recording(name: str) -> Json:
    return json.loads((folder / f"{name}.json").read_text("utf-8"))


@dataclass(slots=True)
class RecordedRs:
    """Answers what was recorded; anything else is a path it does not know."""

    name: str
    requests: list[Request] = field(default_factory=list[Request])

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        request = request_of(scope)
        self.requests.append(request)
        await write_answer(self.answer(request), request, send, echo=False)

    def answer(self, request: Request) -> Answer:
        for exchange in recording(self.name)["exchanges"]:
            if _is_asked(exchange, request):
                return _answer(exchange)
        return _answer(recording(self.name)["otherwise"])


def _is_asked(exchange: Json, request: Request) -> bool:
    if exchange["path"] != "/" + "/".join(request.path):
        return False
    asked = sorted(list(pair) for pair in request.query)
    return exchange["query"] == "any" or sorted(exchange["query"]) == asked


def _answer(exchange: Json) -> Answer:
    headers = tuple((name, value) for name, value in exchange.get("headers", {}).items())
    if "html" in exchange:
        raw = exchange["html"].encode()
        return Answer(exchange["status"], None, headers, raw, "text/html; charset=utf-8")
    return Answer(exchange["status"], exchange["body"], headers)
