"""Reading a closed JSON object member by member, and gathering everything that is wrong with it.

Rule: readers never raise; each fault is one finding `{path, message}` (a JSON Pointer, prose that
quotes declared names only), so that an author sees all faults of a document at once.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import cast

MAX_FINDINGS = 100

JsonObject = Mapping[str, object]


class Findings:
    """The faults of one document, at most 100 of them."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []

    def add(self, path: str, message: str) -> None:
        """Note one fault."""
        if len(self.entries) < MAX_FINDINGS:
            self.entries.append({"path": path, "message": message})

    def __bool__(self) -> bool:
        return bool(self.entries)


def pointer(name: str) -> str:
    """One JSON Pointer step, of at most 200 characters of the name."""
    return "/" + name[:200].replace("~", "~0").replace("/", "~1")


class Members:
    """One JSON object of a document; `close` reports the members that nobody asked for."""

    def __init__(self, value: object, path: str, findings: Findings) -> None:
        self.path = path
        self.findings = findings
        self._asked: set[str] = set()
        self.present = isinstance(value, dict)
        self.raw: JsonObject = cast("JsonObject", value) if isinstance(value, dict) else {}
        if not self.present:
            findings.add(path, "Expected an object.")

    def fault(self, name: str, message: str) -> None:
        """Note a fault of one member."""
        self.findings.add(self.path + pointer(name) if name else self.path, message)

    def has(self, name: str) -> bool:
        """Whether the member was given (it counts as asked for)."""
        self._asked.add(name)
        return name in self.raw

    def value(self, name: str, *, required: bool = False) -> object:
        """The member as it stands, or `None`."""
        if not self.has(name) and required and self.present:
            self.fault(name, "Required.")
        return self.raw.get(name)

    def text(
        self,
        name: str,
        *,
        required: bool = False,
        limit: int = 4_096,
        pattern: re.Pattern[str] | None = None,
    ) -> str | None:
        """A string of 1 to `limit` characters that matches `pattern`."""
        value = self.value(name, required=required)
        if name not in self.raw:
            return None
        if not isinstance(value, str) or not 1 <= len(value) <= limit:
            self.fault(name, f"Expected a string of 1 to {limit} characters.")
            return None
        if pattern is not None and pattern.fullmatch(value) is None:
            self.fault(name, f"Does not match {pattern.pattern}.")
            return None
        return value

    def choice(self, name: str, allowed: Sequence[str], *, required: bool = False) -> str | None:
        """One of the allowed words."""
        value = self.value(name, required=required)
        if name not in self.raw:
            return None
        if isinstance(value, str) and value in allowed:
            return value
        self.fault(name, f"Expected one of: {', '.join(allowed)}.")
        return None

    def flag(self, name: str) -> bool:
        """A boolean, `false` when absent."""
        value = self.value(name)
        if name in self.raw and not isinstance(value, bool):
            self.fault(name, "Expected true or false.")
        return value is True

    def integer(self, name: str, low: int, high: int) -> int | None:
        """An integer between two bounds."""
        value = self.value(name)
        if name not in self.raw:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.fault(name, f"Expected an integer from {low} to {high}.")
            return None
        return value

    def object(self, name: str, *, required: bool = False) -> Members | None:
        """A nested object."""
        value = self.value(name, required=required)
        if name not in self.raw:
            return None
        return Members(value, self.path + pointer(name), self.findings)

    def items(self, name: str, *, required: bool = False) -> list[tuple[str, object]]:
        """The elements of an array, each with its path."""
        value = self.value(name, required=required)
        if name not in self.raw:
            return []
        if not isinstance(value, list):
            self.fault(name, "Expected an array.")
            return []
        stem = self.path + pointer(name)
        elements = cast("list[object]", value)
        return [(f"{stem}/{i}", element) for i, element in enumerate(elements)]

    def objects(self, name: str, *, required: bool = False) -> list[Members]:
        """The elements of an array of objects."""
        found = [Members(v, path, self.findings) for path, v in self.items(name, required=required)]
        return [members for members in found if members.present]

    def names(self, name: str, *, required: bool = False) -> tuple[str, ...]:
        """An array of distinct non-empty strings."""
        result: list[str] = []
        for path, value in self.items(name, required=required):
            if not isinstance(value, str) or not value:
                self.findings.add(path, "Expected a non-empty string.")
            elif value in result:
                self.findings.add(path, "Given twice.")
            else:
                result.append(value)
        return tuple(result)

    def close(self, kept: Collection[str] = ()) -> None:
        """Report members that are neither asked for nor kept uninterpreted."""
        for name in self.raw:
            if name not in self._asked and name not in kept:
                self.fault(name, "Unknown member.")


# A JSON value with its place in the document: closed shapes, faults with a pointer.
#
# Rule: nothing is coerced; a value has the wanted shape or raises a `ShapeFault`.


class ShapeFault(Exception):
    """A value of another shape: where (JSON pointer), the stable word, one sentence."""

    def __init__(self, pointer: str, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.pointer = pointer
        self.reason = reason
        self.sentence = sentence


class Shaped:
    """One value of a document."""

    def __init__(self, value: object, pointer: str) -> None:
        self.value = value
        self.pointer = pointer

    def fault(self, reason: str, sentence: str) -> ShapeFault:
        """A fault at this place."""
        return ShapeFault(self.pointer, reason, sentence)

    def members(self) -> dict[str, object]:
        """The members of an object."""
        value = self.value
        if not isinstance(value, dict):
            raise self.fault("malformed", "An object is needed here.")
        return cast("dict[str, object]", value)

    def close(self, required: Collection[str], optional: Collection[str]) -> None:
        """An object with all required members and no unknown one."""
        members = self.members()
        missing = sorted({*required} - members.keys())
        if missing:
            raise self.fault("malformed", f"The member {missing[0]} is missing.")
        unknown = members.keys() - {*required, *optional}
        if unknown:
            name = min(unknown)
            raise ShapeFault(self._under(name), "malformed", "A member is not known here.")

    def has(self, name: str) -> bool:
        """Whether this object has the member."""
        return name in self.members()

    def __getitem__(self, name: str) -> Shaped:
        return Shaped(self.members()[name], self._under(name))

    def items(self, least: int, most: int) -> list[Shaped]:
        """The items of an array of so many."""
        value = self.value
        if not isinstance(value, list):
            raise self.fault("malformed", "An array is needed here.")
        values = cast("list[object]", value)
        if not least <= len(values) <= most:
            raise self.fault("malformed", f"From {least} to {most} items are needed here.")
        return [Shaped(value, f"{self.pointer}/{index}") for index, value in enumerate(values)]

    def text(self, most: int) -> str:
        """A non-empty string of at most so many characters."""
        if not isinstance(self.value, str) or not 1 <= len(self.value) <= most:
            raise self.fault("malformed", f"A string of 1 to {most} characters is needed here.")
        return self.value

    def texts(self, most: int, most_chars: int = 2_048) -> tuple[str, ...]:
        """A non-empty array of unique non-empty strings."""
        found = tuple(item.text(most_chars) for item in self.items(1, most))
        if len(set(found)) != len(found):
            raise self.fault("malformed", "An item stands here twice.")
        return found

    def choice(self, *allowed: str) -> str:
        """One of a few words."""
        if self.value not in allowed:
            raise self.fault("malformed", f"One of {', '.join(allowed)} is needed here.")
        return cast("str", self.value)

    def _under(self, name: str) -> str:
        return f"{self.pointer}/{name.replace('~', '~0').replace('/', '~1')}"
