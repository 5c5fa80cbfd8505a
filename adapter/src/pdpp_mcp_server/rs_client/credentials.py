"""A cached credential: one provider's document as it stands in the credential cache.

Rule: unknown members are kept, so that other PDPP tools may share the file; the token is read here
and shown nowhere.  Source: docs/contract/authorization-server.md 14.2.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import ClassVar
from urllib.parse import urlsplit

from pdpp_kernel.result_size import MOST_RESULT_CHARS, RESULT_CHARS
from pdpp_kernel.unprinted import Unprinted
from pdpp_kernel.values import instant_ns, instant_text, render_instant
from pdpp_mcp_server.rs_client.json_values import is_object
from pdpp_mcp_server.rs_client.port import RsFailure

OWNER = "owner"
_KIND_MEMBERS = ("token_kind", "pdpp_token_kind", "kind", "role")
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_NOT_IN_A_HOST = re.compile(r"[\s\x00-\x1f\x7f<>\"\\^`{|}%]")

Document = dict[str, object]


class CredentialError(Exception):
    """A credential that cannot be used; `code` is a word of the exit-code table (14.3)."""

    code: ClassVar[str] = "credential_invalid"

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step


class NoCredential(RsFailure):
    """The saved credential went, or cannot be used any more; no request is sent without one.

    Shapes: code is a word of the exit-code table (authorization server 14.3); message says what to
            do about it too.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NotConnected(CredentialError):
    """No credential for this provider is cached here."""

    code = "not_connected"


class SeveralConnected(CredentialError):
    """Credentials of several providers are cached here, and none was named."""

    code = "usage"


class CredentialInvalid(CredentialError):
    """The file is not a credential document."""


class CredentialInsecure(CredentialError):
    """Symbolic link, or a file or directory of another user."""

    code = "credential_insecure"


class CredentialMismatch(CredentialError):
    """The file belongs to another provider than the one asked for."""

    code = "credential_mismatch"


class CredentialExpired(CredentialError):
    """The credential can no longer be renewed."""

    code = "credential_expired"


class OwnerTokenRefused(CredentialError):
    """Owner material where only a granted credential may stand."""

    code = "owner_token_refused"


class InvalidProviderUrl(CredentialError):
    """Not a URL that a provider can have."""

    code = "invalid_provider_url"


class ProviderUnavailable(CredentialError):
    """The server, or the lock of its credential, did not answer in time."""

    code = "unavailable"


class MetadataFailure(CredentialError):
    """The server's discovery documents do not fit together."""

    code = "metadata_failure"


class ConnectNotSupported(CredentialError):
    """The server lacks what this way of connecting needs."""

    code = "connect_not_supported"


class ApprovalDenied(CredentialError):
    """The owner said no."""

    code = "approval_denied"


class ApprovalExpired(CredentialError):
    """Nobody decided in time."""

    code = "approval_expired"


class TokenRejected(CredentialError):
    """The server no longer accepts the credential."""

    code = "token_rejected"


def connect_hint(provider_url: str) -> str:
    """What to do when a credential is missing or spent."""
    return f"Run `pdpp connect {provider_url}`."


class Credential(Unprinted, frozen=True):
    """A parsed document.

    Shapes: `document` is the whole file, unknown members included; the typed members are read
        from it; `jkt` is the thumbprint of the key that its tokens are bound to; a file that names
        no client has an empty `client_id`, and nothing to renew its token with; `result_chars` is
        how long its owner lets a tool result be.
        Units: `expires_at_ns` UTC nanoseconds, `None` when the file names no end.
    """

    document: Document
    provider_url: str
    issuer: str
    client_id: str
    access_token: str
    refresh_token: str | None
    expires_at_ns: int | None
    token_kind: str | None
    resource: str | None
    grant_id: str | None
    grant_package_id: str | None
    jkt: str | None = None
    result_chars: int | None = None

    def seconds_left(self, now_ns: int) -> float:
        """How long the access token lasts; without a named end, for ever."""
        if self.expires_at_ns is None:
            return float("inf")
        return (self.expires_at_ns - now_ns) / 1_000_000_000

    def renewed(self, answer: Mapping[str, object], now_ns: int) -> Credential:
        """The credential after a token response: the same grant, a new pair.

        Shapes: members that the answer does not have stay as they were.
        """
        document = copy.deepcopy(self.document)
        credential = _object(document["credential"], "`credential`")
        credential.update(credential_members(answer, now_ns))
        document["credential"] = credential
        document["updated_at"] = render_instant(now_ns)
        return parse_credential(document, self.provider_url)


def credential_members(answer: Mapping[str, object], now_ns: int) -> Document:
    """The members of `credential` that a token response (docs/contract/authorization-server.md 9)
    fills.
    """
    names = ("access_token", "token_type", "scope", "refresh_token", "resource")
    members: Document = {name: answer[name] for name in names if answer.get(name) is not None}
    names = ("grant_id", "grant_package_id", "authorization_details")
    members |= {name: answer[name] for name in names if name in answer}
    seconds = answer.get("expires_in")
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        members["expires_at"] = render_instant(now_ns + int(seconds * 1_000_000_000))
    return members


def credential_document(
    provider_url: str,
    issuer: str,
    scope: str,
    client: Mapping[str, object],
    credential: Mapping[str, object],
    now_ns: int,
) -> Document:
    """A credential of a public client as the cache keeps it, made now."""
    now = instant_text(now_ns)
    return {
        "provider_url": provider_url,
        "authorization_server": issuer,
        "issuer": issuer,
        "scope": scope,
        "client": {**client, "token_endpoint_auth_method": "none"},
        "credential": {"token_type": "Bearer", **credential},
        "created_at": now,
        "updated_at": now,
    }


def parse_credential(value: object, provider_url: str | None = None) -> Credential:
    """A document of the cache as a credential, of this provider where it names none.

    Raises: CredentialInvalid, which names the member.
    """
    document = _object(value, "the document")
    credential = _object(document.get("credential"), "`credential`")
    client = _object(document.get("client") or {}, "`client`")
    client_id = _optional(client, "client_id", "client.") or ""
    refresh_token = _optional(credential, "refresh_token")
    if provider_url is None or document.get("provider_url") is not None:
        provider_url = _text(document, "provider_url", "")
    issuer = document.get("issuer") or document.get("authorization_server")
    return Credential(
        document=document,
        provider_url=provider_url,
        issuer=issuer if isinstance(issuer, str) else provider_url,
        client_id=client_id,
        access_token=_text(credential, "access_token"),
        refresh_token=refresh_token if client_id else None,
        expires_at_ns=_instant(credential),
        token_kind=_kind(credential) or _kind(document),
        resource=_optional(credential, "resource"),
        grant_id=_optional(credential, "grant_id"),
        grant_package_id=_optional(credential, "grant_package_id"),
        jkt=_optional(credential, "dpop_jkt"),
        result_chars=_result_chars(document),
    )


def refuse_owner(credential: Credential) -> Credential:
    """The credential, unless it is the owner's.  Raises: OwnerTokenRefused."""
    if credential.token_kind == OWNER:
        raise OwnerTokenRefused(
            "The saved credential is an owner credential, which this program never uses.",
            f"Remove the credential and {connect_hint(credential.provider_url).lower()}",
        )
    return credential


def normalize_provider_url(text: str) -> str:
    """The origin a person means: scheme added; trailing `/`, `/mcp`, `/v1` removed.

    Source: docs/contract/authorization-server.md 14.1.  Raises: InvalidProviderUrl.
    """
    bare = text.strip()
    host_only = bare.split("/", 1)[0].rsplit(":", 1)[0].strip("[]").lower()
    scheme = "http" if host_only in _LOOPBACK else "https"
    parts = urlsplit(bare if "://" in bare else f"{scheme}://{bare}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    path = parts.path.rstrip("/").removesuffix("/mcp").removesuffix("/v1")
    loopback = parts.hostname in _LOOPBACK
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or _NOT_IN_A_HOST.search(parts.hostname)
        or port == -1
        or parts.username is not None
        or path
        or parts.query
        or parts.fragment
        or (parts.scheme == "http" and not loopback)
    ):
        raise InvalidProviderUrl(
            "This is not the address of a personal server.",
            "Give the server's origin, such as https://me.example or http://127.0.0.1:7662.",
        )
    default = {"http": 80, "https": 443}[parts.scheme]
    name = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{name}" + ("" if port in (None, default) else f":{port}")


def _kind(members: Mapping[str, object]) -> str | None:
    kinds = [kind for name in _KIND_MEMBERS if isinstance(kind := members.get(name), str)]
    return OWNER if OWNER in kinds else next(iter(kinds), None)


def _instant(credential: Mapping[str, object]) -> int | None:
    text = _optional(credential, "expires_at")
    if text is None:
        return None
    instant = instant_ns(text)
    if instant is None:
        raise _invalid("`credential.expires_at`")
    return instant


def _result_chars(document: Document) -> int | None:
    value = document.get("result_chars")
    if value is None:
        return None
    if type(value) is int and RESULT_CHARS <= value <= MOST_RESULT_CHARS:
        return value
    span = f"{RESULT_CHARS} to {MOST_RESULT_CHARS}"
    raise _invalid(f"`result_chars`, which is a whole number of {span},")


def _object(value: object, name: str) -> Document:
    if not is_object(value):
        raise _invalid(f"{name}, which must be an object,")
    return value


def _text(members: Mapping[str, object], name: str, prefix: str = "credential.") -> str:
    value = members.get(name)
    if not isinstance(value, str) or not value:
        raise _invalid(f"`{prefix}{name}`")
    return value


def _optional(members: Mapping[str, object], name: str, prefix: str = "credential.") -> str | None:
    return None if members.get(name) is None else _text(members, name, prefix)


def _invalid(what: str) -> CredentialInvalid:
    return CredentialInvalid(
        f"The saved credential is malformed: {what} is missing or has the wrong form.",
        "Run `pdpp disconnect URL --local`, then `pdpp connect URL`.",
    )
