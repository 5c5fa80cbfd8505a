"""The console put together: every page on its frame.  The composition root mounts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from personal_server.console.access import AccessPages
from personal_server.console.account_cards import AccountCardPages
from personal_server.console.account_moves import AccountMovePages
from personal_server.console.account_receipts import BackupsBefore, ReceiptPages
from personal_server.console.accounts import AccountPages
from personal_server.console.application import ConsoleApplication
from personal_server.console.apps import ClientPages
from personal_server.console.asked_requests import WaitingPages
from personal_server.console.assets import ASSET_ROUTES
from personal_server.console.canaries import CanaryPages
from personal_server.console.consent_page import ConsentPages
from personal_server.console.day_pages import DayPages
from personal_server.console.device import DevicePages, UserCodeThrottle
from personal_server.console.disclosures import DisclosurePages
from personal_server.console.feed_pages import FeedPages
from personal_server.console.feed_views import FeedList, FeedRunner
from personal_server.console.home import BackupStandings, HomePage, SampleDeclarations
from personal_server.console.languages import Language, languages
from personal_server.console.locales import LocalePages, OwnerLocales, UnsetLocale
from personal_server.console.notice_pages import DesktopFinder, NoticePages, UrlCheck, no_url
from personal_server.console.pages import Templates
from personal_server.console.passkeys import PasskeyPages
from personal_server.console.people import PeoplePages
from personal_server.console.record_pages import RecordPages
from personal_server.console.search import SearchPages
from personal_server.console.sign_in import SignInPages
from personal_server.console.sign_in_throttle import SignInThrottle
from personal_server.console.stream_pages import StreamPages
from personal_server.console.uploads import UploadPages, UploadParts
from personal_server.console.viewpoints import Viewpoints
from personal_server.domain.keyed_values import ValueSpace
from personal_server.domain.own_values import OwnSpace
from personal_server.feeds.wanted_accounts import AccountSignUps
from personal_server.granting.decisions import Granting
from personal_server.granting.grant_changes import GrantChanges
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.passkeys import Challenges, Passkeys
from personal_server.granting.pending_requests import Requesting
from personal_server.reading.identification import Identifier, OpenState
from personal_server.reading.owner import OwnerReads
from personal_server.reading.ports import ReadPorts
from personal_server.reading.preview import EvidenceReader
from personal_server.storage.catalog import StoredCatalogs
from personal_server.storage.known_declarations import KnownDeclarations
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.storage.ports.disclosure_stores import DisclosureStore


class ConsoleParts(msgspec.Struct, frozen=True):
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
    space: ValueSpace = msgspec.field(default_factory=OwnSpace)
    uploads: UploadParts | None = None
    locale: OwnerLocales = msgspec.field(default_factory=UnsetLocale)
    languages: Callable[[], Mapping[str, Language]] = languages
    sample_declarations: SampleDeclarations = tuple
    feeds: FeedList = tuple
    run_feed: FeedRunner = str
    sign_ups: Callable[[], AccountSignUps] | None = None
    desktop: DesktopFinder = lambda: False
    check_url: UrlCheck = no_url


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
    sign_ups = parts.sign_ups
    feed_pages = (
        FeedPages(sign_ups, parts.feeds, parts.run_feed, catalogs, pages).routes()
        if sign_ups
        else ()
    )
    upload_pages = UploadPages(uploads, catalogs, pages).routes() if uploads else ()
    routes = (
        *ASSET_ROUTES,
        *SignInPages(parts.sign_in, passkeys, pages, sign_ins).routes(),
        *PasskeyPages(passkeys, pages).routes(),
        *ConsentPages(granting, evidence, passkeys, parts.sign_in, pages, clock).routes(),
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
            parts.feeds,
            sign_ups is not None,
        ).routes(),
        *WaitingPages(store, catalogs, granting, pages, clock).routes(),
        *LocalePages(parts.locale, pages).routes(),
        *AccessPages(store, log, catalogs, changes, pages, clock).routes(),
        *ClientPages(store, pages, clock).routes(),
        *NoticePages(store, reads, pages, clock, parts.desktop, parts.check_url).routes(),
        *CanaryPages(store, reads, catalogs, pages, clock).routes(),
        *AccountCardPages(
            store,
            catalogs,
            viewpoints,
            pages,
            clock,
            has_uploads,
            parts.feeds,
            sign_ups is not None,
        ).routes(),
        *StreamPages(viewpoints, pages).routes(),
        *DayPages(owner, pages).routes(),
        *PeoplePages(owner, pages).routes(),
        *RecordPages(store, log, viewpoints, pages).routes(),
        *SearchPages(viewpoints, pages).routes(),
        *AccountPages(
            store,
            reads,
            catalogs,
            pages,
            clock,
            receipts,
            has_uploads,
            parts.feeds,
            parts.run_feed,
        ).routes(),
        *AccountMovePages(store, reads, catalogs, pages, clock, receipts).routes(),
        *receipts.routes(),
        *DisclosurePages(store, log, owner, pages, clock).routes(),
        *upload_pages,
        *feed_pages,
    )
    return ConsoleApplication(parts.sign_in, pages, routes)
