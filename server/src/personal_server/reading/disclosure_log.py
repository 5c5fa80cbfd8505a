"""Disclosing: what an answer gave away becomes entries of the disclosure log.

Rule: an entry exists for every source that contributed and for every refusal after the token was
judged; its line never holds query texts, filter values, keys or contents.  What a client asked and
the keys it got lie beside the line (`AskedDetail`).
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
from msgspec.structs import asdict

from pdpp_kernel.errors import PersonalServerError, StorageUnavailable
from pdpp_kernel.values import NANOSECONDS, render_instant
from pdpp_kernel.wire_objects import Count, Instant, WireObject, Word
from personal_server.domain.authority import ReadAuthority, TokenKind
from personal_server.domain.disclosure import (
    DENIED,
    SERVED,
    AskedDetail,
    Channel,
    Disclosed,
    DisclosureEntry,
    Outcome,
    TokenName,
)
from personal_server.storage.ports import DisclosureQuery, DisclosureStore

_TOOL = re.compile(r"[a-z_]{1,64}\Z")

SALT_BYTES = 32


class DisclosureLog(Protocol):
    """Where entries go; durable within a second."""

    def enter(self, entries: Sequence[DisclosureEntry]) -> None:
        """Take entries to be written."""
        ...

    def check(self) -> None:
        """Raise StorageUnavailable once the log could not be written for 10 s."""
        ...


@dataclass(frozen=True, slots=True)
class ServedCall:
    """The facts of a request that an entry names.

    Shapes: `tool` is the `PDPP-Tool` header as sent, `asked` path and query as sent.
    """

    authority: ReadAuthority
    route: str
    request_id: str
    at_ns: int
    tool: str | None = None
    stream: str | None = None
    asked: str = ""


@dataclass(frozen=True, slots=True)
class EntrySecrets:
    """What entries need of chance: their ids, and the salt of what lies beside each."""

    random_bytes: Callable[[int], bytes]

    def new_id(self) -> str:
        """The id of an entry."""
        return f"dis_{self.random_bytes(12).hex()}"

    def detail(self, call: ServedCall, keys: tuple[str, ...] = ()) -> AskedDetail | None:
        """What lies beside an entry; nothing where the owner reads."""
        if call.authority.kind is TokenKind.OWNER:
            return None
        return AskedDetail(self.random_bytes(SALT_BYTES), call.asked, keys)


def served_entries(
    call: ServedCall, disclosed: Sequence[Disclosed], size_bytes: int, secrets: EntrySecrets
) -> list[DisclosureEntry]:
    """One entry per source that contributed; the bytes sent are shared out by records.

    What disclosed no field, a search that found nothing, names no connection and no stream.

    Source: docs/contract/resource-server.md 14.3.
    """
    sizes = shared_out(size_bytes, [part.record_count for part in disclosed])
    return [
        _entry(
            call,
            secrets.new_id(),
            SERVED,
            grant_id=part.source.grant_id,
            connector_key=part.source.connector_key if part.fields else None,
            connection_id=part.source.connection_id if part.fields else None,
            stream=part.source.stream if part.fields else None,
            fields=part.fields,
            record_count=part.record_count,
            size_bytes=size,
            detail=secrets.detail(call, part.keys),
        )
        for part, size in zip(disclosed, sizes, strict=True)
    ]


def denied_entry(
    call: ServedCall, error: PersonalServerError, secrets: EntrySecrets
) -> DisclosureEntry:
    """The entry of a refusal.  A stream is named only if the grants name it."""
    authority = call.authority
    named = call.stream if call.stream in authority.granted_streams else None
    return _entry(
        call,
        secrets.new_id(),
        DENIED,
        error_code=error.code,
        grant_id=authority.grant_ids[0] if len(authority.grant_ids) == 1 else None,
        stream=named,
        detail=secrets.detail(call),
    )


def shared_out(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts by weight, without a rest; equal parts if all weights are 0."""
    shares = list(weights) if any(weights) else [1] * len(weights)
    parts: list[int] = []
    given, seen, whole = 0, 0, sum(shares)
    for share in shares:
        seen += share
        parts.append(total * seen // whole - given)
        given += parts[-1]
    return parts


def _entry(
    call: ServedCall, disclosure_id: str, outcome: Outcome, **members: object
) -> DisclosureEntry:
    authority = call.authority
    tool = call.tool if call.tool and _TOOL.match(call.tool) else None
    return DisclosureEntry(
        disclosure_id=disclosure_id,
        subject_id=authority.subject_id,
        at_ns=call.at_ns,
        request_id=call.request_id,
        outcome=outcome,
        token_kind=authority.kind.value,
        channel="mcp" if tool else "rest",
        route=call.route,
        client_id=authority.client_id,
        package_id=authority.package_id,
        tool=tool,
        **members,  # type: ignore[arg-type]
    )


# The recorder between reads and the disclosure log: entries wait a moment, then are durable.
#
# Rule: an entry is kept until it is written; while nothing can be written for 10 s, client reads
# are
# refused rather than left unrecorded.
# Source: docs/contract/resource-server.md 14.3.


_log = logging.getLogger(__name__)
GATHER_SECONDS = 0.25
TOLERATED_NS = 10 * NANOSECONDS


DisclosureWatch = Callable[[Sequence[DisclosureEntry]], None]
"""Looks at entries once they are written.  Raises whatever keeps it from that."""
MOST_UNWATCHED = 10_000


def nobody_watches(entries: Sequence[DisclosureEntry]) -> None:
    """Take no notice."""
    del entries


class DisclosureRecorder:
    """Gathers entries and writes them in one transaction, from a thread of its own.

    `background` off leaves the writing to `flush`; `watch` is shown what was written, again if it
    could not look.
    """

    def __init__(
        self,
        store: DisclosureStore,
        clock: Callable[[], int],
        watch: DisclosureWatch = nobody_watches,
        *,
        background: bool = True,
    ) -> None:
        self._store = store
        self._clock = clock
        self._background = background
        self._watch = watch
        self._waiting: list[DisclosureEntry] = []
        self._unwatched: list[DisclosureEntry] = []
        self._failing_since_ns: int | None = None
        self._entries_lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def enter(self, entries: Sequence[DisclosureEntry]) -> None:
        """Take entries to be written within a second."""
        if not entries:
            return
        with self._entries_lock:
            self._waiting.extend(entries)
            if self._background and self._thread is None:
                self._thread = threading.Thread(
                    target=self._write_until_closed, name="disclosures", daemon=True
                )
                self._thread.start()
        self._wake.set()

    def check(self) -> None:
        """Raise: StorageUnavailable, once nothing could be written for 10 s."""
        failing = self._failing_since_ns
        if failing is not None and self._clock() - failing >= TOLERATED_NS:
            raise StorageUnavailable(
                "The disclosure log cannot be written, so nothing is disclosed now.",
                retry_after_seconds=10,
            )

    def flush(self) -> bool:
        """Write what waits; whether that succeeded.  What could not be written is kept."""
        with self._write_lock:
            with self._entries_lock:
                entries, self._waiting = self._waiting, []
            if not entries:
                return True
            try:
                self._store.append_disclosures(entries)
            except Exception as error:  # noqa: BLE001 (whatever it was, the entries are kept)
                with self._entries_lock:
                    self._waiting[:0] = entries
                self._note_failure(error)
                return False
            if self._failing_since_ns is not None:
                _log.warning("the disclosure log is written again")
            self._failing_since_ns = None
            self._show(entries)
            return True

    def _show(self, entries: Sequence[DisclosureEntry]) -> None:
        """Have what was written looked at; what could not be is shown again with the next."""
        waiting = [*self._unwatched, *entries][-MOST_UNWATCHED:]
        try:
            self._watch(waiting)
        except Exception as error:  # noqa: BLE001 (reading goes on, and the log is complete)
            if not self._unwatched:
                _log.error("what was read cannot be watched: %s", type(error).__name__)
            self._unwatched = waiting
        else:
            self._unwatched = []

    def _note_failure(self, error: Exception) -> None:
        if self._failing_since_ns is None:
            self._failing_since_ns = self._clock()
            code = error.code if isinstance(error, PersonalServerError) else "internal_error"
            kind = type(error).__name__
            _log.error("the disclosure log cannot be written: %s (%s)", code, kind)

    def close(self) -> None:
        """Write what waits and end the thread; what cannot be written even now is told."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        if not self.flush():
            _log.error("%d entries of the disclosure log are lost", len(self._waiting))

    def _write_until_closed(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            self._closing.wait(GATHER_SECONDS)
            if not self.flush():
                self._wake.set()


PAGE = 1_000


def every_disclosure(
    store: DisclosureStore, *, with_asked: bool = False
) -> Iterator[ShownDisclosure]:
    """The whole log, newest first, in pages; with what lies beside its lines where it is asked."""
    below: int | None = None
    while page := store.disclosures(DisclosureQuery(PAGE, below=below)):
        beside = store.asked_details([number for number, _ in page] if with_asked else ())
        for number, entry in page:
            shown, detail = render_disclosure(entry), beside.get(number)
            yield (
                shown
                if detail is None
                else AskedDisclosure(**asdict(shown), asked=detail.asked, keys=detail.keys)
            )
        below = page[-1][0]


class ShownDisclosure(WireObject, kw_only=True, tag_field="object", tag="disclosure"):
    """An entry as its owner reads it."""

    disclosure_id: Word
    at: Instant
    request_id: Word
    outcome: Outcome
    error_code: str | None
    token_kind: TokenName
    client_id: str | None
    grant_id: str | None
    grant_package_id: str | None
    channel: Channel
    tool: str | None
    route: Word
    connector_key: str | None
    connection_id: str | None
    stream: str | None
    fields: Sequence[str]
    record_count: Count
    size_bytes: Count = msgspec.field(name="bytes")


class AskedDisclosure(ShownDisclosure, kw_only=True, tag_field="object", tag="disclosure"):
    """The same with what lies beside it, which leaves this machine only where its owner says so."""

    asked: str
    keys: Sequence[str]


def render_disclosure(entry: DisclosureEntry) -> ShownDisclosure:
    """The wire form of an entry."""
    return ShownDisclosure(
        disclosure_id=entry.disclosure_id,
        at=render_instant(entry.at_ns),
        request_id=entry.request_id,
        outcome=entry.outcome,
        error_code=entry.error_code,
        token_kind=entry.token_kind,
        client_id=entry.client_id,
        grant_id=entry.grant_id,
        grant_package_id=entry.package_id,
        channel=entry.channel,
        tool=entry.tool,
        route=entry.route,
        connector_key=entry.connector_key,
        connection_id=entry.connection_id,
        stream=entry.stream,
        fields=entry.fields,
        record_count=entry.record_count,
        size_bytes=entry.size_bytes,
    )
