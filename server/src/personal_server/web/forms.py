"""Forms: their fields in the order sent, and the files that come with them."""

from __future__ import annotations

from collections.abc import Callable
from email.message import Message
from typing import BinaryIO
from urllib.parse import parse_qsl

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser

from pdpp_kernel.errors import InvalidRequest

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
        raise InvalidRequest(
            "The request parameters are not a form in UTF-8.", param="body"
        ) from None
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
        raise InvalidRequest("The request must be a form with files.", param="Content-Type")
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
            raise InvalidRequest(
                "The request body is not a form with files.", param="body"
            ) from None

    def end(self) -> None:
        """No more come.  Raises: InvalidRequest."""
        if not self._ended:
            raise InvalidRequest("The form ended early. Send the form again.", param="body")

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
