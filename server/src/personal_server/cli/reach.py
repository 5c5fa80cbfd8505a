"""`pdpp reach`: whether this server is reached from elsewhere, by whom, and how to get there.

Source: docs/contract/authorization-server.md 14.1; docs/reach.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from typing import Annotated

from cyclopts import Parameter

from pdpp_mcp_server.commands.connect import CommandContext
from pdpp_mcp_server.commands.exits import print_json
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.tables import console
from pdpp_mcp_server.rs_client.discovery import ProviderExchange
from personal_server.cli.doctor import host_findings
from personal_server.cli.findings import (
    HINT,
    SKIPPED,
    WRONG,
    Finding,
    good,
    print_finding,
    wrong,
)
from personal_server.cli.server_settings import settings_or_exit
from personal_server.cli.tunnel_programs import (
    HTTPS_PORT,
    Tunnel,
    installed_tunnels,
    start,
)
from personal_server.settings import Settings

Flag = Annotated[bool, Parameter(negative="")]
CODE, ADDRESS = "tunnel", ("public_address", "Public address")


def reach_command(around: CommandContext) -> Callable[..., int]:
    """The command `pdpp reach`."""

    def reach(*, everybody: Flag = False, own: Flag = False, json: Flag = False) -> int:
        """Find out whether your phone, or Claude and ChatGPT on the web, reach this server.

        Looks for a tunnel that is installed here (Tailscale, cloudflared), says what to type to
        lead it to this server, and asks the public address as each MCP host does. Nothing is
        changed unless you ask for it.

        Parameters
        ----------
        everybody
            Start the tunnel for everybody on the internet; Claude and ChatGPT on the web need
            that. Your password or passkey then protects your records.
        own
            Start the tunnel for your own devices only, such as your phone.
        json
            Print JSON.
        """
        if everybody and own:
            raise CommandError("usage", "Use only one of --everybody and --own.")
        settings = settings_or_exit()
        wanted = everybody if everybody or own else None
        found: list[Finding] = []
        for finding in _findings(around.exchange(), settings, for_everybody=wanted):
            found.append(finding)
            if not json:
                print_finding(finding, console())
        if json:
            print_json([finding.as_json() for finding in found])
        return 69 if any(finding.state == WRONG for finding in found) else 0

    return reach


def _findings(
    exchange: ProviderExchange, settings: Settings, *, for_everybody: bool | None
) -> Iterator[Finding]:
    """The tunnels, then the address, then what each host meets there."""
    tunnels = list(installed_tunnels(settings.bind_port))
    if for_everybody is not None and not (settings.public_url or "").startswith("https:"):
        yield Finding(
            *ADDRESS,
            HINT,
            "the server answers at this machine's own address only, so far",
            "When the tunnel has its address, start the server with that: see below.",
        )
    if for_everybody is not None:
        yield from _started(tunnels, for_everybody=for_everybody)
        tunnels = list(installed_tunnels(settings.bind_port))
    for tunnel in tunnels:
        yield _judged(tunnel)
    if not tunnels:
        yield Finding(
            CODE,
            "Tunnel",
            SKIPPED if _public(settings) else HINT,
            "neither Tailscale nor cloudflared is installed here",
            "docs/reach.md says how your phone, your LAN or an ssh session gets here without one.",
        )
    leading = sorted((t for t in tunnels if t.address), key=lambda t: not t.is_public)
    origin = _public(settings) or (leading[0].address if leading else None)
    if origin is None:
        yield Finding(*ADDRESS, SKIPPED, "there is none, so no host on the internet was tried")
        return
    yield _address_finding(settings, leading)
    is_own = any(tunnel.address == origin and not tunnel.is_public for tunnel in leading)
    yield from host_findings(exchange, origin, for_everybody=not is_own)


def _started(tunnels: list[Tunnel], *, for_everybody: bool) -> Iterator[Finding]:
    """Start the first tunnel that can be started; what it complains of."""
    able = next((t for t in tunnels if t.everybody and not t.trouble), None)
    if able is None:
        step = "Install Tailscale and sign in with `tailscale up`, then run this command again."
        yield wrong(CODE, "Tunnel", "no tunnel here can be started", step)
        return
    complaint = start(able, for_everybody=for_everybody)
    if complaint is not None:
        command = shlex.join(able.everybody if for_everybody else able.own)
        yield wrong(CODE, able.name, complaint, f"Type it yourself to see more: {command}")


def _judged(tunnel: Tunnel) -> Finding:
    if tunnel.trouble:
        return Finding(CODE, tunnel.name, HINT, tunnel.trouble, tunnel.step)
    everybody, own = shlex.join(tunnel.everybody), shlex.join(tunnel.own)
    if tunnel.address is None:
        return Finding(
            CODE,
            tunnel.name,
            HINT,
            "installed, but it does not lead to this server",
            f"To reach it from anywhere, as Claude and ChatGPT on the web must: {everybody}. "
            f"From your own devices only: {own}.",
        )
    if tunnel.is_public and tunnel.port != HTTPS_PORT:
        return Finding(
            CODE,
            tunnel.name,
            HINT,
            f"leads everybody here at {tunnel.address}, but Claude reaches port 443 only",
            f"Use port 443: {everybody}",
        )
    if tunnel.is_public:
        return good(CODE, tunnel.name, f"leads everybody here at {tunnel.address}")
    return good(
        CODE,
        tunnel.name,
        f"leads your own devices here at {tunnel.address}. Claude and ChatGPT on the web need it "
        f"open to everybody: {everybody}",
    )


def _public(settings: Settings) -> str | None:
    """The address that the server has for others."""
    origin = (settings.public_url or "").rstrip("/")
    return origin if origin.startswith("https:") else None


def _address_finding(settings: Settings, leading: list[Tunnel]) -> Finding:
    """Whether the server answers to the name by which the tunnel leads to it."""
    named, addresses = _public(settings), [t.address for t in leading if t.address]
    if named is not None and (not addresses or named in addresses):
        return good(*ADDRESS, named)
    return wrong(
        *ADDRESS,
        f"the tunnel has the address {addresses[0]}, to which the server does not answer yet",
        f"Set a password (`pdpp owner password`), then start the server with it: "
        f"PDPP_PUBLIC_URL={addresses[0]} pdpp serve",
    )


reach = reach_command(CommandContext())
