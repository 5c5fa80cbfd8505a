"""A refusal an agent can act on: a stable code, the argument at fault, and the call that works.

Source: docs/contract/mcp-adapter.md 5.1, 5.2; docs/decisions.md C25. Raised where the decision
falls, rendered at one place (faces.refusal), never holding record text.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pdpp_mcp_server.rs_client.json_values import Json

CONFLICT_CODES = frozenset({"stale_cursor", "ambiguous_schema_detail"})
ARGUMENT_CODES = frozenset(
    {
        "invalid_arguments",
        "invalid_filter",
        "invalid_expand",
        "invalid_id",
        "conflicting_connection_id",
        "invalid_request",
        "invalid_field_window_selector",
        "invalid_cursor",
    }
)


class NextCall(msgspec.Struct, frozen=True):
    """A complete, legal call.

    Shapes: shown is how the text says it, where the first line of the text already holds what is
            new about the call.
    """

    tool: str
    arguments: Mapping[str, Any]
    why: str = ""
    shown: str | None = None

    def as_json(self) -> Json:
        """The call as it stands in `next`."""
        call: Json = {"tool": self.tool, "arguments": dict(self.arguments)}
        return {**call, "why": self.why} if self.why else call


class ToolError(Exception):
    """One typed refusal.

    Shapes: error is its structured form; repairs are arguments of the same tool, best first, of
            which the first legal ones become its next call (`arguments.parse_arguments`).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        expected: str | None = None,
        example: Json | None = None,
        next_call: NextCall | None = None,
        repairs: Sequence[Json] = (),
        members: Json | None = None,
    ) -> None:
        super().__init__(code)
        self.code = code
        self.repairs = repairs
        self.error: Json = {"type": _type_of(code), "code": code, "message": message}
        optional: Json = {"param": param, "expected": expected, "example": example}
        self.error.update({name: value for name, value in optional.items() if value is not None})
        self.error.update(members or {})
        self.with_next(next_call)
        self.error.setdefault("origin", "adapter")

    def with_next(self, next_call: NextCall | None) -> "ToolError":
        """The same refusal with a ready-made call."""
        if next_call is not None:
            self.error["next_call"] = next_call.as_json()
        return self

    def with_repair(self, arguments: Json) -> "ToolError":
        """The same refusal with arguments that may pass."""
        self.repairs = (arguments,)
        return self


def _type_of(code: str) -> str:
    if code in ARGUMENT_CODES:
        return "invalid_request_error"
    return "conflict_error" if code in CONFLICT_CODES else "api_error"
