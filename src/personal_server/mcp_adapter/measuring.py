"""What a call cost: reads of the resource server by route template, and counts by outcome.

Source: MCP adapter contract 16. Numbers and route names only; never what was asked or said.
"""

from collections import Counter
from dataclasses import dataclass, field
from time import perf_counter

from personal_server.mcp_adapter import budgets
from personal_server.mcp_adapter.calls import Outcome
from personal_server.rs_client.json_values import as_object
from personal_server.rs_client.port import Path, Query, RsPort, RsResponse

places = {"streams": "{stream}", "records": "{record}", "blobs": "{blob}"}


def route_of(path: Path) -> str:
    """The template of a path: names of routes stay, what stands in them goes."""
    shown = [
        places.get(before, segment) for before, segment in zip(("", *path), path, strict=False)
    ]
    return "/" + "/".join(shown)


@dataclass(slots=True)
class MeasuredPort:
    """A port that remembers how its reads went."""

    port: RsPort
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
        begun = perf_counter()
        try:
            response = await self.port.get(path, query, max_bytes=max_bytes)
        finally:
            self.seconds += perf_counter() - begun
        self.status = response.status
        return response


@dataclass(slots=True)
class Counts:
    """How often what happened, since the process began."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    refits: int = 0
    cuts: int = 0
    stale_cursors: int = 0
    budget_misses: int = 0

    def note(self, tool: str, outcome: Outcome, sizes: tuple[int, int]) -> str:
        """Count one outcome; its error code, or `ok`."""
        error = as_object(outcome.structured.get("error")) if outcome.is_error else {}
        code = str(error.get("code", "ok"))
        self.calls[tool, code] += 1
        self.refits += outcome.page_reads - 1
        self.cuts += bool(outcome.links) or bool(outcome.structured.get("content_ladder"))
        self.stale_cursors += code == "stale_cursor"
        self.budget_misses += max(sizes) > budgets.ceiling
        return code
