"""Figures for whoever watches many machines: what `/metrics` says, in Prometheus' text format.

Rule: a label is a word of a list that the program knows (a route's pattern, a code, a kind of
source, a number), so that nothing of the records, of who reads them or of their owner's names is
told; and the figures have a listener of their own, since what lies beside the pages of the server
is public where a proxy on this machine makes it so.
Source: docs/contract/resource-server.md 1.7; docs/running.md.
"""

from __future__ import annotations

import hmac
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import anyio.to_thread
from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.responses import PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from pdpp_kernel.errors import PersonalServerError
from pdpp_kernel.values import NANOSECONDS
from pdpp_sources.registry import SOURCES
from personal_server.app.own_version import VERSION
from personal_server.app.server import Server
from personal_server.app.tallies import Tallies
from personal_server.web.authorization_headers import sent_token
from personal_server.web.traffic import BOUNDS_SECONDS

PATH = "/metrics"
KINDS = frozenset(source.connector_key for source in SOURCES)
OTHER_KIND = "other"
"""What a program of the owner's brings, and tables, whose names are the owner's own."""
LOOPBACK_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
_PORT = re.compile(r":\d+\Z")


@dataclass(frozen=True, slots=True, eq=False)  # a registry keeps it as a key
class ServerFigures(Collector):
    """Everything that is told, read anew each time."""

    server: Server
    tallies: Tallies

    def collect(self) -> Iterator[Metric]:
        """One family after the other; what cannot be read now is left out and told."""
        unread = GaugeMetricFamily(
            "pdpp_unread", "Groups of metrics that could not be read.", labels=["group"]
        )
        for name, group in self._groups():
            try:
                yield from list(group())
                unread.add_metric([name], 0)
            except (PersonalServerError, OSError):
                unread.add_metric([name], 1)
        yield unread

    def _groups(self) -> Iterable[tuple[str, Callable[[], Iterator[Metric]]]]:
        return (
            ("requests", self._requests),
            ("queues", self._queues),
            ("upkeep", self._upkeep),
            ("sizes", self._sizes),
            ("backups", self._backups),
            ("imports", self._imports),
        )

    def _requests(self) -> Iterator[Metric]:
        tally = self.tallies.total()
        requests = CounterMetricFamily(
            "pdpp_requests", "Finished requests.", labels=["door", "route", "status"]
        )
        for labels, count in tally.requests.items():
            requests.add_metric(labels, count)
        yield requests
        latencies = HistogramMetricFamily(
            "pdpp_request_duration_seconds",
            "Seconds from the request to the end of its answer.",
            labels=["door", "route"],
        )
        for labels, (counts, sum_seconds) in tally.latencies.items():
            latencies.add_metric(labels, _buckets(counts), sum_seconds)
        yield latencies
        errors = CounterMetricFamily(
            "pdpp_errors", "Refused requests, by error code.", labels=["door", "code"]
        )
        for labels, count in tally.errors.items():
            errors.add_metric(labels, count)
        yield errors
        calls = CounterMetricFamily(
            "pdpp_tool_calls", "Tool calls at /mcp.", labels=["tool", "outcome"]
        )
        for labels, count in tally.tool_calls.items():
            calls.add_metric(labels, count)
        yield calls

    def _queues(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily(
            "pdpp_calls_waiting",
            "Calls that wait for a free slot.",
            labels=["surface", "kind"],
        )
        working = GaugeMetricFamily(
            "pdpp_calls_working", "Calls in progress.", labels=["surface", "kind"]
        )
        tally = self.tallies.total()
        for family, counts in ((waiting, tally.waiting), (working, tally.working)):
            for labels, count in counts.items():
                family.add_metric(labels, count)
        yield from (waiting, working)
        yield _gauge("pdpp_connections_open", "Connections.", tally.connections)
        yield _gauge(
            "pdpp_connections_most",
            "The limit on open connections.",
            tally.most_connections,
        )

    def _upkeep(self) -> Iterator[Metric]:
        rebuilds = self.server.stores.records.rebuilds()
        remaining = sum(rebuild.records - rebuild.copied for rebuild in rebuilds)
        yield _gauge("pdpp_rebuilds", "Streams that are being rebuilt.", len(rebuilds))
        yield _gauge("pdpp_rebuild_records_left", "Records that wait to be rebuilt.", remaining)
        failures = GaugeMetricFamily(
            "pdpp_task_failures", "Failures since the last success.", labels=["task"]
        )
        succeeded = GaugeMetricFamily(
            "pdpp_task_succeeded_timestamp_seconds", "Time of the last success.", labels=["task"]
        )
        for task in self.server.background.tasks:
            failures.add_metric([task.name], task.failures)
            succeeded.add_metric([task.name], _seconds(task.succeeded_at_ns))
        yield from (failures, succeeded)
        faults = GaugeMetricFamily(
            "pdpp_fault", "Problems that /healthz names now.", labels=["part", "code", "serving"]
        )
        for fault in self.server.health.faults():
            faults.add_metric([fault.part, fault.code, str(fault.serving).lower()], 1)
        yield faults
        build = GaugeMetricFamily("pdpp_build_info", "The running version.", labels=["version"])
        build.add_metric([VERSION], 1)
        yield build

    def _sizes(self) -> Iterator[Metric]:
        stores = self.server.stores
        size_bytes, journal_bytes = stores.database.sizes()
        blobs, blob_bytes = self.server.stores.upkeep.blob_sizes()
        disk = os.statvfs(stores.data_dir)
        for name, description, value in (
            ("pdpp_database_bytes", "Bytes of the database.", size_bytes),
            ("pdpp_journal_bytes", "Bytes of the database's write-ahead log.", journal_bytes),
            ("pdpp_blobs", "Stored files of records.", blobs),
            ("pdpp_blob_bytes", "Bytes of the stored files.", blob_bytes),
            (
                "pdpp_disk_free_bytes",
                "Bytes that can still be written on the database's disk.",
                disk.f_bavail * disk.f_frsize,
            ),
        ):
            yield _gauge(name, description, value)

    def _backups(self) -> Iterator[Metric]:
        rows, proof = self.server.stores.upkeep.backups(), self.server.stores.upkeep.proof()
        made_at = rows[0].made_at if rows else 0
        proven_at = proof.proven_at_ns if proof and proof.proven_at_ns else 0
        yield _gauge("pdpp_backups_kept", "Known backups.", len(rows))
        yield _gauge(
            "pdpp_backup_timestamp_seconds",
            "Time of the newest backup; 0: no backup.",
            _seconds(made_at),
        )
        yield _gauge(
            "pdpp_proven_restore_timestamp_seconds",
            "Time of the last successful test restore; 0: none.",
            _seconds(proven_at),
        )

    def _imports(self) -> Iterator[Metric]:
        with self.server.stores.records.snapshot() as snapshot:
            connections = sorted(
                snapshot.connections(), key=lambda connection: connection.created_at_ns
            )
            collections = snapshot.collections()
        imports = GaugeMetricFamily(
            "pdpp_import_timestamp_seconds",
            "Time of the last successful import of an account; 0: none.",
            labels=["kind", "ordinal"],
        )
        numbers: Counter[str] = Counter()
        for connection in connections:
            kind = connection.connector_key if connection.connector_key in KINDS else OTHER_KIND
            numbers[kind] += 1
            collection = collections.get(connection.connection_id)
            at_ns = (collection and collection.last_succeeded_at_ns) or 0
            imports.add_metric([kind, str(numbers[kind])], _seconds(at_ns))
        yield imports


def _gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(name, description, value=value)


def _seconds(at_ns: int) -> float:
    return at_ns / NANOSECONDS


def _buckets(counts: Iterable[int]) -> list[tuple[str, float]]:
    """Bounds with everything up to them."""
    total, buckets = 0, list[tuple[str, float]]()
    for bound, count in zip((*map(str, BOUNDS_SECONDS), "+Inf"), counts, strict=True):
        total += count
        buckets.append((bound, total))
    return buckets


class FiguresApp:
    """The ASGI application of the listener of the figures: one page, for whoever may read it.

    Shapes: with a `token`, whoever presents it; without one, whoever reaches the listener by a name
        of this machine, so that no page in a browser comes by a name of its own.
    """

    def __init__(self, figures: ServerFigures, token: str | None) -> None:
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(figures)
        ProcessCollector(registry=self._registry)
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request for the figures, in the text format of Prometheus."""
        if scope["type"] == "http":
            response = await self._response(scope)
            await response(scope, receive, send)

    async def _response(self, scope: Scope) -> Response:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        if not self._admits(headers):
            challenge = {"WWW-Authenticate": "Bearer"} if self._token else None
            return PlainTextResponse(
                "A token is needed to read these metrics.\n", 401 if self._token else 403, challenge
            )
        if scope["path"] != PATH or scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("GET /metrics\n", 404)
        text = await anyio.to_thread.run_sync(generate_latest, self._registry)
        return Response(text, media_type=CONTENT_TYPE_LATEST)

    def _admits(self, headers: dict[str, str]) -> bool:
        if self._token is None:
            return _PORT.sub("", headers.get("host", "")) in LOOPBACK_HOSTS
        token = sent_token(headers.get("authorization")) or ""
        return hmac.compare_digest(token.encode(), self._token.encode())
