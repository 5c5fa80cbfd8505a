"""The origin of a request: which of our names the caller used, and from where it came.

Rule: this is decided once, on the outermost application; forwarded headers count only from a
trusted proxy, and no rule anywhere authorizes by address.
Source: docs/contract/authorization-server.md 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

import msgspec

from pdpp_kernel.errors import MisdirectedRequest
from personal_server.settings import FORWARDED, Network, Settings
from personal_server.web.public_addresses import is_loopback

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORT = {"http": 80, "https": 443}


class OriginPolicy(msgspec.Struct, frozen=True):
    """The origins we answer for.

    Shapes: `hosts` maps a lower-case `host[:port]`, also with the default port of the origin, to
    the origin it stands for; `forwarded` means that hosts are believed from trusted proxies over
    https only; `behind_loopback` means that a proxy on this machine stands before us, which is
    believed about the address of a client and about nothing else.
    """

    hosts: Mapping[str, str]
    forwarded: bool
    trusted_proxies: tuple[Network, ...]
    behind_loopback: bool = False

    @property
    def origins(self) -> tuple[str, ...]:
        """Every origin of this server, the configured one first."""
        return tuple(dict.fromkeys(self.hosts.values()))

    def origin_of(self, peer: str, scheme: str, headers: Mapping[str, str]) -> str:
        """The origin the request was made on.

        Shapes: `headers` by lower-case name.  Raises: MisdirectedRequest.
        """
        host = headers.get("host", "")
        trusted = self._trusts(peer)
        if trusted:
            scheme = _last(headers.get("x-forwarded-proto")) or scheme
            host = _last(headers.get("x-forwarded-host")) or host
        origin = self.hosts.get(host.lower())
        if origin is None or (self.forwarded and not (trusted and scheme == "https")):
            raise _misdirected(self._why(host.lower(), scheme, trusted=trusted))
        return origin

    def client_address(self, peer: str, headers: Mapping[str, str]) -> str:
        """Where the caller is: the peer, or what trusted proxies say of it.

        Of a proxy on this machine the last entry counts, which it wrote itself.
        """
        forwarded = headers.get("x-forwarded-for")
        if forwarded is None:
            return peer
        hops = [_address_of(hop) for hop in forwarded.split(",")]
        if self._trusts(peer):
            return next((hop for hop in reversed(hops) if hop and not self._trusts(hop)), peer)
        if self.behind_loopback and is_loopback(peer):
            return hops[-1] or peer
        return peer

    def _why(self, host: str, scheme: str, *, trusted: bool) -> str:
        """What is wrong with a request that is none of ours: a key of `_MISDIRECTED`."""
        if self.forwarded and not trusted:
            return "untrusted_proxy"
        if self.forwarded and scheme != "https":
            return "not_https"
        names = {known.rsplit(":", 1)[0] for known in self.hosts}
        return "port_missing" if host in names else "unknown_host"

    def _trusts(self, address: str) -> bool:
        if not self.trusted_proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.trusted_proxies)


_MISDIRECTED = {
    "unknown_host": (
        "This server does not answer requests for that host name.",
        (
            "Use the address in PDPP_PUBLIC_URL. Behind a proxy, let the proxy pass "
            "the Host header unchanged."
        ),
    ),
    "port_missing": (
        "The request names the host of this server without the port.",
        "A proxy drops the port; with nginx: proxy_set_header Host $http_host;",
    ),
    "untrusted_proxy": (
        "This server learns its address from a proxy, and the request did not come from a proxy.",
        "Name the proxy's address in PDPP_TRUSTED_PROXIES.",
    ),
    "not_https": (
        (
            "This server can be used only over https, and the proxy did not say that "
            "the request used https."
        ),
        "Let the proxy send X-Forwarded-Proto: https.",
    ),
}


def _misdirected(reason: str) -> MisdirectedRequest:
    message, next_step = _MISDIRECTED[reason]
    return MisdirectedRequest(message, reason=reason, next_step=next_step)


def origin_policy(settings: Settings) -> OriginPolicy:
    """The policy of a configuration; a loopback origin answers to all loopback names."""
    forwarded = settings.public_url == FORWARDED
    if forwarded:
        named = [f"https://{host.removesuffix(':443')}" for host in settings.trusted_hosts]
        return OriginPolicy(_hosts(named), forwarded, settings.trusted_proxies)
    parts = urlsplit(settings.public_url)
    origins = [settings.public_url]
    behind_loopback = parts.scheme == "https" and is_loopback(settings.bind_host)
    if parts.hostname in ("127.0.0.1", "localhost", "::1"):
        port = "" if parts.port is None else f":{parts.port}"
        origins += [f"{parts.scheme}://{name}{port}" for name in _LOOPBACK_HOSTS]
    return OriginPolicy(_hosts(origins), forwarded, settings.trusted_proxies, behind_loopback)


def _address_of(hop: str) -> str:
    """The address in an entry of `X-Forwarded-For`, without the port that some proxies add."""
    hop = hop.strip()
    host = hop[1:].partition("]")[0] if hop.startswith("[") else hop
    if host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        return str(ip_address(host))
    except ValueError:
        return ""


def _hosts(origins: Iterable[str]) -> dict[str, str]:
    """Every way to write the host of an origin."""
    found: dict[str, str] = {}
    for origin in origins:
        parts = urlsplit(origin)
        found.setdefault(parts.netloc, origin)
        if parts.port is None:
            found.setdefault(f"{parts.netloc}:{_DEFAULT_PORT[parts.scheme]}", origin)
    return found


def _last(header: str | None) -> str:
    return header.rsplit(",", 1)[-1].strip() if header else ""
