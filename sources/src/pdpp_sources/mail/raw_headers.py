"""Headers as they stand in a file: folded, and in old or hasty mail with bytes above 127.

Source: RFC 5322, section 2.2.3.  Bytes without a charset are UTF-8 if they can be, else of the
charset that the message names elsewhere, else of the one that their letters or those of its words
tell, else Chinese where all are pairs of its common letters, else Western.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from weakref import WeakKeyDictionary

from pdpp_sources.common.text import codec_named, decoded
from pdpp_sources.mail.encoded_words import ENCODED_WORD

_SOUND = rb"(?:[!-9;-~]{1,200}:|[ \t]|>?From )[^\n]*\n"
_SOUND_LINE, _SOUND_LINES = re.compile(_SOUND), re.compile(rb"(?:" + _SOUND + rb")*")
_EMPTY_LINE = re.compile(rb"\n\r?\n")
_LONGEST_HEAD, _LONGEST_REST = 128 * 1024, 64 * 1024
_MOST_STRAY, _FEWEST_TELLING = 3, 2
_TELLING = frozenset(
    [b"from", b"to", b"subject", b"date", b"message-id", b"mime-version", b"content-type"]
)
_FOLD = re.compile(r"\r?\n(?=[ \t])")
_CHARSET = re.compile(r"charset\s*=\s*\"?([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
_MOST_PARTS_ASKED = 20
_SAYS_NOTHING = frozenset(
    [
        "us-ascii",
        "ascii",
        "utf-8",
        "utf8",
        "iso-8859-1",
        "latin-1",
        "latin1",
        "windows-1252",
        "cp1252",
        "unknown-8bit",
    ]
)
_RUN = re.compile(rb"[\x80-\xff]+")
_COMMON_CHINESE = re.compile(rb"(?:[\xb0-\xd7][\xa1-\xfe]|[\xa1\xa3][\xa1-\xfe])+\Z")
_FEWEST_CHINESE_BYTES = 4
_TOLD_BY_WORDS: WeakKeyDictionary[Message, str | None] = WeakKeyDictionary()
"""The charset that the words of a message tell, as long as it is read."""


def without_stray_lines(raw: bytes) -> bytes:
    """A message without lines among its headers that are none, where more headers follow them.

    A server's remark or a broken name would otherwise make the rest of the headers its words.
    """
    sound = _SOUND_LINES.match(raw, 0, _LONGEST_HEAD)  # each line is a step that is kept
    if sound is None or raw[sound.end() : sound.end() + 2].lstrip(b"\r")[:1] in (b"\n", b""):
        return raw
    end = _EMPTY_LINE.search(raw, sound.end(), sound.end() + _LONGEST_REST)
    lines = raw[sound.end() : end.start() + 1].splitlines(keepends=True) if end else []
    stray = [index for index, line in enumerate(lines) if not _SOUND_LINE.match(line)]
    if not sound.end() or not stray or len(stray) > _MOST_STRAY:
        return raw
    names = {line.partition(b":")[0].lower() for line in lines[stray[-1] + 1 :]}
    if len(names & _TELLING) < _FEWEST_TELLING:
        return raw
    kept = b"".join(line for index, line in enumerate(lines) if index not in stray)
    return raw[: sound.end()] + kept + raw[sound.end() + sum(map(len, lines)) :]


def unfolded(value: str) -> str:
    """A header on one line."""
    return _FOLD.sub("", value) if "\n" in value else value


def plainly_decoded(value: str) -> str:
    """A header's bytes as UTF-8, else Western, whatever its message says."""
    return value if value.isascii() else decoded(_bytes_of(value))


def decoded_raw(value: str, message: Message) -> str:
    """A header's bytes by what the message says of its charset."""
    content = _bytes_of(value)
    for charset in _hints(content, message):
        try:
            content.decode(codec_named(charset))
        except (LookupError, ValueError):
            continue
        return decoded(content, charset)
    return decoded(content)


def _hints(content: bytes, message: Message) -> Iterator[str]:
    """Charsets to try, the likeliest first."""
    yield "utf-8"
    yield from (charset for charset in _named(message) if charset not in _SAYS_NOTHING)
    from pdpp_sources.common.unnamed_charsets import told_charset  # noqa: PLC0415 (few need it)

    if told := told_charset(content):
        yield told
    if message not in _TOLD_BY_WORDS:  # they may be long, and the headers many
        _TOLD_BY_WORDS[message] = told_charset(_words_of(message))
    if told := _TOLD_BY_WORDS[message]:
        yield told
    if _is_chinese(content):
        yield "gb18030"


def _named(message: Message) -> Iterator[str]:
    """The charsets that a message names: in its types, then in the words of its headers."""
    parts = [message]
    for part in parts:
        for name, value in part.raw_items():
            if name.lower() == "content-type":
                yield from (charset.lower() for charset in _CHARSET.findall(str(value)))
        if part.is_multipart() and len(parts) < _MOST_PARTS_ASKED:
            inner = part.get_payload()
            parts += [part for part in inner if isinstance(part, Message)][:_MOST_PARTS_ASKED]
    for _, value in message.raw_items():
        for match in ENCODED_WORD.finditer(str(value)[:2000]):
            yield match[1].partition("*")[0].lower()


def _words_of(message: Message) -> bytes:
    """The bytes of its words, where it has no parts."""
    payload = message.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _is_chinese(content: bytes) -> bool:
    """Whether all bytes above 127 are pairs of the commonest letters of GBK, and some are."""
    runs = _RUN.findall(content)
    if sum(map(len, runs)) < _FEWEST_CHINESE_BYTES:
        return False
    return all(_COMMON_CHINESE.match(run) for run in runs)


def _bytes_of(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")
