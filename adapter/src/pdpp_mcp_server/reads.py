"""One read of the resource server → its response, or a typed refusal (`read_refusals`).

Source: docs/contract/mcp-adapter.md 3.5, 5.1 to 5.3; docs/contract/resource-server.md 2.1. No other
credential and no wider scope is ever tried.
"""

import anyio

from pdpp_mcp_server import contract
from pdpp_mcp_server.arguments import Arguments
from pdpp_mcp_server.calls import ToolCall
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.read_refusals import refusal
from pdpp_mcp_server.rs_client.credentials import NoCredential
from pdpp_mcp_server.rs_client.json_values import Json, as_object, is_object
from pdpp_mcp_server.rs_client.port import (
    Path,
    Query,
    RsFailure,
    RsInvalidResponse,
    RsPort,
    RsResponse,
    RsTimeout,
)

SCHEMA_PATH = ("v1", "schema")
FAILURE_MESSAGES = {
    "rs_timeout": "The resource server did not answer in time.",
    "rs_unreachable": "The resource server could not be reached.",
    "rs_invalid_response": "The resource server gave an answer that is not usable JSON.",
}


async def read(call: ToolCall, path: Path, query: Query, arguments: Arguments) -> RsResponse:
    """Read one JSON object.

    Raises: ToolError, for every status but success and for every failure of the port.
    """
    response = await answer(call, path, query, arguments)
    if not response.ok:
        raise refusal(call, response, arguments)
    if not is_object(response.body):
        raise _failure("rs_invalid_response", call, arguments)
    return response


async def answer(
    call: ToolCall, path: Path, query: Query, arguments: Arguments, *, max_bytes: int | None = None
) -> RsResponse:
    """Read, whatever the status.

    Raises: ToolError for a failure of the port.
    """
    try:
        return await call.port.get(path, query, max_bytes=max_bytes)
    except RsTimeout:
        raise _failure("rs_timeout", call, arguments) from None
    except RsInvalidResponse:
        raise _failure("rs_invalid_response", call, arguments) from None
    except NoCredential as missing:
        # no call of a tool brings it back
        raise ToolError(missing.code, missing.message) from None
    except RsFailure:
        raise _failure("rs_unreachable", call, arguments) from None


async def read_catalog(call: ToolCall, query: Query) -> Json | None:
    """The compact schema for a check of ours, live; None when it cannot be had in time."""
    try:
        with anyio.move_on_after(contract.ASIDE_SECONDS):
            response = await get_schema(call.port, query)
            return as_object(response.body) if response.ok else None
    except RsFailure:
        return None
    return None


async def get_schema(port: RsPort, query: Query = ()) -> RsResponse:
    """The compact schema; in full when the server does not know that view.

    Raises: RsFailure.
    """
    response = await port.get(SCHEMA_PATH, (("view", "compact"), *query))
    return await port.get(SCHEMA_PATH, query) if response.status == 400 else response


def _failure(code: str, call: ToolCall, arguments: Arguments) -> ToolError:
    return ToolError(code, FAILURE_MESSAGES[code], next_call=NextCall(call.tool, arguments))
