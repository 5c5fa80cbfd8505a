"""Calls of tools as messages, for which the library of the protocol is not needed: most of them.

Rule: whatever is unusual about a message is no plain call, and is left to the library.
"""

from __future__ import annotations

import re

import msgspec

from pdpp_mcp_server.contract import published_contract
from pdpp_mcp_server.rs_client.json_values import Json, is_object

PLAIN_ID = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
MEMBERS = {"name", "arguments", "_meta"}
STATELESS_ENVELOPE = "io.modelcontextprotocol/protocolVersion"
"""What a request of the stateless revision names, which is refused in a session."""


class PlainCall(msgspec.Struct, frozen=True):
    """One call of a tool.  Shapes: `meta` is what the client said beside it."""

    message_id: str | int
    name: str
    arguments: Json | None
    meta: Json

    @property
    def message(self) -> Json:
        """The call as it came."""
        params: Json = {"name": self.name}
        if self.arguments is not None:
            params["arguments"] = self.arguments
        if self.meta:
            params["_meta"] = self.meta
        return {"jsonrpc": "2.0", "id": self.message_id, "method": "tools/call", "params": params}

    @property
    def progress_token(self) -> str | int | None:
        """By which the client wants to hear how far the call is."""
        return self.meta.get("progressToken")


class ClientSeen(msgspec.Struct, frozen=True):
    """What a client said of itself."""

    name: str | None = None
    elicits: bool = False


def is_plain_id(message_id: object) -> bool:
    """Whether an id is written in one way only."""
    if isinstance(message_id, str):
        return PLAIN_ID.fullmatch(message_id) is not None
    return type(message_id) is int


def client_seen(info: Json, capabilities: Json) -> ClientSeen:
    """What a client's `clientInfo` and capabilities say."""
    return ClientSeen(info.get("name"), capabilities.get("elicitation") is not None)


def plain_call(message: Json) -> PlainCall | None:
    """The call that a message is; None where the library has to look at it."""
    params = message.get("params")
    if message.keys() != {"jsonrpc", "id", "method", "params"} or not is_object(params):
        return None
    message_id, name, meta = message["id"], params.get("name"), params.get("_meta", {})
    is_call = message["jsonrpc"] == "2.0" and message["method"] == "tools/call"
    if not is_call or not is_plain_id(message_id) or params.keys() - MEMBERS:
        return None
    arguments = params.get("arguments")
    has_arguments = is_object(arguments) or "arguments" not in params
    if not isinstance(name, str) or name not in published_contract().tools:
        return None
    if not has_arguments or not is_object(meta):
        return None
    if type(meta.get("progressToken", 0)) not in {int, str} or STATELESS_ENVELOPE in meta:
        return None
    return PlainCall(message_id, name, arguments, meta)
