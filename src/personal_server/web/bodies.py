"""Request bodies: read within their limit, in memory or into a file; JSON and forms.

Rule: a body over its limit is refused as soon as that is known, and none of it is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from starlette.types import Receive

from personal_server.errors import BodyTooLarge, InvalidRequest, UnsupportedMediaType
from personal_server.web.routing import JSON_BODY_BYTES, BodyRule

SPOOLED_ABOVE_BYTES = 1_048_576

T = TypeVar("T")


def check_head(rule: BodyRule, headers: Mapping[str, str]) -> None:
    """What the headers say about a body.

    Raises: UnsupportedMediaType, BodyTooLarge.
    """
    sent = headers.get("content-type", "").partition(";")[0].strip().lower()
    if rule.media_types and sent not in rule.media_types:
        raise UnsupportedMediaType(
            f"Send the body with Content-Type: {rule.media_types[0]}.", param="Content-Type"
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
    spool = tempfile.SpooledTemporaryFile(max_size=SPOOLED_ABOVE_BYTES)  # noqa: SIM115 (handed on)
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
        raise InvalidRequest("The body ended early; send it again.", param="body")
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
            f"The body has not the expected shape at '{path}'.", param=path
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise InvalidRequest("The body is not JSON.", param="body") from None


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
        f"The body may have {rule.limit_bytes} bytes; send less at once.", param="body"
    )


# Forms: their fields in the order sent.

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
MAX_FORM_FIELDS = 10_000

Form = tuple[tuple[str, str], ...]


def form_fields(encoded: bytes, max_fields: int = MAX_FORM_FIELDS) -> Form:
    """The fields of a form, or of a query that is read like one.  Raises: InvalidRequest."""
    try:
        pairs = parse_qsl(
            encoded.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=max_fields,
        )
    except ValueError:
        raise InvalidRequest("The parameters are not a form in UTF-8.", param="body") from None
    return tuple(pairs)
