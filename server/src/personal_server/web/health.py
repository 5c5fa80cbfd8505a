"""Health: whether the server answers, whether it can serve, and what needs care.

Rule: a part of the server says itself what is wrong with it; nothing personal is ever said here,
since anybody may ask.
Source: docs/contract/resource-server.md 1.7.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

import msgspec
import orjson
from starlette.responses import Response

from pdpp_kernel.errors import PersonalServerError, StorageUnavailable
from pdpp_kernel.values import render_instant
from personal_server.web.replies import JSON_TYPE

LIVE_PATH = "/healthz/live"
HEALTH_PATHS = frozenset({"/healthz", LIVE_PATH})
OK, DEGRADED, FAILING = "ok", "degraded", "failing"


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with one part.

    Shapes: `part` names it (`disk`, `database`, `clock`, `task.sweeping` …), `code` is a stable
        word, `next_step` a sentence for the owner; `serving` is whether all that is asked for can
        be answered all the same.
    Units: `since_ns` UTC nanoseconds.
    """

    part: str
    code: str
    since_ns: int
    next_step: str
    serving: bool = True

    def as_json(self) -> dict[str, str]:
        """For programs and people."""
        return {
            "part": self.part,
            "code": self.code,
            "since": render_instant(self.since_ns),
            "next_step": self.next_step,
        }


class PeerHealth(msgspec.Struct, frozen=True):
    """What a process of the same server says, and how long ago."""

    faults: Sequence[Fault]
    progress: Mapping[str, int]
    memory_bytes: int
    age_seconds: float = 0.0

    def as_json(self) -> dict[str, object]:
        """For programs and people."""
        return {"memory_bytes": self.memory_bytes, "beat_seconds_ago": round(self.age_seconds, 1)}


Progress = Callable[[], Mapping[str, int]]
"""Long work that is under way, and how many percent of it are done; quick, and without effects."""
HealthPart = Callable[[], Iterable[Fault]]
"""What is wrong with a part now; quick, and without effects."""
LOOK_AT_LOG = "Look at the server's log, which names the cause."
RESTORE = (
    "The database does not answer. Start it again; if its file is damaged, restore a backup:"
    " pdpp restore FILE"
)


class Health:
    """Every part that was registered, asked anew each time.

    A part that cannot say how it is keeps the server from serving: that is its fault then.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._parts: list[tuple[str, HealthPart]] = []
        self._silent_since: dict[str, int] = {}
        self._progress: list[Progress] = []
        self._peers: Callable[[], Iterable[PeerHealth]] = tuple

    def register(self, part: HealthPart, name: str = "server") -> None:
        """Let a part speak; `name` is what a fault is of where it cannot."""
        self._parts.append((name, part))

    def register_progress(self, work: Progress) -> None:
        """Let long work say how far it is."""
        self._progress.append(work)

    def register_peers(self, peers: Callable[[], Iterable[PeerHealth]]) -> None:
        """Let every process of the server speak, this one too."""
        self._peers = peers

    def own_faults(self) -> list[Fault]:
        """What is wrong with this process now."""
        return [fault for name, part in self._parts for fault in self._ask(name, part)]

    def _ask(self, name: str, part: HealthPart) -> list[Fault]:
        try:
            found = list(part())
        except Exception as error:  # noqa: BLE001 (whatever it is, it is what is wrong)
            code = error.code if isinstance(error, PersonalServerError) else "internal_error"
            since_ns = self._silent_since.setdefault(name, self._clock())
            step = RESTORE if isinstance(error, StorageUnavailable) else LOOK_AT_LOG
            return [Fault(name, code, since_ns, step, serving=False)]
        self._silent_since.pop(name, None)
        return found

    def own_progress(self) -> dict[str, int]:
        """What long work is under way in this process, as far as the database can say."""
        found: dict[str, int] = {}
        for work in self._progress:
            with suppress(StorageUnavailable):  # which is told as a fault
                found |= work()
        return found

    def faults(self) -> list[Fault]:
        """What is wrong now, what keeps the server from serving first, each once."""
        return self._faults(tuple(self._peers()))

    def _faults(self, peers: Iterable[PeerHealth]) -> list[Fault]:
        elsewhere = [fault for peer in peers for fault in peer.faults]
        found = sorted([*self.own_faults(), *elsewhere], key=lambda fault: fault.since_ns)
        first = {(fault.part, fault.code): fault for fault in reversed(found)}
        return sorted(first.values(), key=lambda fault: (fault.serving, fault.part))

    def response(self, path: str) -> Response:
        """`/healthz/live`: the process answers.  `/healthz`: what it can do."""
        if path == LIVE_PATH:
            return _response({"status": "live"})
        peers = tuple(self._peers())
        faults = self._faults(peers)
        serving = all(fault.serving for fault in faults)
        body: dict[str, object] = {"status": OK}
        if faults:
            body["status"] = DEGRADED if serving else FAILING
            body["faults"] = [fault.as_json() for fault in faults]
        under_way = self.own_progress()
        for peer in peers:
            under_way |= peer.progress
        if under_way:
            body["progress"] = under_way
        if peers:
            body["workers"] = [peer.as_json() for peer in peers if peer.memory_bytes]
        return _response(body, 200 if serving else 503)


def _response(body: Mapping[str, object], status: int = 200) -> Response:
    headers = {"Cache-Control": "no-store", "Content-Type": JSON_TYPE}
    return Response(orjson.dumps(body), status, headers)
