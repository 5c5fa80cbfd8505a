"""Cut iCalendar and vCard files at their BEGIN and END lines while they stream by."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

LONGEST_LINE_BYTES = 4 * 1024 * 1024
LARGEST_COMPONENT_BYTES = 32 * 1024 * 1024


class Component(msgspec.Struct, frozen=True):
    """A component with everything inside it, or (without a name) one line outside of any.

    Units: `offset` in bytes from the start of the file. `raw` is None for one that is too large or
    that the file ends in; `fault` says which.
    """

    offset: int
    name: str
    raw: bytes | None
    is_too_large: bool = False

    @property
    def fault(self) -> tuple[str, str]:
        """Why there is nothing of it: a code and a reason."""
        if self.is_too_large:
            return "too_large", f"it is over {LARGEST_COMPONENT_BYTES // 1024 // 1024} MB"
        return "truncated", "the file ends in the middle of it"


def cut_components(stream: BinaryIO, kinds: frozenset[str]) -> Iterator[Component]:
    """The components of these kinds, and the lines outside of them, in their order."""
    offset, begin, name, depth = 0, 0, "", 0
    lines: list[bytes] = []
    size = 0
    while line := stream.readline(LONGEST_LINE_BYTES):
        head, _, label = line[:80].decode("ascii", "replace").strip().upper().partition(":")
        if head == "BEGIN" and label in kinds and name not in ("", "VCARD"):
            # None of them holds another (a card may): the line that ends the one before is missing.
            lines.append(f"END:{name}\r\n".encode())
            too_large = size > LARGEST_COMPONENT_BYTES
            yield Component(begin, name, None if too_large else b"".join(lines), too_large)
            name = ""
        if head == "BEGIN" and not name and label in kinds:
            name, begin, depth, size = label, offset, 0, 0
            lines = []
        if name:
            size += len(line)
            lines.append(line)
            if size > LARGEST_COMPONENT_BYTES:
                lines = []
            depth += (head == "BEGIN") - (head == "END")
            if depth == 0 or (head == "END" and label == name):
                too_large = size > LARGEST_COMPONENT_BYTES
                yield Component(begin, name, None if too_large else b"".join(lines), too_large)
                name = ""
        else:
            yield Component(offset, "", line)
        offset += len(line)
    if name:
        yield Component(begin, name, None, size > LARGEST_COMPONENT_BYTES)
