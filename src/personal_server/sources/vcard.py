"""The properties of a vCard as vobject reads them: versions 2.1, 3.0 and 4.0.

Its lines are taken before its behaviour for cards is applied, which cuts a note at its first comma
and takes every encoding for base64.
"""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field
from io import StringIO

from vobject.base import VObjectError, getLogicalLines, textLineToContentLine
from vobject.icalendar import stringToTextValues

from personal_server.sources.errors import BadRecord
from personal_server.sources.text import decoded, printable

_DATA_URI = re.compile(r"^data:([\w/+.-]*)[^,]*;base64\\?,", re.IGNORECASE)
_NO_SEPARATOR = "\0"
_ESCAPABLE = '\\;,:nN"'


@dataclass(frozen=True, slots=True)
class Property:
    """One property: its name without group, its parameters, its value with its escapes."""

    name: str
    value: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])

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
        return [entry for each in self._split(",") if (entry := each.strip())]

    def _split(self, separator: str) -> list[str]:
        found = stringToTextValues(self.value, separator, _ESCAPABLE)
        return [each.replace("\r\n", "\n") for each in found]

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
    """The properties of a card in their order; lines that are none are passed over.

    Raises: BadRecord, if a value is not in the encoding that it names.
    """
    found: list[Property] = []
    quoted = b"quoted-printable" in raw.lower()
    for text, number in getLogicalLines(StringIO(decoded(raw), newline=None), allowQP=quoted):
        try:
            line = textLineToContentLine(text, number)
        except VObjectError:
            continue
        except (ValueError, LookupError, TypeError):
            raise BadRecord("bad_record", "a value is not in the encoding it names") from None
        parameters = {name: values[0] for name, values in line.params.items() if values}
        if any(each.upper() in ("B", "BASE64") for each in line.singletonparams):
            parameters["ENCODING"] = "B"
        found.append(Property(line.name, printable(line.value), parameters))
    return found
