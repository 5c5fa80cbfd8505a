"""The charset of bytes that are no UTF-8 and that nobody named, told by which letters they are.

A charset is told only where nearly all bytes above 127 are common letters of it and there are
enough of them; text of Western letters never is, since these stand alone between others. Turkish
is told by its own letters where it has none that only Icelandic has.
Source: the tables of Shift JIS, Big5, EUC-KR, GBK, TIS-620, Windows-1251, -1254 and -1255 and
KOI8-R: which bytes their common letters are.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pdpp_sources.common.text import decoded

# So much of a text says what it is.
_LOOKED_AT_BYTES = 20_000
_HIGH = re.compile(rb"[\x80-\xff]")
_RUN = re.compile(rb"[\x80-\xff]+")
_UTF8 = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_MOST_UTF8 = 0.7
_FEWEST_LETTERS, _FEWEST_DIFFERENT = 6, 5
_NEARLY_ALL = 0.95


class _Pairs(NamedTuple):
    """A charset whose letters have two bytes.

    Shapes: `rest` are its letters besides the `common` ones, of which so large a `share` has to be;
        `least_high` and `most_high` bound the share of pairs whose second byte is above 127.
    """

    codec: str
    common: re.Pattern[bytes]
    rest: bytes
    share: float
    least_high: float = 0.0
    most_high: float = 1.0


_PAIRS = (
    _Pairs(
        "cp932",  # every Japanese text has kana
        re.compile(rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]"),
        rb"[\x81\x82\x83\x87-\x9f\xe0-\xea][\x40-\x7e\x80-\xfc]",
        0.25,
    ),
    _Pairs(
        "cp949",  # every Korean letter is of this stretch, and blanks part words
        re.compile(rb"[\xb0-\xc8][\xa1-\xfe]"),
        rb"[\xa1-\xa3][\xa1-\xfe]",
        0.9,
        least_high=1.0,
    ),
    _Pairs(
        "gb18030",
        re.compile(rb"[\xb0-\xd7][\xa1-\xfe]"),
        rb"[\xa1-\xa3\xd8-\xf7][\xa1-\xfe]",
        0.75,
        least_high=1.0,
    ),
    _Pairs(
        "big5",
        re.compile(rb"[\xa4-\xc6][\x40-\x7e\xa1-\xfe]"),
        rb"[\xa1-\xa3\xc9-\xf9][\x40-\x7e\xa1-\xfe]",
        0.65,
        least_high=0.15,
        most_high=0.95,
    ),
)
_THAI = re.compile(rb"[\xa1-\xda\xdf-\xfb]")
_THAI_OR_NOT = 0.98
_THAI_MARKS = re.compile(rb"[\xd1\xd3-\xd9\xe0-\xe4\xe7-\xe9]")
_THAI_SHARE, _LONG_RUN = 0.25, 5
# Hebrew has no capitals; Russian has them, or letters behind the last one of Hebrew
_HEBREW, _FEWEST_HEBREW = re.compile(rb"[\xe0-\xfa]+"), 20
# the letters that Turkish has in the places of Icelandic ones, among others that it uses
_TURKISH = re.compile(rb"[\xc7\xd0\xd6\xdc-\xde\xe2\xe7\xee\xf0\xf6\xfb-\xfe\x91-\x94\x96\xa0]+")
_TURKISH_ALONE, _FEWEST_TURKISH = re.compile(rb"[\xd0\xdd\xde\xf0\xfd\xfe]"), 3
_CYRILLIC_RUN, _SMALL_SHARE = 3, 0.7
_CYRILLIC = (
    ("koi8_r", re.compile(rb"[\xc0-\xff\xa3\xb3]"), re.compile(rb"[\xc0-\xdf]")),
    ("cp1251", re.compile(rb"[\xc0-\xff\xa8\xb8]"), re.compile(rb"[\xe0-\xff]")),
)


def decoded_by_letters(content: bytes) -> str:
    """A text that is no UTF-8 and whose charset nobody named, read whole.

    Not for a line of a file or what identifies a record: a short one tells less than a long one.
    Of files of rows `charset_of` in `tables/csv_file.py` decides, by a stretch of bytes.
    """
    return decoded(content, told_charset(content))


def told_charset(content: bytes) -> str | None:
    """The codec of some bytes by their letters alone; `None` where they do not tell.

    In: "Десятка Анекдотов" in the bytes of KOI8-R. Out: `koi8_r`. In: "süß", in those of Windows.
    Out: `None`. UTF-8 with a few other bytes among it is UTF-8 with damage, and none of these.
    """
    content = content[:_LOOKED_AT_BYTES]
    highest = _HIGH.findall(content)
    high = len(highest)
    is_utf8 = sum(map(len, _UTF8.findall(content))) >= _MOST_UTF8 * high
    if high < _FEWEST_LETTERS or is_utf8:
        return None
    alone = _TURKISH_ALONE.findall(content)
    if len(alone) >= _FEWEST_TURKISH and all(map(_TURKISH.fullmatch, _RUN.findall(content))):
        return "cp1254"
    if len({*highest}) < _FEWEST_DIFFERENT:
        return None
    if (single := _of_small_letters(content, high)) is not None:
        return single
    if any(len(run) % 2 for run in _RUN.findall(content)) and _is_thai(content, high):
        return "cp874"
    return next((pairs.codec for pairs in _PAIRS if _are(pairs, content, high)), None)


def _are(pairs: _Pairs, content: bytes, high: int) -> bool:
    """Whether nearly all of the `high` bytes above 127 are in letters of a charset, enough common.

    In: "還在用" in the bytes of Big5, eight times. Out: true of Big5; false of the Korean charset,
    in which the second byte of a letter is never below 128.
    """
    found = re.findall(rb"(?:" + pairs.common.pattern + rb"|" + pairs.rest + rb")", content)
    if len(found) < _FEWEST_LETTERS:
        return False
    second_high = sum(pair[1] > 0x7F for pair in found)
    common = sum(bool(pairs.common.fullmatch(pair)) for pair in found)
    return (
        len(found) + second_high >= _NEARLY_ALL * high
        and common >= pairs.share * len(found)
        and pairs.least_high <= second_high / len(found) <= pairs.most_high
    )


def _is_thai(content: bytes, high: int) -> bool:
    """Whether nearly all are Thai letters in long stretches, with vowels and tones among them."""
    return (
        len(_THAI.findall(content)) >= _THAI_OR_NOT * high
        and len(_THAI_MARKS.findall(content)) >= _THAI_SHARE * high
        and high >= _LONG_RUN * len(_RUN.findall(content))
    )


def _of_small_letters(content: bytes, high: int) -> str | None:
    """Which of the charsets of Cyrillic or Hebrew has words of small letters here."""
    if high < _CYRILLIC_RUN * len(_RUN.findall(content)):
        return None
    if all(map(_HEBREW.fullmatch, _RUN.findall(content))):
        return "cp1255" if high >= _FEWEST_HEBREW else None
    for codec, letters, small in _CYRILLIC:
        is_all = len(letters.findall(content)) >= _NEARLY_ALL * high
        if is_all and len(small.findall(content)) >= _SMALL_SHARE * high:
            return codec
    return None
