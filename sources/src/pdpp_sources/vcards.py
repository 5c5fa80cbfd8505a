"""The text of vCards of any version: logical lines, parameters, escapes, and programs' own names.

Source: RFC 6350, section 3; vCard 2.1.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from pdpp_sources.common.text import decoded, printable

_DATA_URI = re.compile(r"^data:([\w/+.-]*)[^,]*;base64\\?,", re.IGNORECASE)
_NO_SEPARATOR = "\0"
_ESCAPE = re.compile(r'\\([\\;,:nN"])')
_QUOTED = "quoted-printable"
_ENCODINGS = frozenset({"QUOTED-PRINTABLE", "BASE64", "B", "8BIT"})
_BLANKS = (" ", "\t")
_LINE_END = re.compile(r"\r*\n|\r")
_SOFT_END = re.compile(r"=\r*\n([^\r\n]?)")
# the first byte of a letter of UTF-8 before the line end, one that goes on behind it
_CUT_LETTER = re.compile(r"=[C-F][0-9A-F]=\r*\n[ \t]=[89AB]", re.IGNORECASE)
_UNFOLDED = re.compile(r"=(\r*\n)[ \t]")


_OTHER_NAMES = {
    "X-MS-TEL": "TEL",
    "X-MOBILE": "TEL",
    "X-EMAIL": "EMAIL",
    "X-MS-CARDPICTURE": "PHOTO",
    "X-MS-IMADDRESS": "IMPP",
    "X-NICKNAME": "NICKNAME",
    "X-EVOLUTION-BLOG-URL": "URL",
    "X-BIRTHDAY": "BDAY",
}
_GROUPS_THAT_NAME = {"PHONE": "TEL", "TEL": "TEL", "EMAIL": "EMAIL", "ADDRESS": "ADR"}
_PLACES = ("home", "work", "cell", "mobile", "fax", "other", "main")
# Android's ContactsContract.CommonDataKinds.Relation, by its numbers.
_ANDROID_RELATIONS = {
    "1": "assistant",
    "2": "brother",
    "3": "child",
    "4": "domestic partner",
    "5": "father",
    "6": "friend",
    "7": "manager",
    "8": "mother",
    "9": "parent",
    "10": "partner",
    "11": "referred by",
    "12": "relative",
    "13": "sister",
    "14": "spouse",
}
_LONGEST_HEAD = 8_000
# Atomic groups: a possessive repeat of a group with a quote in it that is never closed ends behind
# that quote before Python 3.11.5.
_HEAD = re.compile(rf'((?>(?:[^":]|"[^"]{{0,1000}}+"){{1,{_LONGEST_HEAD}}})):')
_PARAMETER = re.compile(r'(?>(?:[^";]|"[^"]*+")+)')


class CardProperty(msgspec.Struct, frozen=True):
    """One property: its name without group, its parameters, its value with its escapes."""

    name: str
    value: str
    parameters: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    kinds: tuple[str, ...] = ()
    group: str = ""

    @property
    def text(self) -> str:
        """The value with its escapes undone."""
        return self._split(_NO_SEPARATOR)[0]

    @property
    def parts(self) -> list[str]:
        """The components of a structured value."""
        return [part.strip() for part in self._split(";")]

    @property
    def listed(self) -> list[str]:
        """The entries of a list."""
        return [entry for part in self._split(",") if (entry := part.strip())]

    @property
    def is_inline(self) -> bool:
        """Whether the value holds the bytes of a picture, not an address of one."""
        encoded = self.parameters.get("ENCODING", "").upper() in ("B", "BASE64")
        return encoded or _DATA_URI.match(self.value) is not None

    @property
    def binary(self) -> bytes | None:
        """The bytes of an inline picture."""
        inline = _DATA_URI.match(self.value)
        if not self.is_inline:
            return None
        packed = self.value[inline.end() :] if inline else self.value
        try:
            return binascii.a2b_base64("".join(packed.split()))
        except ValueError:
            return None

    @property
    def image_type(self) -> str:
        """The MIME type of an inline picture."""
        inline = _DATA_URI.match(self.value)
        kind = (inline.group(1) if inline else self.parameters.get("TYPE", "jpeg")).lower()
        name = re.sub(r"[^a-z0-9.+-]", "", kind.removeprefix("image/"))
        return f"image/{name or 'jpeg'}"

    def _split(self, separator: str) -> list[str]:
        parts = _SPLITS[separator](self.value)
        return [_ESCAPE.sub(_unescaped, part).replace("\r\n", "\n") for part in parts]


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape.group(1) in "nN" else escape.group(1)


def _splits(separator: str) -> Callable[[str], list[str]]:
    """Cut a value where the separator stands without a backslash."""
    pieces = re.compile(rf"((?:[^\\{separator}]|\\.|\\\Z)*+)(?:{separator}|\Z)", re.DOTALL)

    def split(value: str) -> list[str]:
        *parts, last = pieces.findall(value)
        return parts if parts and not last else [*parts, last]

    return split


_SPLITS = {separator: _splits(separator) for separator in (_NO_SEPARATOR, ";", ",")}


def properties(raw: bytes) -> list[CardProperty]:
    """The properties of a card in their order; lines that are none are passed over."""
    text = decoded(raw)
    lines = _logical_lines(_UNFOLDED.sub(r"=\1", text) if _is_folded(text) else text)
    return [_renamed(entry) for line in lines if (entry := _property(line)) is not None]


def _renamed(entry: CardProperty) -> CardProperty:
    """A property that a program gave a name of its own under the one that everybody knows."""
    if entry.group in _GROUPS_THAT_NAME and entry.name not in _OTHER_NAMES:
        # `PHONE.WORK:…`: by the standard a property `WORK` of a group
        name = _GROUPS_THAT_NAME[entry.group]
        if entry.name.lower() in _PLACES:
            return replace(entry, name=name, kinds=(*entry.kinds, entry.name.lower()), group="")
    if entry.name != "X-ANDROID-CUSTOM":
        return replace(entry, name=_OTHER_NAMES.get(entry.name, entry.name))
    kind, value, number, label = (*entry.parts, "", "", "", "")[:4]
    plain = value.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    match kind.rpartition("/")[2]:
        case "nickname":
            return CardProperty("NICKNAME", plain)
        case "relation":
            relation = label or _ANDROID_RELATIONS.get(number, "related")
            return CardProperty("RELATED", plain, kinds=(relation.lower(),))
        case "contact_event" if number == "3":
            return CardProperty("BDAY", plain)
        case "contact_event":
            relation = label or ("anniversary" if number == "1" else "day")
            return CardProperty("X-ABDATE", plain, kinds=(relation.lower(),))
        case _:
            return entry


def _is_folded(text: str) -> bool:
    """Whether soft line ends of quoted-printable are followed by a blank that folds the line.

    Samsung's phones do so. One that begins inside a letter shows it, and so do all of several.
    """
    soft = [match[1] for match in _SOFT_END.finditer(text)]
    blanks = [line_end for line_end in soft if line_end.startswith(_BLANKS)]
    if not blanks:
        return False
    return _CUT_LETTER.search(text) is not None or len(blanks) == len(soft) > 1


def _logical_lines(text: str) -> Iterator[str]:
    """Lines put together again: folded ones, and of vCard 2.1 those that end in a soft break."""
    pieces: list[str] = []
    quoted = False
    for line in _LINE_END.split(text):
        if pieces and line and quoted and pieces[-1].endswith("="):
            pieces.append(f"\n{line}")
        elif pieces and line[:1] in _BLANKS:
            pieces.append(line[1:])
        else:
            yield "".join(pieces)
            pieces, quoted = [line] if line else [], _QUOTED in line[:_LONGEST_HEAD].lower()
    yield "".join(pieces)


def _property(line: str) -> CardProperty | None:
    """One logical line (RFC 6350, section 3.3). Parameters without a name are of vCard 2.1."""
    head = _HEAD.match(line)
    if head is None:
        return None
    pieces: list[str] = _PARAMETER.findall(head.group(1))
    name, *written = pieces
    parameters: dict[str, str] = {}
    kinds: list[str] = []
    for parameter in written:
        key, _, values = parameter.partition("=")
        if not values:
            key, values = ("ENCODING" if key.upper() in _ENCODINGS else "TYPE", key)
        first = values[1:].partition('"')[0] if values[:1] == '"' else values.partition(",")[0]
        parameters.setdefault(key.upper(), first)
        if key.upper() == "TYPE":
            kinds += [kind.strip().lower() for kind in values.replace('"', "").split(",")]
    value = line[head.end() :]
    if parameters.get("ENCODING", "").lower() == _QUOTED:
        value = decoded(binascii.a2b_qp(value.encode()), parameters.get("CHARSET"))
    group, _, plain_name = name.rpartition(".")
    printable_kinds = tuple(printable(kind) for kind in kinds if kind)
    return CardProperty(
        plain_name.upper(), printable(value), parameters, printable_kinds, group.upper()
    )
