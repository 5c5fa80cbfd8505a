"""Values that are never printed whole: secrets, texts of people, documents of any length."""

from __future__ import annotations

import msgspec


class Unprinted(msgspec.Struct, frozen=True):
    """A value of which no log, traceback or failed assertion shows more than the class.

    All of a class look alike: nothing that is told apart by its text, as a request is that a cursor
    is bound to, may hold one.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"
