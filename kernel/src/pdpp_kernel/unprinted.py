"""Values that are never printed whole: secrets, texts of people, documents of any length."""

from __future__ import annotations

import msgspec


class Unprinted(msgspec.Struct, frozen=True):
    """A value of which no log, traceback or failed assertion shows more than the class.

    Two of a class have the same `repr`.  So what is compared by its `repr` may not contain one: a
    cursor is bound to the `repr` of what was asked.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"
