"""A JSON value with its place in the document: closed shapes, faults with a pointer.

Rule: nothing is coerced; a value has the wanted shape or raises a `ShapeFault`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast


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
