"""Request bodies: read within their limit, in memory or into a file; JSON of a closed shape.

Rule: a body over its limit is refused as soon as that is known, and none of it is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO, TypeVar, cast

import msgspec
from starlette.types import Receive

from pdpp_kernel.errors import BodyTooLarge, InvalidRequest, UnsupportedMediaType
from pdpp_kernel.texts import message
from personal_server.web.routes import JSON_BODY_BYTES, BodyRule

SPOOLED_ABOVE_BYTES = 1_048_576

T = TypeVar("T")


def check_head(rule: BodyRule, headers: Mapping[str, str]) -> None:
    """What the headers say about a body.

    Raises: UnsupportedMediaType, BodyTooLarge.
    """
    sent = headers.get("content-type", "").partition(";")[0].strip().lower()
    if rule.media_types and sent not in rule.media_types:
        raise UnsupportedMediaType(
            message(
                "Send the body with the header Content-Type: %(type)s.", type=rule.media_types[0]
            ),
            param="Content-Type",
        )
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > rule.limit_bytes:
        raise _too_large(rule)


async def read_body(rule: BodyRule, receive: Receive) -> bytes:
    """The whole body.  Raises: BodyTooLarge."""
    parts: list[bytes] = []
    size = 0
    while True:
        part, more = await _part(receive)
        size += len(part)
        if size > rule.limit_bytes:
            raise _too_large(rule)
        parts.append(part)
        if not more:
            return b"".join(parts)


async def spool_body(rule: BodyRule, receive: Receive) -> BinaryIO:
    """The body as a file at its beginning; large ones lie on disk.  Raises: BodyTooLarge."""
    spool = tempfile.SpooledTemporaryFile(  # noqa: SIM115 (handed on)
        max_size=SPOOLED_ABOVE_BYTES, dir=rule.spool_folder
    )
    size = 0
    try:
        more = True
        while more:
            part, more = await _part(receive)
            size += len(part)
            if size > rule.limit_bytes:
                raise _too_large(rule)
            spool.write(part)
    except BaseException:
        spool.close()
        raise
    spool.seek(0)
    return cast(BinaryIO, spool)


async def _part(receive: Receive) -> tuple[bytes, bool]:
    message = await receive()
    if message["type"] != "http.request":
        raise InvalidRequest("The request body ended early. Send the request again.", param="body")
    return message.get("body", b""), message.get("more_body", False)


def parse_body(body: bytes, shape: type[T]) -> T:
    """A JSON body as a value of a closed shape (a msgspec struct).

    Raises: InvalidRequest, with the path of the member at fault.
    """
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        path = _fault_path(str(error))
        raise InvalidRequest(
            f"The request body does not have the expected shape at '{path}'.", param=path
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidRequest("The request body is not JSON.", param="body") from None


def json_body(
    shape: type[msgspec.Struct], example: object, *, limit_bytes: int = JSON_BODY_BYTES
) -> BodyRule:
    """The rule of a JSON body of a closed shape."""
    return BodyRule(limit_bytes=limit_bytes, schema=_inlined(shape), example=example)


def _inlined(shape: type[msgspec.Struct]) -> Mapping[str, object]:
    schema = msgspec.json.schema(shape)
    definitions = schema.pop("$defs", {})

    def resolved(node: Any) -> Any:
        if isinstance(node, dict):
            members = cast(dict[str, Any], node)
            reference = members.get("$ref")
            if isinstance(reference, str):
                return resolved(definitions[reference.rpartition("/")[2]])
            return {name: resolved(value) for name, value in members.items()}
        if isinstance(node, list):
            return [resolved(item) for item in cast(list[Any], node)]
        return node

    return resolved(schema)


def _fault_path(message: str) -> str:
    """The member that msgspec complains about, from its `- at `$.a.b`` or field name."""
    _, _, tail = message.rpartition(" - at `$")
    path = tail.rstrip("`").lstrip(".") if " - at `$" in message else ""
    for phrase in ("missing required field `", "contains unknown field `"):
        if phrase in message:
            name = message.partition(phrase)[2].partition("`")[0]
            return f"{path}.{name}" if path else name
    return path or "body"


def _too_large(rule: BodyRule) -> BodyTooLarge:
    return BodyTooLarge(
        message(
            "The request body can have at most %(bytes)s bytes. Send less at once.",
            bytes=str(rule.limit_bytes),
        ),
        param="body",
    )
