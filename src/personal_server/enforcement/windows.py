"""Field windows: which field, and which stretch of it.

Source: RS contract 9.2.
"""

from __future__ import annotations

from personal_server.enforcement.query import FieldWindowQuery
from personal_server.enforcement.terms import FieldWindowTerms
from personal_server.errors import InvalidFieldPath, InvalidWindow

DEFAULT_CHARS = 4_096
MAX_CHARS = 16_384
MAX_CONTEXT_CHARS = 8_192
MAX_TEXT_CHARS = 256

_NESTED = frozenset("./[")


def check_path(field: str) -> str:
    """A path of one step.  Raises: InvalidFieldPath."""
    if not field or _NESTED & set(field):
        raise InvalidFieldPath(
            "'field' names one top-level property, such as field=body.", param="field"
        )
    return field


def window_terms(query: FieldWindowQuery) -> FieldWindowTerms:
    """Where the window begins and how long it is.

    Raises: InvalidWindow.
    """
    if query.text is None:
        for name, value in (
            ("before_chars", query.before_chars),
            ("after_chars", query.after_chars),
        ):
            if value is not None:
                raise InvalidWindow(f"'{name}' gives context to 'q'; send 'q'.", param=name)
        limit = query.limit_chars or DEFAULT_CHARS
        return _terms(query, limit, query.offset_chars or 0, 0)
    if query.offset_chars is not None:
        raise InvalidWindow("'q' and 'offset_chars' exclude each other.", param="offset_chars")
    if not 1 <= len(query.text) <= MAX_TEXT_CHARS:
        raise InvalidWindow(f"'q' has 1 to {MAX_TEXT_CHARS} characters.", param="q")
    length = _length(query, len(query.text))
    return _terms(query, length, 0, _before(query, length - len(query.text)))


def _length(query: FieldWindowQuery, text_chars: int) -> int:
    if query.limit_chars is not None:
        return query.limit_chars
    if query.before_chars is None and query.after_chars is None:
        return DEFAULT_CHARS
    return min(MAX_CHARS, (query.before_chars or 0) + text_chars + (query.after_chars or 0))


def _before(query: FieldWindowQuery, room: int) -> int:
    room = max(0, room)
    if query.before_chars is not None:
        return min(query.before_chars, room)
    return 0 if query.after_chars is not None else room // 2


def _terms(query: FieldWindowQuery, length: int, offset: int, before: int) -> FieldWindowTerms:
    return FieldWindowTerms(
        key=query.key,
        field=query.field,
        limit_chars=length,
        offset_chars=offset,
        text=query.text,
        before_chars=before,
    )
