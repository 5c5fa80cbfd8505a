"""One tool call as the tools see it: a port, and what the transport knows about the caller."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import msgspec
import orjson

from pdpp_kernel.read_capabilities import OF_THIS_PROGRAM, ReadCapability
from pdpp_mcp_server import contract
from pdpp_mcp_server.errors import NextCall, ToolError
from pdpp_mcp_server.kept_values import kept_property
from pdpp_mcp_server.rs_client.json_values import Json, compact
from pdpp_mcp_server.rs_client.port import Query, RsPort

LinkRule = Literal["auto", "always", "never"]


class AdapterOptions(msgspec.Struct, frozen=True):
    """The two tuning variables of the adapter."""

    link_rule: LinkRule = "auto"
    max_blob_bytes: int = contract.BLOB_BYTES


ServerCapabilities = Callable[[], Awaitable[frozenset[str]]]
"""The words of `pdpp_read_capabilities` that the resource server is known to name."""


async def none_known() -> frozenset[str]:
    """Nothing is known of the resource server."""
    return frozenset()


async def those_of_this_program() -> frozenset[str]:
    """The resource server is the one of this program."""
    return OF_THIS_PROGRAM


class ToolCall(msgspec.Struct, frozen=True):
    """Everything one call may use.

    Shapes: provider_url is the public origin; openai chooses a format and nothing else;
            server_capabilities tells what the resource server takes beyond what every one takes;
            budget is how long its owner lets a result be for this client.
    """

    tool: str
    port: RsPort
    provider_url: str
    nonce: Callable[[], str]
    openai: bool = False
    settings: AdapterOptions = msgspec.field(default_factory=AdapterOptions)
    server_capabilities: ServerCapabilities = msgspec.field(default=none_known)
    budget: contract.ResultBudget = msgspec.field(default_factory=contract.ResultBudget)

    async def takes(self, capability: ReadCapability) -> bool:
        """Whether the resource server says that it takes this."""
        return capability in await self.server_capabilities()

    async def dated(self, query: Query) -> Query:
        """A read whose days and clock times are the owner's, where the server reads them so."""
        is_said = any(name == "time_zone" for name, _ in query)
        if is_said or not await self.takes(ReadCapability.TIME_ZONE):
            return query
        return (*query, ("time_zone", "owner"))

    async def require(
        self,
        capability: ReadCapability,
        param: str,
        *,
        code: str = "invalid_arguments",
        stream: str | None = None,
    ) -> None:
        """Refuse an argument that the resource server does not say it takes, without a call.

        Raises: ToolError with this code.
        """
        if await self.takes(capability):
            return
        raise ToolError(
            code,
            f"This resource server does not say that it takes `{param}` ({capability}).",
            param=param,
            next_call=NextCall("schema", {"stream": stream} if stream else {}),
        )

    @property
    def link_rule(self) -> LinkRule:
        """When resource links are sent."""
        return self.settings.link_rule

    @property
    def links_allowed(self) -> bool:
        """Whether links for cut values are sent to this caller."""
        if self.link_rule == "auto":
            return not self.openai
        return self.link_rule == "always"


class Link(msgspec.Struct, frozen=True):
    """One resource link."""

    name: str
    uri: str
    mime_type: str | None = None
    size_bytes: int | None = None


class Image(msgspec.Struct, frozen=True):
    """An image as a block of its own; data is base64."""

    data: str
    mime_type: str


class Outcome(msgspec.Struct, frozen=True, dict=True):
    """Both faces of one result."""

    structured: Json
    text: str
    links: tuple[Link, ...] = ()
    untrusted: tuple[str, ...] = ()
    request_id: str | None = None
    is_error: bool = False
    page_reads: int = 1
    rows: int | None = None
    image: Image | None = None

    @kept_property
    def written(self) -> str | None:
        """The structure as JSON, as it is sent; None where only the exact writer can write it."""
        try:
            return orjson.dumps(self.structured).decode()
        except TypeError:
            return None

    @kept_property
    def sizes(self) -> tuple[int, int]:
        """The characters of text and structure."""
        return len(self.text), len(self.written or compact(self.structured))


ToolFunction = Callable[[ToolCall, Mapping[str, Any] | None], Awaitable[Outcome]]


def adapter_settings(link_rule: str, max_blob_bytes: int) -> AdapterOptions:
    """Settings from words already checked; anything unknown counts as `auto`."""
    rules: dict[str, LinkRule] = {"auto": "auto", "always": "always", "never": "never"}
    return AdapterOptions(rules.get(link_rule, "auto"), max_blob_bytes)
