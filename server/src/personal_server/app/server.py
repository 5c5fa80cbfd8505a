"""The composition root: settings become a running server.  The only place that wires parts."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, cast

import anyio
import anyio.to_thread
from starlette.types import ASGIApp, Receive, Scope, Send

from pdpp_kernel.errors import (
    DamagedRecord,
    GrantPaused,
    StorageReadOnly,
    StorageUnavailable,
)
from pdpp_kernel.refused_writes import DISK_LOW
from pdpp_mcp_server.calls import adapter_settings, those_of_this_program
from pdpp_mcp_server.rs_client.http import RsClient, in_process_client
from pdpp_mcp_server.rs_client.port import FixedBearer, RsPort
from personal_server.app.background import BackgroundTasks
from personal_server.app.backups import (
    LedgerKeeper,
    ScheduledBackups,
    catch_up_with_ledger,
    kept_backups,
    schedule_of,
)
from personal_server.app.databases import ServerDatabase
from personal_server.app.meaning import Meaning
from personal_server.app.peers import EVERY_SECONDS as PEERS_EVERY_SECONDS
from personal_server.app.peers import Peers
from personal_server.app.shared_memory import LEADER, SharedMemory
from personal_server.app.stores import Stores, command_origin, open_stores
from personal_server.app.uploads import (
    RecognizedFiles,
    import_folders_of,
    importable_exports,
    sample_declarations,
    uploads_of,
)
from personal_server.authorization_server.application import SEGMENTS as AUTHORIZATION_SEGMENTS
from personal_server.authorization_server.application import (
    WELL_KNOWN,
    AuthorizationApplication,
    AuthorizationParts,
    authorization_app,
)
from personal_server.authorization_server.configuration import (
    BUILT_IN,
    Configuration,
    PreRegistered,
    keep_pre_registered,
)
from personal_server.authorization_server.openapi import (
    SECURITY_SCHEMES,
    TAG,
    described_answers,
    described_paths,
)
from personal_server.console.application import SEGMENTS as CONSOLE_SEGMENTS
from personal_server.console.application import ConsoleParts, console_app, error_page, owner_session
from personal_server.console.home import BackupStanding
from personal_server.console.pages import STYLESHEET_PATH
from personal_server.console.uploads import UploadParts
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.deliveries import Deliveries
from personal_server.delivery.events import Events
from personal_server.delivery.signatures import SecretBox
from personal_server.delivery.subscriptions import Subscriptions
from personal_server.domain.keyed_values import OwnSpace, ValueSpace
from personal_server.domain.possession import PresentedToken
from personal_server.granting.owner_sessions import OwnerSignIn
from personal_server.granting.reading_alarms import PausePolicy, ReadingWatch, read_since
from personal_server.granting.retention import (
    FORGET_SECONDS,
    SWEEP_SECONDS,
    Retention,
    forget,
    sweep,
)
from personal_server.hosted_mcp.http import (
    Admitted,
    HostedApp,
    HostedCredential,
    ServerBehind,
    hosted_app,
)
from personal_server.reading.disclosure_log import DisclosureRecorder
from personal_server.reading.export import stored_grants
from personal_server.reading.owner import owner_of
from personal_server.reading.proofs import Proofs
from personal_server.reading.rankings import Rankings, shared_rankings
from personal_server.reading.tokens import (
    Identifier,
    OpenBriefly,
    TokenResolver,
    TokenState,
)
from personal_server.resource_server.application import (
    Parts,
    Ports,
    ResourceServer,
    resource_server,
)
from personal_server.resource_server.openapi import Beside
from personal_server.resource_server.quotas import (
    Amount,
    LimitRules,
    Quotas,
    Spent,
    SpentToday,
    totals_in,
)
from personal_server.semantics.index import EVERY_SECONDS as EMBEDDING_EVERY_SECONDS
from personal_server.settings import ConfigurationFile, LimitSettings, Settings
from personal_server.storage.damage import MEND_RECORDS, DamageNotes
from personal_server.storage.ports import PastBudget
from personal_server.upkeep.clock import ClockWatch
from personal_server.upkeep.logs import seal_logs, signing_key
from personal_server.upkeep.rebuilds import EVERY_SECONDS as REBUILDS_EVERY_SECONDS
from personal_server.upkeep.rebuilds import RebuildWork
from personal_server.upkeep.scratch import sweep_scratch
from personal_server.web.application import Application
from personal_server.web.failures import FailedBearers
from personal_server.web.guarded_fetch import GuardedFetch
from personal_server.web.health import Fault, Health
from personal_server.web.origins import origin_policy
from personal_server.web.surfaces import Surface
from personal_server.web.traffic import IN_PROCESS, Traffic

# Clients that the owner set up by hand: the `[[clients]]` tables of `config.toml`.
#
# A table names a client and where it takes codes: client_id, client_name, redirect_uris.


_TEXTS = ("client_id", "client_name")


def configured_clients(configuration: ConfigurationFile) -> tuple[PreRegistered, ...]:
    """The clients of the file.  Raises: StorageUnavailable for a table that is not one."""
    return tuple(_client(table) for table in configuration.clients)


def _client(table: dict[str, Any]) -> PreRegistered:
    texts = [table.get(name) for name in _TEXTS]
    redirects = table.get("redirect_uris", [])
    if set(table) - {*_TEXTS, "redirect_uris"} or not all(
        isinstance(text, str) and text for text in (*texts, *_each(redirects))
    ):
        raise StorageUnavailable(
            "A [[clients]] table of config.toml has client_id, client_name and redirect_uris."
        )
    return PreRegistered(str(texts[0]), str(texts[1]), tuple(map(str, _each(redirects))))


def _each(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [None]


# The hosted adapter's way to `/v1`: the same application, in this process.
#
# Rule: it enters behind the outermost application, so what that settles is settled here from the
# request itself, and what admission found out about the token of the call is handed on; there is no
# header or shortcut that skips a check of `/v1`.
# Source: docs/contract/mcp-adapter.md 3.2, 3.3.


VERSION = version("pdpp-personal-server")
LOCAL_OWNER = "local-owner"
"""No token: it names the owner to an application that nobody else can call."""


class InProcessTransport:
    """An inner application, told the origin that its in-process caller wrote into `Host`.

    Shapes: `token_states` is what is known of bearers already, by token.
    """

    def __init__(self, inner: ASGIApp, token_states: Mapping[str, object] | None = None) -> None:
        self._inner = inner
        self._token_states = token_states or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        host = next(value for name, value in scope["headers"] if name == b"host")
        origin = f"{scope['scheme']}://{host.decode('latin-1')}"
        state = {"origin": origin, "token_states": self._token_states}
        await self._inner({**scope, "state": state}, receive, send)


@contextmanager
def open_owner_reads(settings: Settings) -> Generator[RsClient, None, None]:
    """`/v1` for a command of the owner, in this process; no server need run.

    Raises: DatabaseTooNew, StorageUnavailable.
    Source: docs/contract/authorization-server.md 14.4.
    """
    with open_stores(settings, serving=False) as stores:
        meaning = Meaning(stores, settings.data_dir)
        stores = replace(stores, reads=replace(stores.reads, embedder=meaning))
        recorder = DisclosureRecorder(stores.disclosures, stores.clock, background=False)
        origins = origin_policy(settings).origins
        proofs = Proofs(stores.clock, stores.random_bytes)
        resolver = TokenResolver(stores.authorization, stores.clock, proofs)
        events = _events(stores, resolver, origins)
        v1 = _resource_server(
            settings, stores, events, recorder, callbacks_of(settings), OwnSpace()
        )
        owner = TokenState(replace(owner_of(stores.records.subject_id), resource=origins[0]))
        client = in_process_client(InProcessTransport(v1, {LOCAL_OWNER: owner}))
        bearer = FixedBearer(LOCAL_OWNER)
        try:
            yield RsClient(client, origins[0], bearer, VERSION, encoding="identity")
        finally:
            meaning.close()


class TokenAdmission:
    """Who may use `/mcp`, by the one resolver of tokens."""

    def __init__(
        self,
        resolver: TokenResolver,
        mcp_resources: frozenset[str],
        open_briefly: OpenBriefly | None = None,
    ) -> None:
        self._resolver = resolver
        self._open_briefly = open_briefly
        self._mcp_resources = mcp_resources

    async def judge(self, presented: PresentedToken) -> Admitted:
        """What a token stands for now.

        Raises: InvalidToken, InvalidDpopProof, GrantRevoked, GrantExpired, GrantInvalid,
            StorageUnavailable.
        """
        state = self._at_once(presented)
        if state is None:
            state = await anyio.to_thread.run_sync(self._resolver.current, presented)
        return self._admitted(state)

    async def judge_again(self, token: str) -> Admitted:
        """What it stands for now, for a request that lasts.

        Raises: InvalidToken, GrantRevoked, GrantExpired, GrantInvalid, StorageUnavailable.
        """
        return self._admitted(await anyio.to_thread.run_sync(self._resolver.lasting, token))

    def _admitted(self, state: TokenState) -> Admitted:
        # a pause is told by each tool call, so that no host asks for consent again
        if state.refusal is not None and not isinstance(state.refusal, GrantPaused):
            raise state.refusal
        found = state.resolved
        return Admitted(
            kind=found.kind,
            state=state,
            client_id=found.client_id,
            grant_id=found.grants[0].grant_id if len(found.grants) == 1 else None,
            package_id=found.package_id,
            reaches_mcp=found.resource in self._mcp_resources,
            result_chars=found.result_chars,
        )

    def _at_once(self, presented: PresentedToken) -> TokenState | None:
        if self._open_briefly is None:
            return None
        try:
            with self._open_briefly() as (reader, _):
                return self._resolver.state(reader, presented)
        except PastBudget:
            return None


FLUSH_SECONDS = 60
FIRST_USES_SECONDS = 1
LEDGER_SECONDS = 60
ERASING_SECONDS = 5
BACKUP_SECONDS = 60
# A turn waits by itself until something was written, which in an import is all the time.
DELIVERING_SECONDS = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Server:
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


@dataclass(frozen=True, slots=True)
class Share:
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
    events = _events(stores, resolver, origins)
    callbacks = callbacks or callbacks_of(settings)
    v1 = _resource_server(settings, stores, events, recorder, callbacks, space)
    traffic = Traffic()
    hosted = _hosted(settings, stores, resolver, origins, traffic.measured(IN_PROCESS, v1))
    console = console_app(_console_parts(settings, stores, sign_in, events.identify, space))
    authorization = _authorization(settings, stores, sign_in, resolver, origins, fetch, space)
    watch = ClockWatch(stores.upkeep, stores.clock, time.monotonic_ns)
    scheduled = ScheduledBackups(stores, settings)
    background = BackgroundTasks(stores.clock)
    _keep_process(background, stores, resolver)
    deliveries = Deliveries(events, callbacks, stores.changed, stores.clock, watch.is_trusted)
    rebuilding = RebuildWork(stores.records)
    health = Health()
    if share.leads:
        _keep_server(background, settings, stores, watch, scheduled)
        background.register("delivering", DELIVERING_SECONDS, deliveries.work)
        background.register("rebuilding", REBUILDS_EVERY_SECONDS, rebuilding)
    if meaning is not None:
        work = meaning.work if share.leads else meaning.choose
        background.register("embedding", EMBEDDING_EVERY_SECONDS, work, stop=meaning.stop)
        health.register_progress(meaning.index.progress)
    if share.memory is not None:
        background.register("telling", PEERS_EVERY_SECONDS, Peers(share.memory, health).tell)
    health.register(background.faults)
    health.register(lambda: _clock_faults(watch))
    health.register(lambda: _disk_faults(stores.database))
    health.register(scheduled.faults)
    health.register(lambda: _damage_faults(stores.database.damage))
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


def _events(stores: Stores, resolver: TokenResolver, origins: tuple[str, ...]) -> Events:
    resources = frozenset(f"{o}{path}" for o in origins for path in ("", "/v1", "/mcp"))
    identify = Identifier(
        resolver,
        stores.open_state,
        stores.declarations,
        resources.__contains__,
        stores.open_briefly,
    )
    secrets = SecretBox(stores.records.sealing_keys)
    return Events(stores.reads, stores.authorization, stores.open_state, identify, secrets)


def callbacks_of(settings: Settings) -> Callbacks:
    """Where events may be sent to."""
    return Callbacks(frozenset(settings.callback_hosts), settings.dev_loopback_callbacks)


def _resource_server(
    settings: Settings,
    stores: Stores,
    events: Events,
    recorder: DisclosureRecorder,
    callbacks: Callbacks,
    space: ValueSpace,
) -> ResourceServer:
    identify, random_bytes = events.identify, events.random_bytes
    subscriptions = Subscriptions(
        events.store, callbacks, events.secrets, events.newest, random_bytes
    )
    parts = Parts(
        stores.reads,
        stores.disclosures,
        recorder.flush,
        subscriptions,
        stores.declarations,
        grants=lambda: stored_grants(stores.authorization),
        kept_backups=lambda: kept_backups(stores),
        max_blob_bytes=settings.max_blob_bytes,
        server_name=settings.server_name,
        beside=Beside(
            (TAG,),
            described_paths(dynamic_registration=settings.dynamic_registration),
            described_answers(),
            SECURITY_SCHEMES,
        ),
        stylesheet=STYLESHEET_PATH,
    )
    limits = Quotas(
        _rules(settings.limits),
        stores.clock,
        totals_in(stores.disclosures),
        spent_in(stores, recorder),
        space,
    )
    ports = Ports(
        identify,
        limits,
        recorder,
        stores.clock,
        stores.random_bytes,
        planted=stores.reads.planted,
        identify_briefly=identify.briefly,
    )
    return resource_server(parts, ports)


def spent_in(stores: Stores, recorder: DisclosureRecorder) -> SpentToday:
    """What the history of readings knows of a day, so that a restart forgives nothing."""

    def spent(held_id: str, since_ns: int) -> Spent:
        recorder.flush()
        with stores.authorization.read() as reader:
            read = read_since(reader, held_id, since_ns)
        return Spent(read.requests, Amount(read.records, read.size_bytes))

    return spent


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
        _log.warning("configured clients stay as they were")
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
            importable_exports,
            import_folders_of(settings),
            RecognizedFiles(),
        ),
        stores.locale,
        sample_declarations=sample_declarations,
    )


def _backup_standing(settings: Settings, stores: Stores) -> BackupStanding:
    rows, proof = stores.upkeep.backups(), stores.upkeep.proof()
    return BackupStanding(
        rows[0].made_at if rows else None,
        None if proof is None else proof.proven_at_ns,
        schedule_of(stores, settings) is not None,
    )


def _rules(limits: LimitSettings) -> LimitRules:
    return LimitRules(
        limits.requests_per_second,
        limits.burst,
        limits.in_flight,
        limits.records_per_day,
        limits.bytes_per_day,
    )


def _hosted(
    settings: Settings,
    stores: Stores,
    resolver: TokenResolver,
    origins: tuple[str, ...],
    v1: ASGIApp,
) -> HostedApp:
    def open_port(credential: HostedCredential) -> RsPort:
        client = in_process_client(InProcessTransport(v1, {credential.token: credential.state}))
        bearer = FixedBearer(credential.token)
        rs = RsClient(client, credential.origin, bearer, VERSION, encoding="identity")
        return rs.port(credential.tool, credential.request_id)

    reachable = frozenset(f"{o}{path}" for o in origins for path in ("", "/mcp"))
    return hosted_app(
        open_port=open_port,
        admission=TokenAdmission(resolver, reachable, stores.open_briefly),
        origins=origins,
        version=VERSION,
        allowed_origins=settings.allowed_origins,
        settings=adapter_settings(settings.mcp_resource_links, settings.mcp_max_blob_bytes),
        behind=ServerBehind(those_of_this_program, stores.changed),
    )


def _disk_faults(database: ServerDatabase) -> Iterator[Fault]:
    """That nothing can be written; then no reads of clients are answered either, since the log of
    disclosures is written for each.
    """
    trouble = database.writability.trouble
    if trouble is not None:
        serving = trouble.reason == DISK_LOW
        yield Fault("disk", trouble.reason, trouble.since_ns, trouble.sentence, serving=serving)


def _damage_faults(damage: DamageNotes) -> Iterator[Fault]:
    """Which records these are is for the log and the doctor: anybody may ask for health."""
    if damage.since_ns is not None:
        yield Fault("records", DamagedRecord.code, damage.since_ns, MEND_RECORDS)


def _keep_process(background: BackgroundTasks, stores: Stores, resolver: TokenResolver) -> None:
    """What every process does by itself: it writes what it noted, and looks at what it met."""
    background.register("disk", FLUSH_SECONDS, stores.database.probe)
    background.register("uses", FLUSH_SECONDS, resolver.uses.flush, at_stop=True)
    background.register("first_uses", FIRST_USES_SECONDS, resolver.uses.flush_first)
    background.register("damage", FLUSH_SECONDS, stores.records.look_at_damage)


def _keep_server(
    background: BackgroundTasks,
    settings: Settings,
    stores: Stores,
    watch: ClockWatch,
    scheduled: ScheduledBackups,
) -> None:
    """What one process does for all; nothing is ended or forgotten by a clock in doubt."""
    retention = Retention(
        settings.change_history_days,
        settings.disclosure_log_days,
        settings.audit_log_days,
        settings.asked_detail_days,
    )
    background.register(
        "sweeping",
        SWEEP_SECONDS,
        lambda: watch.is_trusted() and sweep(stores.authorization, stores.clock()),
    )
    background.register(
        "sealing",
        FORGET_SECONDS,
        lambda: seal_logs(
            stores.logs, signing_key(stores.logs, stores.random_bytes), stores.clock()
        ),
    )
    background.register(
        "forgetting",
        FORGET_SECONDS,
        lambda: (
            watch.is_trusted()
            and forget(
                stores.records,
                stores.disclosures,
                stores.authorization,
                retention,
                stores.clock(),
            )
        ),
    )
    background.register("erasing", ERASING_SECONDS, stores.records.finish_erasures, at_stop=True)
    keeper = LedgerKeeper(stores, settings)
    background.register("ledger", LEDGER_SECONDS, keeper.keep, at_stop=True)
    background.register("backup", BACKUP_SECONDS, scheduled.make_if_due)


def _clock_faults(watch: ClockWatch) -> Iterator[Fault]:
    jumped_at_ns = watch.jumped_at_ns()
    if jumped_at_ns is not None:
        yield Fault(
            "clock",
            "clock_jumped",
            jumped_at_ns,
            "Nothing is ended or forgotten for a day. Is the clock right? pdpp admin accept-clock",
        )


@asynccontextmanager
async def _lifetime(hosted: HostedApp, background: BackgroundTasks) -> AsyncGenerator[None, None]:
    async with hosted.run(), background.running():
        yield
