"""The adapter at `/mcp` put together: who may use it, and how its calls reach `/v1`.

Source: docs/contract/mcp-adapter.md 2.2, 3.2.
"""

from __future__ import annotations

import anyio
import anyio.to_thread
from starlette.types import ASGIApp

from pdpp_kernel.errors import GrantPaused
from pdpp_mcp_server.calls import adapter_settings, those_of_this_program
from pdpp_mcp_server.rs_client.http import RsClient
from pdpp_mcp_server.rs_client.inner_application import InnerApplication
from pdpp_mcp_server.rs_client.port import FixedBearer, RsPort
from personal_server.app.own_version import VERSION
from personal_server.app.stores import Stores
from personal_server.domain.possession import PresentedToken
from personal_server.hosted_mcp.admission import Admitted, HostedCredential
from personal_server.hosted_mcp.http import HostedApp, ServerBehind, hosted_app
from personal_server.reading.identification import OpenBriefly
from personal_server.reading.tokens import TokenResolver, TokenState
from personal_server.settings import Settings
from personal_server.storage.ports.snapshots import PastBudget


class TokenAdmission:
    """Who may use `/mcp`, by the one resolver of tokens."""

    def __init__(
        self,
        resolver: TokenResolver,
        mcp_resources: frozenset[str],
        open_briefly: OpenBriefly | None = None,
    ) -> None:
        self._resolver = resolver
        self._open_briefly = open_briefly
        self._mcp_resources = mcp_resources

    async def judge(self, presented: PresentedToken) -> Admitted:
        """What a token stands for now.

        Raises: InvalidToken, InvalidDpopProof, GrantRevoked, GrantExpired, GrantInvalid,
            StorageUnavailable.
        """
        state = self._at_once(presented)
        if state is None:
            state = await anyio.to_thread.run_sync(self._resolver.current, presented)
        return self._admitted(state)

    async def judge_again(self, token: str) -> Admitted:
        """What it stands for now, for a request that lasts.

        Raises: InvalidToken, GrantRevoked, GrantExpired, GrantInvalid, StorageUnavailable.
        """
        return self._admitted(await anyio.to_thread.run_sync(self._resolver.lasting, token))

    def _admitted(self, state: TokenState) -> Admitted:
        # a pause is told by each tool call, so that no host asks for consent again
        if state.refusal is not None and not isinstance(state.refusal, GrantPaused):
            raise state.refusal
        resolved = state.resolved
        return Admitted(
            kind=resolved.kind,
            state=state,
            client_id=resolved.client_id,
            grant_id=resolved.grants[0].grant_id if len(resolved.grants) == 1 else None,
            package_id=resolved.package_id,
            reaches_mcp=resolved.resource in self._mcp_resources,
            result_chars=resolved.result_chars,
        )

    def _at_once(self, presented: PresentedToken) -> TokenState | None:
        if self._open_briefly is None:
            return None
        try:
            with self._open_briefly() as (reader, _):
                return self._resolver.state(reader, presented)
        except PastBudget:
            return None


def hosted_adapter(
    settings: Settings,
    stores: Stores,
    resolver: TokenResolver,
    origins: tuple[str, ...],
    v1: ASGIApp,
) -> HostedApp:
    """The application behind `/mcp`, calling `v1` in this process."""

    def open_port(credential: HostedCredential) -> RsPort:
        inner = InnerApplication(v1, {"token_states": {credential.token: credential.state}})
        rs = RsClient(inner, credential.origin, FixedBearer(credential.token), VERSION)
        return rs.port(credential.tool, credential.request_id)

    reachable = frozenset(f"{o}{path}" for o in origins for path in ("", "/mcp"))
    return hosted_app(
        open_port=open_port,
        admission=TokenAdmission(resolver, reachable, stores.open_briefly),
        origins=origins,
        version=VERSION,
        allowed_origins=settings.allowed_origins,
        settings=adapter_settings(settings.mcp_resource_links, settings.mcp_max_blob_bytes),
        behind=ServerBehind(those_of_this_program, stores.changed),
    )
