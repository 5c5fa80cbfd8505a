"""vCalendar 1.0, as phones of the 2000s wrote it, put into the words of iCalendar.

Source: vCalendar, version 1.0 (versit, 1996): values in quoted-printable with soft line ends, and
rules of repetition in a grammar of their own (`W1 TU #3`, `MP1 1+ SU`, `YM1 6 20101231T000000`).
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from pdpp_sources.common.text import decoded

_LINE_END = re.compile(rb"\r*\n|\r")
_QUOTED = re.compile(rb"^[^:]*;(?:ENCODING=)?QUOTED-PRINTABLE", re.IGNORECASE)
_CHARSET = re.compile(rb";CHARSET=([A-Za-z0-9._:-]+)", re.IGNORECASE)
_DROPPED = re.compile(
    rb";(?:ENCODING=)?(?:QUOTED-PRINTABLE|8BIT|7BIT)|;CHARSET=[A-Za-z0-9._:-]+", re.IGNORECASE
)
_RULE = re.compile(rb"^(RRULE|EXRULE)(?:;[^:]*)?:\s*((?:D|W|MP|MD|YM|YD)\d.*)$", re.IGNORECASE)
_DATES = re.compile(rb"^(?:EXDATE|RDATE)[^:]*:[^,]*;", re.IGNORECASE)
_HEAD = re.compile(r"(D|W|MP|MD|YM|YD)(\d{1,4})$", re.IGNORECASE)
_TIMES = re.compile(r"#(\d{1,5})$")
_END = re.compile(r"\d{8}(?:T\d{6}Z?)?$")
_DAY_NAME = re.compile(r"(?:SU|MO|TU|WE|TH|FR|SA)$", re.IGNORECASE)
_PLACE = re.compile(r"(\d{1,3})([+-]?)$")
_LONGEST_PROPERTY_LINES = 10_000
_FREQUENCIES = {"D": "DAILY", "W": "WEEKLY", "M": "MONTHLY", "Y": "YEARLY"}
_LISTS = {"MD": "BYMONTHDAY", "YM": "BYMONTH", "YD": "BYYEARDAY"}
# A rule that names neither a number nor an end means two times.
_TIMES_UNSAID = "2"


def modern(raw: bytes) -> bytes:
    """An entry with what only vCalendar 1.0 writes put into iCalendar's words."""
    return b"\r\n".join(_modern_line(line) for line in _whole_lines(raw))


def _whole_lines(raw: bytes) -> Iterator[bytes]:
    """Lines, those in quoted-printable with all that their soft ends lead on to."""
    pieces: list[bytes] = []
    for line in _LINE_END.split(raw):
        pieces.append(line)
        quoted = _QUOTED.match(pieces[0]) is not None
        if quoted and line.endswith(b"=") and len(pieces) < _LONGEST_PROPERTY_LINES:
            continue
        yield b"\n".join(pieces)
        pieces = []
    if pieces:
        yield b"\n".join(pieces)


def _modern_line(line: bytes) -> bytes:
    if rule := _RULE.match(line):
        return rule[1] + b":" + modern_rule(rule[2].decode("ascii", "replace")).encode()
    if _DATES.match(line):
        return line.replace(b";", b",")
    if _QUOTED.match(line):
        head, _, value = line.partition(b":")
        charset = _CHARSET.search(head)
        name = charset[1].decode() if charset else None
        text = decoded(binascii.a2b_qp(value), name).replace("\r\n", "\n")
        escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace(",", "\\,")
        return _DROPPED.sub(b"", head) + b":" + escaped.replace(";", "\\;").encode()
    return line


def modern_rule(rule: str) -> str:
    """A rule of repetition in RFC 5545's grammar; one that is none stays as it is."""
    head, *words = rule.split() or [""]
    match = _HEAD.match(head)
    if match is None:
        return rule
    kind = match[1].upper()
    parts = {"FREQ": _FREQUENCIES[kind[0]], "INTERVAL": match[2]}
    listed, times, until = list[str](), _TIMES_UNSAID, ""
    for word in words:
        if match_of_times := _TIMES.match(word):
            times = match_of_times[1]
        elif _END.match(word):
            until = word
        else:
            listed.append(word)
    if kind in ("W", "MP"):
        parts |= {"BYDAY": ",".join(_days(listed))}
    elif kind in _LISTS:
        parts |= {_LISTS[kind]: ",".join(filter(None, map(_number, listed)))}
    if until:
        parts |= {"UNTIL": until}
    elif times != "0":  # as often as that; without end
        parts |= {"COUNT": times}
    return ";".join(f"{name}={value}" for name, value in parts.items() if value)


def _days(words: list[str]) -> Iterator[str]:
    """`1+ SU TU` is the first Sunday and the first Tuesday, `MO TH` both of every week."""
    ordinal = ""
    for word in words:
        if _DAY_NAME.match(word):
            yield f"{ordinal}{word.upper()}"
        else:
            ordinal = _number(word)


def _number(word: str) -> str:
    """`2+` is the second, `1-` the last, as `LD` is."""
    if word.upper() == "LD":
        return "-1"
    match = _PLACE.match(word)
    return f"{'-' if match[2] == '-' else ''}{match[1]}" if match else ""
