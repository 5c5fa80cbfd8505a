"""Client-id metadata documents: what is taken from one, and how its client proves itself.

Rule: the document is at the URL that it names, byte for byte, or it is nothing.
Source: docs/contract/authorization-server.md 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import cast
from urllib.parse import urlsplit

import msgspec
import orjson

from pdpp_kernel.oauth_errors import InvalidClient
from pdpp_kernel.texts import CatalogueText, message
from personal_server.consent.client_registration import DISPLAY_MEMBERS, DPOP_BOUND
from personal_server.consent.redirects import MAX_URIS, is_usable

MAX_URL = 2_048
MAX_DEPTH = 8
NONE, PRIVATE_KEY_JWT = "none", "private_key_jwt"
_HOST = re.compile(r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]*[a-z0-9]")
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


class ClientDocument(msgspec.Struct, frozen=True):
    """A client as its document describes it.

    Shapes: `auth_method` is how it *must* prove itself; `keys` or `jwks_uri` where it publishes
        keys; `signing_alg` the only algorithm it may use, `None` for any of ours; `published_on`
        the day of a document that could not be fetched now, `None` for a fetched one.
    """

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]
    auth_method: str
    grant_types: tuple[str, ...]
    display: Mapping[str, object]
    keys: Mapping[str, object] | None = None
    jwks_uri: str | None = None
    signing_alg: str | None = None
    dpop_bound: bool = False
    published_on: str | None = None

    @property
    def publishes_keys(self) -> bool:
        """Whether an assertion of this client can be verified."""
        return self.keys is not None or self.jwks_uri is not None


def check_document_url(url: str, own_hosts: Collection[str]) -> str:
    """The URL, if a document may be fetched from there.

    Shapes: `own_hosts` are our own `host[:port]`.  Raises: InvalidClient.
    """
    refused = InvalidClient(
        "The client_id is not the address of a document that describes the app.", param="client_id"
    )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise refused from None
    plain = url.isascii() and not re.search(r"[\s\x00-\x20\\]", url) and len(url) <= MAX_URL
    host = parts.netloc.partition(":")[0]
    segments = parts.path.split("/")
    dotted = any(re.fullmatch(r"(\.|%2e){1,2}", s, re.IGNORECASE) for s in segments)
    if (
        not plain
        or parts.scheme != "https"
        or port not in (None, 443)
        or not _HOST.fullmatch(host)
        or "@" in parts.netloc
        or len(parts.path) < 2
        or dotted
        or "#" in url
        or host in {own.partition(":")[0] for own in own_hosts}
    ):
        raise refused
    return url


def parse_json(body: bytes) -> dict[str, object]:
    """A fetched JSON object of bounded depth.  Raises: InvalidClient."""
    refused = InvalidClient("The document at client_id is not a JSON object.")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise refused from None
    if not isinstance(document, dict) or _depth(cast("object", document)) > MAX_DEPTH:
        raise refused
    return cast("dict[str, object]", document)


def parse_client_document(url: str, body: bytes, schemes: Collection[str]) -> ClientDocument:
    """The client that a document describes.  Raises: InvalidClient."""
    document = parse_json(body)
    if document.get("client_id") != url:
        raise _unusable(message("the document names another client_id"))
    redirects = _texts(document, "redirect_uris")
    if not 1 <= len(redirects) <= MAX_URIS:
        raise _unusable(message("the document must have 1 to 20 redirect URIs"))
    if not all(is_usable(uri, schemes) for uri in redirects):
        raise _unusable(message("one of the redirect URIs cannot be used"))
    addresses = {ours: document.get(theirs) for theirs, ours in DISPLAY_MEMBERS.items()}
    keys, jwks_uri = _keys(document)
    return ClientDocument(
        client_id=url,
        name=str(_text(document, "client_name") or "")[:200],
        redirect_uris=tuple(redirects),
        auth_method=_auth_method(document, keys is not None or jwks_uri is not None),
        grant_types=tuple(_texts(document, "grant_types")),
        display={n: a for n, a in addresses.items() if isinstance(a, str) and a[:8] == "https://"},
        keys=keys,
        jwks_uri=jwks_uri,
        signing_alg=_text(document, "token_endpoint_auth_signing_alg"),
        dpop_bound=_flag(document, DPOP_BOUND),
    )


def published_keys(body: bytes) -> object:
    """What a fetched document or key set says of keys, to be compared with what it said before."""
    try:
        document = parse_json(body)
    except InvalidClient:
        return None
    return [document.get(name) for name in ("jwks", "jwks_uri", "keys")]


def check_public_keys(keys: Mapping[str, object]) -> Mapping[str, object]:
    """A key set that holds public asymmetric keys only.  Raises: InvalidClient."""
    found = keys.get("keys")
    if not isinstance(found, list) or not found:
        raise _unusable(message("the key set of the client is empty"))
    for key in cast("list[object]", found):
        if not isinstance(key, dict):
            raise _unusable(message("the key set of the client is malformed"))
        members = cast("dict[str, object]", key)
        if members.get("kty") == "oct" or _PRIVATE_MEMBERS & members.keys():
            raise _unusable(
                message("the key set of the client contains a private or symmetric key")
            )
    return keys


def _auth_method(document: Mapping[str, object], publishes_keys: bool) -> str:
    method = _text(document, "token_endpoint_auth_method") or NONE
    if method == NONE:
        return NONE
    if method != PRIVATE_KEY_JWT:
        raise _unusable(message("the authentication method is neither none nor private_key_jwt"))
    if not publishes_keys:
        raise _unusable(message("the client publishes no keys"))
    plural = _texts(document, "token_endpoint_auth_methods_supported")
    return NONE if NONE in plural else PRIVATE_KEY_JWT


def _keys(document: Mapping[str, object]) -> tuple[Mapping[str, object] | None, str | None]:
    jwks, jwks_uri = document.get("jwks"), _text(document, "jwks_uri")
    if jwks is not None:
        if not isinstance(jwks, dict):
            raise _unusable(message("the key set of the client is malformed"))
        return check_public_keys(cast("dict[str, object]", jwks)), None
    return None, jwks_uri


def _text(document: Mapping[str, object], name: str) -> str | None:
    value = document.get(name)
    if value is None or isinstance(value, str):
        return value or None
    raise _unusable(message("%(member)s has the wrong type", member=name))


def _flag(document: Mapping[str, object], name: str) -> bool:
    value = document.get(name)
    if value is None or isinstance(value, bool):
        return value is True
    raise _unusable(message("%(member)s has the wrong type", member=name))


def _texts(document: Mapping[str, object], name: str) -> Sequence[str]:
    value = document.get(name)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(i, str) for i in cast("list[object]", value)):
        return cast("list[str]", value)
    raise _unusable(message("%(member)s has the wrong type", member=name))


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max((_depth(v) for v in cast("dict[str, object]", value).values()), default=0)
    if isinstance(value, list):
        return 1 + max((_depth(item) for item in cast("list[object]", value)), default=0)
    return 0


def _unusable(reason: CatalogueText) -> InvalidClient:
    return InvalidClient(message("The document at client_id cannot be used: %(why)s.", why=reason))
