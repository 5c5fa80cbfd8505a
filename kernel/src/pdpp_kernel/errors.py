"""The error family: a class per wire code, and one table from status to type.

Rule: an error is raised where the decision falls and translated once, at the boundary of the
surface that answers. Messages quote what the caller sent and declared names, never stored values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

TYPE_OF_STATUS: Mapping[int, str] = {
    400: "invalid_request_error",
    405: "invalid_request_error",
    415: "invalid_request_error",
    421: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    410: "gone_error",
    413: "request_entity_too_large_error",
    414: "request_entity_too_large_error",
    416: "request_entity_too_large_error",
    422: "unprocessable_error",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
}


class PersonalServerError(Exception):
    """The root of everything we raise on purpose.

    `message` is English prose for people, `text` the same with the values that it was made with,
    for pages in another language (`domain/texts.py`); `param` names the argument at fault;
    `members` are the further members of the wire error (`allowed_values`, `retry_with`, `recovery`
    …), JSON values.
    """

    code: ClassVar[str] = "internal_error"
    status: ClassVar[int] = 500

    def __init__(self, message: str, *, param: str | None = None, **members: object) -> None:
        super().__init__(message)
        self.message = str(message)
        self.text = message
        self.param = param
        self.members: dict[str, object] = {k: v for k, v in members.items() if v is not None}

    @property
    def type(self) -> str:
        """The wire `type`, which follows from the status."""
        return TYPE_OF_STATUS[self.status]


class InternalError(PersonalServerError):
    """A defect of ours; the message is constant."""


# 400 ------------------------------------------------------------------------------------------
class InvalidRequest(PersonalServerError):
    """Unknown or malformed parameter, body or combination."""

    code, status = "invalid_request", 400


class UnsupportedVersion(PersonalServerError):
    """`PDPP-Version` other than the one spoken here."""

    code, status = "unsupported_version", 400


class InvalidCursor(PersonalServerError):
    """Cursor or bookmark malformed, forged, foreign or not for this request."""

    code, status = "invalid_cursor", 400


class UnknownField(PersonalServerError):
    """The stream declares no such field."""

    code, status = "unknown_field", 400


class InvalidSort(PersonalServerError):
    """The field cannot be sorted on, or the sign contradicts `order`."""

    code, status = "invalid_sort", 400


class InvalidFilter(PersonalServerError):
    """A filter of the wrong form, operator or type."""

    code, status = "invalid_filter", 400


class InvalidExpand(PersonalServerError):
    """An unknown relation, or a limit that does not fit it."""

    code, status = "invalid_expand", 400


class InvalidWindow(PersonalServerError):
    """A field window that cannot be cut."""

    code, status = "invalid_window", 400


class InvalidFieldPath(PersonalServerError):
    """Field windows read one top-level property."""

    code, status = "invalid_field_path", 400


class UnsupportedSearchMode(PersonalServerError):
    """No such search mode is installed here."""

    code, status = "unsupported_search_mode", 400


class InvalidDeclaration(PersonalServerError):
    """A source declaration that breaks its rules; `errors` lists `{path, message}`."""

    code, status = "invalid_declaration", 400


class InvalidCallback(PersonalServerError):
    """An address that events cannot be sent to."""

    code, status = "invalid_callback", 400


class ConfirmationRequired(PersonalServerError):
    """A destructive call without its `confirm` parameter."""

    code, status = "confirmation_required", 400


class SignInLinkInvalid(PersonalServerError):
    """A sign-in link that is unknown, used or past its ten minutes."""

    code, status = "sign_in_link_invalid", 400


# 401, 403 -------------------------------------------------------------------------------------
class AuthenticationRequired(PersonalServerError):
    """The request has no bearer token."""

    code, status = "authentication_error", 401


class InvalidToken(PersonalServerError):
    """Token unknown, expired, revoked, superseded, of a wrong audience or kind."""

    code, status = "invalid_token", 401


class InvalidDpopProof(PersonalServerError):
    """A proof of possession that does not fit its request; `reason` says which check failed."""

    code, status = "invalid_dpop_proof", 401


class UseDpopNonce(InvalidDpopProof):
    """A proof whose own time cannot be relied on; the answer brings a nonce for the next one."""

    code = "use_dpop_nonce"

    def __init__(self, message: str, nonce: str) -> None:
        super().__init__(message)
        self.nonce = nonce


class OwnerSessionRequired(PersonalServerError):
    """An owner page without a signed-in owner."""

    code, status = "owner_session_required", 401


class SignInFailed(PersonalServerError):
    """Wrong password, or none is set."""

    code, status = "sign_in_failed", 401


class CsrfFailed(PersonalServerError):
    """A form that did not come from our own page in this session."""

    code, status = "csrf_failed", 403


class GrantRevoked(PersonalServerError):
    """The owner ended the grant."""

    code, status = "grant_revoked", 403


class GrantExpired(PersonalServerError):
    """The grant reached its agreed end."""

    code, status = "grant_expired", 403


class GrantInvalid(PersonalServerError):
    """The stored grant cannot be read; it can only be ended."""

    code, status = "grant_invalid", 403


class GrantPaused(PersonalServerError):
    """The owner paused the grant, or has not confirmed it after a restore."""

    code, status = "grant_paused", 403


class GrantStreamNotAllowed(PersonalServerError):
    """The stream is outside the grant."""

    code, status = "grant_stream_not_allowed", 403


class EventsNotGranted(PersonalServerError):
    """The owner has not allowed that the app is told when something changes."""

    code, status = "events_not_granted", 403


class FieldNotGranted(PersonalServerError):
    """The field is declared but outside the grant."""

    code, status = "field_not_granted", 403


class NotPermitted(PersonalServerError):
    """The kind of token is not allowed on this route."""

    code, status = "permission_error", 403


# 404 ------------------------------------------------------------------------------------------
class NotFound(PersonalServerError):
    """No such route, record, stream, subscription or declaration."""

    code, status = "not_found", 404


class ConnectionNotFound(PersonalServerError):
    """The connection or connector is not in the read authority."""

    code, status = "connection_not_found", 404


class BlobNotFound(PersonalServerError):
    """No visible record references such a blob."""

    code, status = "blob_not_found", 404


class FieldNotFound(PersonalServerError):
    """The record has no value in this field."""

    code, status = "field_not_found", 404


class QueryNotFound(PersonalServerError):
    """The text does not occur in the field."""

    code, status = "query_not_found", 404


# 405 to 422 -----------------------------------------------------------------------------------
class MethodNotAllowed(PersonalServerError):
    """The route exists, the method does not."""

    code, status = "method_not_allowed", 405


class AmbiguousConnection(PersonalServerError):
    """Several sources could answer; the caller must name one."""

    code, status = "ambiguous_connection", 409


class AmbiguousSchemaDetail(PersonalServerError):
    """Full schema detail over several sources."""

    code, status = "ambiguous_schema_detail", 409


class ConnectionNotWritable(PersonalServerError):
    """The connection was revoked, or is one that never takes records."""

    code, status = "connection_not_writable", 409


class ConnectionBusy(PersonalServerError):
    """A write is under way on this connection."""

    code, status = "connection_busy", 409


class InvalidState(PersonalServerError):
    """The transition does not exist from the present state."""

    code, status = "invalid_state", 409


class LimitReached(PersonalServerError):
    """As many event subscriptions as an access may have."""

    code, status = "limit_reached", 409


class VerificationPending(PersonalServerError):
    """The address of an event subscription has not answered its challenge yet."""

    code, status = "verification_pending", 409


class DeclarationConflict(PersonalServerError):
    """A known declaration version with other content."""

    code, status = "declaration_conflict", 409


class DeclarationIncompatible(PersonalServerError):
    """A change of key or semantics of a stream that holds records."""

    code, status = "declaration_incompatible", 409


class CursorExpired(PersonalServerError):
    """The cursor outlived what it points into; `recovery` says how to go on."""

    code, status = "cursor_expired", 410


class BodyTooLarge(PersonalServerError):
    """A body, or its number of lines, over the limit."""

    code, status = "resource_limit", 413


class QueryTooLong(PersonalServerError):
    """A query string over the limit."""

    code, status = "resource_limit", 414


class UnsupportedMediaType(PersonalServerError):
    """The body has another content type than the route takes."""

    code, status = "unsupported_media_type", 415


class RangeNotSatisfiable(PersonalServerError):
    """The byte range lies outside the blob."""

    code, status = "range_not_satisfiable", 416


class MisdirectedRequest(PersonalServerError):
    """The request names a host that this server does not answer for."""

    code, status = "misdirected_request", 421


class DamagedRecord(PersonalServerError):
    """A record whose stored bytes are not those that were written."""

    code, status = "damaged_record", 422


class FieldNotText(PersonalServerError):
    """Field windows read strings only."""

    code, status = "field_not_text", 422


# 429, 503 -------------------------------------------------------------------------------------
class RateLimitExceeded(PersonalServerError):
    """Too many requests; `retry_after_seconds` and `limit` say more."""

    code, status = "rate_limit_exceeded", 429


class QuotaExceeded(PersonalServerError):
    """The day's records or bytes are used up."""

    code, status = "quota_exceeded", 429


class QueryTimeout(PersonalServerError):
    """The read passed its deadline."""

    code, status = "query_timeout", 503


class StorageUnavailable(PersonalServerError):
    """The store cannot answer now."""

    code, status = "storage_unavailable", 503


class StorageReadOnly(StorageUnavailable):
    """Nothing can be written now; `reason` says why, and reading goes on."""

    code, status = "storage_read_only", 503
