"""A short way to a route: the frame's steps without sockets, threads and limits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import jsonschema_rs
import msgspec
import orjson

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.values import NANOSECONDS
from personal_server.domain.authority import ReadAuthority
from personal_server.domain.cursor import TokenUse, unpacked_place
from personal_server.domain.disclosure import Disclosed
from personal_server.domain.stored import SealingKey
from personal_server.reading.ports import ReadPorts
from personal_server.reading.sealed_tokens import KeyedSealer
from personal_server.reading.semantic_search import QueryEmbedder
from personal_server.resource_server.read_routes import read_routes
from personal_server.storage.ports.whole_store import RecordStore
from personal_server.web.error_responses import json_error
from personal_server.web.json_schemas import Components
from personal_server.web.query_strings import parse_query
from personal_server.web.rendering import rendered
from personal_server.web.requests import Request
from personal_server.web.routes import Route
from personal_server.web.routing import RouteTable
from server.tests.resource_server.journal import client

NOW_NS = 1_790_000_000 * NANOSECONDS
ORIGIN = "http://127.0.0.1:7662"


@cache
def shape_of(shape: type[msgspec.Struct]) -> jsonschema_rs.Draft202012Validator:
    """The published shape of an answer: closed, so that nothing undocumented is sent."""
    components = Components()
    schema = {**components.describe(shape), "components": {"schemas": components.schemas}}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


class Counter:
    """Distinct bytes, the same in each run."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, size: int) -> bytes:
        self._count += 1
        return self._count.to_bytes(size, "big")


@dataclass
class Reply:
    status: int
    body: Any
    text: bytes
    disclosed: tuple[Disclosed, ...] = ()

    @property
    def code(self) -> str:
        return "" if self.status < 400 else self.body["error"]["code"]

    @property
    def error(self) -> dict[str, Any]:
        return self.body["error"]

    @property
    def data(self) -> list[dict[str, Any]]:
        return self.body["data"]

    @property
    def keys(self) -> list[str]:
        return [each["id"] for each in self.data]

    @property
    def warnings(self) -> list[str]:
        return [each["code"] for each in self.body["meta"]["warnings"]]


class RecordingSealer(KeyedSealer):
    """Knows what each token was sealed for, which a token does not say."""

    bound: ClassVar[dict[str, tuple[TokenUse, str]]] = {}

    def seal(self, use: TokenUse, request: str, content: bytes) -> str:
        token = super().seal(use, request, content)
        self.bound[token] = (use, request)
        return token


@dataclass
class Door:
    """Reads through the route table; `now_ns` may be moved."""

    store: RecordStore
    now_ns: int = NOW_NS
    extra: Iterable[Route] = ()
    embedder: QueryEmbedder | None = None
    table: RouteTable[Route] = field(init=False)
    ports: ReadPorts = field(init=False)

    def __post_init__(self) -> None:
        random_bytes = Counter()
        sealer = RecordingSealer([SealingKey(1, b"k" * 32, 0)])
        self.ports = ReadPorts(
            self.store, sealer, lambda: self.now_ns, random_bytes, embedder=self.embedder
        )
        self.table = RouteTable([*read_routes(self.ports), *self.extra])

    def unseal(self, token: str) -> bytes:
        """What a token holds, as JSON."""
        use, request = RecordingSealer.bound[token]
        content = self.ports.sealer.open(use, request, token)
        assert content is not None
        return json.dumps(unpacked_place(request, content).position, ensure_ascii=False).encode()

    def get(self, target: str, authority: ReadAuthority) -> Reply:
        path, _, query = target.partition("?")
        try:
            match = self.table.match(path.encode())
            route = match.route("GET")
            parameters = parse_query(query.encode(), route.declared)
            with self.store.snapshot() as snapshot:
                request = Request(
                    route_name=route.name,
                    authority=authority,
                    parameters=parameters,
                    path=match.path,
                    raw_path=path,
                    raw_query=query,
                    origin=ORIGIN,
                    request_id="req_test",
                    now_ns=self.now_ns,
                    snapshot=snapshot,
                )
                reply = route.answer_request(request)
        except PersonalServerError as error:
            text = bytes(json_error(error, "req_test", ORIGIN).body)
            return Reply(error.status, orjson.loads(text), text)
        text = bytes(rendered(route, reply).body)
        if route.answer is not None:
            shape_of(route.answer).validate(orjson.loads(text))
        return Reply(200, orjson.loads(text), text, tuple(reply.disclosed))

    def refusal(self, target: str, authority: ReadAuthority | None = None) -> tuple[object, ...]:
        """Status, code and parameter of an answer that is an error."""
        reply = self.get(target, authority or client())
        return (reply.status, reply.code, reply.error.get("param"))
