"""Calls of tools that need nothing of the SDK: those like one that it has answered before.

Rule: the SDK judges how a call is asked, by its headers; where it gave a result to such headers,
a plain call is answered with what it would write, byte for byte.  The caller was admitted before.
Source: docs/contract/mcp-adapter.md 2.2, 2.4.
"""

from __future__ import annotations

from collections import OrderedDict

import msgspec
from starlette.responses import Response

from pdpp_mcp_server.call_messages import ClientSeen, PlainCall, plain_call
from pdpp_mcp_server.first_answers import HANDSHAKES
from pdpp_mcp_server.plain_calls import PlainCalls
from pdpp_mcp_server.rs_client.json_values import as_object, parse_quickly
from pdpp_mcp_server.tool_runs import ClientRequest
from personal_server.hosted_mcp.list_answers import RawHeaders, told

MOST_KEPT = 64
LONGEST_BYTES = 65_536
# The later revision writes its answers otherwise; the SDK answers it.
_VERSIONS = frozenset((b"mcp-protocol-version", version.encode()) for version in HANDSHAKES)
_BEGINNING = b'{"jsonrpc":"2.0","id":'


class AskedCall(msgspec.Struct, frozen=True):
    """A call, and by what the SDK would judge how it was asked."""

    call: PlainCall
    judged: tuple[object, ...]


def asked_call(origin: str, headers: RawHeaders, body: bytes) -> AskedCall | None:
    """The plain call that a request makes."""
    if len(body) > LONGEST_BYTES or _VERSIONS.isdisjoint(headers):
        return None
    call = plain_call(as_object(parse_quickly(body)))
    return None if call is None else AskedCall(call, (origin, told(headers)))


class CallAnswers:
    """The headers whose calls are answered here, with those of their answers."""

    def __init__(self, calls: PlainCalls) -> None:
        self._calls = calls
        self._kept: OrderedDict[tuple[object, ...], RawHeaders] = OrderedDict()

    async def answer(self, asked: AskedCall, caller: ClientRequest) -> Response | None:
        """The answer; None where the SDK has to give it."""
        headers = self._kept.get(asked.judged)
        if headers is None:
            return None
        self._kept.move_to_end(asked.judged)
        answer = await self._calls.answer(asked.call, ClientSeen(), caller)
        if answer is None:
            return None
        response = Response(answer)
        response.raw_headers.extend(headers)
        return response

    def keep(self, asked: AskedCall, response: Response) -> None:
        """Know calls that are asked like one which the SDK gave a result to."""
        body = bytes(response.body)
        beginning, is_result, _ = body.partition(b',"result":')
        if response.status_code != 200 or not is_result or not beginning.startswith(_BEGINNING):
            return
        headers = [pair for pair in response.raw_headers if pair[0].lower() != b"content-length"]
        self._kept[asked.judged] = headers
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
