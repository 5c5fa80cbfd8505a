"""The tree of a message, as Python's `email` makes it of the same bytes, in a third of the time.

Rule: what is written as the standard has it is cut here, head and parts at once instead of line by
line; whatever is not goes to the library whole, which knows what to make of it.  Both give the
same: `test_message_tree.py` compares them.
Source: RFC 5322, section 2.2; RFC 2046, section 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email import message_from_bytes
from email.message import Message
from email.policy import compat32

# The head of a message, whose lines end as they should; matching keeps a step for each of them.
_HEAD = re.compile(r"(?:[!-9;-~]+:[^\r\n]*\r?\n(?:[ \t][^\r\n]*\r?\n)*)*")
_LONGEST_HEAD = 128 * 1024
_HEADER = re.compile(r"([^:]+):([^\r\n]*)((?:\r?\n[ \t][^\r\n]*)*)\r?\n")
_BLANK_LINE = re.compile(r"\r?\n")
_BLANKS = " \t"
_BEHIND_BOUNDARY = re.compile(r"(--)?[ \t]*(\r?\n|\Z)")
# A part is copied for each level above it; larger and deeper ones are the library's.
_MOST_DEPTH, _LARGEST_BYTES = 8, 4 * 1024 * 1024
_BOUNDARY_CHARS = 200


class ReadMessage(Message):
    """A message that keeps its headers by name, too; none may be added or taken away."""

    def __init__(self) -> None:
        super().__init__(policy=compat32)
        self._first: dict[str, tuple[str, str]] | None = None
        self._type: str | None = None

    def get(self, name: str, failobj: object = None) -> object:  # type: ignore[override]
        """The first value of a header."""
        if self._first is None:
            first = self._first = dict[str, tuple[str, str]]()
            for header in self.raw_items():
                first.setdefault(header[0].lower(), header)
        found = self._first.get(name.lower())
        return failobj if found is None else compat32.header_fetch_parse(*found)

    def get_content_type(self) -> str:
        """What it is, looked at once."""
        if self._type is None:
            self._type = super().get_content_type()
        return self._type

    def replace_header(self, _name: str, _value: str) -> None:
        """Another value for the first header of that name."""
        self._first = self._type = None
        super().replace_header(_name, _value)


class _Irregular(Exception):
    """Something that is not written as the standard has it."""


def message_of(raw: bytes) -> Message:
    """The tree of a message."""
    try:
        if len(raw) > _LARGEST_BYTES:
            raise _Irregular
        return _parsed(raw.decode("ascii", "surrogateescape"), 0)
    except _Irregular:
        return message_from_bytes(raw, policy=compat32)


def _parsed(text: str, depth: int) -> Message:
    head = _HEAD.match(text, 0, _LONGEST_HEAD)
    end = head.end() if head else 0
    blank = _BLANK_LINE.match(text, end)
    if blank is None and end < len(text):
        raise _Irregular
    message = ReadMessage()
    parse, put = compat32.header_source_parse, message.set_raw
    for name, first, others in _HEADER.findall(text, 0, end):
        value = first.lstrip(_BLANKS)
        if others or not value:  # as this version of the library has it
            put(*parse([f"{name}:{first}", others]))
        else:
            put(name, value)
    main_type = message.get_content_maintype()
    body = text[blank.end() :] if blank else ""
    if main_type == "multipart":
        _read_parts(message, body, depth)
    elif main_type == "message":
        raise _Irregular
    else:
        message.set_payload(_before_boundary(body) if depth else body)
    return message


def _read_parts(message: Message, body: str, depth: int) -> None:
    """Attach what lies between two boundaries each.  Raises: _Irregular.

    In: the lines `x`, `--b`, `A: 1`, none, `y`, `--b--`. Out: the preamble `x`, and a part with the
    text `y`.
    """
    boundary = message.get_boundary()
    is_digest = message.get_content_subtype() == "digest"  # whose parts have another type
    if not boundary or len(boundary) > _BOUNDARY_CHARS or is_digest or depth >= _MOST_DEPTH:
        raise _Irregular
    if body.count("\r") != body.count("\r\n"):
        raise _Irregular
    begin, is_last = 0, False
    for begins, ends, is_last in _boundaries(body, f"--{boundary}"):
        if begin == begins:  # one behind another, or nothing before the first
            if begin:
                raise _Irregular
        elif begin:
            message.attach(_parsed(body[begin:begins], depth + 1))
        else:
            message.preamble = _before_boundary(body[:begins])
        begin = ends
        if is_last:
            break
    if not is_last or not message.is_multipart():
        raise _Irregular
    behind = body[begin:]
    if depth:
        message.epilogue = _before_boundary(behind) if behind else None
    else:
        message.epilogue = behind


def _before_boundary(text: str) -> str:
    """Without the end of line, which belongs to the boundary behind it."""
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def _boundaries(body: str, line: str) -> Iterator[tuple[int, int, bool]]:
    """Where each begins and ends, and whether it says that it is the last."""
    at = 0 if body.startswith(line) else body.find(f"\n{line}") + 1 or -1
    while at >= 0:
        behind = _BEHIND_BOUNDARY.match(body, at + len(line))
        if behind is not None:
            yield at, behind.end(), behind[1] is not None
        at = body.find(f"\n{line}", at) + 1 or -1
