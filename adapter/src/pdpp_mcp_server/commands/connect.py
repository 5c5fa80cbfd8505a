"""`pdpp connect`: discover, register, ask, wait, prove that it reads, keep the credential.

Rule: no token in any output but that of `pdpp token`.
Source: docs/contract/authorization-server.md 14.1.
"""

from __future__ import annotations

import json
import secrets
import socket
import time
import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import cyclopts
import httpx2
import msgspec
from cyclopts import Parameter
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from pdpp_mcp_server.commands.exits import (
    default_cache,
    print_json,
)
from pdpp_mcp_server.commands.failures_shown import CommandError
from pdpp_mcp_server.commands.quiet_texts import quiet_text
from pdpp_mcp_server.commands.selection_options import Details, SelectionOptions
from pdpp_mcp_server.commands.tables import console, plain, print_facts, words
from pdpp_mcp_server.rs_client.authorization_flows import (
    SCOPE,
    ClientForgotten,
    DeviceOffer,
    PollWait,
    ask_for_device,
    code_request,
    listening,
    poll_device,
    push_request,
    redeem_code,
    register,
)
from pdpp_mcp_server.rs_client.credential_cache import CredentialCache
from pdpp_mcp_server.rs_client.credentials import (
    Credential,
    CredentialError,
    Document,
    MetadataFailure,
    OwnerTokenRefused,
    TokenRejected,
    connect_hint,
    credential_document,
    credential_members,
    normalize_provider_url,
)
from pdpp_mcp_server.rs_client.discovery import (
    Provider,
    ProviderExchange,
    discover,
    network_exchange,
)
from pdpp_mcp_server.rs_client.proof_keys import KeyRing, ProofKey, own_keys
from pdpp_mcp_server.rs_client.refresh import CachedCredential, HttpTokenEndpoint
from pdpp_mcp_server.rs_client.senders import network_client
from pdpp_mcp_server.settings import one_file_program, own_program

CacheRoot = Annotated[Path | None, Parameter(name="--cache-root")]
LOOPBACK_SECONDS = 900.0


class CommandContext(msgspec.Struct, frozen=True):
    """What these commands touch outside: the network, the browser, the clocks, the cache."""

    default_cache: Callable[[], Path] = default_cache
    exchange: Callable[[], ProviderExchange] = network_exchange
    http: Callable[[], httpx2.AsyncClient] = network_client
    open_browser: Callable[[str], object] = webbrowser.open
    clock: Callable[[], int] = time.time_ns
    keys: Callable[[], KeyRing] = own_keys
    waiting: PollWait = msgspec.field(default_factory=lambda: PollWait(time.sleep, time.monotonic))

    def cache(self, root: Path | None) -> CredentialCache:
        """The credential cache, with warnings on standard error."""
        return CredentialCache(
            root or self.default_cache(), lambda sentence: words().print(sentence)
        )

    def credential(self, root: Path | None, provider_url: str) -> CachedCredential:
        """A provider's cached credential, kept current."""
        endpoint = HttpTokenEndpoint(self.exchange(), self.keys())
        return CachedCredential(self.cache(root), provider_url, endpoint, self.clock)

    def forget_key(self, cache: CredentialCache, provider_url: str) -> None:
        """Remove the key of a credential that is about to go, if there is one."""
        try:
            credential = cache.load(provider_url)
        except CredentialError:
            return
        self.keys().forget(credential)


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectFlags:
    """How to connect.

    Parameters
    ----------
    device
        Show a code to compare in the browser (the default).
    loopback
        Let the browser return to this computer after the decision, instead of showing a code.
    browser
        Open the browser. With --no-browser, only print the address.
    bearer
        Ask for an ordinary bearer token, for tools that support no other. Anyone with a copy of a
        bearer token can use it. Default: a token bound to a key in your home directory, if the
        server supports that.
    client_name
        The name that the owner sees for this computer.
    timeout
        Seconds to wait for the decision.
    """

    device: Annotated[bool, Parameter(negative="")] = False
    loopback: Annotated[bool, Parameter(negative="")] = False
    browser: Annotated[bool, Parameter(name="--browser", negative="--no-browser")] = True
    bearer: Annotated[bool, Parameter(negative="")] = False
    client_name: str | None = None
    timeout: Annotated[float | None, Parameter(validator=cyclopts.validators.Number(gt=0))] = None


def connect_command(around: CommandContext) -> Callable[..., None]:
    """The command `pdpp connect`."""

    def connect(
        url: str,
        *,
        selection: SelectionOptions | None = None,
        flags: ConnectFlags | None = None,
        cache_root: CacheRoot = None,
        json: bool = False,
    ) -> None:
        """Ask a server for access and save the credential in this directory.

        If you do not name what to read, the owner chooses in the browser.

        Parameters
        ----------
        url
            The server's address.
        cache_root
            The folder in which to save the credential. Default: `.pdpp` in this directory.
        json
            Print the result as JSON.
        """
        chosen = flags or ConnectFlags()
        if chosen.device and chosen.loopback:
            raise CommandError("usage", "Use either --device or --loopback, not both.")
        options = ConnectOptions(
            details=(selection or SelectionOptions()).details(registry_uri),
            loopback=chosen.loopback,
            open_browser=around.open_browser if chosen.browser else None,
            client_name=chosen.client_name,
            waiting=replace(around.waiting, timeout=chosen.timeout),
            keys=None if chosen.bearer else around.keys(),
        )
        cache = around.cache(cache_root)
        origin = normalize_provider_url(url)
        known = _known(cache, origin)
        result = _connect(around.exchange(), cache, origin, options, around.clock)
        if known is not None:
            around.keys().forget(known)
        if json:
            print_json(result.as_json())
        else:
            result.print(console())

    return connect


def registry_uri(name: str) -> str:
    """The URI of a source by its short name, as the public registry writes it."""
    return name if ":" in name else f"https://registry.pdpp.dev/connectors/{name}"


@dataclass(frozen=True, slots=True)
class ConnectOptions:
    """How to connect.

    `open_browser` `None` only prints the address, `keys` `None` takes a bearer.
    """

    details: Details | None
    loopback: bool
    open_browser: Callable[[str], object] | None
    client_name: str | None
    waiting: PollWait
    keys: KeyRing | None = None


class Connected(msgspec.Struct, frozen=True):
    """What was obtained; no secret in it."""

    provider_url: str
    kind: str
    grant_id: str | None
    package_id: str | None
    sources: tuple[str, ...]
    expires_at: str | None
    cache_path: Path
    cache_root: Path

    @property
    def host_configuration(self) -> dict[str, object]:
        """How an MCP host starts the stdio adapter on this credential."""
        root = str(self.cache_root.resolve())
        command, *words = _adapter_words()
        arguments = [*words, "--provider-url", self.provider_url, "--cache-root", root]
        return {"mcpServers": {"personal-data": {"command": command, "args": arguments}}}

    def as_json(self) -> dict[str, object]:
        """The result as JSON, for programs."""
        return {
            "provider_url": self.provider_url,
            "kind": self.kind,
            "grant_id": self.grant_id,
            "grant_package_id": self.package_id,
            "sources": list(self.sources),
            "expires_at": self.expires_at,
            "cache_path": str(self.cache_path.resolve()),
            "mcp_configuration": self.host_configuration,
        }

    def print(self, out: Console) -> None:
        """Print the result for people."""
        facts = {
            "connected": self.provider_url,
            "as": self.package_id or self.grant_id or self.kind,
            "sources": ", ".join(self.sources) or "–",
            "until": self.expires_at or "no end date",
            "credential saved in": str(self.cache_path),
        }
        print_facts(facts.items(), out)
        out.print("\nTo add this server to an MCP host:")
        out.print(json.dumps(self.host_configuration), soft_wrap=True, markup=False)


def _adapter_words() -> tuple[str, ...]:
    """How a host starts the adapter: its own program, or a command of the one that has them all."""
    whole = one_file_program()
    return (own_program("pdpp-mcp-server"),) if whole is None else (whole, "mcp")


def _connect(
    exchange: ProviderExchange,
    cache: CredentialCache,
    origin: str,
    options: ConnectOptions,
    clock: Callable[[], int],
) -> Connected:
    """Obtain and keep a credential.  Raises: CredentialError."""
    cache.prepare()
    provider = discover(exchange, origin)
    if options.keys is not None and provider.takes_proofs:
        exchange = replace(exchange, key=ProofKey())
    name = options.client_name or f"pdpp on {socket.gethostname()}"
    known = _known_client(cache, origin, name)
    client_id, tokens = _obtained(exchange, provider, name, known, options)
    document = _document(provider, client_id, name, tokens, clock())
    key = exchange.key if str(tokens.get("token_type")).lower() == "dpop" else None
    if key is not None and options.keys is not None:
        options.keys.keep(key)
        cast("Document", document["credential"])["dpop_jkt"] = key.jkt
    exchange = replace(exchange, key=key)
    kind = _token_kind(exchange, provider, cast("str", tokens["access_token"]))
    cast("Document", document["credential"])["token_kind"] = kind
    path = cache.save(document)
    return _connected(exchange, provider, document, kind, path, cache)


def _known(cache: CredentialCache, origin: str) -> Credential | None:
    """What is cached of a server, if that can be read."""
    try:
        return cache.load(origin)
    except CredentialError:
        return None


def _known_client(cache: CredentialCache, origin: str, name: str) -> str | None:
    """The client that was registered for this directory before, under the same name."""
    known = _known(cache, origin)
    if known is None:
        return None
    client = cast("dict[str, object]", known.document["client"])
    client_id = client.get("client_id")
    if not isinstance(client_id, str) or not client_id.startswith("cli_"):
        return None
    return client_id if client.get("client_name") == name else None


def _obtained(
    exchange: ProviderExchange,
    provider: Provider,
    name: str,
    known: str | None,
    options: ConnectOptions,
) -> tuple[str, Mapping[str, object]]:
    """Client id and token response; a client that the server forgot is registered anew."""
    obtain = _by_loopback if options.loopback else _by_device
    if known is not None:
        try:
            return known, obtain(exchange, provider, known, options)
        except ClientForgotten:
            words().print(
                "The server no longer knows this computer, so this command registers "
                "the computer again."
            )
    client_id = register(exchange, provider, name)
    return client_id, obtain(exchange, provider, client_id, options)


def _by_device(
    exchange: ProviderExchange, provider: Provider, client_id: str, options: ConnectOptions
) -> Mapping[str, object]:
    offer = ask_for_device(exchange, provider, client_id, options.details)
    show_offer(offer, options.open_browser)
    return poll_device(exchange, provider, client_id, offer, options.waiting)


def show_offer(offer: DeviceOffer, open_browser: Callable[[str], object] | None) -> None:
    """Tell the person where to go and which code to compare."""
    out = words()
    out.print(_where_to_decide(open_browser is not None, "compare the code, and decide"))
    out.print(plain(f"  {offer.verification_uri_complete}"), soft_wrap=True)
    out.print(Text.assemble("  code ", (quiet_text(offer.user_code), "bold")))
    out.print(_still_waiting(offer.expires_in))
    if open_browser is not None:
        open_browser(offer.verification_uri_complete)


def _by_loopback(
    exchange: ProviderExchange, provider: Provider, client_id: str, options: ConnectOptions
) -> Mapping[str, object]:
    details = None if options.details is None else json.dumps(options.details, ensure_ascii=False)
    with listening() as listener:
        request = code_request(
            client_id, listener.redirect_uri, provider.origin, SCOPE, details, secrets.token_bytes
        )
        carried = push_request(exchange, provider, request.parameters)
        address = request.address(provider, carried)
        seconds = options.waiting.timeout or LOOPBACK_SECONDS
        words().print(_where_to_decide(options.open_browser is not None, "decide"))
        words().print(plain(f"  {address}"), soft_wrap=True)
        words().print(_still_waiting(seconds))
        if options.open_browser is not None:
            options.open_browser(address)
        answer = listener.answer(seconds, request.state)
        code = request.code(provider, answer)
        form = {
            "code": code,
            "code_verifier": request.verifier,
            "client_id": client_id,
            "redirect_uri": listener.redirect_uri,
            "resource": provider.origin,
        }
        return redeem_code(exchange, provider, form)


def _where_to_decide(opened: bool, then: str) -> str:
    """The line above the address."""
    if opened:
        return f"Your browser opens; {then} there. If the browser does not open, go to:"
    return f"Open this address in a browser, {then}:"


def _still_waiting(seconds: float) -> str:
    """That nothing hangs: a person is asked."""
    minutes = max(1, round(seconds / 60))
    return f"Waiting up to {minutes} min for the decision; Ctrl-C stops waiting."


def _document(
    provider: Provider,
    client_id: str,
    name: str,
    tokens: Mapping[str, object],
    now_ns: int,
) -> Document:
    client = {"client_id": client_id, "client_name": name}
    credential: Document = {
        "grant_id": None,
        "grant_package_id": None,
        "refresh_token": None,
        "resource": provider.origin,
        "authorization_details": [],
        **credential_members(tokens, now_ns),
    }
    return credential_document(
        provider.origin, provider.issuer, "pdpp:read", client, credential, now_ns
    )


def _token_kind(exchange: ProviderExchange, provider: Provider, token: str) -> str:
    """The kind of a token that reads.

    Raises: OwnerTokenRefused, TokenRejected, MetadataFailure, ProviderUnavailable.
    """
    reply = exchange.get(f"{provider.origin}/v1/schema?view=compact", token)
    if reply.status == 401:
        raise TokenRejected(
            "The server refused the token that it had just issued.", connect_hint(provider.origin)
        )
    if not reply.ok:
        raise MetadataFailure(
            (f"The server answered the request for its schema with status {reply.status}."),
            "Try again later.",
        )
    data = reply.body.get("data")
    holder = cast("dict[str, object]", data) if isinstance(data, dict) else reply.body
    bearer = holder.get("bearer")
    kind = cast("dict[str, object]", bearer).get("token_kind") if isinstance(bearer, dict) else None
    if kind == "owner":
        raise OwnerTokenRefused(
            "The server issued an owner credential, which this program does not accept.",
            "Ask for a grant instead.",
        )
    return kind if isinstance(kind, str) else "client"


def _connected(
    exchange: ProviderExchange,
    provider: Provider,
    document: Document,
    kind: str,
    path: Path,
    cache: CredentialCache,
) -> Connected:
    credential = cast("dict[str, object]", document["credential"])
    token = cast("str", credential["access_token"])
    current = exchange.get(f"{provider.origin}/grants/current", token)
    grants = cast("list[dict[str, object]]", current.body.get("grants") or [])
    ends = [grant.get("expires_at") for grant in grants]
    return Connected(
        provider_url=provider.origin,
        kind=kind,
        grant_id=cast("str | None", credential.get("grant_id")),
        package_id=cast("str | None", credential.get("grant_package_id")),
        sources=tuple(str(grant.get("connector_key")) for grant in grants),
        expires_at=next((end for end in ends if isinstance(end, str)), None),
        cache_path=path,
        cache_root=cache.root,
    )


connect = connect_command(CommandContext())
