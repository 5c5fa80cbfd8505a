"""Capabilities that the wire knows and this server does not have: their routes say so.

Rule: an absent capability answers as the contract says and is advertised nowhere.
Source: RS contract 15 ("other callers get 404").
"""

from __future__ import annotations

from personal_server.errors import NotFound
from personal_server.web.requests import Request
from personal_server.web.responses import Reply
from personal_server.web.routing import Route

SUBSCRIPTIONS = "/v1/event-subscriptions"
_CALLS = (
    ("GET", SUBSCRIPTIONS),
    ("POST", SUBSCRIPTIONS),
    ("GET", f"{SUBSCRIPTIONS}/{{id}}"),
    ("PATCH", f"{SUBSCRIPTIONS}/{{id}}"),
    ("DELETE", f"{SUBSCRIPTIONS}/{{id}}"),
    ("POST", f"{SUBSCRIPTIONS}/{{id}}/test-event"),
)


def routes() -> tuple[Route, ...]:
    """The routes of event subscriptions, which this server does not deliver."""
    return tuple(
        Route(
            method,
            pattern,
            no_subscriptions,
            "Event subscriptions are not offered by this server.",
            "15",
            success=404,
            errors=(NotFound,),
            cors=True,
            advertised=False,
        )
        for method, pattern in _CALLS
    )


def no_subscriptions(request: Request) -> Reply:
    """Raise: NotFound."""
    del request
    raise NotFound("This server offers no event subscriptions; follow changes_since instead.")
