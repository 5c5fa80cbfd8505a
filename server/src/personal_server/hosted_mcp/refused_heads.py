"""What the SDK refuses for its headers, answered as a person or a client can act on it.

Rule: only what was refused before anything was read is answered anew.
Source: docs/contract/mcp-adapter.md 2.2.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson
from mcp_types.version import SUPPORTED_PROTOCOL_VERSIONS
from starlette.responses import Response
from starlette.types import Scope

from pdpp_kernel.errors import UnsupportedMediaType
from pdpp_mcp_server.rs_client.json_values import as_object, parse_quickly
from personal_server.web.requests import IncomingRequest

UNSUPPORTED_VERSION = -32022
_ANY = (b"accept", b"application/json, text/event-stream")


async def second_answer(
    request: IncomingRequest, refused: Response, answer: Callable[[Scope], Awaitable[Response]]
) -> Response:
    """What is said instead of a refusal; `answer` lets the SDK answer under other headers.

    Raises: UnsupportedMediaType.
    """
    headers = request.headers
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedMediaType(
            "Send the body with the header Content-Type: application/json.", param="Content-Type"
        )
    version = headers.get("mcp-protocol-version")
    if version is not None and version not in SUPPORTED_PROTOCOL_VERSIONS:
        said = as_object(parse_quickly(bytes(refused.body)))
        if as_object(said.get("error")).get("code") == UNSUPPORTED_VERSION:
            return refused
        data = {"supported": SUPPORTED_PROTOCOL_VERSIONS, "requested": version}
        error = {"code": UNSUPPORTED_VERSION, "message": "Unsupported protocol version"}
        body = {"jsonrpc": "2.0", "id": said.get("id"), "error": {**error, "data": data}}
        return Response(orjson.dumps(body), 400, media_type="application/json")
    if refused.status_code == 406 and "accept" not in headers:
        scope = request.scope
        return await answer({**scope, "headers": [*scope["headers"], _ANY]})
    return refused
