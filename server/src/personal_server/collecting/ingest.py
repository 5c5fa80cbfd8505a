"""Ingest: lines of one stream become records of one connection, all accepted ones together.

Rule: lines are checked before the write transaction begins; accepted lines commit in order, with
the receipts of the refused ones.
Source: docs/contract/resource-server.md 13.1.
Raises: ConnectionNotFound, ConnectionNotWritable, BodyTooLarge, StorageUnavailable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, cast

import msgspec
import orjson
from jsonschema_rs import Draft202012Validator, FancyRegexOptions

from pdpp_kernel.declaration import Stream
from pdpp_kernel.errors import BodyTooLarge, InvalidRequest
from pdpp_kernel.record import MAX_KEY_CODE_POINTS, canonical_key, key_text
from pdpp_kernel.values import MAX_INTEGER, instant_ns
from personal_server.domain.stored import (
    Batch,
    RecordWrite,
    Rejection,
    WriteOutcome,
)
from personal_server.storage.ports.record_stores import RecordWriter

MAX_LINES = 10_000
MAX_LINE_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 32
ITEMIZED_REJECTIONS = 1_000
ASSERTED_FORMATS = frozenset({"date", "date-time"})
# `connection_id` is what an export adds to a line; the target of the call decides.  `type` is what
# a collector's message has.
MEMBERS = frozenset({"key", "data", "emitted_at", "op", "stream", "connection_id", "type"})
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_DATA_BEARING = frozenset({"const", "enum", "default", "examples"})
_type_of: Callable[[object], object] = type
# A line as bytes, or as the object that it would hold.
Line = bytes | Mapping[str, object]
LineCode = Literal[
    "invalid_utf8",
    "malformed_ndjson",
    "line_too_large",
    "invalid_record",
    "invalid_record_identity",
    "record_schema_violation",
    "append_only_conflict",
]


class LineRejection(msgspec.Struct, frozen=True):
    """A refused line; `input_index` counts the lines that are not blank, from 0."""

    input_index: int
    receipt_id: str
    code: LineCode
    path: str | None
    message: str


class IngestResult(msgspec.Struct, frozen=True):
    """What became of a call; `rejections` are the first thousand."""

    records_attempted: int
    records_accepted: int
    records_changed: int
    records_rejected: int
    rejections: tuple[LineRejection, ...]


def ingest(
    store: RecordWriter,
    connection_id: str,
    stream: Stream,
    lines: Iterable[Line],
    *,
    now_ns: int,
    new_receipt_id: Callable[[], str],
    run_id: str | None = None,
) -> IngestResult:
    """Check and commit the lines of one call."""
    call = _IngestCall(LineChecker(stream), new_receipt_id)

    def receipts(outcomes: Sequence[WriteOutcome]) -> list[Rejection]:
        call.refuse_conflicts(outcomes)
        itemized = call.rejections[:ITEMIZED_REJECTIONS]
        return [
            Rejection(
                rejection.receipt_id, stream.name, rejection.code, rejection.path, run_id, now_ns
            )
            for rejection in itemized
        ]

    batch = Batch(connection_id, stream, call.accepted(lines), now_ns, receipts)
    return call.result(store.commit(batch))


class _IngestCall:
    """The bookkeeping of one call."""

    def __init__(self, checker: LineChecker, new_receipt_id: Callable[[], str]) -> None:
        self._checker = checker
        self._new_receipt_id = new_receipt_id
        self._attempted = 0
        self._places: list[int] = []
        self.rejections: list[LineRejection] = []

    def accepted(self, lines: Iterable[Line]) -> Iterator[RecordWrite]:
        """The writes of good lines; bad ones are kept as rejections."""
        for line in lines:
            text = line if isinstance(line, bytes) else _rendered(line)
            if not text.strip():
                continue
            index, self._attempted = self._attempted, self._attempted + 1
            if index >= MAX_LINES:
                raise BodyTooLarge("One request can write at most 10,000 lines.", param="body")
            try:
                write = self._checker.check(text)
            except LineRefused as refused:
                self._refuse(index, refused)
            else:
                self._places.append(index)
                yield write

    def refuse_conflicts(self, outcomes: Sequence[WriteOutcome]) -> None:
        """Append-only records that another line would change."""
        message = "records of this stream cannot be changed"
        for index, outcome in zip(self._places, outcomes, strict=True):
            if outcome is WriteOutcome.CONFLICT:
                self._refuse(index, LineRefused("append_only_conflict", message))
        self.rejections.sort(key=lambda line: line.input_index)

    def result(self, outcomes: Sequence[WriteOutcome]) -> IngestResult:
        """The counts of the call."""
        rejected = len(self.rejections)
        return IngestResult(
            self._attempted,
            self._attempted - rejected,
            sum(outcome is WriteOutcome.CHANGED for outcome in outcomes),
            rejected,
            tuple(self.rejections[:ITEMIZED_REJECTIONS]),
        )

    def _refuse(self, index: int, refused: LineRefused) -> None:
        receipt_id = self._new_receipt_id()
        self.rejections.append(
            LineRejection(index, receipt_id, refused.code, refused.path, refused.message)
        )


def _rendered(line: Mapping[str, object]) -> bytes:
    """An object that orjson cannot write is refused like any other malformed line."""
    try:
        return orjson.dumps(line)
    except (TypeError, orjson.JSONEncodeError):
        return b"not an object of JSON values"


class LineRefused(Exception):
    """A line that is not accepted; `path` is a JSON Pointer into the record, if it helps."""

    def __init__(self, code: LineCode, message: str, path: str | None = None) -> None:
        super().__init__(code)
        self.code: LineCode = code
        self.message = message
        self.path = path


class LineChecker:
    """Checks lines for one stream: bytes become an accepted write, or a refusal with its code.

    Rule: a line succeeds or fails alone; refusals point at members and never quote values.
    Source: docs/contract/resource-server.md 13.1 (line codes), 2.8 (values).
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._validator = _validator(orjson.dumps(stream.raw["schema"]))
        self._names = stream.properties.keys()

    def check(self, line: bytes) -> RecordWrite:
        """The write that a line stands for.  Raises: LineRefused."""
        content = _parsed(line)
        self._check_members(content)
        emitted_at_ns = _emitted_at(content)
        if content.get("op") == "delete":
            return RecordWrite(self._deleted_key(content), None, emitted_at_ns)
        data = cast("dict[str, Any]", content["data"])
        key = self._upserted_key(content, data)
        self._check_data(data, line)
        return RecordWrite(key, data, emitted_at_ns)

    def _check_members(self, content: dict[str, Any]) -> None:
        if not content.keys() <= MEMBERS:
            raise _invalid("the line has an unknown member")
        op = content.get("op", "upsert")
        if op not in ("upsert", "delete"):
            raise _invalid("op must be upsert or delete", "/op")
        if content.get("stream", self._stream.name) != self._stream.name:
            raise _invalid("the stream of the line differs from the path", "/stream")
        if not isinstance(content.get("connection_id", ""), str):
            raise _invalid("connection_id must be a string", "/connection_id")
        if content.get("type", "RECORD") != "RECORD":
            raise _invalid("only messages of type RECORD are accepted", "/type")
        if op == "upsert" and not isinstance(content.get("data"), dict):
            raise _invalid("data must be an object", "/data")
        if op == "delete" and "data" in content:
            raise _invalid("a delete cannot have data", "/data")

    def _upserted_key(self, content: dict[str, Any], data: dict[str, Any]) -> str:
        try:
            parts: list[object] = [data.get(name) for name in self._stream.primary_key]
            key = _checked(canonical_key(parts))
        except InvalidRequest:
            raise _misidentified("a key value must be a string, an integer or a boolean") from None
        if "key" in content and not _same_key(content["key"], parts, key):
            raise _misidentified("key differs from the primary key in data")
        return key

    def _deleted_key(self, content: dict[str, Any]) -> str:
        key: object = content.get("key")
        width = len(self._stream.primary_key)
        if key is None:
            raise _invalid("a delete needs a key", "/key")
        if isinstance(key, str):
            if width == 1:
                return _checked(key)
            key = _parsed_or_none(key)
        if not isinstance(key, list) or len(cast("list[object]", key)) != width:
            raise _misidentified("key must have one value per primary-key field")
        try:
            return _checked(canonical_key(cast("list[object]", key)))
        except InvalidRequest:
            raise _misidentified("a key value must be a string, an integer or a boolean") from None

    def _check_data(self, data: dict[str, Any], line: bytes) -> None:
        for name in data.keys() - self._names:
            raise _violation("the record has an undeclared property", _pointer([name]))
        if _is_wide(data) and _has_wide_integer(line):
            raise _violation("an integer must fit into 64 bits", None)
        if b"\\u0000" in line:
            _check_strings(data, [])
        if self._validator.is_valid(data):
            return
        for error in self._validator.iter_errors(data):
            raise _violation(_reason(error), _pointer(error.instance_path))
        raise _violation("the value does not fit the schema", None)


def _parsed(line: bytes) -> dict[str, Any]:
    if len(line) > MAX_LINE_BYTES:
        raise LineRefused("line_too_large", "the line is longer than 16 MiB")
    try:
        content: object = orjson.loads(line)
    except orjson.JSONDecodeError:
        try:
            content = line.decode()
        except UnicodeDecodeError:
            raise LineRefused("invalid_utf8", "the line is not UTF-8") from None
    if not isinstance(content, dict):
        raise LineRefused("malformed_ndjson", "the line is not one JSON object")
    members = cast("dict[str, Any]", content)
    if line.count(b"{") + line.count(b"[") > MAX_DEPTH and _is_deep(members, MAX_DEPTH):
        raise LineRefused("malformed_ndjson", "the JSON is nested deeper than 32 levels")
    return members


def _is_deep(value: object, levels: int) -> bool:
    if isinstance(value, dict):
        inner: Sequence[object] = list(cast("dict[str, object]", value).values())
    elif isinstance(value, list):
        inner = cast("list[object]", value)
    else:
        return False
    return levels == 0 or any(_is_deep(item, levels - 1) for item in inner)


def _emitted_at(content: Mapping[str, Any]) -> int:
    text: object = content.get("emitted_at")
    ns = _emission_ns(text) if isinstance(text, str) else None
    if ns is None or not -MAX_INTEGER <= ns <= MAX_INTEGER:
        raise _invalid("emitted_at must be an RFC 3339 date-time with offset", "/emitted_at")
    return ns


_emission_ns = lru_cache(maxsize=16)(instant_ns)  # the lines of a call mostly share one


def _checked(key: str) -> str:
    if not key or len(key) > MAX_KEY_CODE_POINTS or _CONTROL.search(key):
        raise _misidentified("a key must have 1 to 1024 characters and no control characters")
    return key


def _same_key(value: object, parts: list[object], key: str) -> bool:
    if isinstance(value, str):
        return value == key
    if not isinstance(value, list):
        return False
    texts = cast("list[object]", value)
    try:
        return [key_text(text) for text in texts] == [key_text(part) for part in parts]
    except InvalidRequest:
        return False


def _parsed_or_none(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _is_wide(value: Any) -> bool:
    """Whether some number is as large as an integer that does not fit.

    Source: docs/contract/resource-server.md 2.8.

    The parser makes doubles of integers beyond 64 bits, so the text of the line decides.
    """
    waiting = [value]
    for item in waiting:
        kind = _type_of(item)
        if kind is dict:
            waiting += item.values()
        elif kind is list:
            waiting += item
        elif (kind is int or kind is float) and not -MAX_INTEGER <= item <= MAX_INTEGER:
            return True
    return False


def _has_wide_integer(line: bytes) -> bool:
    without_strings = re.sub(rb'"(?:[^"\\]|\\.)*"', b'""', line)
    wide = re.finditer(rb"-?(?<![\d.eE+])\d{19,}(?![\d.eE])", without_strings)
    return any(abs(int(digits.group())) > MAX_INTEGER for digits in wide)


def _check_strings(value: object, path: list[str | int]) -> None:
    if isinstance(value, str):
        if "\x00" in value:
            raise _violation("a string cannot contain U+0000", _pointer(path))
    elif isinstance(value, dict):
        for name, item in cast("dict[str, object]", value).items():
            _check_strings(name, path)
            _check_strings(item, [*path, name])
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            _check_strings(item, [*path, index])


def _reason(error: Any) -> str:
    """Why data does not fit, in words of the schema only."""
    kind = error.kind
    match kind.name:
        case "type":
            return "expected " + " or ".join(sorted(kind.types, key=lambda t: t == "null"))
        case "format":
            return f"the value must have the format {kind.format}"
        case "required":
            return f"the member {kind.property} is required"
        case keyword:
            return f"the value does not satisfy {keyword}"


def _pointer(path: Sequence[str | int]) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _invalid(message: str, path: str | None = None) -> LineRefused:
    return LineRefused("invalid_record", message, path)


def _misidentified(message: str) -> LineRefused:
    return LineRefused("invalid_record_identity", message, "/key")


def _violation(message: str, path: str | None) -> LineRefused:
    return LineRefused("record_schema_violation", message, path)


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Draft202012Validator:
    asserted = _with_asserted_formats(orjson.loads(schema))
    patterns = FancyRegexOptions(backtrack_limit=10_000)  # one that goes back more fits nothing
    return Draft202012Validator(
        asserted, validate_formats=True, offline=True, pattern_options=patterns
    )


def _with_asserted_formats(schema: Any) -> Any:
    """The schema without `format` words other than those that are asserted."""
    if isinstance(schema, list):
        return [_with_asserted_formats(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    members = cast("dict[str, Any]", schema)
    return {
        name: item if name in _DATA_BEARING else _with_asserted_formats(item)
        for name, item in members.items()
        if not (name == "format" and isinstance(item, str) and item not in ASSERTED_FORMATS)
    }
