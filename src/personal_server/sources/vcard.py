"""The content lines of a vCard: versions 2.1, 3.0 and 4.0 and what phones make of them.

Source: RFC 6350, RFC 2426, vCard 2.1 (quoted-printable, parameters without a name).
"""

from __future__ import annotations

import binascii
import quopri
import re
from dataclasses import dataclass, field

from personal_server.sources.text import decoded

_LINE = re.compile(r"^(?:[\w-]+\.)?([\w-]+)((?:;(?:\"[^\"]*\"|[^\":;])*)*):(.*)$", re.DOTALL)
_PARAMETER = re.compile(r";((?:\"[^\"]*\"|[^\";])*)")
_UNESCAPED = {"\\n": "\n", "\\N": "\n", "\\,": ",", "\\;": ";", "\\\\": "\\", "\\:": ":"}
_ESCAPE = re.compile(r"\\[nN,;:\\]")
_DATA_URI = re.compile(r"^data:([\w/+.-]*)[^,]*;base64,", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Property:
    """One property: its name without group, its parameters, its value as written."""

    name: str
    value: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def text(self) -> str:
        """The value with its escapes undone."""
        return _plain(self.value)

    @property
    def parts(self) -> list[str]:
        """The components of a structured value."""
        return [_plain(part).strip() for part in re.split(r"(?<!\\);", self.value)]

    @property
    def listed(self) -> list[str]:
        """The entries of a list."""
        entries = (_plain(entry).strip() for entry in re.split(r"(?<!\\),", self.value))
        return [entry for entry in entries if entry]

    @property
    def binary(self) -> bytes | None:
        """The bytes of an inline picture."""
        inline = _DATA_URI.match(self.value)
        encoded = self.parameters.get("ENCODING", "").upper() in ("B", "BASE64")
        if not inline and not encoded:
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
        return kind if kind.startswith("image/") else f"image/{re.sub(r'[^a-z0-9.+-]', '', kind)}"


def properties(raw: bytes) -> list[Property]:
    """The properties of a card in their order; lines that are none are passed over."""
    found: list[Property] = []
    for line in _unfolded(decoded(raw)):
        match = _LINE.match(line)
        if match:
            name, parameters, value = match.groups()
            found.append(_property(name.upper(), _named(parameters), value))
    return found


def _property(name: str, parameters: dict[str, str], value: str) -> Property:
    if parameters.get("ENCODING", "").upper() == "QUOTED-PRINTABLE":
        packed = quopri.decodestring(value.encode("utf-8", "replace"))
        value = decoded(packed, parameters.get("CHARSET"))
    return Property(name, value, parameters)


def _named(parameters: str) -> dict[str, str]:
    named: dict[str, str] = {}
    for each in _PARAMETER.findall(parameters):
        name, equals, value = each.partition("=")
        if equals:
            named.setdefault(name.upper(), value.strip('"'))
        elif name.upper() in ("QUOTED-PRINTABLE", "BASE64", "B"):
            named["ENCODING"] = name
    return named


def _unfolded(text: str) -> list[str]:
    """Lines joined with their continuations, both kinds."""
    lines: list[str] = []
    soft = False
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if soft and lines:
            lines[-1] = lines[-1][:-1] + line
        elif line[:1] in (" ", "\t") and lines:
            lines[-1] += line[1:]
        else:
            lines.append(line)
        soft = lines[-1].endswith("=") and "QUOTED-PRINTABLE" in lines[-1].upper()
    return lines


def _plain(value: str) -> str:
    plain = _ESCAPE.sub(lambda escape: _UNESCAPED[escape.group()], value)
    return plain.replace("\r\n", "\n")
