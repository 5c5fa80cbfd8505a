"""`pdpp owner login` and `logout`: acting as the owner from another computer.

Rule: such credentials stand apart from granted ones, under `owners/`, and are used by no adapter.
Source: AS contract 8.1, 14.1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from personal_server.cli.connecting import Surroundings
from personal_server.cli.connection import show_offer
from personal_server.cli.exits import print_json
from personal_server.cli.tables import words
from personal_server.domain.values import instant_text
from personal_server.rs_client.authorization_flows import (
    OWNER_CLIENT,
    OWNER_SCOPE,
    ask_as_owner,
    poll_device,
    revoke,
)
from personal_server.rs_client.credential_cache import CredentialCache
from personal_server.rs_client.credentials import (
    Document,
    credential_members,
    normalize_provider_url,
)
from personal_server.rs_client.discovery import discover

FOLDER = "owners"


def add_owner_profile(app: cyclopts.App, around: Surroundings, home: Path) -> None:
    """Add both commands to `pdpp owner`; `home` is the directory of `owners/`."""

    @app.command
    def login(
        url: str,
        *,
        browser: Annotated[bool, Parameter(name="--browser", negative="--no-browser")] = True,
        json: bool = False,
    ) -> None:
        """Sign in to a server as its owner, for commands that change it.

        Parameters
        ----------
        url
            The server's address.
        browser
            Open the browser; with --no-browser only print the address.
        json
            Print JSON.
        """
        origin, exchange = normalize_provider_url(url), around.exchange()
        provider = discover(exchange, origin)
        offer = ask_as_owner(exchange, provider)
        show_offer(offer, around.open_browser if browser else None)
        tokens = poll_device(exchange, provider, OWNER_CLIENT, offer, around.waiting)
        now_ns = around.clock()
        document: Document = {
            "provider_url": origin,
            "authorization_server": provider.issuer,
            "issuer": provider.issuer,
            "scope": OWNER_SCOPE,
            "client": {"client_id": OWNER_CLIENT, "token_endpoint_auth_method": "none"},
            "credential": {
                "token_type": "Bearer",
                "token_kind": "owner",
                **credential_members(tokens, now_ns),
            },
            "created_at": instant_text(now_ns),
            "updated_at": instant_text(now_ns),
        }
        path = _cache(home).save(document)
        if json:
            print_json({"provider_url": origin, "kind": "owner", "cache_path": str(path)})
        else:
            words().print(f"You are the owner of {origin} on this computer.", soft_wrap=True)

    @app.command
    def logout(url: str) -> None:
        """Give the owner's access back and forget it.

        Parameters
        ----------
        url
            The server's address.
        """
        origin, exchange = normalize_provider_url(url), around.exchange()
        credential = _cache(home).load(origin)
        spent = credential.refresh_token or credential.access_token
        revoke(exchange, discover(exchange, origin), OWNER_CLIENT, spent)
        _cache(home).remove(origin)
        words().print(f"You are no longer the owner of {origin} here.", soft_wrap=True)


def _cache(home: Path) -> CredentialCache:
    return CredentialCache(home, lambda said: words().print(said), folder=FOLDER)
