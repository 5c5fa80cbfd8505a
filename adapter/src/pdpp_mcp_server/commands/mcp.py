"""`pdpp-mcp-server` and `pdpp mcp`: the adapter on standard input and output.

Source: docs/contract/mcp-adapter.md 2.1; docs/contract/authorization-server.md 14.2, 14.3. Words go
to standard error; nothing but MCP messages is ever written to standard output.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from time import time_ns
from typing import TYPE_CHECKING, NoReturn

import cyclopts
import msgspec

from pdpp_kernel import long_life
from pdpp_mcp_server.commands.exits import package_version
from pdpp_mcp_server.commands.failures_shown import (
    CommandError,
    Failure,
    failure_of,
    print_failure,
)
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.credentials import (
    CredentialError,
    NoCredential,
    OwnerTokenRefused,
    normalize_provider_url,
)
from pdpp_mcp_server.rs_client.port import HeldToken
from pdpp_mcp_server.rs_client.proof_keys import own_keys
from pdpp_mcp_server.rs_client.refresh import CachedBearer, CachedCredential, NetworkTokenEndpoint
from pdpp_mcp_server.settings import InvalidSetting, StdioSettings, adapter_from_env

if TYPE_CHECKING:
    from rich.console import Console

OWNER_MESSAGE = "An owner credential is set, but the adapter accepts only granted access."


def mcp_server(
    *,
    provider_url: str | None = None,
    cache_root: Path | None = None,
    server_name: str | None = None,
) -> int:
    """Serve MCP over standard input and output for one connected server.

    Environment: PDPP_PROVIDER_URL, PDPP_CACHE_ROOT, PDPP_MCP_SERVER_NAME,
    PDPP_MCP_RESOURCE_LINKS (auto, always or never), PDPP_MCP_MAX_BLOB_BYTES.

    Parameters
    ----------
    provider_url:
        Address of the server. Default: the only one that is connected here.
    cache_root:
        The folder with the saved credentials. Default: `.pdpp` in this directory.
    server_name:
        The name under which the host shows this server.
    """
    settings = _settings()
    if settings.owner_variables:
        raise CommandError(
            "owner_token_refused", OWNER_MESSAGE, "Unset the variable with the owner credential."
        )
    cache = CredentialCache(cache_root or settings.cache_root, warn=_warn)
    named = provider_url or settings.provider_url
    url = normalize_provider_url(named) if named else cache.only_provider()
    keys = own_keys()
    cached = CachedCredential(cache, url, NetworkTokenEndpoint(keys), time_ns)
    credential = cached.load_usable()
    keys.of(credential)
    source = WatchedBearer(CachedBearer(cached, keys))
    _serve(
        source,
        url,
        server_name or settings.server_name,
        settings,
        kind_known=credential.token_kind is not None,
        result_chars=credential.result_chars,
    )
    return 0


def _settings() -> StdioSettings:
    try:
        return adapter_from_env()
    except InvalidSetting as error:
        raise CommandError("config", str(error)) from None


class WatchedBearer(msgspec.Struct, frozen=True):
    """The cached bearer; an owner's, should one appear in the cache, ends the process."""

    source: CachedBearer

    async def bearer(self) -> HeldToken:
        """The token to send.

        Raises: NoCredential.
        """
        try:
            return await self.source.bearer()
        except CredentialError as error:
            raise _unusable(error) from None

    async def renew(self, rejected: str) -> HeldToken | None:
        """A newer token of the same grant, or None.

        Raises: NoCredential.
        """
        try:
            return await self.source.renew(rejected)
        except CredentialError as error:
            raise _unusable(error) from None


def _unusable(error: CredentialError) -> Exception:
    if isinstance(error, OwnerTokenRefused):
        refuse_owner()
    return NoCredential(error.code, f"{error.message} {error.next_step}")


def refuse_owner() -> NoReturn:
    """End the process at once: a reader of standard input cannot be interrupted."""
    failure = Failure("owner_token_refused", OWNER_MESSAGE)
    print_failure(failure, as_json=False, out=sys.stderr, err=sys.stderr)
    sys.stderr.flush()
    os._exit(failure.exit_code)


def _serve(
    source: WatchedBearer,
    provider_url: str,
    server_name: str,
    settings: StdioSettings,
    *,
    kind_known: bool,
    result_chars: int | None,
) -> None:
    """Import the protocol only once the start is certain; it is most of the start-up time.

    Meanwhile the first questions are answered.
    """
    from pdpp_mcp_server.first_answers import (  # noqa: PLC0415 (start-up time)
        FirstAnswers,
        ServerIdentity,
        StandardStreams,
        own_streams,
    )

    identity = ServerIdentity(server_name, package_version())
    streams = StandardStreams(FirstAnswers(identity), *own_streams())
    import anyio  # noqa: PLC0415

    from pdpp_mcp_server.calls import adapter_settings  # noqa: PLC0415
    from pdpp_mcp_server.rs_client.http import RsClient  # noqa: PLC0415
    from pdpp_mcp_server.rs_client.senders import Network, network_client  # noqa: PLC0415
    from pdpp_mcp_server.stdio import serve_stdio  # noqa: PLC0415

    _log_to_standard_error(settings.log_level)
    long_life.leave_what_is_there()

    async def serve() -> None:
        async with network_client() as http:
            client = RsClient(Network(http), provider_url, source, package_version())
            await serve_stdio(
                streams,
                client.port,
                provider_url=provider_url,
                identity=identity,
                kind_known=kind_known,
                refuse_owner=refuse_owner,
                settings=adapter_settings(settings.resource_links, settings.max_blob_bytes),
                result_chars=result_chars,
            )

    anyio.run(serve)


def _log_to_standard_error(level: str) -> None:
    threshold = logging.getLevelNamesMapping()[level.upper()]
    logging.basicConfig(level=threshold, stream=sys.stderr, format="%(message)s", force=True)
    for library in ("httpx2", "httpcore2", "mcp"):
        logging.getLogger(library).setLevel(max(threshold, logging.WARNING))


def _warn(sentence: str) -> None:
    print(f"pdpp: {sentence}", file=sys.stderr)  # noqa: T201 (words)


def _console(arguments: Sequence[str]) -> Console | None:
    """Where help and version are written; nothing else is, so it is made for them alone."""
    if not {"--help", "-h", "--version"} & set(arguments):
        return None
    from rich.console import Console  # noqa: PLC0415 (start-up time)

    return Console(stderr=True)


def run() -> NoReturn:
    """The entry point `pdpp-mcp-server`."""
    long_life.put_off()
    console = _console(sys.argv[1:])
    app = cyclopts.App(
        name="pdpp-mcp-server", version=package_version, console=console, error_console=console
    )
    app.default(mcp_server)
    try:
        code = app(
            sys.argv[1:], exit_on_error=False, print_error=False, result_action="return_value"
        )
    except KeyboardInterrupt:
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 (the boundary of the command line)
        failure = failure_of(error)
        print_failure(failure, as_json=False, out=sys.stderr, err=sys.stderr)
        sys.exit(_narrow(failure.exit_code))
    sys.exit(code if isinstance(code, int) else 0)


def _narrow(code: int) -> int:
    """The codes this command may end with: 1, 64, 77 and 78."""
    return code if code in {64, 77, 78} else 1
