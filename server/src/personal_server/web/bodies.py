"""Request bodies: read within their limit, in memory or into a file; JSON and forms.

Rule: a body over its limit is refused as soon as that is known, and none of it is used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from email.message import Message
from typing import Any, BinaryIO, TypeVar, cast
from urllib.parse import parse_qsl

import anyio
import msgspec
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser
from starlette.types import Receive

from pdpp_kernel.errors import BodyTooLarge, InvalidRequest, UnsupportedMediaType
from pdpp_kernel.texts import message
from personal_server.web.routing import JSON_BODY_BYTES, BodyRule

SPOOLED_ABOVE_BYTES = 1_048_576
DRAIN_SECONDS = 20

T = TypeVar("T")


def check_head(rule: BodyRule, headers: Mapping[str, str]) -> None:
    """What the headers say about a body.

    Raises: UnsupportedMediaType, BodyTooLarge.
    """
    sent = headers.get("content-type", "").partition(";")[0].strip().lower()
    if rule.media_types and sent not in rule.media_types:
        raise UnsupportedMediaType(
            message("Send the body with Content-Type: %(type)s.", type=rule.media_types[0]),
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


async def drain(receive: Receive) -> None:
    """Let a body that nobody takes run out, for a while: who sends it reads the answer after it."""
    with anyio.move_on_after(DRAIN_SECONDS):
        more = True
        while more:
            message = await receive()
            more = message["type"] == "http.request" and message.get("more_body", False)


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
        message(
            "The body may have %(bytes)s bytes; send less at once.", bytes=str(rule.limit_bytes)
        ),
        param="body",
    )


# Forms: their fields in the order sent.

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
LEADING_BYTES = 64 * 1024
"""In so many bytes stand the fields of a form that come before its files."""
PIECE_BYTES = 1024 * 1024
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


Take = Callable[[str, bytes], None]
"""Gets the pieces of a file by the name it was sent with, in their order."""


def leading_fields(spool: BinaryIO, content_type: str) -> Form:
    """The fields of a form with files that stand before them.  Raises: InvalidRequest."""
    found: list[tuple[str, str]] = []
    spool.seek(0)
    _parts(content_type, found, None).feed(spool.read(LEADING_BYTES))
    spool.seek(0)
    return tuple(found)


def take_files(spool: BinaryIO, content_type: str, take: Take) -> None:
    """Hand on the files of a form, piece by piece.

    Raises: InvalidRequest (it ended early, or is no such form), and what `take` raises.
    """
    parts = _parts(content_type, [], take)
    spool.seek(0)
    while piece := spool.read(PIECE_BYTES):
        parts.feed(piece)
    parts.end()


def _parts(content_type: str, fields: list[tuple[str, str]], take: Take | None) -> FormParts:
    """Raises: InvalidRequest, where it is no form with files."""
    head = Message()
    head["Content-Type"] = content_type
    boundary = head.get_param("boundary")
    if head.get_content_type() != MULTIPART or not isinstance(boundary, str):
        raise InvalidRequest("Send a form with files.", param="Content-Type")
    return FormParts(boundary, fields, take)


class FormParts:
    """The parts of a form with files, as they come (RFC 7578)."""

    def __init__(self, boundary: str, fields: list[tuple[str, str]], take: Take | None) -> None:
        self._fields = fields
        self._take = take
        self._header = [b"", b""]
        self._name, self._file, self._value = "", "", b""
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": lambda data, i, j: self._gather(0, data[i:j]),
                "on_header_value": lambda data, i, j: self._gather(1, data[i:j]),
                "on_header_end": self._head,
                "on_part_data": lambda data, i, j: self._data(data[i:j]),
                "on_part_end": self._part,
                "on_end": self._all,
            },
        )

    def feed(self, piece: bytes) -> None:
        """The next bytes.  Raises: InvalidRequest."""
        try:
            self._parser.write(piece)
        except MultipartParseError:
            raise InvalidRequest("This is no form with files.", param="body") from None

    def end(self) -> None:
        """No more come.  Raises: InvalidRequest."""
        if not self._ended:
            raise InvalidRequest("The form ended early; send it again.", param="body")

    def _begin(self) -> None:
        self._header = [b"", b""]
        self._name, self._file, self._value = "", "", b""

    def _gather(self, which: int, data: bytes) -> None:
        self._header[which] += data

    def _head(self) -> None:
        name, value = self._header
        self._header = [b"", b""]
        if name.lower() == b"content-disposition":
            head = Message()
            head["Content-Disposition"] = value.decode("utf-8", "replace")
            self._name = str(head.get_param("name", "", "content-disposition"))
            self._file = str(head.get_param("filename", "", "content-disposition"))

    def _data(self, data: bytes) -> None:
        if self._file:
            if self._take is not None:
                self._take(self._file, data)
        elif len(self._value) + len(data) <= LEADING_BYTES:
            self._value += data

    def _part(self) -> None:
        if not self._file:
            self._fields.append((self._name, self._value.decode("utf-8", "replace")))

    def _all(self) -> None:
        self._ended = True
