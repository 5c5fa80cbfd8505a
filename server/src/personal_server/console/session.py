"""A visit: one request to an owner page, with what is known of who makes it.

Rule: a state-changing visit proves that its form came from our own page in this session before
anything else is looked at.  Source: docs/contract/authorization-server.md 13.2, 13.3.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Literal, TypedDict
from urllib.parse import urlsplit

from starlette.responses import Response

from pdpp_kernel.errors import CsrfFailed, InvalidRequest, OwnerSessionRequired
from pdpp_kernel.operators import LISTED_OPERATORS, Operator
from pdpp_kernel.unprinted import Unprinted
from personal_server.enforcement.filter_texts import FilterText
from personal_server.granting.audit import Acting
from personal_server.granting.owner_sessions import Browser, SignedIn
from personal_server.web import forms
from personal_server.web.parameters import Form, Parameter
from personal_server.web.requests import IncomingRequest
from personal_server.web.routes import BodyRule, RouteDeclaration

_NEXT = re.compile(r"/(consent|device|owner)([/?]|\Z)")
_FORBIDDEN_IN_NEXT = re.compile(r"//|\\|[\x00-\x20\x7f-\x9f]")

OWNER_HOME = "/owner/"

# A browser sends the cookies of 127.0.0.1 to every port of it, so to whatever else runs there.
# On a loopback origin a session is therefore opened by two halves of one secret: the cookie, and a
# place in the path of the pages, which only we are asked for.
PLACE = re.compile(r"/~[A-Za-z0-9_-]{22}(?=/)")
_COOKIE_CHARS = 21


class PageRequest(Unprinted, frozen=True):
    """What a page may know.

    Shapes: `path` holds the parameters of the route, `query` the known ones; `known_browser` tells
    browsers apart that signed in before; `cookie` is the whole secret of the session, `place` what
    its pages begin with; `languages` are those that the browser likes, as it says it.
    """

    method: str
    origin: str
    request_id: str
    visitor: Browser
    path: Mapping[str, str]
    query: Mapping[str, str]
    target: str
    languages: str = ""
    filters: tuple[FilterText, ...] = ()
    form: forms.Form = ()
    body: bytes = b""
    spool: BinaryIO | None = None
    content_type: str = ""
    session: SignedIn | None = None
    cookie: str | None = None
    entry_csrf: str | None = None
    entry_next: str | None = None
    known_browser: str | None = None
    place: str = ""

    def owner(self) -> SignedIn:
        """The session of the owner.  Raises: OwnerSessionRequired."""
        if self.session is None:
            raise OwnerSessionRequired("Sign in as the owner first.")
        return self.session

    def value(self, name: str) -> str | None:
        """The only value of a form field.  Raises: InvalidRequest if there are several."""
        values = [value for key, value in self.form if key == name]
        if len(values) > 1:
            raise InvalidRequest("The form sent one field twice.", param=name)
        return values[0] if values else None


def acting(visit: PageRequest) -> Acting:
    """The owner of this visit, as the audit trail names them."""
    return Acting("owner", visit.request_id, visit.visitor.address)


def session_cookie(origin: str) -> str:
    """The name of the cookie that holds the session."""
    return _cookie_name(origin, "owner")


def entry_cookie(origin: str) -> str:
    """The name of the cookie that holds the form secret before sign-in."""
    return _cookie_name(origin, "entry")


def next_cookie(origin: str) -> str:
    """The name of the cookie that remembers where a visitor was going before sign-in."""
    return _cookie_name(origin, "next")


def known_cookie(origin: str) -> str:
    """The name of the cookie of a browser that signed in before."""
    return _cookie_name(origin, "known")


def session_halves(origin: str, secret: str) -> tuple[str, str]:
    """What the cookie holds, and the place of the session's pages (none with https)."""
    if origin.startswith("https:"):
        return secret, ""
    return secret[:_COOKIE_CHARS], f"/~{secret[_COOKIE_CHARS:]}"


def session_secret(origin: str, cookie: str | None, path: str) -> str | None:
    """The secret of a session from what a browser sent, if it sent all of it."""
    if cookie is None or origin.startswith("https:"):
        return cookie
    return cookie + path.removeprefix("/~") if path else None


class CookieAttributes(TypedDict):
    """What our cookies have in common."""

    httponly: bool
    samesite: Literal["lax"]
    path: str
    secure: bool


def cookie_attributes(origin: str, path: str = "") -> CookieAttributes:
    """`HttpOnly; SameSite=Lax`, `Secure` with https; sent to the pages of a place alone.

    Lax, because the redirect from a client must find the session.
    """
    secure = origin.startswith("https:")
    return {"httponly": True, "samesite": "lax", "path": f"{path}/", "secure": secure}


def safe_next(target: str | None) -> str:
    """Where to go after sign-in: a page of ours, else the owner's home."""
    if target and _NEXT.match(target) and not _FORBIDDEN_IN_NEXT.search(target):
        return target
    return OWNER_HOME


def check_csrf(request: IncomingRequest, visit: PageRequest) -> None:
    """The form's secret is the session's, and the browser says that the page was ours.

    Source: docs/contract/authorization-server.md 13.3.  Raises: CsrfFailed.
    """
    expected = visit.entry_csrf if visit.session is None else visit.session.csrf
    token = request.headers.get("x-csrf-token") or next(
        (value for name, value in visit.form if name == "_csrf"), ""
    )
    if expected is None and _same_origin(request.headers, visit.origin):
        raise CsrfFailed(
            "This browser sent no cookie, so nobody can sign in with it. Allow cookies for this"
            " address in the browser, then open the page again."
        )
    fits = expected is not None and hmac.compare_digest(token.encode(), expected.encode())
    if not fits or not _same_origin(request.headers, visit.origin):
        raise CsrfFailed("This form is too old or did not come from this server. Reload the page.")


def _same_origin(headers: Mapping[str, str], origin: str) -> bool:
    origin_header = headers.get("origin")
    if origin_header is not None:
        return origin_header.lower() == origin
    return headers.get("sec-fetch-site") == "same-origin"


def _cookie_name(origin: str, word: str) -> str:
    parts = urlsplit(origin)
    if parts.scheme == "https":
        return f"__Host-pdpp_{word}"
    return f"pdpp_{word}_{parts.port or 80}"


FORM_BODY = BodyRule((), 512 * 1024)
"""Any content type: what is no form of ours fails its form secret."""


MOST_CONDITIONS = 16
FILTERS = Parameter(
    "filter",
    "",
    Form.KEYED,
    max_items=MOST_CONDITIONS,
    depth=2,
    repeated=(*LISTED_OPERATORS, Operator.NE.value),
)


@dataclass(frozen=True, slots=True)
class PageRoute(RouteDeclaration):
    """One page.

    `query` names its parameters, `filtered` ones take conditions too; `open_to_all` pages are
    reached without a session; `takes` is a body other than a form, which nobody but the owner of a
    session may send.
    """

    endpoint: Callable[[PageRequest], Response]
    query: frozenset[str] = frozenset()
    filtered: bool = False
    open_to_all: bool = False
    takes: BodyRule | None = None

    def __post_init__(self) -> None:
        """Declare what the page takes."""
        names = sorted(self.query)
        parameters = tuple(Parameter(name, "", empty_is_absent=True) for name in names)
        conditions = (FILTERS,) if self.filtered else ()
        object.__setattr__(self, "parameters", (*parameters, *conditions))
        media_type = self.takes or FORM_BODY
        object.__setattr__(self, "body", media_type if self.method == "POST" else None)
        RouteDeclaration.__post_init__(self)


def place_of(request: IncomingRequest) -> str:
    """The place that stood before the path."""
    return str(request.scope.get("state", {}).get("place", ""))


def anonymous_request(request: IncomingRequest) -> PageRequest:
    """A visit of which nothing is known but the request."""
    query = request.url.query
    return PageRequest(
        method=request.method,
        origin=request.origin,
        request_id=request.request_id,
        visitor=Browser(request.client_address, request.headers.get("user-agent")),
        path={},
        query={},
        target=request.url.path + (f"?{query}" if query and request.method != "POST" else ""),
        languages=request.headers.get("accept-language", ""),
        place=place_of(request),
    )
