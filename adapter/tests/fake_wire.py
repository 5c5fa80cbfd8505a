"""Requests and answers of the recording server, as they come and go over ASGI."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote

Json = dict[str, Any]
Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Request:
    """One recorded read."""

    method: str
    path: tuple[str, ...]
    query: tuple[tuple[str, str], ...]
    headers: dict[str, str]

    @property
    def bearer(self) -> str:
        return self.headers.get("authorization", "")

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.query if key == name]

    @property
    def names(self) -> set[str]:
        return {name for name, _ in self.query}


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    content_type: str = "application/json; charset=utf-8"


Script = Callable[[Request], "Answer | None"]


def refusal(status: int, kind: str, code: str, message: str, **members: Any) -> Answer:
    """A refusal in the server's own words."""
    return Answer(status, {"error": {"type": kind, "code": code, "message": message, **members}})


def error_answer(status: int, code: str, **members: Any) -> Answer:
    """A refusal for a script."""
    return refusal(status, "api_error", code, f"Refused with {code}.", **members)


def request_of(scope: Any) -> Request:
    raw = scope["raw_path"].decode()
    query: Pairs = parse_qsl(scope["query_string"].decode(), keep_blank_values=True)
    headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
    path = tuple(unquote(part) for part in raw.strip("/").split("/"))
    return Request(scope["method"], path, tuple(query), headers)


async def write_answer(answer: Answer, request: Request, send: Any, *, echo: bool = True) -> None:
    """Send an answer; with `echo`, under the id that the request brought."""
    raw = answer.content if answer.content is not None else b""
    if answer.content is None and answer.body is not None:
        raw = json.dumps(answer.body).encode()
    echoed = request.headers.get("request-id", "req_fake")
    headers = [("content-type", answer.content_type), ("content-length", str(len(raw)))]
    headers += [("request-id", echoed)] if echo else []
    headers += answer.headers
    encoded = [(name.lower().encode(), value.encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": encoded})
    await send({"type": "http.response.body", "body": raw})


async def answer_lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
