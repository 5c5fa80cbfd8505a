"""Which network addresses a server may call on behalf of strangers.

Rule: global unicast only, and also what an address stands for inside another (IPv4-mapped, 6to4,
NAT64) must be that.
Source: docs/contract/authorization-server.md 3.3 (guarded fetch).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")
_NOT_GLOBAL = (
    *(IPv6Network("fec0::/10"), IPv6Network("5f00::/16"), IPv6Network("3fff::/20")),
    # NAT64 of a network's own (RFC 8215): where in it the other address stands is that network's
    # choice, and the registry says that it is no address of the world.
    IPv6Network("64:ff9b:1::/48"),
)
_NOT_GLOBAL_4 = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv4Network(
        "168.63.129.16/32"
    ),  # inside Azure this is the platform, by an address of the world
)


def is_public(address: str) -> bool:
    """Whether the address may be called; text that is no address may not."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return _is_global(parsed)


def is_loopback(address: str) -> bool:
    """Whether the address is one of this very machine; a name is none."""
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.scope_id is not None or any(address in network for network in _NOT_GLOBAL):
            return False
        embedded = _embedded(address)
        if embedded is not None:
            return _is_global(embedded)
        if address.teredo is not None:
            return False
    elif any(address in network for network in _NOT_GLOBAL_4):
        return False
    return address.is_global and not (
        address.is_multicast or address.is_reserved or address.is_unspecified
    )


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if int(address) >> 32 == 0:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None
