"""A parsed message: its headers, its body and its attachments, however real mail writes them."""

from __future__ import annotations

import binascii
import csv
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.errors import MessageError
from email.message import Message
from email.policy import compat32
from email.utils import parsedate_tz
from typing import cast

import msgspec

from pdpp_sources.common.html_text import read_html
from pdpp_sources.common.text import decoded_as_named, one_line, printable
from pdpp_sources.mail.addresses import Address, parse_addresses
from pdpp_sources.mail.encoded_words import decode_words
from pdpp_sources.mail.message_tree import message_of
from pdpp_sources.mail.raw_headers import (
    decoded_raw,
    plainly_decoded,
    unfolded,
    without_stray_lines,
)
from pdpp_sources.mail.text_versions import is_text_of

MAX_DEPTH = 40
_MESSAGE_ID = re.compile(r"<([^<>\s]+)>")
_ENVELOPE_DATE = re.compile(rb"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d.*$")
_PART_BEGINS = re.compile(rb"\s*--([^\s\"]{1,70})[ \t]*\r?\n[A-Za-z-]+:")
# behind words for programs that know no parts; the type of a part follows
_PART_FOLLOWS = re.compile(rb"\n--([^\s\"]{1,70})[ \t]*\r?\nContent-[A-Za-z-]+:", re.IGNORECASE)
_LONGEST_PREAMBLE_BYTES = 64 * 1024
_FOLDED_BOUNDARY = re.compile(r'boundary\s*=\s*"([^"]*[\r\n][^"]*)"', re.IGNORECASE)
_FOLDS = re.compile(r"\r?\n[ \t]+")
_LARGE_BYTES = 4 * 1024 * 1024
_BASE64 = re.compile(rb"(?<=\n)(?:[A-Za-z0-9+/=]{1,998}+\r?\n)++")
_LONG_BYTES = 256 * 1024
_HALF_DAY = re.compile(r"\b(\d{1,2})((?::\d\d){1,2})\s?([AP])\.?M\b\.?", re.IGNORECASE)
# `GMT+1` and `+-0500`, which the library takes for GMT
_OTHER_OFFSET = re.compile(r"\b(?:GMT|UTC|UT)\s?([+-])(\d{1,2})(?::?(\d\d))?\b|\+(-)(\d\d)(\d\d)\b")
_FRACTION = re.compile(r"(\d:\d\d:\d\d)\.\d{1,9}\b")
_BLANK_LINE = re.compile(rb"\n\r?\n")
_LONGEST_NUMBER = 18
_SIGNATURE = "-- "
_PAGES = frozenset({"text/html", "multipart/related"})
_PLACED = re.compile(r"\s*base64 of bytes (\d{1,9}) to (\d{1,9})\s*")
_TYPE = re.compile(r"^[a-z0-9!#$&^_.+-]{1,100}/[a-z0-9!#$&^_.+-]{1,100}$")


class Headers:
    """The header block of one message, asked by lower-case name; of most nobody asks."""

    def __init__(self, message: Message) -> None:
        self._message = message
        self._written: dict[str, list[object]] = {}
        self._quoted: dict[str, list[object]] = {}
        for name, value in message.raw_items():
            self._written.setdefault(name.lower(), []).append(value)
        for name in [n for n in self._written if n.startswith(">")]:
            # an exporter quoted the line as if it stood in a text
            self._quoted.setdefault(name.lstrip(">"), self._written[name])
        self._values: dict[str, list[str]] = {}
        self._addresses: dict[str, tuple[Address, ...]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._written or name in self._quoted

    @property
    def quotes_from(self) -> bool:
        """Whether an exporter quoted every line that begins with `From`, that of a header too."""
        return ">from" in self._written

    def raw(self, name: str) -> str:
        """The first value as it stands, unfolded."""
        values = self._all(name)
        return values[0] if values else ""

    def identity(self, name: str) -> str:
        """The same as it identifies a message, whatever is learned about reading its letters."""
        return plainly_decoded(unfolded(str(self._written.get(name, [""])[0])))

    def text(self, name: str) -> str:
        """The first value for a person to read."""
        return one_line(decode_words(self.raw(name)), 2000)

    def addresses(self, name: str) -> tuple[Address, ...]:
        """Everybody named in all headers of that name; an entry may name no address."""
        found = self._addresses.get(name)
        if found is None:
            each = (address for value in self._all(name) for address in parse_addresses(value))
            found = self._addresses[name] = tuple(each)
        return found

    def _all(self, name: str) -> list[str]:
        values = self._values.get(name)
        if values is None:
            written = self._written.get(name) or self._quoted.get(name, [])
            values = self._values[name] = [self._read(unfolded(str(each))) for each in written]
        return values

    def _read(self, value: str) -> str:
        if value.isascii() and "\x1b" not in value:
            return value
        return decoded_raw(value, self._message)

    def message_ids(self, name: str) -> list[str]:
        """The message ids in a header, without their brackets."""
        value = self.raw(name)
        ids = _MESSAGE_ID.findall(value)
        if not ids and name == "message-id" and value.strip():
            ids = [value.strip()]
        return [printable(message_id)[:998] for message_id in ids]

    def labels(self) -> list[str]:
        """Gmail's labels: a list with commas, in which a label with a comma stands in quotes."""
        value = one_line(decode_words(self.raw("x-gmail-labels")), 8000)
        rows = list(csv.reader([value], skipinitialspace=True)) if value else []
        return list(dict.fromkeys(label.strip() for row in rows for label in row if label.strip()))

    def sent_at(self, envelope: bytes) -> datetime | None:
        """When it was sent: by its date, else by the first server's clock, else by the mailbox."""
        return next(filter(None, map(_instant, self._dates(envelope))), None)

    def _dates(self, envelope: bytes) -> Iterator[str]:
        yield self.raw("date")
        for value in self._all("received"):
            yield value.rpartition(";")[2]
        if from_line := _ENVELOPE_DATE.search(envelope):
            yield from_line.group().decode("ascii", "replace")


def _instant(value: str) -> datetime | None:
    try:
        whole_day = _HALF_DAY.sub(_of_whole_day, value) if "M" in value.upper() else value
        parts = parsedate_tz(_OTHER_OFFSET.sub(_usual_offset, _FRACTION.sub(r"\1", whole_day)))
        if parts is None:
            from pdpp_sources.mail.local_dates import in_standard_form  # noqa: PLC0415 (few are so)

            parts = parsedate_tz(in_standard_form(value) or "")
        if parts is None:
            return None
        local = datetime(*parts[:6], tzinfo=UTC)
        return local - timedelta(seconds=parts[9] or 0)
    except (ValueError, OverflowError, TypeError, IndexError):
        return None


def _usual_offset(written: re.Match[str]) -> str:
    """A distance from UTC as the standard writes it."""
    sign, hours, minutes = written.groups()[:3] if written[1] else written.groups()[3:]
    return f"{sign}{int(hours):02}{minutes or '00'}"


def _of_whole_day(clock: re.Match[str]) -> str:
    """A time with AM or PM, which the library passes over, by the clock of 24 hours."""
    hour = int(clock[1])
    return clock[0] if hour > 12 else f"{hour % 12 + 12 * (clock[3] in 'pP'):02}{clock[2]}"


class Attachment(msgspec.Struct, frozen=True):
    """A file that came with a message."""

    filename: str | None
    mime_type: str
    content: bytes


class Body(msgspec.Struct):
    """What a message says, and what it carries."""

    texts: list[str] = msgspec.field(default_factory=list[str])
    links: list[str] = msgspec.field(default_factory=list[str])
    links_are_cut: bool = False
    attachments: list[Attachment] = msgspec.field(default_factory=list[Attachment])

    @property
    def says_something(self) -> bool:
        """Whether it has words, a text that is no file, or a file that is not empty."""
        has_words = any(self.texts) or (self.texts and not self.attachments)
        return bool(has_words) or any(each.content.strip() for each in self.attachments)

    @property
    def text(self) -> str:
        """All text parts in their order."""
        return "\n\n".join(piece for piece in self.texts if piece)


class MailText:
    """The bytes of a message, and their tree.

    The library takes eight times a message's size. So the long stretches of base64 in a large one
    are kept from it: a line in their place says where they stand, from which they are decoded.
    """

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        large = len(raw) > _LARGE_BYTES
        lean = _BASE64.sub(self._placed, raw) if large else raw
        self.message = message_of(without_stray_lines(lean))

    def decoded(self, payload: object) -> bytes | None:
        """The bytes that a payload stands for, if it is such a line."""
        match = _PLACED.fullmatch(payload) if isinstance(payload, str) else None
        if match is None:
            return None
        begin, end = map(int, match.groups())
        with memoryview(self._raw) as view, view[begin:end] as encoded:
            try:
                return binascii.a2b_base64(encoded)
            except ValueError:
                return b""

    def _placed(self, match: re.Match[bytes]) -> bytes:
        begin = match.start()
        # before Python 3.11.5 the beginning of a line that is none comes with the lines
        end = self._raw.rindex(b"\n", begin, match.end()) + 1
        if end - begin < _LONG_BYTES:
            return match.group()
        return b"base64 of bytes %d to %d\n" % (begin, end) + self._raw[end : match.end()]


def body_of(text: MailText, message: Message, depth: int = 0, *, speaks: bool = True) -> Body:
    """Read a part of a message and everything below it.

    Shapes: `speaks`: what the part says is the message's own text even if it bears a file's name,
        as the whole of a message, the first part of several that is not empty, and every version
        of one text do.
    """
    body = Body()
    children = _children(message)
    if children is None or depth > MAX_DEPTH:
        _read_leaf(text, message, body, speaks=speaks)
        return body
    versions = message.get_content_subtype() == "alternative"
    inner: list[Body] = []
    is_first = True
    for child in children:
        inner.append(body_of(text, child, depth + 1, speaks=speaks and (versions or is_first)))
        is_first = is_first and not inner[-1].says_something
    body.attachments = [attachment for body in inner for attachment in body.attachments]
    body.links = list(dict.fromkeys(link for body in inner for link in body.links))
    body.links_are_cut = any(body.links_are_cut for body in inner)
    if versions:
        inner = _speaking_version(children, inner)
    body.texts = [text for body in inner for text in body.texts]
    return body


def _speaking_version(versions: list[Message], bodies: list[Body]) -> list[Body]:
    """The body of the version that speaks for all, if any has a word.

    In: a plain version and a page of the same words. Out: the plain one; the page, if the words of
    the plain one are others; the last one, where none is plain.
    """
    kinds = (version.get_content_type() for version in versions)
    speaking = [pair for pair in zip(kinds, bodies, strict=True) if pair[1].text.strip()]
    plain = [body for kind, body in speaking if kind == "text/plain"]
    pages = [body for kind, body in speaking if kind in _PAGES]
    if plain and pages and not is_text_of(pages[-1].text, plain[0].text):
        return pages[-1:]
    return plain[:1] or [body for _, body in speaking[-1:]]


def _children(message: Message) -> list[Message] | None:
    if message.get_content_maintype() != "multipart":
        return None
    return _inner(message) if message.is_multipart() else _misnamed(message)


def _misnamed(message: Message) -> list[Message] | None:
    """The parts of a message that announces another boundary than it uses.

    Programs fold the boundary itself, or put words before the first part and name another.
    """
    content = _content(message)
    for boundary in _boundaries(message, content):
        head = b'Content-Type: multipart/mixed; boundary="' + boundary + b'"\n\n'
        parsed = message_of(head + content)
        if parsed.is_multipart():
            return _inner(parsed)
    return None


def _boundaries(message: Message, content: bytes) -> Iterator[bytes]:
    """What may stand between the parts: as announced, without its folds; else as it is used."""
    announced = _FOLDED_BOUNDARY.search(str(message.get("content-type", "")))
    if announced:
        for joint in ("", " "):
            folded = _FOLDS.sub(joint, announced[1]).encode("utf-8", "surrogateescape")
            if b"--" + folded in content and b'"' not in folded:
                yield folded
    used = _PART_BEGINS.match(content) or _PART_FOLLOWS.search(content[:_LONGEST_PREAMBLE_BYTES])
    if used:
        yield used[1]


def _inner(message: Message) -> list[Message]:
    payload = cast("list[object]", message.get_payload())
    return [part for part in payload if isinstance(part, Message)]


def _read_leaf(mail: MailText, part: Message, body: Body, *, speaks: bool) -> None:
    """The words of a part without parts, or its file; of named words that speak, both."""
    kind = part.get_content_type()
    filename = _filename(part)
    sent_along = part.get_content_disposition() == "attachment"
    is_text = kind in ("text/plain", "text/html") and not sent_along
    if is_text and (speaks or filename is None):
        text = decoded_as_named(_content(part), _charset(part))
        if text is None:
            from pdpp_sources.common.unnamed_charsets import (  # noqa: PLC0415 (few need it)
                decoded_by_letters,
            )

            text = decoded_by_letters(_content(part))
        if kind == "text/html":
            page = read_html(text)
            body.texts, body.links, body.links_are_cut = [page.text], page.links, page.is_cut
        else:
            body.texts = [_unflowed(text.replace("\r\n", "\n"), part).strip("\n\r\t ")]
        if filename is None:
            return
    if part.get_content_maintype() != "multipart" or _content(part).strip():
        mime_type = kind if _TYPE.match(kind) else "application/octet-stream"
        content = mail.decoded(part.get_payload())
        content = _content(part) if content is None else content
        body.attachments.append(Attachment(filename, mime_type, content))


def _unflowed(text: str, part: Message) -> str:
    """Lines that a program broke put together again, where it says so.

    Source: RFC 3676, section 4.
    """
    if _parameter(part, "format") != "flowed":
        return text
    joint = -1 if _parameter(part, "delsp") == "yes" else None
    lines: list[str] = []
    flows, depth = False, 0
    for line in text.split("\n"):
        inner = line.lstrip(">")
        quoted, content = len(line) - len(inner), inner.removeprefix(" ")
        if flows and quoted == depth and content != _SIGNATURE:
            lines[-1] = lines[-1][:joint] + content
        else:
            lines.append(f"{'>' * quoted} {content}" if quoted else content)
        flows, depth = content.endswith(" ") and content != _SIGNATURE, quoted
    return "\n".join(lines)


def _parameter(part: Message, name: str) -> str:
    if not _has_word(part, "content-type", name):
        return ""
    try:
        return str(part.get_param(name, "")).lower()
    except (LookupError, ValueError, TypeError):
        return ""


def _has_word(part: Message, header: str, word: str) -> bool:
    """Whether a header can have a parameter of that name: most have none."""
    return word in str(part.get(header, "")).lower()


def ends_early(raw: bytes) -> bool:
    """Whether a message says itself that more of it should follow."""
    blank = _BLANK_LINE.search(raw)
    if blank is None:
        return True
    head = message_of(raw[: blank.end()])
    length = str(head.get("content-length", "")).strip()
    if length.isdecimal() and len(length) < _LONGEST_NUMBER:
        return len(raw) - blank.end() < int(length)
    boundary = _parameter(head, "boundary")
    return bool(boundary) and f"--{boundary}--".encode() not in raw.lower()


def _content(part: Message) -> bytes:
    if part.is_multipart():
        return b"\n".join(map(_as_bytes, _inner(part)))
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _as_bytes(message: Message) -> bytes:
    """The message, or where it cannot be written again its headers."""
    try:
        return message.as_bytes(policy=compat32)
    except (UnicodeError, LookupError, ValueError, TypeError, MessageError):
        # later patch releases refuse to write a header that holds a line end
        lines = "".join(f"{name}: {value}\n" for name, value in message.raw_items())
        return lines.encode("utf-8", "surrogateescape")


def _charset(part: Message) -> str | None:
    if not _has_word(part, "content-type", "charset"):
        return None
    try:
        return part.get_content_charset()
    except (LookupError, ValueError):
        return None


def _filename(part: Message) -> str | None:
    name_parameters = (("content-disposition", "filename"), ("content-type", "name"))
    if not any(_has_word(part, *source) for source in name_parameters):
        return None
    _give_raw_bytes_a_meaning(part)
    try:
        name = part.get_filename()
    except (LookupError, ValueError, TypeError):
        return None
    if name is None:
        return None
    readable = one_line(decode_words(plainly_decoded(name)), 500)
    return re.split(r"[/\\]", readable)[-1].strip(". ")[-255:] or None


def _give_raw_bytes_a_meaning(part: Message) -> None:
    """Names of files in 8-bit headers, which the library would replace by marks of doubt."""
    for name, value in list(part.raw_items()):
        if name.lower() in ("content-type", "content-disposition") and not str(value).isascii():
            part.replace_header(name, decoded_raw(str(value), part))
