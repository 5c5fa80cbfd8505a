"""Field windows: which field, and which stretch of it.

Source: docs/contract/resource-server.md 9.2.
"""

from __future__ import annotations

from pdpp_kernel.errors import InvalidFieldPath, InvalidWindow
from personal_server.enforcement.queries import (
    DEFAULT_WINDOW_CHARS,
    MAX_MATCH_CHARS,
    MAX_WINDOW_CHARS,
    FieldWindowQuery,
)

_NESTED = frozenset("./[")


def check_path(field: str) -> str:
    """A path of one step.  Raises: InvalidFieldPath."""
    if not field or _NESTED & set(field):
        raise InvalidFieldPath(
            "'field' must name one top-level property, such as field=body.", param="field"
        )
    return field


def stretch_of(query: FieldWindowQuery) -> tuple[int, int, int]:
    """How long a window is, where it begins, and how much of it stands before a match.

    Raises: InvalidWindow.
    """
    if query.text is None:
        for name, value in (
            ("before_chars", query.before_chars),
            ("after_chars", query.after_chars),
        ):
            if value is not None:
                raise InvalidWindow(
                    f"'{name}' works only together with 'q'; send 'q', too.", param=name
                )
        return query.limit_chars or DEFAULT_WINDOW_CHARS, query.offset_chars or 0, 0
    if query.offset_chars is not None:
        raise InvalidWindow(
            "'q' and 'offset_chars' exclude each other. Send one of them.", param="offset_chars"
        )
    if not 1 <= len(query.text) <= MAX_MATCH_CHARS:
        raise InvalidWindow(f"'q' has 1 to {MAX_MATCH_CHARS} characters.", param="q")
    length = _length(query, len(query.text))
    return length, 0, _before(query, length - len(query.text))


def _length(query: FieldWindowQuery, text_chars: int) -> int:
    if query.limit_chars is not None:
        return query.limit_chars
    if query.before_chars is None and query.after_chars is None:
        return DEFAULT_WINDOW_CHARS
    return min(MAX_WINDOW_CHARS, (query.before_chars or 0) + text_chars + (query.after_chars or 0))


def _before(query: FieldWindowQuery, room: int) -> int:
    room = max(0, room)
    if query.before_chars is not None:
        return min(query.before_chars, room)
    return 0 if query.after_chars is not None else room // 2
