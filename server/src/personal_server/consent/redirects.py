"""Redirect URIs: which are usable, which match, and what is added to one.

Rule: exact strings, except that the port of a loopback redirect is free; a code is bound to the
exact URI that was used.
Source: docs/contract/authorization-server.md 3.1, 5.1; RFC 8252 section 7.3.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import SplitResult, urlencode, urlsplit

MAX_URIS = 20
MAX_CHARS = 2_048
LOOPBACK_HOSTS = ("127.0.0.1", "[::1]", "localhost")
DEFAULT_SCHEMES = ("cursor", "vscode", "vscode-insiders", "windsurf")

# What some program runs or opens by itself, however it is punctuated.
_NEVER_SCHEMES = frozenset(
    ("javascript", "vbscript", "livescript", "data", "file", "blob", "about", "viewsource", "jar")
)
# RFC 8252 7.1: a domain that the app's maker has, its parts in reverse. Other schemes with a dot
# (`a.b`, `1.0`, `x.y+z`) are names that nobody has, and any program answers.
_REVERSE_DOMAIN = re.compile(r"[a-z]{2,63}(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)+")
_LONGEST_DOMAIN = 253

_URI_CHARACTERS = re.compile(r"[A-Za-z0-9\-._~:/?\[\]@!$&'()*+,;=%]+")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*")
_AUTHORITY = re.compile(r"([A-Za-z0-9._~%-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?")


def is_usable(uri: str, schemes: Collection[str] = DEFAULT_SCHEMES) -> bool:
    """Whether a client may be sent there at all.

    `schemes` are the private-use schemes that are no domain in reverse, but the owner allows.
    """
    if len(uri) > MAX_CHARS or not _URI_CHARACTERS.fullmatch(uri) or _BAD_ESCAPE.search(uri):
        return False
    parts = _split(uri)
    if parts is None or "@" in parts.netloc:
        return False
    if parts.scheme in ("http", "https"):
        well_formed = _AUTHORITY.fullmatch(parts.netloc) is not None
        return well_formed and (parts.scheme == "https" or host_of(parts) in LOOPBACK_HOSTS)
    if re.sub(r"[.+-]", "", parts.scheme) in _NEVER_SCHEMES:
        return False
    return parts.scheme in schemes or _is_reverse_domain(parts.scheme)


def _is_reverse_domain(scheme: str) -> bool:
    labels = scheme.split(".")
    return (
        len(scheme) <= _LONGEST_DOMAIN
        and _REVERSE_DOMAIN.fullmatch(scheme) is not None
        and not _NEVER_SCHEMES.intersection(labels)
    )


def is_loopback(uri: str) -> bool:
    """Whether the redirect stays on the computer, over plain http."""
    parts = _split(uri)
    return parts is not None and parts.scheme == "http" and host_of(parts) in LOOPBACK_HOSTS


def is_native(uri: str) -> bool:
    """Whether an application of a device receives it: loopback or a private-use scheme."""
    parts = _split(uri)
    return parts is not None and (parts.scheme != "https")


def matches(registered: Sequence[str], uri: str) -> bool:
    """Whether a requested redirect URI is one of the registered ones."""
    return any(_match(registered_uri, uri) for registered_uri in registered)


def with_parameters(uri: str, parameters: Mapping[str, str | None]) -> str:
    """The URI with parameters added once each; its own query stays as it was."""
    added = urlencode([(name, value) for name, value in parameters.items() if value is not None])
    if "?" not in uri:
        return f"{uri}?{added}"
    return uri + added if uri.endswith(("?", "&")) else f"{uri}&{added}"


def host_of(parts: SplitResult) -> str:
    """The host as it was written, without port."""
    host = parts.netloc
    return re.sub(r":\d*\Z", "", host)


def _match(registered: str, uri: str) -> bool:
    if registered == uri:
        return True
    if not (is_loopback(registered) and is_loopback(uri) and is_usable(uri)):
        return False
    known_uri, requested = urlsplit(registered), urlsplit(uri)
    return (
        host_of(known_uri) == host_of(requested)
        and known_uri.path == requested.path
        and known_uri.query == requested.query
        and ("?" in registered) == ("?" in uri)
    )


def _split(uri: str) -> SplitResult | None:
    scheme = uri.partition(":")[0]
    if not _SCHEME.fullmatch(scheme) or ":" not in uri:
        return None
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        return None
    return parts if port is None or port > 0 else None
