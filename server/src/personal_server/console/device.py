"""Entering a device's code, and the page that lets a device act as the owner.

Rule: a code is never submitted by itself; acting as the owner needs a fresh sign-in and a tick.
Source: docs/contract/authorization-server.md 8.2.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.responses import Response

from pdpp_kernel.errors import InvalidRequest, NotFound
from pdpp_kernel.oauth_errors import InvalidUserCode, RequestClosed
from personal_server.consent.credentials import USER_CODE_LENGTH, normal_user_code, shown_user_code
from personal_server.console.pages import Templates
from personal_server.console.session import PageRequest, PageRoute, acting
from personal_server.console.words import shown
from personal_server.domain.keyed_values import ValueSpace
from personal_server.domain.own_values import OwnSpace
from personal_server.granting.decisions import Granting
from personal_server.granting.pending_requests import OWNER_DEVICE, Requesting
from personal_server.storage.authorization_rows import ClientRow, RequestRow
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.web.failed_attempts import failures_in
from personal_server.web.failed_attempts import refuse_until as _refuse_until
from personal_server.web.limits import ALL, MINUTE_NS

FRESH_SECONDS = 300


class DevicePages(msgspec.Struct, frozen=True):
    """`/device`."""

    authorization: AuthorizationStore
    requesting: Requesting
    granting: Granting
    pages: Templates
    throttle: UserCodeThrottle
    clock: Callable[[], int]

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        return (
            PageRoute("GET", "/device", self.show, frozenset({"user_code"})),
            PageRoute("POST", "/device", self.enter),
            PageRoute("GET", "/device/{handle}", self.show_owner),
            PageRoute("POST", "/device/{handle}", self.decide_owner),
        )

    def show(self, visit: PageRequest) -> Response:
        """The form, filled in from the address but never sent by itself."""
        return self._form(visit, visit.query.get("user_code", ""))

    def enter(self, visit: PageRequest) -> Response:
        """Go to the request of a right code.  Raises: RateLimitExceeded."""
        session = visit.owner().reference
        self.throttle.check(session)
        typed = visit.value("user_code") or ""
        try:
            row = self.requesting.find_device(typed, acting(visit))
        except InvalidUserCode as error:
            self.throttle.failed(session)
            return self._form(visit, typed, error)
        page_name = "device" if row.flow == OWNER_DEVICE else "consent"
        return self.pages.go(visit, f"/{page_name}/{row.request_id}")

    def show_owner(self, visit: PageRequest) -> Response:
        """What it means to let a device act as the owner.  Raises: NotFound, RequestClosed."""
        return self._owner_page(visit)

    def decide_owner(self, visit: PageRequest) -> Response:
        """Allow or deny it.  Raises: NotFound, RequestClosed, ApprovalConflict, InvalidRequest."""
        handle = visit.path["handle"]
        row = self._owner_request(handle)
        match visit.value("action"):
            case "deny":
                self.granting.deny(row.request_id, acting(visit))
                return self.pages.show(visit, "decided.html", {"allowed": False, "as_owner": True})
            case "approve":
                if not visit.owner().is_fresh(self.clock(), FRESH_SECONDS):
                    return self._owner_page(visit)
                if visit.value("understood") != "yes":
                    return self._owner_page(visit, unticked=True)
                self.requesting.approve_owner_device(row.request_id, acting(visit))
                return self.pages.show(visit, "decided.html", {"allowed": True, "as_owner": True})
            case _:
                raise InvalidRequest("Choose one of the buttons of the page.", param="action")

    def _form(
        self, visit: PageRequest, typed: str, error: InvalidUserCode | None = None
    ) -> Response:
        code = normal_user_code(shown(typed, 40))
        whole = len(code) == USER_CODE_LENGTH
        return self.pages.show(
            visit,
            "device.html",
            {
                "code": shown_user_code(code) if whole else code,
                "whole": whole and error is None,
                "error": error,
                "csrf": visit.owner().csrf,
            },
            status=200 if error is None else error.status,
        )

    def _owner_page(self, visit: PageRequest, *, unticked: bool = False) -> Response:
        row = self._owner_request(visit.path["handle"])
        with self.authorization.read() as reader:
            client = reader.get(ClientRow, ClientRow.client_id.equals(row.client_id))
        return self.pages.show(
            visit,
            "device_owner.html",
            {
                "row": row,
                "name": row.client_id if client is None else client.name or client.client_id,
                "fresh": visit.owner().is_fresh(self.clock(), FRESH_SECONDS),
                "unticked": unticked,
                "csrf": visit.owner().csrf,
            },
            status=400 if unticked else 200,
        )

    def _owner_request(self, handle: str) -> RequestRow:
        with self.authorization.read() as reader:
            row = reader.get(RequestRow, RequestRow.request_id.equals(handle))
        if row is None or row.flow != OWNER_DEVICE:
            raise NotFound("There is no such request. Start again on the device that asks.")
        if row.status != "pending" or row.expires_at_ns <= self.clock():
            raise RequestClosed("This request is closed. Start again from the device.")
        return row


class UserCodeThrottle:
    """Wrong device codes: 5 in 10 minutes a session, 20 an hour in all."""

    def __init__(self, clock: Callable[[], int], space: ValueSpace | None = None) -> None:
        attempts = space or OwnSpace()
        self._clock = clock
        self._each = failures_in(attempts, "user_codes.each", clock, 10 * MINUTE_NS, 5)
        self._all = failures_in(attempts, "user_codes.all", clock, 60 * MINUTE_NS, 20)

    def check(self, session: str) -> None:
        """Raise: RateLimitExceeded."""
        each, everyone = self._each.recent(session), self._all.recent(ALL)
        until = each[0] + 10 * MINUTE_NS if len(each) >= 5 else 0
        if len(everyone) >= 20:
            until = max(until, everyone[0] + 60 * MINUTE_NS)
        _refuse_until(until, self._clock())

    def failed(self, session: str) -> None:
        """Count a wrong code against this session and against all."""
        self._each.add(session)
        self._all.add(ALL)
