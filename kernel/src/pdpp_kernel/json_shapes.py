"""Reading a closed JSON object member by member: the one strict reader of documents.

Rule: nothing is coerced and no member is overlooked; what has another shape is a fault with its
place (a JSON Pointer) and one sentence that quotes declared names only.  `ShapeFaults` gathers the
faults of a document for the author who mends it; `FirstFault` ends reading at the first.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import cast

MAX_FINDINGS = 100
MISSPELT = 0.85
"""From this likeness on (of `difflib`), a name that nobody asked for is a known one misspelt."""
MALFORMED = "malformed"
"""The reason of every fault that needs no word of its own."""

JsonObject = Mapping[str, object]


class ShapeFault(Exception):
    """A value of another shape: where (JSON Pointer), the stable word, one sentence."""

    def __init__(self, pointer: str, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.pointer = pointer
        self.reason = reason
        self.sentence = sentence


class ShapeFaults:
    """The faults of one document, at most 100 of them, and what its author is told beside them.

    Shapes: `kept` are the places of members that are stored and not interpreted; `adapted` says
        what is read otherwise than it was written.
    """

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] = []
        self.kept: list[str] = []
        self.adapted: list[dict[str, str]] = []

    def adapt(self, path: str, message: str) -> None:
        """Note what is read otherwise than it was written."""
        self.adapted.append({"path": path, "message": message})

    def add(self, path: str, message: str, reason: str = MALFORMED) -> None:
        """Note one fault; `reason` is for readers that tell one."""
        del reason
        if len(self.entries) < MAX_FINDINGS:
            self.entries.append({"path": path, "message": message})

    def expected(self, path: str, expectation: str) -> None:
        """Note that something else stands where `what` is expected."""
        self.add(path, f"Expected {expectation}.")

    def __bool__(self) -> bool:
        return bool(self.entries)


class FirstFault(ShapeFaults):
    """Raises the first fault as `ShapeFault`."""

    def add(self, path: str, message: str, reason: str = MALFORMED) -> None:
        """Raise this fault."""
        raise ShapeFault(path, reason, message)

    def expected(self, path: str, expectation: str) -> None:
        """Raise this fault."""
        self.add(path, f"{expectation[0].upper()}{expectation[1:]} is needed here.")


class Members:
    """One JSON object of a document; `close` reports the members that nobody asked for.

    Shapes: a text or word that is absent or faulty is empty, an object has no members and is not
        `present`, an array has no items; so readers go on without asking.
    """

    def __init__(self, value: object, path: str, findings: ShapeFaults) -> None:
        self.path = path
        self.findings = findings
        self._asked: set[str] = set()
        self.present = isinstance(value, dict)
        self.raw: JsonObject = cast("JsonObject", value) if isinstance(value, dict) else {}
        if not self.present and value is not _ABSENT:
            findings.expected(path, "a JSON object")

    def fault(self, name: str, message: str, reason: str = MALFORMED) -> None:
        """Note a fault of one member, or with an empty name of the object."""
        self.findings.add(self._at(name), message, reason)

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
    ) -> str:
        """A string of 1 to `limit` characters that matches `pattern`."""
        value = self.value(name, required=required)
        if name not in self.raw:
            return ""
        text = text_at(value, self._at(name), self.findings, limit)
        if text and pattern is not None and pattern.fullmatch(text) is None:
            self.fault(name, f"Does not match {pattern.pattern}.")
            return ""
        return text

    def choice(self, name: str, allowed: Sequence[str], *, required: bool = False) -> str:
        """One of the allowed words."""
        value = self.value(name, required=required)
        if name not in self.raw:
            return ""
        if isinstance(value, str) and value in allowed:
            return value
        self.findings.expected(self._at(name), f"one of {', '.join(allowed)}")
        return ""

    def flag(self, name: str) -> bool:
        """A boolean, `false` when absent."""
        value = self.value(name)
        if name in self.raw and not isinstance(value, bool):
            self.findings.expected(self._at(name), "true or false")
        return value is True

    def integer(self, name: str, low: int, high: int) -> int | None:
        """An integer between two bounds."""
        value = self.value(name)
        if name not in self.raw:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            self.findings.expected(self._at(name), f"an integer from {low} to {high}")
            return None
        return value

    def object(self, name: str, *, required: bool = False) -> Members:
        """A nested object."""
        self.value(name, required=required)
        return Members(self.raw.get(name, _ABSENT), self._at(name), self.findings)

    def items(self, name: str, *, required: bool = False) -> list[tuple[str, object]]:
        """The elements of an array, each with its path."""
        value = self.value(name, required=required)
        return items_at(value, self._at(name), self.findings) if name in self.raw else []

    def objects(self, name: str, *, required: bool = False) -> list[Members]:
        """The elements of an array of objects."""
        parts = [Members(v, path, self.findings) for path, v in self.items(name, required=required)]
        return [part for part in parts if part.present]

    def names(self, name: str, *, required: bool = False) -> tuple[str, ...]:
        """An array of distinct non-empty strings."""
        result: list[str] = []
        for path, value in self.items(name, required=required):
            if not isinstance(value, str) or not value:
                self.findings.expected(path, "a non-empty string")
            elif value in result:
                self.findings.add(path, "Given twice.")
            else:
                result.append(value)
        return tuple(result)

    def only(self, required: Iterable[str], optional: Iterable[str] = ()) -> None:
        """Note, before anything is read, a member that is missing or unknown."""
        allowed = {*required, *optional}
        for name in sorted({*required} - self.raw.keys()):
            self.fault("", f"The member {name} is missing.")
        for name in sorted(self.raw.keys() - allowed):
            self.fault(name, "The request has an unknown member.")

    def close(self, extras: Collection[str] = ()) -> None:
        """Report members that are neither asked for nor kept uninterpreted."""
        for name in self.raw:
            if name not in self._asked and name not in extras:
                self.fault(name, "Unknown member.")

    def keep_rest(self) -> None:
        """Note the members that nobody asked for as kept; a misspelt one is a fault."""
        for name in self.raw:
            if name in self._asked:
                continue
            matches = difflib.get_close_matches(name[:64], self._asked, n=1, cutoff=MISSPELT)
            if matches:
                self.fault(name, f"Unknown member; {matches[0]} is known.")
            else:
                self.findings.kept.append(self._at(name))

    def adapt(self, name: str, message: str) -> None:
        """Note that a member is read otherwise than it was written."""
        self.findings.adapt(self._at(name), message)

    def _at(self, name: str) -> str:
        return self.path + pointer(name) if name else self.path


_ABSENT = object()


def pointer(name: str) -> str:
    """One JSON Pointer step, of at most 200 characters of the name."""
    return "/" + name[:200].replace("~", "~0").replace("/", "~1")


def text_at(value: object, path: str, findings: ShapeFaults, limit: int) -> str:
    """A string of 1 to `limit` characters, or an empty one with a fault."""
    if isinstance(value, str) and 1 <= len(value) <= limit:
        return value
    findings.expected(path, f"a string of 1 to {limit} characters")
    return ""


def items_at(value: object, path: str, findings: ShapeFaults) -> list[tuple[str, object]]:
    """The elements of an array, each with its path."""
    if not isinstance(value, list):
        findings.expected(path, "an array")
        return []
    elements = cast("list[object]", value)
    return [(f"{path}/{index}", element) for index, element in enumerate(elements)]
