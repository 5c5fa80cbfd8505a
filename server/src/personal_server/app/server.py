"""The composition root: settings become a running server.  What wires one part is called here."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, cast

import msgspec
from msgspec.structs import replace
from starlette.types import ASGIApp

from pdpp_kernel.errors import StorageReadOnly
from personal_server.app.background_tasks import BackgroundTasks
from personal_server.app.backup_ledger import catch_up_with_ledger
from personal_server.app.backup_schedule import kept_backups, schedule_of
from personal_server.app.configured_clients import configured_clients
from personal_server.app.feeding import feed_store, keep_feeds
from personal_server.app.hosted_adapter import hosted_adapter
from personal_server.app.meaning import Meaning
from personal_server.app.notice_facts import NOTICES_SECONDS, notices_of
from personal_server.app.peers import EVERY_SECONDS as PEERS_EVERY_SECONDS
from personal_server.app.peers import Peers
from personal_server.app.scheduled_backups import ScheduledBackups
from personal_server.app.server_faults import (
    clock_faults,
    damage_faults,
    database_faults,
    disk_faults,
)
from personal_server.app.shared_memory import LEADER, SharedMemory
from personal_server.app.stores import Stores, command_origin, open_stores
from personal_server.app.upkeep_tasks import keep_process, keep_server
from personal_server.app.uploads import (
    RecognizedFiles,
    import_folders_of,
    importable_exports,
    sample_declarations,
    uploads_of,
)
from personal_server.app.v1 import callbacks_of, events_of, v1_app
from personal_server.authorization_server.application import AuthorizationParts, authorization_app
from personal_server.authorization_server.configuration import (
    BUILT_IN,
    Configuration,
    keep_pre_registered,
)
from personal_server.authorization_server.endpoints import SEGMENTS as AUTHORIZATION_SEGMENTS
from personal_server.authorization_server.endpoints import WELL_KNOWN, AuthorizationApplication
from personal_server.console.application import SEGMENTS as CONSOLE_SEGMENTS
from personal_server.console.composition import ConsoleParts, console_app
from personal_server.console.home import BackupStanding
from personal_server.console.owner_session import error_page, owner_session
from personal_server.console.uploads import UploadParts
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.deliveries import Deliveries
from personal_server.delivery.notice_senders import desktop_program
from personal_server.domain.keyed_values import ValueSpace
from personal_server.domain.own_values import OwnSpace
from personal_server.feeds.feed_requests import ask_for_run
from personal_server.feeds.wanted_accounts import AccountSignUps
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.reading_alarms import PausePolicy, ReadingWatch
from personal_server.hosted_mcp.http import HostedApp
from personal_server.reading.disclosure_recorder import DisclosureRecorder
from personal_server.reading.identification import Identifier
from personal_server.reading.proofs import Proofs
from personal_server.reading.rankings import Rankings, shared_rankings
from personal_server.reading.tokens import TokenResolver
from personal_server.semantics.index import EVERY_SECONDS as EMBEDDING_EVERY_SECONDS
from personal_server.settings import Settings
from personal_server.upkeep.clock import ClockWatch
from personal_server.upkeep.rebuilds import EVERY_SECONDS as REBUILDS_EVERY_SECONDS
from personal_server.upkeep.rebuilds import RebuildWork
from personal_server.upkeep.scratch import sweep_scratch
from personal_server.web.application import Application
from personal_server.web.failed_attempts import FailedBearers
from personal_server.web.guarded_fetch import GuardedFetch
from personal_server.web.health import Health
from personal_server.web.origins import origin_policy
from personal_server.web.surfaces import Surface
from personal_server.web.traffic import IN_PROCESS, Traffic

# A turn waits by itself until something was written, which in an import is all the time.
DELIVERING_SECONDS = 0.2
_log = logging.getLogger(__name__)


class Server(msgspec.Struct, frozen=True):
    """A server that is ready to be listened for.

    Shapes: `origin` is the one people are told; `tool_calls` counts by tool and outcome;
        `end_listeners` ends the requests that last, so that a stop need not wait for them.
    """

    app: ASGIApp
    origin: str
    stores: Stores
    sign_in: OwnerSignIn
    health: Health
    background: BackgroundTasks
    traffic: Traffic
    surfaces: Mapping[str, Surface[Any, Any]]
    deliveries: Deliveries
    tool_calls: Mapping[tuple[str, str], int]
    end_listeners: Callable[[], None]

    def sign_in_link(self) -> str:
        """A fresh link that signs the owner in once."""
        return f"{self.origin}/owner/enter?t={self.sign_in.make_link()}"


class Share(msgspec.Struct, frozen=True):
    """What several processes that serve together share; by default there is one only.

    Shapes: `claim` as in `open_database`.
    """

    memory: SharedMemory | None = None
    claim: int | None = None

    @property
    def leads(self) -> bool:
        """Whether this process does what is done once."""
        return self.memory is None or self.memory.seat.number == LEADER

    @property
    def processes(self) -> int:
        """How many there are."""
        return 1 if self.memory is None else self.memory.seat.of

    @property
    def space(self) -> ValueSpace:
        """Where limits count."""
        return self.memory or OwnSpace()


@contextmanager
def open_server(
    settings: Settings, fetch: GuardedFetch | None = None, share: Share | None = None
) -> Generator[Server, None, None]:
    """Open the stores and put every part together; `fetch` reads what clients publish.

    Raises: DatabaseInUse, DatabaseTooNew, StorageUnavailable.
    """
    share = share or Share()
    with open_stores(settings, serving=True, claim=share.claim) as stores:
        if share.leads:
            sweep_scratch(settings.data_dir, stores.clock())
            catch_up_with_ledger(stores, settings)
        recorder = watched_recorder(settings, stores)
        meaning = Meaning(stores, settings.data_dir)
        try:
            yield compose(settings, stores, recorder, fetch or GuardedFetch(), meaning, share=share)
        finally:
            meaning.close()
            recorder.close()


def watched_recorder(settings: Settings, stores: Stores) -> DisclosureRecorder:
    """Writes the disclosure log and shows what was written to whoever watches for the unusual."""
    pauses = cast("PausePolicy", settings.pause_on_alarm)
    watch = ReadingWatch(stores.authorization, stores.random_bytes, pauses)
    return DisclosureRecorder(stores.disclosures, stores.clock, watch)


def compose(
    settings: Settings,
    stores: Stores,
    recorder: DisclosureRecorder,
    fetch: GuardedFetch,
    meaning: Meaning | None = None,
    callbacks: Callbacks | None = None,
    share: Share | None = None,
) -> Server:
    """Put the parts together on open stores."""
    share = share or Share()
    space = share.space
    shared = None if share.memory is None else shared_rankings(space)
    reads = replace(stores.reads, embedder=meaning, rankings=Rankings(shared))
    stores = replace(stores, reads=reads)
    policy = origin_policy(settings)
    origins = policy.origins
    proofs = Proofs(stores.clock, stores.random_bytes, space=space)
    resolver = TokenResolver(stores.authorization, stores.clock, proofs)
    sign_in = OwnerSignIn(stores.authorization, stores.clock, stores.random_bytes)
    events = events_of(stores, resolver, origins)
    callbacks = callbacks or callbacks_of(settings)
    v1 = v1_app(settings, stores, events, recorder, callbacks, space)
    traffic = Traffic()
    hosted = hosted_adapter(settings, stores, resolver, origins, traffic.measured(IN_PROCESS, v1))
    console = console_app(
        _console_parts(settings, stores, sign_in, events.identify, space, callbacks)
    )
    authorization = _authorization(settings, stores, sign_in, resolver, origins, fetch, space)
    watch = ClockWatch(stores.upkeep, stores.clock, time.monotonic_ns)
    scheduled = ScheduledBackups(stores, settings, is_trusted=watch.is_trusted)
    background = BackgroundTasks(stores.clock)
    keep_process(background, stores, resolver)
    deliveries = Deliveries(events, callbacks, stores.changed, stores.clock, watch.is_trusted)
    rebuilding = RebuildWork(stores.records)
    health = Health()
    if share.leads:
        keep_server(background, settings, stores, watch, scheduled)
        background.register("delivering", DELIVERING_SECONDS, deliveries.work)
        background.register(
            "notices", NOTICES_SECONDS, notices_of(settings, stores, callbacks).work
        )
        background.register("rebuilding", REBUILDS_EVERY_SECONDS, rebuilding)
        keep_feeds(background, settings, stores)
    if meaning is not None:
        work = meaning.work if share.leads else meaning.choose
        background.register("embedding", EMBEDDING_EVERY_SECONDS, work, stop=meaning.stop)
        health.register_progress(meaning.index.progress)
    if share.memory is not None:
        background.register("telling", PEERS_EVERY_SECONDS, Peers(share.memory, health).tell)
    health.register(lambda: database_faults(stores), "database")
    health.register(background.faults, "background")
    health.register(lambda: clock_faults(watch), "clock")
    health.register(lambda: disk_faults(stores.database), "disk")
    health.register(scheduled.faults, "backup")
    health.register(lambda: damage_faults(stores.database.damage), "records")
    health.register_progress(rebuilding.progress)
    app = Application(
        policy,
        [
            (frozenset({"mcp"}), hosted),
            (CONSOLE_SEGMENTS, console),
            (AUTHORIZATION_SEGMENTS | WELL_KNOWN, authorization),
        ],
        v1,
        FailedBearers(settings.limits.failed_tokens_per_minute, stores.clock, space),
        lambda: _lifetime(hosted, background),
        health,
        traffic,
    )
    surfaces = {"v1": v1, "mcp": hosted, "owner": console, "oauth": authorization}
    origin = command_origin(settings)
    return Server(
        app,
        origin,
        stores,
        sign_in,
        health,
        background,
        traffic,
        surfaces,
        deliveries,
        hosted.counts.calls,
        hosted.end_listeners,
    )


def _authorization(
    settings: Settings,
    stores: Stores,
    sign_in: OwnerSignIn,
    resolver: TokenResolver,
    origins: tuple[str, ...],
    fetch: GuardedFetch,
    space: ValueSpace,
) -> AuthorizationApplication:
    configuration = Configuration(
        origins=origins,
        dynamic_registration=settings.dynamic_registration,
        client_metadata_documents=settings.client_metadata_documents,
        redirect_schemes=settings.extra_redirect_schemes,
        pre_registered=(*BUILT_IN, *configured_clients(stores.configuration)),
    )
    now_ns, random_bytes = stores.clock(), stores.random_bytes
    try:
        keep_pre_registered(stores.authorization, configuration, now_ns, random_bytes)
    except StorageReadOnly:
        _log.warning("configured clients were not changed")
    return authorization_app(
        AuthorizationParts(
            stores.authorization,
            stores.catalogs,
            stores.clock,
            stores.random_bytes,
            resolver.uses,
            resolver.proofs,
            stores.receipts,
            configuration,
            fetch,
            owner_session=owner_session(sign_in),
            error_page=error_page(settings.server_name, stores.locale),
            space=space,
        )
    )


def _console_parts(
    settings: Settings,
    stores: Stores,
    sign_in: OwnerSignIn,
    identify: Identifier,
    space: ValueSpace,
    callbacks: Callbacks,
) -> ConsoleParts:
    return ConsoleParts(
        settings.server_name,
        stores.authorization,
        stores.disclosures,
        stores.reads,
        stores.declarations,
        stores.random_bytes,
        sign_in,
        identify,
        stores.open_state,
        lambda: _backup_standing(settings, stores),
        lambda before_ns: kept_backups(stores, before_ns),
        space,
        UploadParts(
            uploads_of(settings, stores),
            partial(importable_exports, settings),
            import_folders_of(settings),
            RecognizedFiles(settings),
        ),
        stores.locale,
        sample_declarations=sample_declarations,
        feeds=feed_store(stores).feeds,
        check_url=callbacks.check,
        desktop=lambda: desktop_program(settings.notice_command) is not None,
        run_feed=lambda feed_id: ask_for_run(feed_store(stores), feed_id, stores.clock()),
        sign_ups=partial(_sign_ups, stores),
    )


def _sign_ups(stores: Stores) -> AccountSignUps:
    from personal_server.app.account_sign_ups import StoredSignUps  # noqa: PLC0415 (seldom asked)

    return StoredSignUps(stores)


def _backup_standing(settings: Settings, stores: Stores) -> BackupStanding:
    rows, proof = stores.upkeep.backups(), stores.upkeep.proof()
    return BackupStanding(
        rows[0].made_at if rows else None,
        None if proof is None else proof.proven_at_ns,
        schedule_of(stores, settings) is not None,
    )


@asynccontextmanager
async def _lifetime(hosted: HostedApp, background: BackgroundTasks) -> AsyncGenerator[None, None]:
    async with hosted.run(), background.running():
        yield
