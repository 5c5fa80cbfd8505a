"""Calls of tools that need nothing of the library of the protocol: most of them.

Rule: an answer here is, byte for byte, the one that the library gives.  Whatever is unusual about a
call, or has to ask the person something, is left to it, and reads anew there.
Source: docs/contract/mcp-adapter.md 2.1, 2.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from pdpp_mcp_server.call_messages import ClientSeen, PlainCall
from pdpp_mcp_server.calls import AdapterOptions, Outcome
from pdpp_mcp_server.metrics import Counts
from pdpp_mcp_server.plain_results import plain_answer
from pdpp_mcp_server.rs_client.json_values import as_object
from pdpp_mcp_server.tool_runs import ClientRequest, guarded, is_openai, open_run
from pdpp_mcp_server.tools.offered import OFFERED


class PlainCalls(msgspec.Struct, frozen=True):
    """Answers the calls of one server."""

    settings: AdapterOptions = msgspec.field(default_factory=AdapterOptions)
    counts: Counts = msgspec.field(default_factory=Counts)

    async def answer(
        self,
        asked: PlainCall,
        client: ClientSeen,
        caller: ClientRequest,
        progress: Callable[[float], Awaitable[None]] | None = None,
    ) -> bytes | None:
        """The answer; None where the library has to make the call."""
        openai = is_openai(client.name, asked.meta, caller.user_agent, caller.client_id)
        call, run = open_run(
            caller, asked.name, self.counts, self.settings, openai=openai, progress=progress
        )
        outcome = await guarded(OFFERED[asked.name], call, asked.arguments, caller)
        if client.elicits and _may_be_asked(outcome):
            return None
        answer = plain_answer(asked.message_id, call, outcome)
        if answer is not None:
            run.write_log_line(outcome, outcome.sizes)
        return answer


def _may_be_asked(outcome: Outcome) -> bool:
    return as_object(outcome.structured.get("error")).get("code") == "ambiguous_connection"
