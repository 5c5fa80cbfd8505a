"""The text of a file while it is read: bounded in length, and in the time that it takes."""

from __future__ import annotations

import re
import time

from pdpp_kernel.source_item import TextState
from pdpp_sources.common.resume_point import BOOKMARK
from pdpp_sources.common.text import printable

LONGEST_TEXT_CHARS = 2_000_000
MOST_SECONDS = 30.0
# Possessive, and begun only where a stretch begins: blanks without end are read once.
_BLANKS = re.compile(r"(?<![ \f\v\xa0])[ \f\v\xa0]++(?=[\t\n])")
_TABS = re.compile(r"(?<!\t)\t++(?=\n)")
_MANY_LINES = re.compile(r"\n{4,}")


class EnoughRead(Exception):
    """The text is as long as it gets, or took as long as it may."""


class NoText(Exception):
    """Nothing more can be read of the file, and why."""

    def __init__(self, state: TextState) -> None:
        super().__init__(state)
        self.state = state


class Draft:
    """What was read so far.

    The time is that of this process's processor, so that a busy machine changes nothing.
    """

    def __init__(
        self, longest_chars: int = LONGEST_TEXT_CHARS, most_seconds: float = MOST_SECONDS
    ) -> None:
        self._pieces: list[str] = []
        self._left = longest_chars
        self._until = time.process_time() + most_seconds
        self.is_damaged = False  # something before the end could not be read
        self.has_unread_pictures = False  # which Tesseract would read

    def add(self, piece: str) -> None:
        """Lay a piece to the rest. Raises: EnoughRead."""
        self._pieces.append(piece[: self._left])
        self._left -= len(piece)
        if self._left < 0:
            raise EnoughRead

    def goes_on(self) -> None:
        """Another stretch is read, which may take its own time. Raises: EnoughRead."""
        if time.process_time() > self._until:
            raise EnoughRead
        BOOKMARK.goes_on()

    def finished(self) -> str:
        """The whole, with its line ends made one kind and without blank stretches."""
        text = "".join(self._pieces).replace("\r\n", "\n").replace("\r", "\n")
        text = _TABS.sub("", _BLANKS.sub("", printable(text)))
        return _MANY_LINES.sub("\n\n\n", text).strip()
