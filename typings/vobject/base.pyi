"""What we use of vobject, which has no types."""

# ruff: noqa: N802, N803 (their names)

from collections.abc import Iterator
from typing import TextIO

class VObjectError(Exception):
    """A line that cannot be read."""

class ContentLine:
    """One property of a card."""

    name: str
    value: str
    params: dict[str, list[str]]
    singletonparams: list[str]

def getLogicalLines(fp: TextIO, allowQP: bool = True) -> Iterator[tuple[str, int]]: ...
def textLineToContentLine(text: str, n: int | None = None) -> ContentLine: ...
