"""Clients: what is known of them, and what is taken from their own words (RFC 7591).

Rule: a client is asked who it is, never what it may do.  Registration replaces rather than refuses;
what it replaced stands in the answer.  No secret is ever issued.  A check is good for one answer
of the authorization endpoint, asks the owner nothing, and is gone with it.
Source: docs/contract/authorization-server.md 3, 3.2.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any, Literal, cast, get_args
from urllib.parse import urlsplit

import msgspec

from pdpp_kernel.oauth_errors import InvalidClientMetadata, InvalidRedirectUri
from personal_server.consent.redirects import MAX_URIS, is_native, is_usable
from personal_server.domain.hidden_characters import shows_nothing

PRE_REGISTERED, DOCUMENT, DYNAMIC, LOCAL, CHECK = (
    "pre_registered",
    "client_id_metadata_document",
    "dynamic",
    "local",
    "check",
)
CHECKING = "pdpp-doctor"
"""The `software_id` of a registration that only tries whether one would do."""
UNNAMED = "Unnamed app"
GrantType = Literal[
    "authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"
]
GRANT_TYPES: tuple[GrantType, ...] = get_args(GrantType)
AUTHORIZATION_CODE, REFRESH_TOKEN, DEVICE_CODE = GRANT_TYPES
OWNER_PROFILE = "pdpp:owner"
"""Among the grant types of a pre-registered client: it may ask for the owner profile."""
CLI_CLIENT, OWNER_CLI_CLIENT = "pdpp-cli", "pdpp-owner-cli"
MAX_NAME = 200
SCOPES = ("pdpp:read", "offline_access")
DISPLAY_MEMBERS = {
    "client_uri": "uri",
    "logo_uri": "logo_uri",
    "policy_uri": "policy_uri",
    "tos_uri": "tos_uri",
}
DISPLAY_URIS = tuple(DISPLAY_MEMBERS.values())
DPOP_BOUND = "dpop_bound_access_tokens"
"""What a client says that takes tokens bound to its key only (RFC 9449 5.2)."""
_TEXTS = ("client_name", "application_type", "scope", "software_id", "software_version")
_LISTS = ("redirect_uris", "grant_types", "response_types", "contacts")


class Registration(msgspec.Struct, frozen=True):
    """A client as it is registered.

    Shapes: `display` by our member names, https addresses only; `echoed` are the further members
        of the answer, by their wire names.
    """

    name: str
    redirect_uris: tuple[str, ...]
    grant_types: tuple[str, ...]
    application_type: str
    scope: str
    display: Mapping[str, object]
    echoed: Mapping[str, Any]
    dpop_bound: bool = False
    is_check: bool = False


def register(metadata: object, schemes: Collection[str]) -> Registration:
    """What is registered of these metadata.

    Raises: InvalidClientMetadata, InvalidRedirectUri.
    """
    members = _used_members(metadata)
    grant_types = _grant_types(cast("list[str]", members.get("grant_types") or []))
    uris = cast("list[str]", members.get("redirect_uris") or [])
    usable = tuple(dict.fromkeys(uri for uri in uris if is_usable(uri, schemes)))
    if AUTHORIZATION_CODE in grant_types and not usable:
        raise InvalidRedirectUri(
            "Register at least one redirect URI: https, loopback http or a private scheme.",
            param="redirect_uris",
        )
    if len(usable) > MAX_URIS:
        raise InvalidRedirectUri(f"At most {MAX_URIS} redirect URIs.", param="redirect_uris")
    addresses = {name: members[name] for name in DISPLAY_MEMBERS if _is_https(members.get(name))}
    members_kept = {"software_id", "software_version", "contacts", DPOP_BOUND} & members.keys()
    native = bool(usable) and all(is_native(uri) for uri in usable)
    return Registration(
        name=_shown_name(members.get("client_name")),
        redirect_uris=usable,
        grant_types=grant_types,
        application_type="native" if native else "web",
        scope=_scope(members.get("scope")),
        display={DISPLAY_MEMBERS[name]: address for name, address in addresses.items()},
        echoed={**addresses, **{name: members[name] for name in sorted(members_kept)}},
        dpop_bound=members.get(DPOP_BOUND) is True,
        is_check=members.get("software_id") == CHECKING,
    )


def client_display(
    client_id: str, name: str, display: Mapping[str, object], metadata: Mapping[str, object] | None
) -> dict[str, object]:
    """How a client is shown and bound: its registered name and addresses, else its own words.

    Source: docs/contract/authorization-server.md 4.1 (`client_display` counts only where the
    registration gives no name).
    """
    if name:
        return {"name": name, **display}
    if metadata and metadata.get("name"):
        return {**metadata, **display}
    return {"name": urlsplit(client_id).hostname or UNNAMED, **display}


def local_client_id(name: str) -> str:
    """The id of a client that the owner made on the machine of the store."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60]
    return f"local_{slug or 'client'}"


def _used_members(metadata: object) -> dict[str, object]:
    if not isinstance(metadata, dict):
        raise InvalidClientMetadata("The client metadata must be a JSON object.")
    used = {*_TEXTS, *_LISTS, *DISPLAY_MEMBERS, DPOP_BOUND}
    raw = cast("dict[str, object]", metadata)
    members = {n: v for n, v in raw.items() if n in used and v is not None and v != ""}
    for name, value in members.items():
        kind = bool if name == DPOP_BOUND else str
        well_typed = _is_texts(value) if name in _LISTS else isinstance(value, kind)
        if not well_typed:
            raise InvalidClientMetadata(
                "This member of the client metadata has the wrong type.", param=name
            )
    if len(str(members.get("client_name", ""))) > MAX_NAME:
        raise InvalidClientMetadata(f"At most {MAX_NAME} characters.", param="client_name")
    return members


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) for item in cast("list[object]", value)
    )


def _grant_types(grant_types: list[str]) -> tuple[str, ...]:
    supported = [name for name in dict.fromkeys(grant_types) if name in GRANT_TYPES]
    if grant_types and not supported:
        raise InvalidClientMetadata(
            "The server supports none of these grant types.", param="grant_types"
        )
    supported = supported or [AUTHORIZATION_CODE]
    obtains = AUTHORIZATION_CODE in supported or DEVICE_CODE in supported
    if not obtains:
        raise InvalidClientMetadata(
            ("The client asks for refresh tokens, but for no grant type that could issue one."),
            param="grant_types",
        )
    if REFRESH_TOKEN not in supported:
        supported.append(REFRESH_TOKEN)
    return tuple(supported)


def _shown_name(name: object) -> str:
    text = str(name or "").strip()
    return UNNAMED if shows_nothing(text) else text


def _scope(asked: object) -> str:
    scopes = [scope for scope in SCOPES if scope in str(asked or "").split()]
    return " ".join(scopes) or " ".join(SCOPES)


def _is_https(value: object) -> bool:
    if not isinstance(value, str) or len(value) > 2_048:
        return False
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname)
