"""Japanese bytes with the letters that NEC and IBM added, which Python's codecs do not have.

Mail from Windows names `iso-2022-jp` or `euc-jp` and holds ①, ㈱ or 髙 all the same (what others
call CP50221 and CP51932).  The code points are those of Windows' Shift JIS, in other bytes.
Source: JIS X 0202; WHATWG Encoding Standard, ISO-2022-JP decoder.
"""

from __future__ import annotations

import codecs
import re

ESCAPED = frozenset(
    [
        "iso-2022-jp",
        "iso2022-jp",
        "iso-2022-jp-1",
        "iso-2022-jp-2",
        "iso-2022-jp-3",
        "iso-2022-jp-ext",
        "iso-2022-jp-ms",
        "csiso2022jp",
        "cp50220",
        "cp50221",
        "cp50222",
        "x-windows-iso2022jp",
    ]
)
UNIX = frozenset(
    [
        "euc-jp",
        "eucjp",
        "euc_jp",
        "x-euc-jp",
        "cp51932",
        "eucjp-ms",
        "eucjp-win",
        "cseucpkdfmtjapanese",
    ]
)
_SWITCH = re.compile(rb"\x1b(\$[@B]|\$\(D|\([BJI])")
_SHIFTED = re.compile(rb"\x0e([!-_]*)\x0f?")
_RAISED = bytes(byte | 0x80 for byte in range(256))
NEC = "personal-server-nec-letters"


def is_escaped_japanese(content: bytes) -> bool:
    """Whether bytes switch to Japanese letters by the escapes of ISO-2022-JP."""
    return b"\x1b$B" in content or b"\x1b$@" in content


def from_escaped(content: bytes) -> str:
    """Text of ISO-2022-JP with every extension. Letters that no table has are marks of doubt."""
    pieces: list[str] = []
    switch, begin = b"(B", 0
    for escape in _SWITCH.finditer(content):
        pieces.append(_stretch(content[begin : escape.start()], switch))
        switch, begin = escape[1], escape.end()
    return "".join([*pieces, _stretch(content[begin:], switch)])


def _stretch(content: bytes, switch: bytes) -> str:
    if switch in (b"(B", b"(J"):
        return _SHIFTED.sub(lambda match: _katakana(match[1]).encode(), content).decode(
            "utf-8", "replace"
        )
    if switch == b"(I":
        return _katakana(content)
    if switch != b"$(D" and (whole := _whole(content)) is not None:
        return whole
    # two bytes a letter; what is below is a line end or blank that was not switched back for
    pieces: list[str] = []
    at = 0
    while at < len(content):
        if content[at] <= 0x20 or at + 1 == len(content):
            pieces.append(chr(content[at]) if content[at] <= 0x20 else "\ufffd")
            at += 1
            continue
        pieces.append(_letter(content[at : at + 2], b"\x8f" if switch == b"$(D" else b""))
        at += 2
    return "".join(pieces)


def _katakana(content: bytes) -> str:
    """Letters of half width."""
    return bytes(byte | 0x80 if 0x21 <= byte <= 0x5F else byte for byte in content).decode(
        "cp932", "replace"
    )


def _whole(content: bytes) -> str | None:
    """A stretch without gaps of which Python's own table has every letter."""
    if len(content) % 2 or (content and min(content) <= 0x20):
        return None
    try:
        return content.translate(_RAISED).decode("euc_jp")
    except UnicodeDecodeError:
        return None


def _letter(pair: bytes, before: bytes) -> str:
    """A letter by its row and column, in Python's own table or Windows'."""
    raised = pair.translate(_RAISED)
    try:
        return (before + raised).decode("euc_jp")
    except UnicodeDecodeError:
        return "\ufffd" if before else _of_windows(raised)


def _of_windows(raised: bytes) -> str:
    """A letter of EUC's two bytes, looked up in Windows' Shift JIS."""
    row, column = raised[0] - 0xA1, raised[1] - 0xA1
    if not (0 <= row < 94 and 0 <= column < 94):
        return "\ufffd"
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = column + 0x9F if row % 2 else column + 0x40 + (column >= 63)
    return bytes((lead, trail)).decode("cp932", "replace")


def _missing_letter(error: UnicodeError) -> tuple[str, int]:
    """What Python's EUC-JP does not know, by Windows' table."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101  # nothing is encoded with this
    pair = error.object[error.start : error.start + 2]
    if len(pair) == 2 and min(pair) >= 0xA1:
        return _of_windows(pair), error.start + 2
    return "\ufffd", error.start + 1


codecs.register_error(NEC, _missing_letter)
