"""The handlers of a server: each call goes to its tool, over one port, and comes back as a result.

Source: docs/contract/mcp-adapter.md 2.4, 4.1, 10 to 12, 14, 15. No exception but `MCPError` leaves
a handler. A hint that tells clients apart chooses a format and nothing else.
"""

import logging
from collections.abc import Iterable
from typing import Any, TypeVar

import anyio
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from pdpp_mcp_server import contract
from pdpp_mcp_server.calls import AdapterOptions, Outcome, ToolCall
from pdpp_mcp_server.contract import replacement_of
from pdpp_mcp_server.faces.refusal import render_refusal
from pdpp_mcp_server.metrics import Counts
from pdpp_mcp_server.prompts import NOTHING, UnusableArguments, complete
from pdpp_mcp_server.questions import CONNECTION, ask, comes_back, question_of, with_answer
from pdpp_mcp_server.safe_text import quoted
from pdpp_mcp_server.sdk_results import resource_error, resource_result
from pdpp_mcp_server.server_offer import ServerOffer, personal_data
from pdpp_mcp_server.tool_runs import (
    Callers,
    ToolRun,
    guarded,
    is_openai,
    open_run,
    refusal_of,
)

_log = logging.getLogger("pdpp_mcp_server")


Context = ServerRequestContext[Any, Any]
Listed = TypeVar("Listed")


class Adapter(msgspec.Struct, frozen=True):
    """The handlers of one server."""

    callers: Callers
    settings: AdapterOptions = msgspec.field(default_factory=AdapterOptions)
    offer: ServerOffer = personal_data
    counts: Counts = msgspec.field(default_factory=Counts)
    tells_progress: bool = False

    def call_for(self, context: Context, tool: str) -> tuple[ToolCall, ToolRun]:
        """The call of one request, bound to one tool."""
        caller = self.callers(context.request)
        progress = context.session.report_progress if self.tells_progress else None
        openai = is_openai(client_name(context), context.meta, caller.user_agent, caller.client_id)
        return open_run(caller, tool, self.counts, self.settings, openai=openai, progress=progress)

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


def unknown_tool_message(name: str, offered: Iterable[str]) -> str:
    """What to call instead."""
    listed = f"Tools: {', '.join(offered)}."
    instead = replacement_of(name)
    if instead is None:
        return f"Unknown tool {quoted(name)}. {listed}"
    return f"Unknown tool {quoted(name)}: use {instead}. {listed}"


def client_name(context: Context) -> str | None:
    """How the client names itself, where the era says it."""
    params = context.session.client_params
    return params.client_info.name if params is not None else None
