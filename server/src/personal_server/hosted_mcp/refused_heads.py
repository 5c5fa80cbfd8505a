"""What the SDK refuses before it looks at a method, answered as a client can act on it.

Rule: only that is answered anew; no answer repeats a body.
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

INVALID_REQUEST, INVALID_PARAMS, UNSUPPORTED_VERSION = -32600, -32602, -32022
_ANY = (b"accept", b"application/json, text/event-stream")


async def second_answer(
    refused: Response,
    request: IncomingRequest,
    body: bytes,
    answer: Callable[[Scope], Awaitable[Response]],
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
    refusal = as_object(parse_quickly(bytes(refused.body)))
    code = as_object(refusal.get("error")).get("code")
    # the SDK takes no id from an object that is no message, and repeats it
    is_none = code == INVALID_PARAMS and refusal.get("id") is None
    if refused.status_code == 400 and (is_none or not _is_object(body)):
        return _error(None, INVALID_REQUEST, "Send one JSON-RPC message, a JSON object.")
    version = headers.get("mcp-protocol-version")
    if version is not None and version not in SUPPORTED_PROTOCOL_VERSIONS:
        if code == UNSUPPORTED_VERSION:
            return refused
        data = {"supported": SUPPORTED_PROTOCOL_VERSIONS, "requested": version}
        return _error(refusal.get("id"), UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    if refused.status_code == 406 and "accept" not in headers:
        scope = request.scope
        return await answer({**scope, "headers": [*scope["headers"], _ANY]})
    return refused


def _is_object(body: bytes) -> bool:
    """Whether a body is a JSON object: no batch, which the protocol dropped, and no other text."""
    try:
        return isinstance(orjson.loads(body), dict)
    except orjson.JSONDecodeError:
        return False


def _error(identity: object, code: int, message: str, data: object = None) -> Response:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    answer = {"jsonrpc": "2.0", "id": identity, "error": error}
    return Response(orjson.dumps(answer), 400, media_type="application/json")
