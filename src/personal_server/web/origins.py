"""The origin of a request: which of our names the caller used, and from where it came.

Rule: this is decided once, on the outermost application; forwarded headers count only from a
trusted proxy, and no rule anywhere authorizes by address.
Source: docs/contract/authorization-server.md 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from personal_server.errors import MisdirectedRequest
from personal_server.settings import FORWARDED, Network, Settings

_LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORT = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class OriginPolicy:
    """The origins we answer for.

    Shapes: `hosts` maps a lower-case `host[:port]`, also with the default port of the origin, to
    the origin it stands for; `forwarded` means that hosts are believed from trusted proxies over
    https only.
    """

    hosts: Mapping[str, str]
    forwarded: bool
    trusted_proxies: tuple[Network, ...]

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
            raise MisdirectedRequest(
                "This server does not answer for the requested host. Use the address in"
                " PDPP_PUBLIC_URL."
            )
        return origin

    def client_address(self, peer: str, headers: Mapping[str, str]) -> str:
        """Where the caller is: the peer, or what trusted proxies say of it."""
        if not self._trusts(peer):
            return peer
        hops = [hop.strip() for hop in headers.get("x-forwarded-for", "").split(",") if hop.strip()]
        return next((hop for hop in reversed(hops) if not self._trusts(hop)), peer)

    def _trusts(self, address: str) -> bool:
        if not self.trusted_proxies:
            return False
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.trusted_proxies)


def origin_policy(settings: Settings) -> OriginPolicy:
    """The policy of a configuration; a loopback origin answers to all loopback names."""
    forwarded = settings.public_url == FORWARDED
    if forwarded:
        named = [f"https://{host.removesuffix(':443')}" for host in settings.trusted_hosts]
        return OriginPolicy(_hosts(named), forwarded, settings.trusted_proxies)
    parts = urlsplit(settings.public_url)
    origins = [settings.public_url]
    if parts.hostname in ("127.0.0.1", "localhost", "::1"):
        port = "" if parts.port is None else f":{parts.port}"
        origins += [f"{parts.scheme}://{name}{port}" for name in _LOOPBACK_HOSTS]
    return OriginPolicy(_hosts(origins), forwarded, settings.trusted_proxies)


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
