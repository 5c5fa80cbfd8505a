"""One request of a client as a run of a tool: who calls, what it read, and every failure typed.

Nothing here is of the library of the protocol, which takes longer to import than a call to answer.
Source: docs/contract/mcp-adapter.md 2.4, 14, 15. A hint that tells clients apart chooses a format
and nothing else.
"""

import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter
from typing import Any, Protocol
from urllib.parse import urlsplit

import anyio
import msgspec

from pdpp_kernel.failures import log_failure, new_request_id
from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import (
    AdapterOptions,
    Outcome,
    ServerCapabilities,
    ToolCall,
    ToolFunction,
    none_known,
)
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.faces.refusal import render_refusal
from pdpp_mcp_server.metrics import Counts, MeasuredPort
from pdpp_mcp_server.rs_client.port import RsPort

OPENAI_NAMES = frozenset({"openai-mcp", "chatgpt"})
OPENAI_HOSTS = ("chatgpt.com", "openai.com")
INTERNAL_MESSAGE = "The adapter failed. The request id finds the log line."
_log = logging.getLogger("pdpp_mcp_server")


class ClientRequest(msgspec.Struct, frozen=True):
    """What one request brings: a way to open ports, and which client sent it.

    Shapes: provider_url is the public origin of the request; client_id is the token's, if known;
            server_capabilities as in `ToolCall`; result_chars is how long its owner lets a result
            be, where that was said.
    """

    open_port: Callable[[str], RsPort]
    provider_url: str
    request_id: str | None = None
    client_id: str | None = None
    grant_id: str | None = None
    user_agent: str | None = None
    server_capabilities: ServerCapabilities = none_known
    result_chars: int | None = None


class Callers(Protocol):
    """Finds the caller of a request; the transport knows it."""

    def __call__(self, request: Any) -> ClientRequest:
        """Given a Starlette request, or None on stdio."""
        ...


class ToolRun(msgspec.Struct, frozen=True):
    """One request while it is served: its caller, what it read, when it began."""

    tool: str
    caller: ClientRequest
    port: MeasuredPort
    counts: Counts
    ceiling: int = contract.CEILING
    started: float = msgspec.field(default_factory=perf_counter)

    def write_log_line(self, outcome: Outcome, sizes: tuple[int, int]) -> None:
        """One line for each call: sizes and codes, never arguments or records."""
        _log.info(
            "tool=%s route=%s status=%s outcome=%s rs_ms=%d ms=%d rows=%s text_chars=%d"
            " structured_chars=%d refits=%d request_id=%s client_id=%s grant_id=%s",
            self.tool,
            self.port.route,
            self.port.status,
            self.counts.note(self.tool, outcome, sizes, self.ceiling),
            int(self.port.seconds * 1000),
            int((perf_counter() - self.started) * 1000),
            outcome.rows,
            *sizes,
            outcome.page_reads - 1,
            self.caller.request_id,
            self.caller.client_id,
            self.caller.grant_id,
        )


def refusal_of(error: Exception, caller: ClientRequest) -> ToolError:
    """What a failure is to the client."""
    if isinstance(error, ToolError):
        return error
    if isinstance(error, TimeoutError):
        return ToolError("rs_timeout", "The read took too long.")
    return _defect(error, caller)


async def guarded(
    function: ToolFunction,
    call: ToolCall,
    arguments: Mapping[str, Any] | None,
    caller: ClientRequest,
) -> Outcome:
    """Run a tool; a refusal, a deadline or a defect of ours becomes a typed outcome."""
    try:
        with anyio.fail_after(contract.TOOL_SECONDS):
            outcome = await function(call, arguments)
    except ToolError as error:
        return render_refusal(error)
    except TimeoutError:
        again = NextCall(call.tool, arguments or {})
        return render_refusal(ToolError("rs_timeout", "The call took too long.", next_call=again))
    except Exception as error:  # noqa: BLE001 - the one boundary: nothing but a typed result leaves
        return render_refusal(_defect(error, caller))
    return _within_ceiling(call, outcome)


def _defect(error: Exception, caller: ClientRequest) -> ToolError:
    request_id = caller.request_id or new_request_id()
    log_failure(error, request_id)
    return ToolError("internal_error", INTERNAL_MESSAGE, members={"request_id": request_id})


def _within_ceiling(call: ToolCall, outcome: Outcome) -> Outcome:
    if max(outcome.sizes) <= call.budget.ceiling:
        return outcome
    message = "The result passes the limit whatever is cut; ask for less."
    return render_refusal(ToolError("result_too_large", message, members={"tool": call.tool}))


def draw_nonce() -> str:
    """Twelve hex digits from the system's random source."""
    return secrets.token_hex(6)


def is_openai(
    name: str | None, meta: Mapping[str, Any] | None, user_agent: str | None, client_id: str | None
) -> bool:
    """Whether any hint says that the client is OpenAI's."""
    if name is not None and name.lower().split("/")[0] in OPENAI_NAMES:
        return True
    if meta is not None and any(str(key).startswith("openai/") for key in meta):
        return True
    if user_agent is not None and user_agent.lower().startswith("openai-mcp"):
        return True
    return client_id is not None and _is_openai_url(client_id)


def _is_openai_url(client_id: str) -> bool:
    try:
        host = urlsplit(client_id).hostname or ""
    except ValueError:
        return False
    return any(host == known or host.endswith(f".{known}") for known in OPENAI_HOSTS)


def open_run(
    caller: ClientRequest,
    tool: str,
    counts: Counts,
    settings: AdapterOptions,
    *,
    openai: bool,
    progress: Callable[[float], Awaitable[None]] | None = None,
) -> tuple[ToolCall, ToolRun]:
    """The call of one request, bound to one tool.  Shapes: `progress` hears of each read."""
    port = MeasuredPort(caller.open_port(tool), progress)
    call = ToolCall(
        tool=tool,
        port=port,
        provider_url=caller.provider_url,
        nonce=draw_nonce,
        openai=openai,
        settings=settings,
        server_capabilities=caller.server_capabilities,
        budget=contract.ResultBudget(caller.result_chars or contract.STRUCTURED_AIM),
    )
    return call, ToolRun(tool, caller, port, counts, call.budget.ceiling)
