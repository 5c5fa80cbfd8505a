"""`/v1` put together: the resource server with its limits, its log and its event subscriptions."""

from __future__ import annotations

from personal_server.app.backup_schedule import kept_backups
from personal_server.app.feeding import feed_store
from personal_server.app.stores import Stores
from personal_server.authorization_server.openapi import (
    SECURITY_SCHEMES,
    TAG,
    described_answers,
    described_paths,
)
from personal_server.console.static_files import STYLESHEET_PATH
from personal_server.delivery.callbacks import Callbacks
from personal_server.delivery.events import Events
from personal_server.delivery.signatures import SecretBox
from personal_server.delivery.subscribers import Subscriptions
from personal_server.domain.keyed_values import ValueSpace
from personal_server.granting.reading_alarms import read_since
from personal_server.reading.disclosure_recorder import DisclosureRecorder
from personal_server.reading.export import stored_grants
from personal_server.reading.identification import Identifier
from personal_server.reading.tokens import TokenResolver
from personal_server.resource_server.application import Ports, ResourceServer
from personal_server.resource_server.openapi import Beside
from personal_server.resource_server.quotas import (
    Amount,
    LimitRules,
    Quotas,
    Spent,
    SpentToday,
    totals_in,
)
from personal_server.resource_server.route_modules import Parts, resource_server
from personal_server.settings import LimitSettings, Settings


def events_of(stores: Stores, resolver: TokenResolver, origins: tuple[str, ...]) -> Events:
    """What changed since a bookmark, for the subscriptions of apps."""
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


def v1_app(
    settings: Settings,
    stores: Stores,
    events: Events,
    recorder: DisclosureRecorder,
    callbacks: Callbacks,
    space: ValueSpace,
) -> ResourceServer:
    """The resource server of these stores."""
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
        feeds=feed_store(stores),
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


def _rules(limits: LimitSettings) -> LimitRules:
    return LimitRules(
        limits.requests_per_second,
        limits.burst,
        limits.in_flight,
        limits.records_per_day,
        limits.bytes_per_day,
    )
