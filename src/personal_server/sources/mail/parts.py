"""The body and the attachments of a parsed message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from email.policy import compat32
from typing import cast

from personal_server.sources.mail.headers import decode_words
from personal_server.sources.mail.html_text import html_to_text
from personal_server.sources.text import decoded, one_line

DEEPEST = 40
_BOUNDARY = re.compile(rb"\s*--([^\s\"]{1,70})[ \t]*\r?\n[A-Za-z-]+:")
_TYPE = re.compile(r"^[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}$")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that came with a message."""

    filename: str | None
    mime_type: str
    content: bytes


@dataclass(slots=True)
class Body:
    """What a message says, and what it carries."""

    texts: list[str] = field(default_factory=list[str])
    attachments: list[Attachment] = field(default_factory=list[Attachment])

    @property
    def text(self) -> str:
        """All text parts in their order."""
        return "\n\n".join(piece for piece in self.texts if piece)


def body_of(message: Message, depth: int = 0) -> Body:
    """Read a message part and everything below it."""
    body = Body()
    children = _children(message)
    if children is None or depth > DEEPEST:
        _read_leaf(message, body)
    elif message.get_content_subtype() == "alternative":
        _read_alternative(children, body, depth)
    else:
        for child in children:
            inner = body_of(child, depth + 1)
            body.texts += inner.texts
            body.attachments += inner.attachments
    return body


def _children(message: Message) -> list[Message] | None:
    if message.get_content_maintype() != "multipart":
        return None
    return _inner(message) if message.is_multipart() else _misnamed(message)


def _misnamed(message: Message) -> list[Message] | None:
    """The parts of a message that announces another boundary than it uses."""
    content = _content(message)
    found = _BOUNDARY.match(content)
    if found is None:
        return None
    head = b'Content-Type: multipart/mixed; boundary="' + found.group(1) + b'"\n\n'
    parsed = message_from_bytes(head + content, policy=compat32)
    return _inner(parsed) if parsed.is_multipart() else None


def _inner(message: Message) -> list[Message]:
    payload = cast("list[object]", message.get_payload())
    return [part for part in payload if isinstance(part, Message)]


def _read_alternative(children: list[Message], body: Body, depth: int) -> None:
    """Of several versions of one text the plain one speaks, if it says anything."""
    versions = [(child.get_content_type(), body_of(child, depth + 1)) for child in children]
    for _, inner in versions:
        body.attachments += inner.attachments
    speaking = [(kind, inner) for kind, inner in versions if inner.text.strip()]
    plain = [inner for kind, inner in speaking if kind == "text/plain"]
    chosen = plain[:1] or [inner for _, inner in speaking[-1:]]
    for inner in chosen:
        body.texts += inner.texts


def _read_leaf(part: Message, body: Body) -> None:
    kind = part.get_content_type()
    filename = _filename(part)
    attached = part.get_content_disposition() == "attachment" or filename is not None
    if kind in ("text/plain", "text/html") and not attached:
        text = decoded(_content(part), _charset(part))
        body.texts.append(html_to_text(text) if kind == "text/html" else _tidy(text))
    elif part.get_content_maintype() != "multipart" or _content(part).strip():
        mime_type = kind if _TYPE.match(kind) else "application/octet-stream"
        body.attachments.append(Attachment(filename, mime_type, _content(part)))


def _tidy(text: str) -> str:
    return text.replace("\r\n", "\n").strip("\n\r\t ")


def _content(part: Message) -> bytes:
    if part.is_multipart():
        return b"\n".join(map(_serialized, _inner(part)))
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _serialized(message: Message) -> bytes:
    try:
        return message.as_bytes(policy=compat32)
    except (UnicodeError, LookupError, ValueError, TypeError):
        return b"".join(_header_lines(message))


def _header_lines(message: Message) -> Iterator[bytes]:
    for name, value in message.raw_items():
        yield f"{name}: {value}\n".encode("utf-8", "surrogateescape")


def _charset(part: Message) -> str | None:
    try:
        return part.get_content_charset()
    except (LookupError, ValueError):
        return None


def _filename(part: Message) -> str | None:
    _give_raw_bytes_a_meaning(part)
    try:
        name = part.get_filename()
    except (LookupError, ValueError, TypeError):
        return None
    if name is None:
        return None
    raw = name.encode("utf-8", "surrogateescape")
    readable = one_line(decode_words(decoded(raw)), 500)
    return re.split(r"[/\\]", readable)[-1].strip(". ")[-255:] or None


def _give_raw_bytes_a_meaning(part: Message) -> None:
    """Names of files in 8-bit headers, which the library would replace by marks of doubt."""
    for name, value in list(part.raw_items()):
        if name.lower() in ("content-type", "content-disposition") and not str(value).isascii():
            part.replace_header(name, decoded(str(value).encode("utf-8", "surrogateescape")))
