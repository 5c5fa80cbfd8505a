"""The handlers of a server: each call goes to its tool, over one port, and comes back as a result.

Source: docs/contract/mcp-adapter.md 2.4, 4.1, 10 to 12, 14, 15. No exception but `MCPError` leaves
a handler. A hint that tells clients apart chooses a format and nothing else.
"""

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Protocol, TypeVar
from urllib.parse import urlsplit

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from pdpp_kernel.failures import log_failure, new_request_id
from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import AdapterOptions, Outcome, ServerCapabilities, ToolCall, none_known
from pdpp_mcp_server.contract import replacement_of
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.faces.refusal import render_refusal
from pdpp_mcp_server.metrics import Counts, MeasuredPort
from pdpp_mcp_server.prompts import NOTHING, UnusableArguments, complete
from pdpp_mcp_server.questions import CONNECTION, ask, comes_back, question_of, with_answer
from pdpp_mcp_server.rs_client.port import RsPort
from pdpp_mcp_server.safe_text import quoted
from pdpp_mcp_server.sdk_results import resource_error, resource_result
from pdpp_mcp_server.server_offer import ServerOffer, ToolFunction, personal_data

OPENAI_NAMES = frozenset({"openai-mcp", "chatgpt"})
OPENAI_HOSTS = ("chatgpt.com", "openai.com")
INTERNAL_MESSAGE = "The adapter failed. The request id finds the log line."
_log = logging.getLogger("pdpp_mcp_server")

Context = ServerRequestContext[Any, Any]
Listed = TypeVar("Listed")


@dataclass(frozen=True, slots=True)
class ClientRequest:
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


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One request while it is served: its caller, what it read, when it began."""

    tool: str
    caller: ClientRequest
    port: MeasuredPort
    counts: Counts
    ceiling: int = contract.CEILING
    started: float = field(default_factory=perf_counter)

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


@dataclass(frozen=True, slots=True)
class Adapter:
    """The handlers of one server."""

    callers: Callers
    settings: AdapterOptions = field(default_factory=AdapterOptions)
    offer: ServerOffer = personal_data
    counts: Counts = field(default_factory=Counts)
    tells_progress: bool = False

    def call_for(self, context: Context, tool: str) -> tuple[ToolCall, ToolRun]:
        """The call of one request, bound to one tool."""
        caller = self.callers(context.request)
        told = context.session.report_progress if self.tells_progress else None
        port = MeasuredPort(caller.open_port(tool), told)
        call = ToolCall(
            tool=tool,
            port=port,
            provider_url=caller.provider_url,
            nonce=draw_nonce,
            openai=is_openai(
                client_name(context), context.meta, caller.user_agent, caller.client_id
            ),
            settings=self.settings,
            server_capabilities=caller.server_capabilities,
            budget=contract.ResultBudget(caller.result_chars or contract.STRUCTURED_AIM),
        )
        return call, ToolRun(tool, caller, port, self.counts, call.budget.ceiling)

    async def call_tool(
        self, context: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """One tool call; every failure is a typed result, or a question that settles it."""
        function = self.offer.tools.get(params.name)
        if function is None:
            message = unknown_tool_message(params.name, self.offer.tools)
            raise MCPError(types.INVALID_PARAMS, message)
        call, run = self.call_for(context, params.name)
        arguments = with_answer(params)
        outcome = await guarded(function, call, arguments, run.caller)
        question = question_of(context, params.name, outcome)
        if question is not None and params.input_responses is None:
            if comes_back(context):
                run.write_log_line(outcome, (0, 0))
                asked: types.InputRequests = {CONNECTION: types.ElicitRequest(params=question)}
                return types.InputRequiredResult(input_requests=asked)
            chosen = await ask(context, question)
            if chosen is not None:
                arguments = {**(arguments or {}), CONNECTION: chosen}
                outcome = await guarded(function, call, arguments, run.caller)
        result, sizes = self.offer.render(call, outcome)
        run.write_log_line(outcome, sizes)
        return result

    async def read_resource(
        self, context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """One resource; every failure is a JSON-RPC error with a typed refusal in `data`."""
        call, run = self.call_for(context, "resource")
        try:
            with anyio.fail_after(contract.TOOL_SECONDS):
                found = await self.offer.read_resource(call, params.uri)
        except Exception as error:  # noqa: BLE001 - the one boundary: nothing untyped leaves
            refusal = refusal_of(error, run.caller)
            run.write_log_line(render_refusal(refusal), (0, 0))
            raise resource_error(params.uri, refusal, context.protocol_version) from None
        run.write_log_line(Outcome({}, "", rows=len(found.contents)), (0, 0))
        return resource_result(params.uri, found)

    async def get_prompt(
        self, context: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """One prompt with its arguments; no read is made."""
        del context
        prompt = self.offer.prompts.get(params.name)
        if prompt is None:
            known = ", ".join(self.offer.prompts)
            raise MCPError(types.INVALID_PARAMS, f"Unknown prompt {quoted(params.name)}: {known}.")
        try:
            return prompt(params.arguments or {})
        except UnusableArguments as error:
            raise MCPError(types.INVALID_PARAMS, error.message) from None

    async def complete(
        self, context: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Values for one argument; nothing when anything goes wrong."""
        call, run = self.call_for(context, "completion")
        reference = params.ref
        chosen = params.context.arguments if params.context is not None else None
        try:
            found = await complete(
                call,
                prompt=reference.name if isinstance(reference, types.PromptReference) else None,
                uri=None if isinstance(reference, types.PromptReference) else reference.uri,
                name=params.argument.name,
                typed=params.argument.value,
                chosen=chosen or {},
            )
        except Exception as error:  # noqa: BLE001 - completing never fails a client
            _log.warning("completion failed kind=%s", type(error).__name__)
            found = NOTHING
        run.write_log_line(Outcome({}, "", rows=len(found.values)), (0, 0))
        more = found.total > len(found.values)
        completion = types.Completion(values=found.values, total=found.total, has_more=more)
        return types.CompleteResult(completion=completion)


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


def unknown_tool_message(name: str, offered: Iterable[str]) -> str:
    """What to call instead."""
    listed = f"Tools: {', '.join(offered)}."
    instead = replacement_of(name)
    if instead is None:
        return f"Unknown tool {quoted(name)}. {listed}"
    return f"Unknown tool {quoted(name)}: use {instead}. {listed}"


def draw_nonce() -> str:
    """Twelve hex digits from the system's random source."""
    return secrets.token_hex(6)


def client_name(context: Context) -> str | None:
    """How the client names itself, where the era says it."""
    params = context.session.client_params
    return params.client_info.name if params is not None else None


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
