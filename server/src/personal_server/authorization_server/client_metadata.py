"""Client documents and key sets, fetched and kept.

Rule: a new authorization needs a document within its time; a refresh or revocation may use a copy
that is up to 24 hours older.  Of a known host whose document nobody gives, what it published last
stands in for half a year, and says so; it never stands before what can be fetched.
Source: docs/contract/authorization-server.md 3.3 (caching, known hosts), 17.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import date
from urllib.parse import urlsplit

import anyio.to_thread
import msgspec
from msgspec.structs import replace

from pdpp_kernel.errors import RateLimitExceeded
from pdpp_kernel.oauth_errors import InvalidClient
from pdpp_kernel.texts import message
from pdpp_kernel.values import DAY_NANOSECONDS, NANOSECONDS, instant_text
from personal_server.authorization_server.configuration import Configuration
from personal_server.consent.client_documents import (
    ClientDocument,
    check_document_url,
    check_public_keys,
    parse_client_document,
    parse_json,
    published_keys,
)
from personal_server.domain.hosts import DOCUMENT_DAYS, PUBLISHED
from personal_server.domain.keyed_values import ValueSpace
from personal_server.granting.audit import METADATA_CHANGED, SERVER, Subject, audit
from personal_server.storage.authorization_rows import ClientDocumentRow
from personal_server.storage.ports.authorization_store import AuthorizationStore
from personal_server.web.guarded_fetch import MAX_DOCUMENT, MAX_KEYS, UNREACHABLE, GuardedFetch
from personal_server.web.limits import RateLimits

LEAST_SECONDS, MOST_SECONDS = 300, 86_400
STALE_NS = DAY_NANOSECONDS
FAILURE_NS = 60 * NANOSECONDS
REFETCH_NS = 60 * NANOSECONDS
OFFLINE, OFFLINE_NS = "until", 600 * NANOSECONDS


class _Body(msgspec.Struct, frozen=True):
    """A document or key set; `published_on` where it could not be fetched now."""

    text: bytes
    published_on: date | None = None


class Documents:
    """Keeps what strangers publish."""

    def __init__(
        self,
        store: AuthorizationStore,
        configuration: Configuration,
        limits: RateLimits,
        clock: Callable[[], int],
        fetch: GuardedFetch,
        space: ValueSpace,
    ) -> None:
        self._store = store
        self._configuration = configuration
        self._limits = limits
        self._clock = clock
        self._fetch = fetch
        self._failures: dict[str, tuple[int, InvalidClient]] = {}
        self._offline_until_ns = space.values("documents.offline", int, 1, 16)

    @property
    def offered(self) -> bool:
        """Whether hosts are told that they may come with a document: not for ten minutes after
        one was refused because the internet is out of reach, so that they register instead.
        """
        until_ns = self._offline_until_ns.get(OFFLINE) or 0
        return self._configuration.client_metadata_documents and self._clock() >= until_ns

    async def client(self, url: str, origin: str, *, stale: bool) -> ClientDocument:
        """The document of a client.  Raises: InvalidClient, RateLimitExceeded."""
        hosts = [urlsplit(own).netloc for own in (origin, *self._configuration.origins)]
        check_document_url(url, hosts)
        body = await self._body(url, MAX_DOCUMENT, url, stale=stale)
        document = parse_client_document(url, body.text, self._configuration.redirect_schemes)
        day = body.published_on
        return document if day is None else replace(document, published_on=day.isoformat())

    async def keys(self, document: ClientDocument, *, anew: bool = False) -> dict[str, object]:
        """The key set of a client; `anew` fetches it, at most once a minute.

        Raises: InvalidClient, RateLimitExceeded.
        """
        if document.keys is not None:
            return dict(document.keys)
        if document.jwks_uri is None:
            raise InvalidClient("This client publishes no keys.")
        hosts = [urlsplit(own).netloc for own in self._configuration.origins]
        url = check_document_url(document.jwks_uri, hosts)
        body = await self._body(url, MAX_KEYS, document.client_id, stale=True, anew=anew)
        return dict(check_public_keys(parse_json(body.text)))

    async def _body(
        self, url: str, limit: int, client_id: str, *, stale: bool, anew: bool = False
    ) -> _Body:
        now_ns = self._clock()
        row = await anyio.to_thread.run_sync(self._kept, url)
        if row is not None:
            fresh = now_ns < row.fresh_until_ns
            if fresh and not (anew and now_ns >= row.fetched_at_ns + REFETCH_NS):
                return _Body(row.body)
        try:
            return _Body(await self._fetched(url, limit, client_id, now_ns))
        except (InvalidClient, RateLimitExceeded) as refusal:
            if row is not None and stale and now_ns < row.fresh_until_ns + STALE_NS:
                return _Body(row.body)
            if refusal.members.get("reason") != UNREACHABLE:
                raise
            published = _published(url, row, now_ns)
            if published is not None:
                return published
            if await self._fetch.is_offline(urlsplit(url).hostname or "" for url in PUBLISHED):
                self._offline_until_ns.put(OFFLINE, now_ns + OFFLINE_NS)
            raise _out_of_reach(url) from None

    async def _fetched(self, url: str, limit: int, client_id: str, now_ns: int) -> bytes:
        failed_at_ns, failure = self._failures.get(url, (0, InvalidClient("")))
        if failed_at_ns and now_ns < failed_at_ns + FAILURE_NS:
            raise failure
        self._limits.fetch.take(urlsplit(url).hostname)
        self._limits.fetch_all.take("all")
        try:
            fetched = await self._fetch(url, limit)
        except InvalidClient as refusal:
            if len(self._failures) > 1_000:
                self._failures.clear()
            self._failures[url] = (now_ns, refusal)
            raise
        age = fetched.max_age_seconds or LEAST_SECONDS
        fresh_seconds = max(LEAST_SECONDS, min(MOST_SECONDS, age))
        row = ClientDocumentRow(
            url=url,
            body=fetched.body,
            digest="sha256:" + hashlib.sha256(fetched.body).hexdigest(),
            fetched_at_ns=now_ns,
            fresh_until_ns=now_ns + fresh_seconds * NANOSECONDS,
        )
        await anyio.to_thread.run_sync(self._keep, row, client_id)
        return fetched.body

    def _kept(self, url: str) -> ClientDocumentRow | None:
        with self._store.read() as reader:
            return reader.get(ClientDocumentRow, ClientDocumentRow.url.equals(url))

    def _keep(self, row: ClientDocumentRow, client_id: str) -> None:
        subject, now_ns = Subject(client_id), row.fetched_at_ns
        with self._store.write() as writer:
            before = writer.get(ClientDocumentRow, ClientDocumentRow.url.equals(row.url))
            writer.delete(ClientDocumentRow, ClientDocumentRow.url.equals(row.url))
            writer.insert(row)
            audit(writer, "client.document_fetched", SERVER, now_ns, subject)
            if before is not None and published_keys(before.body) != published_keys(row.body):
                audit(writer, METADATA_CHANGED, SERVER, now_ns, subject, changed=["keys"])


def _published(url: str, row: ClientDocumentRow | None, now_ns: int) -> _Body | None:
    """What a known host published last, by what was fetched or is written down here."""
    document = PUBLISHED.get(url)
    if document is None:
        return None
    body = _Body(document.body, document.published_on)
    if row is not None:
        fetched_on = _day(row.fetched_at_ns)
        if fetched_on >= document.published_on:
            body = _Body(row.body, fetched_on)
    age = _day(now_ns) - (body.published_on or document.published_on)
    return body if age.days <= DOCUMENT_DAYS else None


def _day(ns: int) -> date:
    return date.fromisoformat(instant_text(ns)[:10])


def _out_of_reach(url: str) -> InvalidClient:
    return InvalidClient(
        message(
            "This server cannot fetch the app's description from %(host)s.",
            host=str(urlsplit(url).hostname),
        ),
        reason=UNREACHABLE,
        next_step=(
            "Connect once more from the app. A server without internet then asks apps "
            "to register instead. For Codex, use --oauth-client-registration dcr."
        ),
    )
