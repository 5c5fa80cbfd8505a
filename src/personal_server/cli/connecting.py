"""`pdpp connect`: access to a server, asked for and kept.

Rule: no token in any output but that of `pdpp token`.  Source: AS contract 14.1.
"""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import cyclopts
from cyclopts import Parameter

from personal_server.cli.connection import ConnectOptions, connect_to
from personal_server.cli.exits import CommandError, print_json
from personal_server.cli.selection_options import SelectionOptions
from personal_server.cli.tables import console, words
from personal_server.rs_client.authorization_flows import Waiting
from personal_server.rs_client.credential_cache import CredentialCache
from personal_server.rs_client.credentials import normalize_provider_url
from personal_server.rs_client.discovery import Exchange, network_exchange
from personal_server.rs_client.refresh import CachedCredential, HttpTokenEndpoint

CacheRoot = Annotated[Path | None, Parameter(name="--cache-root")]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What these commands touch outside: the network, the browser, the clocks, the cache."""

    default_cache: Callable[[], Path]
    exchange: Callable[[], Exchange] = network_exchange
    open_browser: Callable[[str], object] = webbrowser.open
    clock: Callable[[], int] = time.time_ns
    waiting: Waiting = field(default_factory=lambda: Waiting(time.sleep, time.monotonic))

    def cache(self, root: Path | None) -> CredentialCache:
        """The credential cache, with warnings on standard error."""
        return CredentialCache(root or self.default_cache(), lambda said: words().print(said))

    def credential(self, root: Path | None, provider_url: str) -> CachedCredential:
        """A provider's cached credential, kept current."""
        endpoint = HttpTokenEndpoint(self.exchange())
        return CachedCredential(self.cache(root), provider_url, endpoint, self.clock)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectFlags:
    """How to connect.

    Parameters
    ----------
    device
        Show a code to compare in the browser (the default).
    loopback
        Let the browser come back to this computer instead.
    browser
        Open the browser; with --no-browser only print the address.
    client_name
        How this computer calls itself.
    timeout
        Seconds to wait for the decision.
    """

    device: Annotated[bool, Parameter(negative="")] = False
    loopback: Annotated[bool, Parameter(negative="")] = False
    browser: Annotated[bool, Parameter(name="--browser", negative="--no-browser")] = True
    client_name: str | None = None
    timeout: Annotated[float | None, Parameter(validator=cyclopts.validators.Number(gt=0))] = None


def connect_command(around: Surroundings) -> Callable[..., None]:
    """The command `pdpp connect`."""

    def connect(
        url: str,
        *,
        selection: SelectionOptions | None = None,
        flags: ConnectFlags | None = None,
        cache_root: CacheRoot = None,
        json: bool = False,
    ) -> None:
        """Ask a server for access and keep its credential for this directory.

        Without a selection its owner picks in the browser.

        Parameters
        ----------
        url
            The server's address.
        cache_root
            Where the credential goes; `.pdpp` in this directory unless set.
        json
            Print the result as JSON.
        """
        chosen = flags or ConnectFlags()
        if chosen.device and chosen.loopback:
            raise CommandError("usage", "--device and --loopback exclude each other.")
        options = ConnectOptions(
            details=(selection or SelectionOptions()).details(registry_uri),
            loopback=chosen.loopback,
            open_browser=around.open_browser if chosen.browser else None,
            client_name=chosen.client_name,
            waiting=replace(around.waiting, timeout=chosen.timeout),
        )
        cache = around.cache(cache_root)
        origin = normalize_provider_url(url)
        result = connect_to(around.exchange(), cache, origin, options, around.clock)
        if json:
            print_json(result.as_json())
        else:
            result.print(console())

    return connect


def registry_uri(name: str) -> str:
    """The URI of a source by its short name, as the public registry writes it."""
    return name if ":" in name else f"https://registry.pdpp.dev/connectors/{name}"
