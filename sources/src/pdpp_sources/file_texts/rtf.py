"""The text of an RTF document, without what its groups say of fonts, styles and pictures."""

from __future__ import annotations

import re

from pdpp_sources.file_texts.draft import Draft

MARK = b"{\\rtf"
_TOKEN = re.compile(
    r"\\(?P<word>[a-z]{1,32})(?P<value>-?\d{1,10})?[ ]?"
    r"|\\'(?P<byte>[0-9a-fA-F]{2})|\\(?P<sign>[^a-z])|(?P<brace>[{}])|(?P<plain>[^\\{}\r\n]+)"
)
_NOT_SHOWN = """
fonttbl colortbl stylesheet info pict object datastore themedata colorschememapping filetbl
latentstyles listtable listoverridetable rsidtbl generator xmlnstbl revtbl fldinst nonshppict
header headerl headerr headerf footer footerl footerr footerf
"""
_UNSEEN = frozenset(_NOT_SHOWN.split())
_SAID = {
    **dict.fromkeys(("par", "line", "row"), "\n"),
    **dict.fromkeys(("sect", "page"), "\n\n"),
    **dict.fromkeys(("cell", "tab"), "\t"),
    "emdash": "—",
    "endash": "–",
    "bullet": "•",
    "lquote": "‘",
    "rquote": "’",
    "ldblquote": "“",
    "rdblquote": "”",
}
_SIGNS = {"~": " ", "_": "-", "\\": "\\", "{": "{", "}": "}", "\n": "\n", "\r": "\n"}
_EVERY = 20_000  # tokens from one look at the clock to the next
_DEEPEST = 10_000
_UNITS = 0x10000  # of UTF-16; a character beyond is two of them


def read_rtf(content: bytes, draft: Draft) -> None:
    """Lay the text to the draft. Raises: EnoughRead."""
    document = _RtfDocument()
    for number, token in enumerate(_TOKEN.finditer(content.decode("latin-1"))):
        if number % _EVERY == 0:
            draft.goes_on()
        text = document.said(token)
        if text:
            draft.add(text)


class _RtfDocument:
    """Where reading stands: in which groups, and in which charset."""

    def __init__(self) -> None:
        self._codec = "cp1252"
        self._groups: list[tuple[bool, int]] = []
        self._is_unseen = False
        self._is_starred = False
        self._stand_ins = 1  # so many characters follow one of Unicode, for who does not know it
        self._to_skip = 0
        self._first_half = ""  # of a character of two

    def said(self, token: re.Match[str]) -> str:
        """What a reader sees of a token."""
        kind, value = token.lastgroup, token.group()
        if kind == "brace":
            self._turn(is_begin=value == "{")
            return ""
        if kind == "sign":
            self._is_starred = value == "\\*"
            sign = _SIGNS.get(value[1:], "")
        elif kind in ("byte", "plain"):
            sign = self._skipped(
                bytes.fromhex(value[2:]).decode(self._codec, "replace") if kind == "byte" else value
            )
        else:
            sign = self._obeyed(token["word"], int(token["value"] or 1))
        return "" if self._is_unseen else sign

    def _turn(self, *, is_begin: bool) -> None:
        self._to_skip, self._is_starred = 0, False
        if not is_begin:
            was = self._groups.pop() if self._groups else (False, 1)
            self._is_unseen, self._stand_ins = was
        elif len(self._groups) < _DEEPEST:
            self._groups.append((self._is_unseen, self._stand_ins))

    def _skipped(self, text: str) -> str:
        cut = min(self._to_skip, len(text))
        self._to_skip -= cut
        return text[cut:]

    def _obeyed(self, word: str, value: int) -> str:
        self._is_unseen = self._is_unseen or self._is_starred or word in _UNSEEN
        self._is_starred = False
        if word == "u":
            self._to_skip = self._stand_ins
            return self._character(value % _UNITS)
        if word == "uc":
            self._stand_ins = max(0, value)
        elif word == "ansicpg":
            self._codec = _codec(value)
        return _SAID.get(word, "")

    def _character(self, unit: int) -> str:
        whole, self._first_half = self._first_half + chr(unit), ""
        try:
            return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            self._first_half = whole[-1]
            return ""


def _codec(number: int) -> str:
    try:
        b"a".decode(f"cp{number}")
    except LookupError:
        return "cp1252"
    return f"cp{number}"
