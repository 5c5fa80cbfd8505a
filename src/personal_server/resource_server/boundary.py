"""The error boundary of `/v1`: every error gets its wire form here, and nowhere else.

Rule: an error we did not raise on purpose becomes `internal_error` with a constant message; its
own text goes nowhere.
"""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import orjson

from personal_server.errors import InternalError, PersonalServerError, RangeNotSatisfiable
from personal_server.resource_server.bearer import challenge, metadata_url

RETRY_SECONDS = 1
NEXT_STEP = (
    "Read resource_metadata, follow authorization_servers, and authorize with the scope pdpp:read."
)

_log = logging.getLogger(__name__)


class UnsatisfiableRange(RangeNotSatisfiable):
    """A byte range outside a blob of `size_bytes`."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(f"The blob has {size_bytes} bytes; ask for a range within.", param="Range")
        self.size_bytes = size_bytes


def translate(error: Exception, request_id: str) -> PersonalServerError:
    """Our own error as it is; anything else as `internal_error`, its place reported."""
    if isinstance(error, PersonalServerError):
        return error
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
    _log.error("defect %s in %s at %s", type(error).__name__, request_id, places)
    return InternalError("The server has a defect; the request id finds it in the server's log.")


def error_body(error: PersonalServerError, request_id: str, origin: str = "") -> bytes:
    """The wire form of an error.  Source: RS contract 2.1, 3."""
    members: dict[str, object] = {
        "type": error.type,
        "code": error.code,
        "message": error.message,
    }
    if error.param is not None:
        members["param"] = error.param
    members.update(error.members)
    if error.status == 401:
        members["resource_metadata"] = metadata_url(origin)
        members["next_step"] = NEXT_STEP
    members["request_id"] = request_id
    return orjson.dumps({"error": members})


def error_headers(error: PersonalServerError, origin: str) -> list[tuple[str, str]]:
    """The headers that belong to an error: challenge, waiting time, size of the resource."""
    headers: list[tuple[str, str]] = []
    if error.status == 401:
        headers.append(("WWW-Authenticate", challenge(error, origin)))
    if error.status in (429, 503):
        wait = error.members.get("retry_after_seconds", RETRY_SECONDS)
        headers.append(("Retry-After", str(wait)))
    if isinstance(error, UnsatisfiableRange):
        headers.append(("Content-Range", f"bytes */{error.size_bytes}"))
    return headers
