"""Request bodies: read within their limit, in memory or into a file.

Rule: a body over its limit is refused as soon as that is known, and none of it is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Mapping
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.types import Receive

from personal_server.errors import (
    BadRequest,
    BodyTooLarge,
    InvalidRequest,
    RequestTooLarge,
    UnsupportedMediaType,
)
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


MAX_BODY = 128 * 1024
MAX_REGISTRATION = 32 * 1024
MAX_FIELDS = 200
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


def known_query(request: Request, allowed: Collection[str] = ()) -> None:
    """Refuse query parameters that the route does not list.  Source: docs/decisions.md C17."""
    for name in _pairs(request.scope["query_string"]):
        if name[0] not in allowed:
            raise BadRequest("The query parameter is not known here.", param=name[0])


def query_parameters(request: Request) -> tuple[dict[str, str], tuple[str, ...], frozenset[str]]:
    """The query of an authorization request: parameters, resources, repeated names."""
    return _parameters(_pairs(request.scope["query_string"]))


def parse_form(body: bytes) -> tuple[dict[str, str], tuple[str, ...]]:
    """The parameters of a form and its resources.  Raises: BadRequest."""
    parameters, resources, repeated = _parameters(_pairs(body))
    if repeated:
        name = min(repeated)
        raise BadRequest(f"The parameter {name[:64]} is given twice.", param=name[:64])
    return parameters, resources


async def read_small_body(request: Request, content_type: str, limit: int) -> bytes:
    """The body of a call.  Raises: BadRequest, RequestTooLarge."""
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != content_type:
        raise BadRequest(f"The body has the content type {content_type}.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise RequestTooLarge(f"The body may have {limit} bytes.")
    return bytes(body)


def _pairs(text: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            text.decode("utf-8"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:
        raise BadRequest("The parameters are not a form in UTF-8.") from None


def _parameters(
    pairs: Iterable[tuple[str, str]],
) -> tuple[dict[str, str], tuple[str, ...], frozenset[str]]:
    parameters: dict[str, str] = {}
    resources: list[str] = []
    seen: set[str] = set()
    repeated: set[str] = set()
    for name, value in pairs:
        if name == "resource":
            resources += [value] if value else []
            continue
        if name in seen:
            repeated.add(name)
        elif value:
            parameters[name] = value
        seen.add(name)
    return parameters, tuple(resources), frozenset(repeated)


MAX_FORM_BYTES = 512 * 1024
MAX_FORM_FIELDS = 10_000
FORM_TYPE = "application/x-www-form-urlencoded"

Form = tuple[tuple[str, str], ...]


async def read_form(request: Request) -> Form:
    """The fields of a form in their order.  Raises: BodyTooLarge, InvalidRequest."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != FORM_TYPE:
        return ()
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_FORM_BYTES:
            raise BodyTooLarge("The form is too large.")
    try:
        pairs = parse_qsl(
            body.decode("utf-8"),
            keep_blank_values=True,
            max_num_fields=MAX_FORM_FIELDS,
            errors="strict",
        )
    except ValueError:
        raise InvalidRequest("The form cannot be read.") from None
    return tuple(pairs)
