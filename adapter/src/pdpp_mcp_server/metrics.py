"""What a call cost: reads of the resource server by route template, and counts by outcome.

Source: docs/contract/mcp-adapter.md 16. Numbers and route names only, never arguments or records.
The counts are logged: each hour in which something happened, and when serving ends.
"""

import logging
import re
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import perf_counter

import anyio
import msgspec

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import Outcome
from pdpp_mcp_server.rs_client.json_values import as_object
from pdpp_mcp_server.rs_client.port import Path, Query, RsPort, RsResponse

_log = logging.getLogger("pdpp_mcp_server")
LOG_SECONDS = 3_600
DISTINCT_OUTCOMES = 200
PLAIN_CODE = re.compile(r"[a-z0-9_]{1,64}")
PLACES = {"streams": "{stream}", "records": "{record}", "blobs": "{blob}"}


def route_of(path: Path) -> str:
    """The template of a path: names of routes stay, what stands in them goes."""
    shown = [
        PLACES.get(before, segment) for before, segment in zip(("", *path), path, strict=False)
    ]
    return "/" + "/".join(shown)


class MeasuredPort(msgspec.Struct):
    """A port that remembers how its reads went, and tells of each as progress."""

    port: RsPort
    progress: Callable[[float], Awaitable[None]] | None = None
    reads: int = 0
    route: str = "-"
    status: int | None = None
    seconds: float = 0.0

    async def get(
        self, path: Path, query: Query = (), *, max_bytes: int | None = None
    ) -> RsResponse:
        """Read one path.

        Raises: RsTimeout, RsUnreachable, RsInvalidResponse.
        """
        self.route, self.status = route_of(path), None
        started = perf_counter()
        try:
            response = await self.port.get(path, query, max_bytes=max_bytes)
        finally:
            self.seconds += perf_counter() - started
        self.status = response.status
        self.reads += 1
        if self.progress is not None:
            await self.progress(self.reads)
        return response


class Counts(msgspec.Struct):
    """How often what happened, since the process began.

    Shapes: calls is by tool and outcome; a code that is not a plain word, and any beyond the two
            hundredth pair, counts as `other`.
    """

    calls: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter[tuple[str, str]])
    refits: int = 0
    cuts: int = 0
    stale_cursors: int = 0
    budget_misses: int = 0

    def note(
        self,
        tool: str,
        outcome: Outcome,
        sizes: tuple[int, int],
        ceiling: int = contract.CEILING,
    ) -> str:
        """Count one outcome; its error code, or `ok`."""
        error = as_object(outcome.structured.get("error")) if outcome.is_error else {}
        code = str(error.get("code", "ok"))
        if not PLAIN_CODE.fullmatch(code) or (
            len(self.calls) >= DISTINCT_OUTCOMES and (tool, code) not in self.calls
        ):
            code = "other"
        self.calls[tool, code] += 1
        self.refits += outcome.page_reads - 1
        self.cuts += bool(outcome.links) or bool(outcome.structured.get("content_ladder"))
        self.stale_cursors += code == "stale_cursor"
        self.budget_misses += max(sizes) > ceiling
        return code

    def line(self) -> str:
        """Everything counted, as one line of the log."""
        pairs = sorted(self.calls.items())
        outcomes = " ".join(f"{tool}.{code}={number}" for (tool, code), number in pairs)
        numbers = (
            f"mcp counts calls={self.calls.total()} refits={self.refits} cuts={self.cuts}"
            f" stale_cursors={self.stale_cursors} budget_misses={self.budget_misses}"
        )
        return f"{numbers} {outcomes}".rstrip()


@asynccontextmanager
async def telling(counts: Counts) -> AsyncGenerator[None]:
    """Log the counts each hour while serving, if they grew, and at the end, if there are any."""
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_log_each_hour, counts)
            yield
            tasks.cancel_scope.cancel()
    finally:
        if counts.calls:
            _log.info(counts.line())


async def _log_each_hour(counts: Counts) -> None:
    logged = 0
    while True:
        await anyio.sleep(LOG_SECONDS)
        if counts.calls.total() > logged:
            logged = counts.calls.total()
            _log.info(counts.line())
