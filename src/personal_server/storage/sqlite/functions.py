"""Functions of our own that statements call: digests, folded search, word statistics."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, cast

import apsw

from personal_server.domain.values import Comparable, ValueKind, comparable
from personal_server.storage.meaning import fold
from personal_server.storage.sqlite.session import Session, Value


def register(session: Session) -> None:
    """Make the functions known to a connection."""
    driver = cast("Any", session.driver)
    scalar: Callable[..., None] = driver.create_scalar_function
    scalar("pdpp_sha256", _sha256, 1, deterministic=True)
    scalar("pdpp_find", _find, 2, deterministic=True)
    scalar("pdpp_comparable", _comparable, 2, deterministic=True)
    driver.register_fts5_function("pdpp_words", _words)


def bound(value: Comparable | None) -> Value:
    """A comparable as the database compares it; wide integers become doubles."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return float(value)
    return value


def _sha256(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def _find(text: str | None, sought: str) -> int | None:
    """Where folded text begins to match, in code points; -1 if nowhere."""
    return None if text is None else fold(text).find(fold(sought))


def _comparable(value: object, kind: str) -> Value:
    return bound(comparable(value, ValueKind(kind)))


def _words(api: apsw.FTS5ExtensionApi, *columns: int) -> str:
    """Occurrences of each phrase, and the number of words, over the columns.

    Arguments: the column whose occurrences count double (or -1), then all granted columns.
    Shapes: "words occurrences occurrences …".
    """
    title, *counted = columns
    words = sum(api.column_size(column) for column in counted)
    found: list[int] = []
    for phrase in range(api.phrase_count):
        places = api.phrase_locations(phrase)
        total = sum(len(places[column]) for column in counted)
        found.append(total + (len(places[title]) if title >= 0 else 0))
    return " ".join(map(str, (words, *found)))
