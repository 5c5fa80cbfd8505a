"""The answers to requests for a list, which are the same for every caller: made once.

Rule: whatever an answer was made from but the id of its request is what it is known by, and what
was no plain success of such a request is not kept; the caller was admitted before.
Source: docs/contract/mcp-adapter.md 2.4.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence

import msgspec
from starlette.responses import Response

LISTS = frozenset({"tools/list", "resources/list", "resources/templates/list", "prompts/list"})
MOST_KEPT = 64
LONGEST_BYTES = 2_048
_PLAIN_ID = re.compile(rb'(?:0|[1-9][0-9]{0,14}|"[A-Za-z0-9_.:-]{1,64}")\Z')
_OF_REQUEST = (b"accept", b"content-type", b"content-encoding", b"last-event-id")

RawHeaders = Sequence[tuple[bytes, bytes]]


class _Message(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: str
    id: msgspec.Raw
    method: str
    params: msgspec.Raw = msgspec.Raw(b"")


_DECODE = msgspec.json.Decoder(_Message).decode


class AskedList(msgspec.Struct, frozen=True):
    """A request for a list: its id as it was written, and all else that its answer follows from."""

    message_id: bytes
    rest: tuple[object, ...]

    @property
    def beginning(self) -> bytes:
        """How a success begins."""
        return b'{"jsonrpc":"2.0","id":%s,"result":' % self.message_id


def told(headers: RawHeaders) -> RawHeaders:
    """Those headers that the SDK looks at."""
    return tuple(pair for pair in headers if pair[0].startswith(b"mcp-") or pair[0] in _OF_REQUEST)


def asked_list(origin: str, headers: RawHeaders, body: bytes) -> AskedList | None:
    """What a message asks for, if it is a list and its id is a plain one."""
    if len(body) > LONGEST_BYTES or b"/list" not in body:
        return None
    try:
        message = _DECODE(body)
    except msgspec.DecodeError:
        return None
    message_id = bytes(message.id)
    if message.method not in LISTS or _PLAIN_ID.match(message_id) is None:
        return None
    rest = (origin, told(headers), message.jsonrpc, message.method, bytes(message.params))
    return AskedList(message_id, rest)


class ListAnswers:
    """The answers that were made so far."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[object, ...], tuple[bytes, RawHeaders]] = OrderedDict()

    def answer(self, asked: AskedList) -> Response | None:
        """The answer with the id of this request, if it was made before."""
        known = self._kept.get(asked.rest)
        if known is None:
            return None
        self._kept.move_to_end(asked.rest)
        result, headers = known
        response = Response(asked.beginning + result)
        response.raw_headers.extend(headers)
        return response

    def keep(self, asked: AskedList, response: Response) -> None:
        """Keep what is an answer to every such request."""
        body = bytes(response.body)
        if response.status_code != 200 or not body.startswith(asked.beginning):
            return
        headers = [pair for pair in response.raw_headers if pair[0].lower() != b"content-length"]
        self._kept[asked.rest] = (body.removeprefix(asked.beginning), headers)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
