"""Token storage of the SDK's OAuth client, in memory."""

from __future__ import annotations

from mcp.shared.auth import OAuthClientInformationFull, OAuthToken


class Keeper:
    """What one client keeps: its tokens and who it is."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info
