"""Signing in and out: the link, the password, and the sessions of the owner.

Rule: `GET` never spends a link (scanners and prefetch follow links); before sign-in a cookie of its
own carries the form secret.  Source: docs/contract/authorization-server.md 13.
"""

from __future__ import annotations

import secrets
from urllib.parse import quote, unquote

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from pdpp_kernel.errors import NotFound, SignInFailed
from personal_server.console.asked_requests import comparison_code, is_asked
from personal_server.console.pages import Templates
from personal_server.console.passkeys import named_origin, rendered
from personal_server.console.session import (
    OWNER_HOME,
    PageRequest,
    PageRoute,
    cookie_attributes,
    entry_cookie,
    known_cookie,
    next_cookie,
    safe_next,
    session_cookie,
    session_halves,
)
from personal_server.console.sign_in_throttle import SignInThrottle
from personal_server.console.static_files import ARRIVING, ARRIVING_PASSKEYS, PASSKEYS
from personal_server.granting.owner_sessions import (
    ABSOLUTE_SECONDS,
    LINK_SECONDS,
    OwnerSignIn,
    SignedIn,
)
from personal_server.granting.passkeys import SIGN_IN, Passkeys
from personal_server.web.limits import network_of

_CSRF_BYTES = 32
REMEMBERED_SECONDS = 400 * 86_400


_SCRIPTS = {
    (False, False): None,
    (True, False): PASSKEYS,
    (False, True): ARRIVING,
    (True, True): ARRIVING_PASSKEYS,
}
"""By whether the page offers a passkey, and whether a signed-in tab may ask instead of it."""


def _code_of(visit: PageRequest, destination: str) -> str | None:
    """What names a request in two tabs, where a session has a place and so a tab of its own."""
    is_placed = visit.origin.startswith("http:") and visit.session is None
    return comparison_code(destination) if is_placed and is_asked(destination) else None


class SignInPages(msgspec.Struct, frozen=True):
    """The pages of 13.1 and the sign-ins of 13.5."""

    sign_in: OwnerSignIn
    passkeys: Passkeys
    pages: Templates
    throttle: SignInThrottle

    def routes(self) -> tuple[PageRoute, ...]:
        """The routes of these pages: path, methods, and who may open them."""
        entry = frozenset({"next"})
        link = frozenset({"t", "next"})
        return (
            PageRoute("GET", "/owner/login", self.login, entry, open_to_all=True),
            PageRoute("POST", "/owner/login", self.log_in, open_to_all=True),
            PageRoute("POST", "/owner/login/passkey", self.log_in_by_passkey, open_to_all=True),
            PageRoute("GET", "/owner/enter", self.enter, link, open_to_all=True),
            PageRoute("POST", "/owner/enter", self.spend_link, open_to_all=True),
            PageRoute("POST", "/owner/logout", self.log_out),
            PageRoute("GET", "/owner/sign-ins", self.sign_ins),
            PageRoute("POST", "/owner/sign-ins/{reference}/end", self.end_sign_in),
            PageRoute("POST", "/owner/sign-ins/{reference}/end-alike", self.end_alike),
            PageRoute("POST", "/owner/sign-ins/end-others", self.end_others),
        )

    def login(self, visit: PageRequest) -> Response:
        """The form for the password, and how to get a link."""
        return self._login(visit, safe_next(visit.query.get("next")))

    def log_in(self, visit: PageRequest) -> Response:
        """Open a session by password.  Raises: RateLimitExceeded."""
        address = network_of(visit.visitor.address or "unknown")
        destination = safe_next(visit.value("next"))
        browser = visit.known_browser
        self.throttle.attempt(address, browser)
        try:
            cookie = self.sign_in.enter_by_password(visit.value("password") or "", visit.visitor)
        except SignInFailed as error:
            return self._login(visit, destination, error)
        self.throttle.forgive(address, browser)
        return self._entered(visit, cookie, destination)

    def log_in_by_passkey(self, visit: PageRequest) -> Response:
        """Open a session by passkey."""
        destination = safe_next(visit.value("next"))
        try:
            self.passkeys.verify(visit.origin, visit.value("passkey") or "", SIGN_IN)
        except SignInFailed as error:
            return self._login(visit, destination, error)
        return self._entered(visit, self.sign_in.enter_by_passkey(visit.visitor), destination)

    def enter(self, visit: PageRequest) -> Response:
        """A button, nothing else."""
        return self._with_entry_secret(
            visit,
            "enter.html",
            200,
            secret=visit.query.get("t", ""),
            destination=safe_next(visit.query.get("next")),
        )

    def spend_link(self, visit: PageRequest) -> Response:
        """Spend the link and open a session.  Raises: SignInLinkInvalid."""
        cookie = self.sign_in.enter_by_link(visit.value("t") or "", visit.visitor)
        return self._entered(visit, cookie, safe_next(visit.value("next")))

    def log_out(self, visit: PageRequest) -> Response:
        """End this session."""
        if visit.cookie is not None:
            self.sign_in.sign_out(visit.cookie)
        destination = safe_next(visit.value("next"))
        onward = "" if destination == OWNER_HOME else f"?next={quote(destination, safe='')}"
        response = self.pages.go(replace(visit, place=""), f"/owner/login{onward}")
        ended = cookie_attributes(visit.origin, visit.place)
        response.delete_cookie(session_cookie(visit.origin), **ended)
        return response

    def sign_ins(self, visit: PageRequest) -> Response:
        """Every live session."""
        current, groups = visit.owner().reference, dict[object, list[SignedIn]]()
        for session in self.sign_in.sessions():
            alike = groups.setdefault(session.origin, [])
            alike.insert(0 if session.reference == current else len(alike), session)
        values = {"groups": list(groups.values()), "current": current}
        return self.pages.show(visit, "sign_ins.html", values)

    def end_sign_in(self, visit: PageRequest) -> Response:
        """End one session.  Raises: NotFound."""
        if not self.sign_in.end_session(visit.path["reference"]):
            raise NotFound("That browser is already signed out.")
        return self.pages.go(visit, "/owner/sign-ins")

    def end_alike(self, visit: PageRequest) -> Response:
        """End the sessions of one browser, but for this one.  Raises: NotFound."""
        if not self.sign_in.end_alike(visit.path["reference"], visit.owner().reference):
            raise NotFound("That browser is already signed out.")
        return self.pages.go(visit, "/owner/sign-ins")

    def end_others(self, visit: PageRequest) -> Response:
        """End every session but this one, as after a machine was lost."""
        self.sign_in.end_others(visit.owner().reference)
        return self.pages.go(visit, "/owner/sign-ins")

    def _login(
        self, visit: PageRequest, destination: str, error: SignInFailed | None = None
    ) -> Response:
        if visit.session is not None and error is None:
            return self.pages.go(visit, destination)
        response = self._with_entry_secret(
            visit,
            "login.html",
            200 if error is None else error.status,
            destination=destination,
            code=_code_of(visit, destination),
            has_password=self.sign_in.has_password(),
            passkey=rendered(self.passkeys.to_sign(visit.origin, SIGN_IN)),
            by_name=named_origin(visit.origin) if self.passkeys.listed() else None,
            error=error,
        )
        if destination != OWNER_HOME:
            response.set_cookie(
                next_cookie(visit.origin),
                quote(destination, safe=""),
                max_age=LINK_SECONDS,
                **cookie_attributes(visit.origin),
            )
        return response

    def _with_entry_secret(
        self, visit: PageRequest, template: str, status: int, **values: object
    ) -> Response:
        """A page with a form before sign-in."""
        csrf = visit.entry_csrf if visit.session is None else visit.session.csrf
        fresh = csrf or secrets.token_urlsafe(_CSRF_BYTES)
        response = self.pages.show(
            visit,
            template,
            {**values, "csrf": fresh},
            status=status,
            script=_SCRIPTS[bool(values.get("passkey")), bool(values.get("code"))],
        )
        if csrf is None:
            response.set_cookie(
                entry_cookie(visit.origin),
                fresh,
                **cookie_attributes(visit.origin),
            )
        return response

    def _entered(self, visit: PageRequest, cookie: str, destination: str) -> Response:
        if visit.cookie is not None:
            self.sign_in.sign_out(visit.cookie)
        if destination == OWNER_HOME and visit.entry_next is not None:
            destination = safe_next(unquote(visit.entry_next))
        session_half, path_half = session_halves(visit.origin, cookie)
        response = self.pages.go(replace(visit, place=path_half), destination)
        attributes = cookie_attributes(visit.origin)
        # An app that opens a window signs in there; this window's own session goes on.
        response.set_cookie(
            session_cookie(visit.origin),
            session_half,
            max_age=ABSOLUTE_SECONDS,
            **cookie_attributes(visit.origin, path_half),
        )
        remembered = self.sign_in.remembrance()
        if remembered is not None:
            name = known_cookie(visit.origin)
            response.set_cookie(name, remembered, max_age=REMEMBERED_SECONDS, **attributes)
        response.delete_cookie(next_cookie(visit.origin), **attributes)
        response.delete_cookie(entry_cookie(visit.origin), **attributes)
        return response
