"""What an authorization server refuses: the OAuth family, and the codes of the consent pages.

Rule: one class per code; a boundary answers it as JSON, as a redirect or as a page.  `reason` is
a stable word, `param` a parameter name or a JSON pointer.
Source: docs/contract/authorization-server.md 0, 4.2, 6, 9.4.
"""

from __future__ import annotations

from pdpp_kernel.errors import PersonalServerError


class OAuthRefusal(PersonalServerError):
    """The root of the OAuth family; status 400 unless a class says otherwise."""

    code, status = "invalid_request", 400

    @property
    def reason(self) -> str | None:
        """The stable word beside the code, if there is one."""
        reason = self.members.get("reason")
        return reason if isinstance(reason, str) else None


class BadRequest(OAuthRefusal):
    """Missing, repeated or malformed parameter."""

    code = "invalid_request"


class RequestTooLarge(OAuthRefusal):
    """A body over the limit."""

    code, status = "invalid_request", 413


class InvalidClient(OAuthRefusal):
    """Unknown or blocked client, bad assertion, unusable document."""

    code = "invalid_client"


class InvalidGrantCode(OAuthRefusal):
    """A code, refresh token or device code that cannot be redeemed, whatever the reason."""

    code = "invalid_grant"


class UnauthorizedClient(OAuthRefusal):
    """The client may not use this grant type or profile."""

    code = "unauthorized_client"


class UnsupportedGrantType(OAuthRefusal):
    """Not a grant type of ours."""

    code = "unsupported_grant_type"


class UnsupportedResponseType(OAuthRefusal):
    """Only `code` is spoken here."""

    code = "unsupported_response_type"


class InvalidScope(OAuthRefusal):
    """`pdpp:owner` where it may not be asked for."""

    code = "invalid_scope"


class InvalidTarget(OAuthRefusal):
    """A resource that is not ours, or not the bound one."""

    code = "invalid_target"


class RequestNotSupported(OAuthRefusal):
    """Request objects are not spoken here."""

    code = "request_not_supported"


class InteractionRequired(OAuthRefusal):
    """Consent is always asked."""

    code = "interaction_required"


class TemporarilyUnavailable(OAuthRefusal):
    """Too many pending requests."""

    code = "temporarily_unavailable"


class AccessDenied(OAuthRefusal):
    """The owner said no, or what was asked for may not be spoken of."""

    code = "access_denied"


class AuthorizationPending(OAuthRefusal):
    """The owner has not decided yet."""

    code = "authorization_pending"


class SlowDown(OAuthRefusal):
    """Polled too soon; the interval has grown."""

    code = "slow_down"


class ExpiredToken(OAuthRefusal):
    """The device code is too old."""

    code = "expired_token"


class InvalidClientMetadata(OAuthRefusal):
    """A registration that cannot be repaired."""

    code = "invalid_client_metadata"


class InvalidRedirectUri(OAuthRefusal):
    """No usable redirect URI, or not one of this client's."""

    code = "invalid_redirect_uri"


class InvalidRequestUri(OAuthRefusal):
    """A pushed request that is unknown, another client's or too old."""

    code = "invalid_request_uri"


class InvalidAuthorizationDetails(OAuthRefusal):
    """A selection that is malformed or cannot be granted; always has a `reason`."""

    code = "invalid_authorization_details"

    @property
    def for_client(self) -> OAuthRefusal:
        """What the client may hear: nothing that tells which sources a person keeps."""
        if self.reason in HIDDEN_REASONS:
            return AccessDenied("The owner did not grant the request.")
        return self


HIDDEN_REASONS = frozenset({"source_unknown", "no_connection", "connection_unknown"})


class DecisionRefusal(PersonalServerError):
    """The root of what keeps the owner's decision from standing; answered as a page."""

    code, status = "invalid_request", 400


class NotANarrowing(DecisionRefusal):
    """A choice outside of what was asked for, or one that leaves nothing."""

    code, status = "not_a_narrowing", 400


class AiTrainingConsentRequired(DecisionRefusal):
    """Training needs its own box."""

    code, status = "ai_training_consent_required", 400


class InvalidUserCode(DecisionRefusal):
    """A device code that is wrong, used or too old."""

    code, status = "invalid_user_code", 400


class ReviewChanged(DecisionRefusal):
    """The choices are not those of the page that was shown."""

    code, status = "review_changed", 409


class ReviewStale(DecisionRefusal):
    """A connection, declaration or the client changed since the page was shown."""

    code, status = "review_stale", 409


class ApprovalConflict(DecisionRefusal):
    """Somebody decided first."""

    code, status = "approval_conflict", 409


class RequestClosed(DecisionRefusal):
    """The request was decided or has expired."""

    code, status = "request_closed", 410
