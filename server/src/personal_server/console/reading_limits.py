"""The owner's limits on the reading of one app: in words, and out of the form."""

from __future__ import annotations

from pdpp_kernel.errors import InvalidRequest
from pdpp_kernel.result_size import MOST_RESULT_CHARS, RESULT_CHARS
from pdpp_kernel.texts import Joined, Text, message
from personal_server.console.session import PageRequest
from personal_server.storage.authorization_rows import ReadingLimitsRow


def limit_words(limits: ReadingLimitsRow) -> Text:
    """What may be read on a day, how long results may be, and whether an alarm pauses it."""
    given = (
        (limits.records_per_day, message("records")),
        (limits.requests_per_day, message("requests")),
        (limits.bytes_per_day, message("bytes")),
    )
    parts: list[Text] = [
        message("at most %(most)s %(what)s per day", most=most, what=what)
        for most, what in given
        if most is not None
    ] or [message("no daily limit")]
    if limits.result_chars is not None:
        parts.append(message("results with at most %(most)s characters", most=limits.result_chars))
    if limits.pauses is not None:
        paused, never = (
            message("an alarm pauses this access"),
            message("this access goes on when an alarm goes off"),
        )
        parts.append(paused if limits.pauses else never)
    if limits.events:
        parts.append(message("the app is notified when records change"))
    return Joined(tuple(parts))


_PAUSES = {"": None, "yes": True, "no": False}
_MOST = 10**15


def parse_limits(visit: PageRequest, held_id: str) -> ReadingLimitsRow:
    """The limits of a form; an empty field is no limit.  Raises: InvalidRequest."""
    pauses = visit.value("pauses") or ""
    if pauses not in _PAUSES:
        raise InvalidRequest("Choose whether unusual reading pauses this access.", param="pauses")
    return ReadingLimitsRow(
        held_id=held_id,
        records_per_day=_most(visit, "records_per_day"),
        bytes_per_day=_most(visit, "bytes_per_day"),
        requests_per_day=_most(visit, "requests_per_day"),
        pauses=_PAUSES[pauses],
        result_chars=_result_chars(visit),
        events=visit.value("events") == "yes" or None,
    )


def _result_chars(visit: PageRequest) -> int | None:
    chars = _most(visit, "result_chars")
    if chars is not None and not RESULT_CHARS <= chars <= MOST_RESULT_CHARS:
        raise InvalidRequest(
            message(
                "A result must have %(least)s to %(most)s characters.",
                least=RESULT_CHARS,
                most=MOST_RESULT_CHARS,
            ),
            param="result_chars",
        )
    return chars


def _most(visit: PageRequest, name: str) -> int | None:
    text = (visit.value(name) or "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 < int(text[:16]) < _MOST:
        raise InvalidRequest("Give a whole number above 0, or leave the field empty.", param=name)
    return int(text)
