"""The console put together: every page on its frame.  The composition root mounts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import quote

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from pdpp_kernel.errors import (
    BodyTooLarge,
    InvalidRequest,
    OwnerSessionRequired,
    PersonalServerError,
)
from personal_server.configuration_file import OwnerLocale
from personal_server.console.access import AccessPages
from personal_server.console.account_moves import AccountMovePages
from personal_server.console.account_receipts import BackupsBefore, ReceiptPages
from personal_server.console.accounts import AccountPages
from personal_server.console.apps import ClientPages
from personal_server.console.browse import BrowsePages
from personal_server.console.canaries import CanaryPages
from personal_server.console.consent_page import ConsentPages
from personal_server.console.device import DevicePages, UserCodeThrottle
from personal_server.console.disclosures import DisclosurePages, RecordsPages
from personal_server.console.home import BackupStandings, HomePage, SampleDeclarations
from personal_server.console.languages import Language, languages
from personal_server.console.locales import LocalePages, OwnerLocales, UnsetLocale
from personal_server.console.pages import (
    ICON,
    SCRIPTS,
    STYLESHEET,
    STYLESHEET_PATH,
    Script,
    Templates,
)
from personal_server.console.passkeys import PasskeyPages
from personal_server.console.search import SearchPages
from personal_server.console.session import (
    PLACE,
    PageRequest,
    PageRoute,
    anonymous_request,
    check_csrf,
    entry_cookie,
    known_cookie,
    next_cookie,
    place_of,
    session_cookie,
    session_secret,
)
from personal_server.console.sign_in import SignInPages
from personal_server.console.sign_in_throttle import SignInThrottle
from personal_server.console.uploads import UploadPages, UploadParts
from personal_server.console.viewpoints import Viewpoints
from personal_server.domain.keyed_values import OwnSpace, ValueSpace
from personal_server.enforcement.filter_texts import filters_of
from personal_server.granting.decisions import Granting
from personal_server.granting.grant_changes import GrantChanges
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.passkeys import Challenges, Passkeys
from personal_server.granting.pending_requests import Requesting
from personal_server.reading.identification import Identifier, OpenState
from personal_server.reading.owner import OwnerReads
from personal_server.reading.ports import ReadPorts
from personal_server.reading.preview import EvidenceReader
from personal_server.storage.authorization import AuthorizationStore
from personal_server.storage.catalog import KnownDeclarations, StoredCatalogs
from personal_server.storage.ports import DisclosureStore
from personal_server.web.accept_headers import prefers_json
from personal_server.web.bodies import drain
from personal_server.web.forms import FORM, Form, form_fields, leading_fields
from personal_server.web.requests import IncomingRequest
from personal_server.web.routing import RouteTable
from personal_server.web.surfaces import Exchange, Surface

# The pages on the frame: who visits, and how an error looks.
#
# Rule: an endpoint is a plain function from console and visit to a response; it runs in a worker
# thread, after session, query and form secret were judged here.


NO_SUCH_PAGE = "There is no such page."
SEGMENTS = frozenset({"consent", "device", "owner", "assets", "icon.svg", "~"})


class ConsoleApplication(Surface[PageRoute, PageRequest]):
    """The application of the pages."""

    def __init__(self, sign_in: OwnerSignIn, pages: Templates, routes: Sequence[PageRoute]) -> None:
        super().__init__(RouteTable(routes, NO_SUCH_PAGE))
        self._sign_in = sign_in
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request below its place."""
        found = PLACE.match(scope.get("path", ""))
        if found is not None:
            raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
            scope = {
                **scope,
                "path": scope["path"][found.end() :],
                "raw_path": raw_path[found.end() :],
                "state": {**scope.get("state", {}), "place": found[0]},
            }
        await super().__call__(scope, receive, send)

    async def identify(self, exchange: Exchange[PageRoute, PageRequest]) -> None:
        """Find the session of a visit."""
        exchange.caller = await self.readers.run(self._visit, exchange)
        if exchange.query_refusal is not None:  # a page repeats no words of a link
            param = (exchange.query_refusal.param or "")[:80] or None
            exchange.query_refusal = InvalidRequest("This page takes no such query.", param=param)

    def _visit(self, exchange: Exchange[PageRoute, PageRequest]) -> PageRequest:
        request = exchange.request
        sent = request.cookies.get(session_cookie(request.origin))
        cookie = session_secret(request.origin, sent, place_of(request))
        session = None if cookie is None else self._sign_in.session(cookie)
        keyed = exchange.parameters.keyed.get("filter", ())
        return replace(
            anonymous_request(request),
            query=exchange.parameters.texts,
            filters=filters_of((each.path, each.value) for each in keyed),
            path=exchange.path,
            cookie=cookie,
            session=session,
            place="" if session is None else place_of(request),
            entry_csrf=request.cookies.get(entry_cookie(request.origin)),
            entry_next=request.cookies.get(next_cookie(request.origin)),
            known_browser=self._sign_in.recognized(
                request.cookies.get(known_cookie(request.origin))
            ),
        )

    async def read_body(self, exchange: Exchange[PageRoute, PageRequest]) -> None:
        """Read a form; more than that of nobody but the owner.  Raises: OwnerSessionRequired."""
        try:
            if exchange.route.takes is not None:
                exchange.identified.owner()
            await super().read_body(exchange)
        except (BodyTooLarge, OwnerSessionRequired):
            await drain(exchange.request.receive)  # else the browser never reads the answer
            raise

    async def answer(self, exchange: Exchange[PageRoute, PageRequest]) -> Response:
        """Let the page answer, for the owner or where it is open to all."""
        route, request = exchange.route, exchange.request
        visit = exchange.identified
        if route.body is not None:
            content_type = request.headers.get("content-type", "")
            spool = exchange.spool
            form = (
                _form(exchange)
                if spool is None
                else await self.writers.run(leading_fields, spool, content_type)
            )
            visit = replace(
                visit, form=form, body=exchange.body, spool=spool, content_type=content_type
            )
        if not route.open_to_all and visit.session is None:
            return self._to_sign_in(request, visit)
        if route.body is not None:
            check_csrf(request, visit)
        workers = self.readers if route.method == "GET" else self.writers
        return await workers.run(route.endpoint, visit)

    def _to_sign_in(self, request: IncomingRequest, visit: PageRequest) -> Response:
        if prefers_json(request.accept):
            raise OwnerSessionRequired("Sign in as the owner first.")
        return self._pages.go(visit, f"/owner/login?next={quote(visit.target, safe='')}")

    def refuse(
        self, exchange: Exchange[PageRoute, PageRequest], error: PersonalServerError
    ) -> Response:
        """A page, or JSON where a program asks."""
        as_json = prefers_json(exchange.request.accept)
        place = "" if exchange.caller is None else exchange.caller.place
        visit = replace(anonymous_request(exchange.request), place=place)
        return self._pages.failure(visit, error, as_json=as_json)


def _form(exchange: Exchange[PageRoute, PageRequest]) -> Form:
    sent = exchange.request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return form_fields(exchange.body) if sent == FORM else ()


# The icon and the stylesheet: public files of the console.
#
# Source: docs/contract/authorization-server.md 12.1 (the icon is public), 12.4 (CORS).


_ICON_HEADERS = {
    "Cache-Control": "public, max-age=86400",
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
}
_STYLESHEET_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
}


def icon(visit: PageRequest) -> Response:
    """`/icon.svg`."""
    del visit
    return Response(ICON, 200, _ICON_HEADERS, "image/svg+xml")


def stylesheet(visit: PageRequest) -> Response:
    """The one stylesheet, under a name that changes with its content."""
    del visit
    return Response(STYLESHEET, 200, _STYLESHEET_HEADERS, "text/css")


def _answering(script: Script) -> Callable[[PageRequest], Response]:
    """A script, which pages work without."""

    def answer(visit: PageRequest) -> Response:
        del visit
        return Response(script.content, 200, _STYLESHEET_HEADERS, "text/javascript")

    return answer


ASSET_ROUTES = (
    PageRoute("GET", "/icon.svg", icon, open_to_all=True),
    PageRoute("GET", STYLESHEET_PATH, stylesheet, open_to_all=True),
    *(PageRoute("GET", each.path, _answering(each), open_to_all=True) for each in SCRIPTS),
)


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What the pages stand on."""

    server_name: str
    authorization: AuthorizationStore
    disclosures: DisclosureStore
    reads: ReadPorts
    declarations: KnownDeclarations
    random_bytes: Callable[[int], bytes]
    sign_in: OwnerSignIn
    identify: Identifier
    open_state: OpenState
    backups: BackupStandings = lambda: None
    kept_backups: BackupsBefore = lambda _: ()
    space: ValueSpace = field(default_factory=OwnSpace)
    uploads: UploadParts | None = None
    locale: OwnerLocales = field(default_factory=UnsetLocale)
    languages: Callable[[], Mapping[str, Language]] = languages
    sample_declarations: SampleDeclarations = tuple


def console_app(parts: ConsoleParts) -> ConsoleApplication:
    """The ASGI application of `SEGMENTS`."""
    pages, clock = Templates(parts.server_name, parts.locale, parts.languages), parts.reads.clock
    store, space = parts.authorization, parts.space
    catalogs = StoredCatalogs(parts.reads.store, parts.declarations)
    granting = Granting(store, catalogs, clock, parts.random_bytes)
    changes = GrantChanges(store, clock, parts.random_bytes)
    requesting = Requesting(store, clock, parts.random_bytes)
    evidence = EvidenceReader(parts.reads, parts.declarations)
    owner = OwnerReads(parts.reads, parts.declarations)
    viewpoints = Viewpoints(owner, store, parts.identify, parts.open_state, granting, clock)
    challenges = Challenges(clock, parts.random_bytes, space)
    sign_ins, user_codes = SignInThrottle(clock, space), UserCodeThrottle(clock, space)
    passkeys = Passkeys(store, clock, parts.server_name, challenges)
    log, reads, uploads = parts.disclosures, parts.reads, parts.uploads
    receipts = ReceiptPages(reads.sealer, pages, parts.kept_backups)
    has_uploads = uploads is not None and uploads.are_on
    upload_pages = UploadPages(uploads, catalogs, pages).routes() if uploads else ()
    routes = (
        *ASSET_ROUTES,
        *SignInPages(parts.sign_in, passkeys, pages, sign_ins).routes(),
        *PasskeyPages(passkeys, pages).routes(),
        *ConsentPages(granting, evidence, passkeys, pages, clock).routes(),
        *DevicePages(store, requesting, granting, pages, user_codes, clock).routes(),
        *HomePage(
            store,
            log,
            reads,
            catalogs,
            parts.sign_in,
            pages,
            clock,
            parts.backups,
            parts.sample_declarations,
            has_uploads,
        ).routes(),
        *LocalePages(parts.locale, pages).routes(),
        *AccessPages(store, log, catalogs, changes, pages, clock).routes(),
        *ClientPages(store, pages, clock).routes(),
        *CanaryPages(store, reads, catalogs, pages, clock).routes(),
        *BrowsePages(store, log, viewpoints, pages).routes(),
        *SearchPages(viewpoints, pages).routes(),
        *AccountPages(store, reads, catalogs, pages, clock, receipts, has_uploads).routes(),
        *AccountMovePages(store, reads, catalogs, pages, clock, receipts).routes(),
        *receipts.routes(),
        *RecordsPages(store, reads, catalogs, pages, clock, has_uploads).routes(),
        *DisclosurePages(store, log, owner, pages, clock).routes(),
        *upload_pages,
    )
    return ConsoleApplication(parts.sign_in, pages, routes)


# What the console lends to the authorization server: the owner's session and the error page.
#
# Source: docs/contract/authorization-server.md 0, 5.1, 10.3, 13.3.


PLACE_HEADER = "x-session-place"


def owner_session(sign_in: OwnerSignIn) -> Callable[[IncomingRequest], bool]:
    """Whether a request comes from a signed-in owner; form secret and place travel in headers.

    Raises: CsrfFailed if a signed-in browser was made to send it.
    """

    def judge(request: IncomingRequest) -> bool:
        sent = request.cookies.get(session_cookie(request.origin))
        cookie = session_secret(request.origin, sent, request.headers.get(PLACE_HEADER, ""))
        session = None if cookie is None else sign_in.session(cookie)
        if session is None:
            return False
        visit = replace(anonymous_request(request), session=session)
        check_csrf(request, visit)
        return True

    return judge


def error_page(
    server_name: str, locale: Callable[[], OwnerLocale] = OwnerLocale
) -> Callable[[IncomingRequest, PersonalServerError], Response]:
    """The page of an error that may not be redirected."""
    pages = Templates(server_name, locale)

    def page(request: IncomingRequest, error: PersonalServerError) -> Response:
        return pages.failure(anonymous_request(request), error, as_json=False)

    return page
