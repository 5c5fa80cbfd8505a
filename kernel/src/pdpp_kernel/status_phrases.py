"""What an HTTP status is called, on every Python alike.

Source: RFC 9110, 15.5.
"""

from __future__ import annotations

from http import HTTPStatus

# Python called these by older names until 3.13.
_NEWER = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}


def status_phrase(status: int) -> str:
    """What a status is called: `Not Found`; one that nobody registered is `HTTP status 599`."""
    try:
        return _NEWER.get(status) or HTTPStatus(status).phrase
    except ValueError:
        return f"HTTP status {status}"
