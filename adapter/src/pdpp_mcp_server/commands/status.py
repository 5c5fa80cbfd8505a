"""`pdpp status`, `token`, `disconnect`: what cached credentials stand for, and giving them back.

Rule: no token in any output but that of `pdpp token`.
Source: docs/contract/authorization-server.md 14.1.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

import cyclopts
import msgspec
from cyclopts import Parameter
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from pdpp_mcp_server.commands.connect import CacheRoot, CommandContext
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import (
    CommandError,
    failure_of,
)
from pdpp_mcp_server.commands.tables import console, plain, print_facts, words
from pdpp_mcp_server.rs_client.authorization_flows import revoke
from pdpp_mcp_server.rs_client.credentials import (
    Credential,
    CredentialError,
    MetadataFailure,
    ProviderUnavailable,
    TokenRejected,
    connect_hint,
    normalize_provider_url,
)
from pdpp_mcp_server.rs_client.discovery import ProviderExchange, discover, unavailable


def add_cached_access(app: cyclopts.App, around: CommandContext) -> None:
    """Add the three commands."""

    @app.command
    def status(url: str | None = None, *, cache_root: CacheRoot = None, json: bool = False) -> int:
        """Show the servers that you are connected to here, and what you may read on them.

        Parameters
        ----------
        url
            Only this server.
        cache_root
            The folder with the saved credentials.
        json
            Print JSON.
        """
        return show_access(around, url, cache_root, as_json=json)

    @app.command
    def token(url: str, *, cache_root: CacheRoot = None) -> None:
        """Print a current access token, for tools that cannot renew tokens.

        Parameters
        ----------
        url
            The server.
        cache_root
            The folder with the saved credentials.
        """
        credential = around.credential(cache_root, normalize_provider_url(url)).current()
        if credential.jkt is not None:
            words().print(
                (
                    "This token works only with a private key that stays on this "
                    "computer. For a tool that needs an ordinary bearer token, connect "
                    "with --bearer."
                ),
                soft_wrap=True,
            )
        if sys.stdout.isatty():
            words().print(
                "This token is a secret: anyone who has the token can read what you were granted."
            )
        sys.stdout.write(credential.access_token + "\n")

    @app.command
    def disconnect(
        url: str,
        *,
        local: Annotated[bool, Parameter(negative="")] = False,
        cache_root: CacheRoot = None,
        json: bool = False,
    ) -> None:
        """End your access to a server and delete the credential.

        Parameters
        ----------
        url
            The server.
        local
            Only delete the credential here, without ending the access on the server.
        cache_root
            The folder with the saved credentials.
        json
            Print JSON.
        """
        origin = normalize_provider_url(url)
        cache = around.cache(cache_root)
        if not local:
            _give_back(around.exchange(), cache.load(origin))
        around.forget_key(cache, origin)
        cache.remove(origin)
        if json:
            print_json({"provider_url": origin, "disconnected": True, "local": local})
        else:
            words().print(f"Disconnected from {origin}.")


def show_access(
    around: CommandContext, url: str | None, root: Path | None, *, as_json: bool
) -> int:
    """Print what the credentials of this directory, or that of one server, stand for.

    Returns the worst exit code of them.  Raises: CommandError (`not_connected`).
    """
    urls = around.cache(root).providers() if url is None else (normalize_provider_url(url),)
    if not urls:
        raise CommandError("not_connected", "No server is connected here.", connect_hint("URL"))
    found = [_read_standing(around, root, one) for one in urls]
    if as_json:
        print_json([one.as_json() for one in found])
    else:
        for one in found:
            one.print()
    return max(one.exit_code for one in found)


def _give_back(exchange: ProviderExchange, credential: Credential) -> None:
    """Revoke it; a server that cannot be asked need not keep anybody from forgetting it."""
    origin = credential.provider_url.rstrip("/")
    token = credential.refresh_token or credential.access_token
    try:
        revoke(exchange, discover(exchange, origin), credential.client_id, token)
    except (ProviderUnavailable, MetadataFailure) as error:
        hint = (
            "Try again later, or delete only the saved credential: pdpp disconnect "
            f"{origin} --local"
        )
        raise type(error)(error.message, hint) from None


class AccessStatus(msgspec.Struct, frozen=True):
    """What a cached credential stands for; `failure` where it could not be asked."""

    provider_url: str
    body: Mapping[str, object] = msgspec.field(default_factory=dict[str, object])
    failure: Exception | None = None

    @property
    def exit_code(self) -> int:
        """0 while it is good for something."""
        return 0 if self.failure is None else failure_of(self.failure).exit_code

    def as_json(self) -> dict[str, object]:
        """The answer of `/grants/current`, or the error."""
        if self.failure is None:
            return {"provider_url": self.provider_url, **self.body}
        failed = failure_of(self.failure)
        error = {"code": failed.code, "message": failed.message, "next_step": failed.next_step}
        return {"provider_url": self.provider_url, "error": error}

    def print(self) -> None:
        """Print the status for people."""
        out = console()
        out.print(plain(self.provider_url), style="bold")
        if self.failure is not None:
            failed = failure_of(self.failure)
            out.print(plain(f"  {failed.code}: {failed.message} {failed.next_step}"))
            return
        out.print(plain(f"  as {self.body.get('client_name')}: {self.body.get('status')}"))
        grants = cast("list[dict[str, object]]", self.body.get("grants") or [])
        for grant in grants:
            _print_grant(grant, out)
        for gone in cast("list[dict[str, object]]", self.body.get("unavailable_connections") or []):
            out.print(
                plain(f"  cannot be read: {gone.get('connector_key')} ({gone.get('reason')})")
            )


def _print_grant(grant: Mapping[str, object], out: Console) -> None:
    """A grant by its streams, each field list on lines of its own."""
    ended = "" if grant.get("status") == "active" else f" ({grant.get('status')})"
    mode = "once" if grant.get("access_mode") == "single_use" else "ongoing"
    purpose = str(grant.get("purpose_code", "")).rsplit("/", 1)[-1]
    until = str(grant.get("expires_at") or "no end date")
    out.print()
    out.print(Text(f"  {grant.get('connector_key')}{ended}", style="bold cyan"))
    facts = [("access", f"{mode}, for {purpose}, until {until}")]
    for stream in cast("list[dict[str, object]]", grant.get("streams") or []):
        facts += [
            ("stream", str(stream.get("name"))),
            ("time", _window(stream.get("time_constraint"))),
            ("fields", ", ".join(cast("list[str]", stream.get("fields") or []))),
        ]
    print_facts(facts, out, "    ")


def _window(bound: object) -> str:
    if not isinstance(bound, dict):
        return "records of any age"
    members = cast("dict[str, object]", bound)
    since, until = members.get("since"), members.get("until")
    parts = (f"from {since}" if since else "", f"before {until}" if until else "")
    return " ".join(filter(None, parts))


def _read_standing(around: CommandContext, root: Path | None, origin: str) -> AccessStatus:
    try:
        credential = around.credential(root, origin).current()
        exchange = replace(around.exchange(), key=around.keys().of(credential))
        reply = exchange.get(f"{origin}/grants/current", credential.access_token)
    except CredentialError as error:
        return AccessStatus(origin, failure=error)
    if reply.status == 401:
        rejected = TokenRejected(
            "The server no longer accepts the saved credential.", connect_hint(origin)
        )
        return AccessStatus(origin, failure=rejected)
    if reply.status == 429 or reply.status >= 500:
        return AccessStatus(
            origin, failure=unavailable(f"The server answered with status {reply.status}.")
        )
    if not reply.ok:
        code = reply.error or "unavailable"
        failure = CommandError(
            code, f"The server answered with status {reply.status}.", "Try again later."
        )
        return AccessStatus(origin, failure=failure)
    return AccessStatus(origin, reply.body)


_commands = cyclopts.App()
add_cached_access(_commands, CommandContext())
status, token, disconnect = (_commands[name] for name in ("status", "token", "disconnect"))
